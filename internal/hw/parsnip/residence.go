package parsnip

// Residence is where ParsnipLines may stay (section 4.3.3).
type Residence uint8

// The policies.
const (
	Adaptive Residence = iota
	L1                 // a line that leaves a core's L1, and is in no other core's caches, goes to software
	LLC                // lines go where data go
)

// The thesis gives no numbers for the adaptive policy. Here a window is this many accesses, and software checks are too many if
// they are more than one in tooMany accesses. Then the other policy is tried, unless its last window, not long ago, was worse.
const (
	window  = 1 << 14
	tooMany = 100
	longAgo = 64 // windows
)

// residence chooses the policy.
type residence struct {
	fixed    Residence
	l1       bool // lines stay in L1 alone
	accesses uint32
	checks   uint64 // at the begin of the window
	windows  uint32
	rate     [2]uint64 // software checks of the last window in which lines could stay in the LLC, or in L1
	last     [2]uint32 // its number
}

// step is told of each access.
func (p *residence) step(d *Detector) {
	if p.accesses++; p.accesses < window || p.fixed != Adaptive {
		return
	}
	p.accesses = 0
	p.windows++
	now, other := 0, 1
	if p.l1 {
		now, other = 1, 0
	}
	p.rate[now], p.last[now] = d.Counts.Checks-p.checks, p.windows
	p.checks = d.Counts.Checks
	tried := p.last[other] != 0 && p.windows-p.last[other] < longAgo
	if p.rate[now] > window/tooMany && !(tried && p.rate[other] >= p.rate[now]) {
		p.l1 = !p.l1
		d.Counts.Switches++
	}
}
