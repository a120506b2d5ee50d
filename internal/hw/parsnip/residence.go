package parsnip

// Residence selects where ParsnipLines may stay (section 4.3.3).
type Residence uint8

// The policies.
const (
	Adaptive Residence = iota
	L1                 // a line goes to software when it leaves a core's L1 and no other core's caches have it
	LLC                // lines move with their data
)

// The thesis gives no parameters for the adaptive policy. Here a window is this many accesses. A policy is judged by
// the software checks that the other one may avoid. If lines stay in the LLC, these are the checks of present lines,
// because tables may be full of old clocks. If lines stay in L1, these are the checks of missing lines. If there are
// more of them than one in tooMany accesses, the other policy is tried, except if its last window is recent and had
// more software checks in all.
const (
	window  = 1 << 13
	tooMany = 100
	longAgo = 64 // windows
)

// residence selects the policy.
type residence struct {
	fixed    Residence
	l1       bool // lines stay only in L1
	accesses uint32
	windows  uint32
	before   [Sources]uint64 // checks by source, at the start of the window
	rate     [2]uint64       // software checks in the last window of each policy: LLC, L1
	last     [2]uint32       // number of that window
}

// step is called for each access.
func (p *residence) step(d *Detector) {
	if p.accesses++; p.accesses < window || p.fixed != Adaptive {
		return
	}
	p.accesses = 0
	p.windows++
	checks := [2]uint64{d.Counts.Resolved[Software] - p.before[Software], d.Counts.Resolved[Missing] - p.before[Missing]}
	p.before = d.Counts.Resolved
	now, other := 0, 1
	if p.l1 {
		now, other = 1, 0
	}
	p.rate[now], p.last[now] = checks[0]+checks[1], p.windows
	tried := p.last[other] != 0 && p.windows-p.last[other] < longAgo
	if checks[now] > window/tooMany && !(tried && p.rate[other] >= p.rate[now]) {
		p.l1 = !p.l1
		d.Counts.Switches++
	}
}
