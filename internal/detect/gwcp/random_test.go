package gwcp

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// shapeOf is the shape of a random launch. lanes is the number of lanes in a warp that act.
type shapeOf struct{ blocks, warps, lanes int }

// maker makes a random trace in two forms: as events and as operations.
type maker struct {
	r       *rand.Rand
	s       shapeOf
	ops     []op
	b       event.Batch
	holder  map[int]int     // lock: the thread that holds it
	device  map[[2]int]bool // thread, lock: whether the acquire had device scope
	held    map[int][]int   // thread: the locks that it holds
	barrier int
	posted  map[int]int // flag: the operation that posted it
	nested  bool
	async   bool           // some posts are made by the completion of asynchronous operations
	flights []flight       // those that are not complete
	landed  map[int]flight // by block: the one that completed last
	vectors bool           // posts write two words, and a wait reads one of them
	narrow  int            // one lock operation in so many has block scope; 0: none
}

const (
	dataBase = 0x10000
	lockBase = 0x20000
	flagBase = 0x30000
)

func (m *maker) place(t int) (block int, warp uint32, lane int) {
	lane = t % m.s.lanes
	w := t / m.s.lanes
	return w / m.s.warps, uint32(w), lane
}

func (m *maker) emit(t int, e event.Event) {
	_, w, lane := m.place(t)
	e.Launch, e.Warp, e.Mask = 1, w, 1<<uint(lane)
	if e.Place == 0 {
		e.Place = 1
	}
	m.b.Events = append(m.b.Events, e)
}

func (m *maker) op(o op) { m.ops = append(m.ops, o) }

func scopeOf(device bool) event.Scope {
	if device {
		return event.ScopeGPU
	}
	return event.ScopeCTA
}

func newMaker(seed uint64) *maker {
	r := rand.New(rand.NewPCG(seed, 7))
	m := launched(r, shapeOf{1 + r.IntN(3), 1 + r.IntN(2), 1 + r.IntN(2)})
	m.nested = m.r.IntN(2) == 0
	m.narrow = m.r.IntN(4)
	m.vectors, m.async = seed%2 == 0, seed%3 == 0
	calm := m.r.IntN(3) > 0
	for i := 4 + m.r.IntN(40); i > 0; i-- {
		if calm && m.r.IntN(8) > 0 {
			m.visit()
			i -= 2
			continue
		}
		m.step()
	}
	return m
}

// launched makes a trace in which a launch has begun.
func launched(r *rand.Rand, s shapeOf) *maker {
	m := &maker{r: r, s: s, holder: map[int]int{}, device: map[[2]int]bool{}, held: map[int][]int{}, posted: map[int]int{}, landed: map[int]flight{}}
	threads := uint32(32*(m.s.warps-1) + m.s.lanes)
	m.b.Launches = []event.Launch{{ID: 1, Synchronises: true, Swaps: true, Kernel: "k", Grid: event.Dim3{X: uint32(m.s.blocks), Y: 1, Z: 1}, Block: event.Dim3{X: threads, Y: 1, Z: 1}}}
	m.b.Events = append(m.b.Events, event.Event{Kind: event.KernelBegin, Launch: 1})
	for b := 0; b < m.s.blocks; b++ {
		for w := 0; w < m.s.warps-1; w++ { // lanes beyond lanes in full warps exit
			m.b.Events = append(m.b.Events, event.Event{Kind: event.Exit, Launch: 1, Warp: uint32(b*m.s.warps + w), Mask: ^(1<<uint(m.s.lanes) - 1)})
		}
	}
	return m
}

// visit makes a thread pass one or two critical sections, with occasional accesses around them. Most of what happens is
// then ordered by locks in some way.
func (m *maker) visit() {
	t := m.r.IntN(m.s.blocks * m.s.warps * m.s.lanes)
	block, _, _ := m.place(t)
	o := op{thread: t, block: block}
	for _, f := range []func(op){m.access, m.acquire, m.access, m.acquire, m.release, m.access, m.release, m.access} {
		if m.r.IntN(2) == 0 {
			f(o)
		}
	}
	for len(m.held[t]) > 0 && m.r.IntN(6) > 0 {
		m.release(o)
	}
}

func (m *maker) step() {
	t := m.r.IntN(m.s.blocks * m.s.warps * m.s.lanes)
	block, _, _ := m.place(t)
	o := op{thread: t, block: block}
	switch k := m.r.IntN(20); {
	case k < 9:
		m.access(o)
	case k < 13:
		m.acquire(o)
	case k < 15 && m.async:
		m.post(o)
	case k < 16 && m.async:
		m.wait(o)
	case k < 17:
		m.release(o)
	case k == 17:
		m.meet(o)
	case k == 18:
		m.post(o)
	default:
		m.wait(o)
	}
}

func (m *maker) access(o op) {
	o.kind = []opKind{opRead, opWrite, opWrite, opRead, opAtomic}[m.r.IntN(5)]
	o.n = []int{4, 4, 4, 1, 2, 8}[m.r.IntN(6)]
	if o.kind == opAtomic {
		o.n = 4
		o.device = m.r.IntN(2) == 0
	}
	o.at = m.r.IntN(3) * 8
	if o.n < 8 {
		o.at += m.r.IntN(8/o.n) * o.n
	}
	o.place = uint32(len(m.ops) + 10)
	e := event.Event{Kind: []event.Kind{event.Load, event.Store, event.Atomic}[o.kind], Space: event.Global, Addr: dataBase + uint64(o.at), Size: uint8(o.n), Place: o.place,
		Flags: []event.Flags{event.FlagRead, event.FlagWrite, 0}[o.kind]}
	if o.kind == opAtomic {
		e.Order, e.Scope, e.Flags = event.Relaxed, scopeOf(o.device), event.FlagRead|event.FlagWrite|event.FlagRed
	}
	m.emit(o.thread, e)
	m.op(o)
}

func (m *maker) acquire(o op) {
	o.kind, o.lock, o.device = opAcquire, m.r.IntN(3), m.narrow == 0 || m.r.IntN(m.narrow+1) > 0
	if _, taken := m.holder[o.lock]; taken || len(m.held[o.thread]) > 2 {
		return
	}
	m.holder[o.lock] = o.thread
	m.held[o.thread] = append(m.held[o.thread], o.lock)
	m.device[[2]int{o.thread, o.lock}] = o.device
	o.place = uint32(len(m.ops) + 10)
	cas := event.Event{Kind: event.Atomic, Place: o.place, Space: event.Global, Addr: lockBase + 8*uint64(o.lock), Size: 4, RMW: event.CompareAndSwap,
		Order: event.Relaxed, Scope: scopeOf(o.device), Flags: event.FlagRead | event.FlagWrite}
	if m.r.IntN(2) == 0 {
		cas.Order = event.Acquire
		m.emit(o.thread, cas)
	} else {
		m.emit(o.thread, cas)
		m.emit(o.thread, event.Event{Kind: event.Fence, Place: o.place, Order: event.SC, Scope: event.ScopeGPU})
	}
	m.op(o)
}

func (m *maker) release(o op) {
	locks := m.held[o.thread]
	if len(locks) == 0 {
		return
	}
	i := len(locks) - 1
	if !m.nested {
		i = m.r.IntN(len(locks))
	}
	o.kind, o.lock = opRelease, locks[i]
	o.device = m.device[[2]int{o.thread, o.lock}]
	m.held[o.thread] = append(append([]int(nil), locks[:i]...), locks[i+1:]...)
	delete(m.holder, o.lock)
	o.place = uint32(len(m.ops) + 10)
	exch := event.Event{Kind: event.Atomic, Place: o.place, Space: event.Global, Addr: lockBase + 8*uint64(o.lock), Size: 4, RMW: event.Exchange,
		Order: event.Relaxed, Scope: scopeOf(o.device), Flags: event.FlagRead | event.FlagWrite}
	if m.r.IntN(2) == 0 {
		exch.Order = event.Release
	} else {
		m.emit(o.thread, event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU})
	}
	m.emit(o.thread, exch)
	m.op(o)
}

// meet is a barrier of a block or of a warp.
func (m *maker) meet(o op) {
	m.barrier++
	var who []int
	block, warp, _ := m.place(o.thread)
	whole := m.r.IntN(2) == 0
	for t := 0; t < m.s.blocks*m.s.warps*m.s.lanes; t++ {
		if b, w, _ := m.place(t); b == block && (whole || w == warp) {
			who = append(who, t)
		}
	}
	if len(who) == 1 && !whole {
		return
	}
	for _, kind := range []opKind{opArrive, opDepart} {
		for _, t := range who {
			m.op(op{kind: kind, thread: t, block: block, barrier: m.barrier})
		}
	}
	lanes := uint32(1)<<uint(m.s.lanes) - 1
	if !whole {
		m.b.Events = append(m.b.Events, event.Event{Kind: event.WarpSync, Launch: 1, Warp: warp, Mask: lanes})
		return
	}
	for w := 0; w < m.s.warps; w++ {
		m.b.Events = append(m.b.Events, event.Event{Kind: event.Arrive, Launch: 1, Warp: uint32(block*m.s.warps + w), Mask: lanes, Flags: event.FlagWait})
	}
	m.b.Events = append(m.b.Events, event.Event{Kind: event.BarrierDone, Launch: 1, Warp: uint32(block * m.s.warps), Mask: 1})
}

// flight is a post by an asynchronous operation: its number, which identifies its mbarrier, and the operation that
// issued it.
type flight struct {
	number int
	op
	index int
	kind  event.Kind // of the event that signals the mbarrier
}

const barrierBase = 0x100

// issue makes a post by an operation that completes later: a bulk copy, or the tensor core operations covered by a
// commit.
func (m *maker) issue(o op) {
	o.kind = opPost
	f := flight{len(m.ops), o, len(m.ops), event.BulkDone}
	e := event.Event{Kind: event.Bulk, Flags: event.FlagWrite, Space: event.Shared, Addr: 0x10, Aux: 16, Barrier: 1, Stride: int64(f.number)}
	if f.number%3 == 0 {
		f.kind = event.CoreDone
		e = event.Event{Kind: event.CoreCommit, Addr: barrierBase + 8*uint64(f.number), Stride: int64(f.number)}
	}
	m.emit(o.thread, e)
	m.op(o)
	m.flights = append(m.flights, f)
}

// land completes the operations in flight, and makes a thread of a block wait for the last one of its block.
func (m *maker) land(o op) bool {
	for _, f := range m.flights {
		m.emit(f.thread, event.Event{Kind: f.kind, Addr: barrierBase + 8*uint64(f.number), Stride: int64(f.number)})
		m.landed[f.block] = f
	}
	m.flights = nil
	f, ok := m.landed[o.block]
	if !ok {
		return false
	}
	o.kind, o.barrier = opWait, f.index
	m.op(o)
	m.emit(o.thread, event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Shared, Addr: barrierBase + 8*uint64(f.number), Size: 4, Order: event.Acquire, Scope: event.ScopeCTA})
	return true
}

func (m *maker) post(o op) {
	if m.async && len(m.ops)%4 > 0 {
		m.issue(o)
		return
	}
	o.kind, o.lock = opPost, m.r.IntN(2)
	o.at, o.n = 1000+8*o.lock, 4
	e := event.Event{Kind: event.Store, Flags: event.FlagWrite, Space: event.Global, Addr: flagBase + 8*uint64(o.lock), Size: 4, Order: event.Release, Scope: event.ScopeGPU}
	if m.vectors {
		e.Flags |= event.FlagVector
		o.n, e.Size, e.Aux = 8, 8, 4
	}
	m.posted[o.lock] = len(m.ops)
	m.op(o)
	m.emit(o.thread, e)
}

func (m *maker) wait(o op) {
	if m.async && len(m.ops)%4 > 0 && m.land(o) {
		return
	}
	o.kind, o.lock, o.barrier = opWait, m.r.IntN(2), -1
	o.at, o.n = 1000+8*o.lock, 4
	if at, ok := m.posted[o.lock]; ok {
		o.barrier = at
	}
	word := 0
	if m.vectors {
		word = 4 * (len(m.ops) % 2)
	}
	o.at += word
	m.op(o)
	m.emit(o.thread, event.Event{Kind: event.Load, Space: event.Global, Addr: flagBase + 8*uint64(o.lock) + uint64(word), Size: 4, Order: event.Acquire, Scope: event.ScopeGPU})
}

// verdicts runs the detector and gives its verdict on each access, by place.
func verdicts(b *event.Batch, options map[string]string) map[uint32]verdict {
	d := New(detect.Config{Options: options})
	d.Events(b)
	out := map[uint32]verdict{}
	for _, f := range d.Findings() {
		p := max(f.Accesses[0].Place, f.Accesses[1].Place)
		v := out[p]
		if f.Predicted {
			v.predicted = true
		} else {
			v.observed = true
		}
		out[p] = v
	}
	return out
}

// TestSections checks the critical sections named by predicted findings. They are of one lock; by happens-before the
// first ends after the earlier access and the second begins before the later one; and GWCP does not order them.
func TestSections(t *testing.T) {
	checked := 0
	for seed := 0; seed < 3000; seed++ {
		m := newMaker(uint64(seed))
		b := newBrute(m.ops)
		d := New(detect.Config{})
		d.Events(&m.b)
		for _, f := range d.Findings() {
			if !f.Predicted {
				if f.Sections != nil {
					t.Fatalf("seed %d: an observed race has sections", seed)
				}
				continue
			}
			if len(f.Sections) != 2 {
				t.Fatalf("seed %d: %d sections\n%s", seed, len(f.Sections), m)
			}
			at := func(place uint32) int { return int(place) - 10 }
			x, y := at(f.Accesses[0].Place), at(f.Accesses[1].Place)
			first, second := f.Sections[0], f.Sections[1]
			rel, acq := at(first.To), at(second.From)
			r, a := &m.ops[rel], &m.ops[acq]
			if r.kind != opRelease || a.kind != opAcquire || r.lock != a.lock || first.Lock != second.Lock || first.Lock != lockBase+8*uint64(r.lock) ||
				!overlapping(r, a) || rel > acq || !b.hb[x][rel] || !b.hb[acq][y] || b.order[rel][y] {
				t.Fatalf("seed %d: the sections %d-%d and %d-%d do not hide the race of %d and %d\n%s", seed,
					at(first.From), rel, acq, at(second.To), x, y, m)
			}
			if end := at(second.To); second.To != 0 && (m.ops[end].kind != opRelease || m.ops[end].lock != a.lock || m.ops[end].thread != a.thread) {
				t.Fatalf("seed %d: the second section does not end at %d\n%s", seed, end, m)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("%d predicted races are too few", checked)
	}
}

// TestSameValue checks that two stores race as same-value if the later one does not change any byte for which the
// earlier one is the last write. The old value comes from the events, or the detector keeps it.
func TestSameValue(t *testing.T) {
	same, other := 0, 0
	for seed := 0; seed < 4000; seed++ {
		m := newMaker(uint64(seed))
		b := oracle.Remember(&m.b)
		if seed%2 == 1 {
			forgetOld(b)
		}
		d := New(detect.Config{})
		d.Events(b)
		agree := agreements(b)
		for _, f := range d.Findings() {
			x, y := f.Accesses[0], f.Accesses[1]
			want := x.Op == detect.Write && y.Op == detect.Write && agree[[2]uint32{x.Place, y.Place}]
			if (f.Kind == detect.SameValue) != want {
				t.Fatalf("seed %d: %d and %d: %s, want the same value: %v\n%s", seed, x.Place, y.Place, f.Kind, want, m)
			}
			switch {
			case want:
				same++
			case x.Op == detect.Write && y.Op == detect.Write:
				other++
			}
		}
	}
	if same < 100 || other < 100 {
		t.Errorf("%d races with the same value and %d with another are too few", same, other)
	}
}

// forgetOld makes a stream like that of a trace: its writes do not carry old values.
func forgetOld(b *event.Batch) {
	for i := range b.Events {
		b.Events[i].Flags &^= event.FlagOld
	}
}

// agreements returns the pairs of places of writes by single lanes in which the later one does not change the bytes for
// which the earlier one was the last write. There must be such bytes.
func agreements(b *event.Batch) map[[2]uint32]bool {
	type last struct {
		place uint32
		value byte
	}
	out, memory := map[[2]uint32]bool{}, map[uint64]last{}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind > event.Atomic || e.Flags&event.FlagWrite == 0 {
			continue
		}
		lane := bits.TrailingZeros32(e.Mask)
		v := b.ValueOf(e, lane)
		for j := range uint64(e.Size) {
			at, value := b.AddrOf(e, lane)+j, byte(v[j/8]>>(j%8*8))
			if was, ok := memory[at]; ok {
				p := [2]uint32{was.place, e.Place}
				before, seen := out[p]
				out[p] = (before || !seen) && was.value == value
			}
		}
		for j := range uint64(e.Size) {
			memory[b.AddrOf(e, lane)+j] = last{e.Place, byte(v[j/8] >> (j % 8 * 8))}
		}
	}
	return out
}

func (m *maker) String() string {
	s := ""
	for i, o := range m.ops {
		s += fmt.Sprintf("%3d t%d b%d %s lock %d dev %v [%d,%d) #%d p%d\n", i, o.thread, o.block,
			[]string{"rd", "wr", "atom", "acq", "rel", "arrive", "depart", "post", "wait"}[o.kind], o.lock, o.device, o.at, o.at+o.n, o.barrier, o.place)
	}
	return s
}

// TestAgainstBruteForce compares the detector with definition 1 on random traces.
func TestAgainstBruteForce(t *testing.T) {
	rounds := 12_000
	if !testsize.Long() {
		rounds = 2_000
	}
	predicted, observed := 0, 0
	for seed := 0; seed < rounds; seed++ {
		m := newMaker(uint64(seed))
		got := verdicts(&m.b, map[string]string{"compress": []string{"on", "on", "off"}[seed%3]})
		b := newBrute(m.ops)
		for i := range m.ops {
			if !m.ops[i].isAccess() {
				continue
			}
			// Of the reads of one thread the last counts. What an earlier one adds to a race of the observed order is
			// not specified.
			got, want := got[m.ops[i].place], b.judge(i)
			got.predicted = got.predicted && !got.observed
			want.predicted = want.predicted && !want.observed
			if got != want {
				t.Fatalf("seed %d: access %d: got %+v, want %+v\n%s", seed, i, got, want, m)
			}
			if want.predicted {
				predicted++
			}
			if want.observed {
				observed++
			}
		}
	}
	t.Logf("%d traces: %d accesses race as observed, %d are predicted to", rounds, observed, predicted)
	if predicted < rounds/20 || observed < rounds/2 {
		t.Errorf("too few races to compare: %d observed, %d predicted", observed, predicted)
	}
}
