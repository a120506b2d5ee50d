package gwcp

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// laneByte is a byte accessed by a lane.
type laneByte struct {
	lane int
	addr uint64
}

// randomLanes makes an access whose lanes are in order, in rows or at random addresses, aligned or not.
func randomLanes(r *rand.Rand, b *event.Batch) event.Event {
	e := event.Event{Kind: event.Load + event.Kind(r.IntN(3)), Space: event.Global, Size: 1 << r.IntN(6), Mask: ^uint32(0)}
	if r.IntN(3) == 0 {
		e.Mask = r.Uint32() | 1<<r.IntN(32)
	}
	size := int64(e.Size)
	e.Addr = 0x1000 + uint64(r.IntN(40))*uint64(size)
	if r.IntN(4) == 0 {
		e.Addr += r.Uint64N(8)
	}
	stride := []int64{0, size, size, 2 * size, -size, 3 * size, 3, 12, 124, 128, int64(r.IntN(200) - 60)}[r.IntN(11)]
	switch r.IntN(4) {
	case 0:
		e.Flags |= event.FlagScattered
		e.Side = uint32(len(b.Addrs))
		at := e.Addr
		for range bits.OnesCount32(e.Mask) {
			b.Addrs = append(b.Addrs, at)
			at += uint64(stride)
			if r.IntN(6) == 0 {
				at = 0x1000 + r.Uint64N(500)
			}
		}
	case 1:
		e.InRows(uint8(1+r.IntN(4)), stride, size*int64(r.IntN(60)))
	default:
		e.Stride = stride
	}
	return e
}

// TestParts checks that the spans of an access cover exactly the bytes that its lanes access, each by the right lanes.
func TestParts(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 11))
	for range 4000 {
		b := &event.Batch{}
		e := randomLanes(r, b)
		lanes := e.Mask
		if r.IntN(4) == 0 {
			lanes &= r.Uint32() | lanes&-lanes
		}
		want, got := map[laneByte]bool{}, map[laneByte]bool{}
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			for i := range uint64(e.Size) {
				want[laneByte{lane, b.AddrOf(&e, lane) + i}] = true
			}
		}
		a := actor{b: b, e: &e}
		a.parts(lanes, &span{warp: 3, epoch: 4, exec: e.Mask, class: 5})
		for i := range a.spans {
			p := &a.spans[i]
			if p.warp != 3 || p.epoch != 4 || p.class != 5 || p.exec != e.Mask || p.addr%lineBytes != 0 || p.gm == 0 {
				t.Fatalf("%+v: span %+v", e, p)
			}
			for gm := p.gm; gm != 0; gm &= gm - 1 {
				g := bits.TrailingZeros32(gm)
				for owners := p.owners(g); owners != 0; owners &= owners - 1 {
					for in := uint32(p.shape.bytes()); in != 0; in &= in - 1 {
						got[laneByte{bits.TrailingZeros32(owners), p.addr + uint64(4*g+bits.TrailingZeros32(in))}] = true
					}
				}
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%+v, lanes %x of addresses %x: %d bytes of lanes, want %d: %+v", e, lanes, b.Addrs, len(got), len(want), a.spans)
		}
		for x := range want {
			if !got[x] {
				t.Fatalf("%+v, lanes %x of addresses %x: byte %x of lane %d is in no span: %+v", e, lanes, b.Addrs, x.addr, x.lane, a.spans)
			}
		}
	}
}

// TestSides checks that a finding describes both accesses: their addresses, threads and operations.
func TestSides(t *testing.T) {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}}}
	for _, e := range []event.Event{
		{Kind: event.KernelBegin},
		{Kind: event.Store, Warp: 1, Mask: 0xff0, Place: 1, Addr: 0x1000, Stride: 8, Size: 8, Space: event.Global, Flags: event.FlagWrite},
		{Kind: event.Atomic, Warp: 3, Mask: 0x10, Place: 2, Addr: 0x1014, Size: 4, Space: event.Global, Order: event.Relaxed, Scope: event.ScopeCTA, Flags: event.FlagRead | event.FlagWrite},
	} {
		e.Launch = 1
		b.Events = append(b.Events, e)
	}
	d := New(detect.Config{})
	d.Events(b)
	fs := d.Findings()
	if len(fs) != 1 {
		t.Fatalf("found %v", fs)
	}
	x, y := fs[0].Accesses[0], fs[0].Accesses[1]
	if x.Op != detect.Write || x.Warp != 1 || x.Lane != 6 || x.Address != 0x1010 || x.Size != 8 || x.Order != event.Weak || x.Space != event.Global {
		t.Errorf("the earlier access is %+v", x)
	}
	if y.Op != detect.AtomicOp || y.Warp != 3 || y.Lane != 4 || y.Address != 0x1014 || y.Size != 4 || y.Order != event.Relaxed || y.Scope != event.ScopeCTA {
		t.Errorf("the later access is %+v", y)
	}
	if fs[0].Addresses != 4 || fs[0].Count != 1 {
		t.Errorf("%d bytes, counted %d times, want 4 and once", fs[0].Addresses, fs[0].Count)
	}
}

// TestLongQueue checks a full queue: pairs of neighbours in its older half are merged into one entry, which begins like
// the first and knows what the second knew. The newer half is unchanged.
func TestLongQueue(t *testing.T) {
	x := &instance{}
	var h [maxQueue + 1]*clock.Grid
	for i := range h {
		h[i] = (*clock.Grid)(nil).With(1, 0, clock.Uniform(uint32(i+1)))
		x.enqueue(entry{visit: visit{number: uint32(i)}, h: h[i]})
	}
	if len(x.queue) != maxQueue*3/4+1 {
		t.Fatalf("%d entries", len(x.queue))
	}
	for i, e := range x.queue {
		n, last := 2*i, 2*i+1
		if i >= maxQueue/4 {
			n = i + maxQueue/4
			last = n
		}
		if e.number != uint32(n) || e.h != h[last] || e.merged != (last != n) {
			t.Errorf("entry %d is number %d, merged %v, with another clock: %v", i, e.number, e.merged, e.h != h[last])
		}
	}
}

// TestCrowd compares the detector with definition 1 where many warps read the same words, so that reads are merged,
// pruned and found by warp.
func TestCrowd(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	raced, crowded := 0, 0
	for seed := range uint64(rounds) {
		m := launched(rand.New(rand.NewPCG(seed, 13)), shapeOf{4, 20, 1})                // one step in so many
		writes, barriers := []int{20, 60, 300, 1000}[seed%4], []int{10, 30, 100}[seed%3] // one in so many
		for range 250 {
			t := m.r.IntN(m.s.blocks * m.s.warps)
			block, _, _ := m.place(t)
			o := op{thread: t, block: block, at: m.r.IntN(3) * 4, n: 4, place: uint32(len(m.ops) + 10)}
			e := event.Event{Kind: event.Load, Space: event.Global, Size: 4, Flags: event.FlagRead}
			switch k := m.r.IntN(writes); {
			case k == 0:
				o.kind, e.Kind, e.Flags = opWrite, event.Store, event.FlagWrite
			case m.r.IntN(barriers) == 0:
				m.meet(o)
				continue
			case k%8 == 2:
				o.at, o.n, e.Size = 0, 16, 16
			}
			e.Addr, e.Place = dataBase+uint64(o.at), o.place
			m.emit(t, e)
			m.op(o)
		}
		d := New(detect.Config{})
		d.Events(&m.b)
		if ln := d.mem.Global(dataBase); ln.more != nil && len(ln.more.rs) > few {
			crowded++
		}
		got, b := verdicts(&m.b, nil), newBrute(m.ops)
		for i := range m.ops {
			if !m.ops[i].isAccess() {
				continue
			}
			if want := b.judge(i); got[m.ops[i].place] != want {
				t.Fatalf("seed %d: access %d: got %+v, want %+v\n%s", seed, i, got[m.ops[i].place], want, m)
			} else if want.observed {
				raced++
			}
		}
	}
	if raced < 2*rounds || crowded < rounds/4 {
		t.Errorf("%d accesses race in %d rounds, %d end with many reads", raced, rounds, crowded)
	}
}

// TestOtherLaunches checks that only the launch that began last is judged, and that events of another launch do not end
// it or affect it.
func TestOtherLaunches(t *testing.T) {
	dim := func(x uint32) event.Dim3 { return event.Dim3{X: x, Y: 1, Z: 1} }
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: dim(2), Block: dim(32)}, {ID: 2, Kernel: "k", Grid: dim(2), Block: dim(32)}}}
	store := func(launch, warp, place uint32) event.Event {
		return event.Event{Kind: event.Store, Launch: launch, Warp: warp, Place: place, Mask: 1, Addr: 64, Size: 4, Space: event.Global, Flags: event.FlagWrite}
	}
	b.Events = []event.Event{{Kind: event.KernelBegin, Launch: 1}, {Kind: event.KernelBegin, Launch: 2, Side: 1}, store(2, 0, 1), store(1, 1, 2),
		{Kind: event.KernelEnd, Launch: 1}, store(2, 1, 3), {Kind: event.KernelEnd, Launch: 2}}
	if got := found(b, nil); got != "1-3" {
		t.Errorf("found %q", got)
	}
}
