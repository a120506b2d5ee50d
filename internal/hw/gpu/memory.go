package gpu

const (
	lineShift = 7
	lineBytes = 1 << lineShift
	// Lines of metadata and of local memory are distinct from those of global memory.
	metadataLines = uint64(1) << 58
	localLines    = uint64(1) << 57
	// interleave is the number of consecutive lines that belong to one channel.
	interleave = 2
)

// calendar holds the reservations of a resource that serves one request a cycle. Time is divided into slots, so that a
// request for an early time does not wait for reservations at later times.
type calendar struct {
	slots [slots]slot
}

const (
	slots     = 512
	slotShift = 4 // logarithm of the cycles of a slot
)

type slot struct{ number, used uint64 }

// take reserves n cycles, not before t, and returns the cycle at which they end.
func (c *calendar) take(t, n uint64) uint64 {
	const cycles = 1 << slotShift
	end := t + n
	for s := t >> slotShift; n > 0; s++ {
		p := &c.slots[s%slots]
		if p.number > s { // slot s is no longer recorded: ignore other reservations
			return end
		}
		if p.number != s {
			*p = slot{number: s}
		}
		k := min(n, cycles-p.used)
		p.used += k
		if n -= k; n == 0 && k > 0 {
			end = max(end, s<<slotShift+p.used)
		}
	}
	return end
}

// array is a set-associative cache. The ways of a set are in the order of their last use.
type array struct {
	ways int
	sets uint64
	all  []entry
}

type entry struct {
	line  uint64 // when its data arrive
	ready uint64 // when its data are there
	valid bool
	dirty bool
}

func newArray(bytes, ways int) *array {
	sets := bytes / lineBytes / ways
	return &array{ways, uint64(sets), make([]entry, sets*ways)}
}

func (a *array) set(index uint64) []entry {
	at := int(index%a.sets) * a.ways
	return a.all[at : at+a.ways]
}

// find makes a line the most recently used one, and returns its entry or nil if the line is absent. The index selects
// the set.
func (a *array) find(index, line uint64) *entry {
	set := a.set(index)
	for i := range set {
		if e := set[i]; e.valid && e.line == line {
			copy(set[1:i+1], set[:i])
			set[0] = e
			return &set[0]
		}
	}
	return nil
}

// insert adds a line. It returns its entry, and the entry that leaves.
func (a *array) insert(index, line uint64) (added *entry, left entry) {
	set := a.set(index)
	left = set[len(set)-1]
	copy(set[1:], set)
	set[0] = entry{line: line, valid: true}
	return &set[0], left
}

// drop removes a line.
func (a *array) drop(index, line uint64) {
	set := a.set(index)
	for i := range set {
		if set[i].valid && set[i].line == line {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = entry{}
			return
		}
	}
}

// channel is a channel of DRAM.
type channel struct {
	rows []uint64 // the open rows, plus 1, by bank
	open []uint64 // when they can be read, by bank
	last uint64   // time of the last activation in any bank
	data calendar
}

// Counts are the counts of a run.
type Counts struct {
	Cycles       uint64 `json:"cycles"`
	Instructions uint64 `json:"warp_instructions"`
	Transactions uint64 `json:"global_transactions"`
	L1Hits       uint64 `json:"l1_hits"`
	L1Misses     uint64 `json:"l1_misses"`
	L2Hits       uint64 `json:"l2_hits"` // of data
	L2Misses     uint64 `json:"l2_misses"`
	MetaHits     uint64 `json:"l2_metadata_hits"`
	MetaMisses   uint64 `json:"l2_metadata_misses"`
	DRAMData     uint64 `json:"dram_data"` // accesses: fills and writebacks
	DRAMMeta     uint64 `json:"dram_metadata"`
	RowHits      uint64 `json:"dram_row_hits"`
	Flits        uint64 `json:"flits"`
	Checks       uint64 `json:"checks"`        // packets that the detector has accepted
	Stalls       uint64 `json:"buffer_stalls"` // cycles that loads that hit L1 waited for the buffer
	Idle         uint64 `json:"idle_cycles"`   // cycles of SMs that have warps but no ready one
}

func (c *Counts) add(x *Counts) {
	c.Cycles += x.Cycles
	c.Instructions += x.Instructions
	c.Transactions += x.Transactions
	c.L1Hits += x.L1Hits
	c.L1Misses += x.L1Misses
	c.L2Hits += x.L2Hits
	c.L2Misses += x.L2Misses
	c.MetaHits += x.MetaHits
	c.MetaMisses += x.MetaMisses
	c.DRAMData += x.DRAMData
	c.DRAMMeta += x.DRAMMeta
	c.RowHits += x.RowHits
	c.Flits += x.Flits
	c.Checks += x.Checks
	c.Stalls += x.Stalls
	c.Idle += x.Idle
}

// memory is all memory except the memory units of SMs: L1, the network, L2, DRAM and the detector.
type memory struct {
	c        Config
	d        *Detector // nil for none
	on       Costs
	l1       []*array
	up, down []calendar // ports of SMs into the network and out of it
	in, out  []calendar // ports of banks of L2
	l2       []*array
	bank     []calendar
	detector []calendar
	dram     []channel
	waiting  [][]uint64 // by SM: when the detector accepts the packets of the last loads that hit L1
	next     []int
	queue    [][]uint64 // by bank: when the checks of the last accepted packets end
	head     []int
	counts   Counts
}

func newMemory(c Config, d *Detector, on Costs) *memory {
	m := &memory{c: c, d: d, on: on, up: make([]calendar, c.SMs), down: make([]calendar, c.SMs), in: make([]calendar, c.Channels),
		out: make([]calendar, c.Channels), bank: make([]calendar, c.Channels), detector: make([]calendar, c.Channels),
		dram: make([]channel, c.Channels), next: make([]int, c.SMs), head: make([]int, c.Channels)}
	for range c.SMs {
		m.l1 = append(m.l1, newArray(c.L1Bytes, c.L1Ways))
		if d != nil {
			m.waiting = append(m.waiting, make([]uint64, max(d.Buffer, 1)))
		}
	}
	for i := range c.Channels {
		if d != nil {
			m.queue = append(m.queue, make([]uint64, max(d.Queue, 1)))
		}
		m.l2 = append(m.l2, newArray(c.L2Bytes/c.Channels, c.L2Ways))
		m.dram[i].rows, m.dram[i].open = make([]uint64, c.DRAMBanks), make([]uint64, c.DRAMBanks)
	}
	return m
}

// place returns the channel of a line, and the line's number within the channel.
func (m *memory) place(line uint64) (channel int, index uint64) {
	n := line / interleave
	k := uint64(m.c.Channels)
	return int(n % k), n/k*interleave + line%interleave
}

// packet sends a packet from an SM to a bank, or back. It returns the time of arrival. extra is the number of bytes
// that the detector adds.
func (m *memory) packet(t uint64, from, to *calendar, bytes, extra int) uint64 {
	if m.on.NOC {
		bytes += extra
	}
	flits := uint64((m.c.HeaderBytes + bytes + m.c.FlitBytes - 1) / m.c.FlitBytes)
	m.counts.Flits += flits
	t = from.take(t, flits)
	return to.take(t+uint64(m.c.NetworkLatency), flits)
}

// info returns the number of bytes that the detector adds to a packet.
func (m *memory) info() int {
	if m.d == nil {
		return 0
	}
	return m.d.InfoBytes
}

// load reads a line of global memory for an SM, through L1 if through is set. It returns when the data arrive, and when
// the SM's memory unit is free again. first and last are the first and the last accessed byte within the line.
func (m *memory) load(t uint64, sm int, line uint64, first, last int, through bool) (done, free uint64) {
	m.counts.Transactions++
	if through {
		if e := m.l1[sm].find(line, line); e != nil {
			m.counts.L1Hits++
			free = t
			if m.d != nil {
				free = m.hit(t, sm, line, first, last)
			}
			return max(free+uint64(m.c.L1Latency), e.ready), free
		}
		m.counts.L1Misses++
	}
	ch, _ := m.place(line)
	at := m.packet(t+uint64(m.c.L1Latency), &m.up[sm], &m.in[ch], 0, m.info())
	m.check(at, line, first, last)
	at = m.second(at, line, false, false)
	done = m.packet(at, &m.out[ch], &m.down[sm], lineBytes, 0)
	if through {
		e, left := m.l1[sm].insert(line, line)
		e.ready = done
		m.evicted(t, sm, &left)
	}
	return done, t
}

// hit reports a load that hits L1 to the detector. It returns when the load can continue.
func (m *memory) hit(t uint64, sm int, line uint64, first, last int) uint64 {
	if !m.on.LHD {
		// The check accesses metadata, but the load does not wait for it.
		m.checkHit(t, sm, line, first, last)
		return t
	}
	wait := &m.waiting[sm][m.next[sm]]
	m.next[sm] = (m.next[sm] + 1) % len(m.waiting[sm])
	if *wait > t {
		m.counts.Stalls += *wait - t
		t = *wait
	}
	*wait = m.checkHit(t, sm, line, first, last)
	return t
}

// checkHit sends the packet of a load that hits L1. It returns when the detector accepts it.
func (m *memory) checkHit(t uint64, sm int, line uint64, first, last int) uint64 {
	if m.on.NOC {
		ch, _ := m.place(line)
		t = m.packet(t, &m.up[sm], &m.in[ch], 0, m.info())
	} else {
		t += uint64(m.c.NetworkLatency)
	}
	return m.check(t, line, first, last)
}

// store writes bytes of a line to L2. It returns when the store is acknowledged.
func (m *memory) store(t uint64, sm int, line uint64, first, last, bytes int) uint64 {
	m.counts.Transactions++
	m.l1[sm].drop(line, line)
	ch, _ := m.place(line)
	at := m.packet(t, &m.up[sm], &m.in[ch], bytes, m.info())
	m.check(at, line, first, last)
	at = m.second(at, line, true, bytes == lineBytes)
	return m.packet(at, &m.out[ch], &m.down[sm], 0, 0)
}

// atomic executes an atomic operation of some lanes on a line, one lane a cycle.
func (m *memory) atomic(t uint64, sm int, line uint64, first, last, bytes, lanes int, back bool) uint64 {
	m.counts.Transactions++
	m.l1[sm].drop(line, line)
	ch, _ := m.place(line)
	at := m.packet(t, &m.up[sm], &m.in[ch], bytes, m.info())
	m.check(at, line, first, last)
	at = m.second(at, line, true, false)
	at = m.bank[ch].take(at, uint64(lanes))
	if !back {
		bytes = 0
	}
	return m.packet(at, &m.out[ch], &m.down[sm], bytes, 0)
}

// local accesses a line of local memory.
func (m *memory) local(t uint64, sm int, line uint64, write bool) (done uint64) {
	line += localLines
	e := m.l1[sm].find(line, line)
	if e == nil {
		ch, _ := m.place(line)
		at := m.packet(t+uint64(m.c.L1Latency), &m.up[sm], &m.in[ch], 0, 0)
		at = m.second(at, line, false, false)
		var left entry
		e, left = m.l1[sm].insert(line, line)
		e.ready = m.packet(at, &m.out[ch], &m.down[sm], lineBytes, 0)
		m.evicted(t, sm, &left)
	}
	e.dirty = e.dirty || write
	return max(t+uint64(m.c.L1Latency), e.ready)
}

// evicted writes back a line that leaves L1 if it is dirty. Only lines of local memory can be.
func (m *memory) evicted(t uint64, sm int, left *entry) {
	if left.valid && left.dirty {
		ch, _ := m.place(left.line)
		m.second(m.packet(t, &m.up[sm], &m.in[ch], lineBytes, 0), left.line, true, true)
	}
}

// fence reports a fence to the detector. It returns when the detector has received it.
func (m *memory) fence(t uint64, sm, warp int) uint64 {
	if m.d == nil || m.d.FenceBytes == 0 || !m.on.NOC {
		return t
	}
	ch := warp % m.c.Channels
	return m.packet(t, &m.up[sm], &m.in[ch], m.d.FenceBytes, 0)
}

// check checks an access to the bytes first to last of a line. It returns when the detector accepts the packet, which
// requires room in the queue of the bank. The packet stays in the queue until it has been checked.
func (m *memory) check(t uint64, line uint64, first, last int) uint64 {
	if m.d == nil {
		return t
	}
	m.counts.Checks++
	ch, _ := m.place(line)
	t = m.detector[ch].take(t, uint64(m.d.Interval))
	if !m.on.MD {
		return t
	}
	slot := &m.queue[ch][m.head[ch]]
	m.head[ch] = (m.head[ch] + 1) % len(m.queue[ch])
	t = max(t, *slot)
	from := (line<<lineShift + uint64(first)) / uint64(m.d.DataBytes) * uint64(m.d.WordBytes) >> lineShift
	to := ((line<<lineShift+uint64(last))/uint64(m.d.DataBytes)*uint64(m.d.WordBytes) + uint64(m.d.WordBytes) - 1) >> lineShift
	done := t
	for l := from; l <= to; l++ {
		// One access to the bank both reads and writes.
		done = max(done, m.second(t, l|metadataLines, true, false))
	}
	*slot = done + uint64(m.d.Latency)
	return t
}

// second accesses a line in L2. It returns when the access is done. A line that is written as a whole is not fetched.
func (m *memory) second(t uint64, line uint64, write, whole bool) uint64 {
	ch, index := m.place(line)
	meta := line&metadataLines != 0
	t = m.bank[ch].take(t, 1)
	e := m.l2[ch].find(index, line)
	if e != nil {
		if meta {
			m.counts.MetaHits++
		} else {
			m.counts.L2Hits++
		}
	} else {
		if meta {
			m.counts.MetaMisses++
		} else {
			m.counts.L2Misses++
		}
		var left entry
		e, left = m.l2[ch].insert(index, line)
		if left.valid && left.dirty {
			m.access(t, left.line)
		}
		if !whole {
			e.ready = m.access(t+uint64(m.c.L2Latency), line)
		}
	}
	e.dirty = e.dirty || write
	return max(t+uint64(m.c.L2Latency), e.ready)
}

// access reads or writes a line in DRAM. It returns when the access is done.
func (m *memory) access(t uint64, line uint64) uint64 {
	if line&metadataLines != 0 {
		m.counts.DRAMMeta++
	} else {
		m.counts.DRAMData++
	}
	n, index := m.place(line)
	ch := &m.dram[n]
	clocks := func(n int) uint64 { return uint64((n*m.c.CoreMHz + m.c.DRAMMHz - 1) / m.c.DRAMMHz) }
	row := index * lineBytes / uint64(m.c.DRAMRow)
	bank := row % uint64(m.c.DRAMBanks)
	t += uint64(m.c.DRAMLatency)
	if ch.rows[bank] == row+1 {
		m.counts.RowHits++
		t = max(t, ch.open[bank])
	} else {
		opened := max(t, ch.last+clocks(m.c.RRD))
		if ch.rows[bank] != 0 {
			was := ch.open[bank] - min(ch.open[bank], clocks(m.c.RCD))
			opened = max(opened, was+clocks(m.c.RC), max(t, was+clocks(m.c.RAS))+clocks(m.c.RP))
		}
		ch.rows[bank], ch.last = row+1, opened
		t = opened + clocks(m.c.RCD)
		ch.open[bank] = t
	}
	return ch.data.take(t+clocks(m.c.CL), clocks((lineBytes+m.c.DRAMWidth-1)/m.c.DRAMWidth))
}
