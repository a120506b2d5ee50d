package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/event"
)

// stage is a launch with blocks of one warp, and a Witness that receives its events.
type stage struct {
	*Witness
	launch *order.Launch
	batch  event.Batch
}

func newStage(blocks uint32) *stage {
	info := event.Launch{ID: 1, Grid: event.Dim3{X: blocks, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}
	s := &stage{Witness: NewWitness(history.NewPlain(order.New()), func(uint32) []event.Frame { return nil }), launch: order.New().Begin(info)}
	for i := range uint64(64) {
		s.batch.Addrs = append(s.batch.Addrs, 4*(i*7%32)+i/32*1000) // two permutations
	}
	return s
}

// atomic makes a strong operation of all lanes, at addresses of their own.
func (s *stage) atomic(block uint32, r event.RMW) *Operation {
	b, wi := s.launch.Block(block)
	e := &event.Event{Kind: event.Atomic, RMW: r, Order: event.Relaxed, Scope: event.ScopeGPU, Flags: event.FlagRead | event.FlagWrite | event.FlagScattered,
		Launch: 1, Warp: block, Mask: ^uint32(0), Size: 4, Space: event.Global}
	site := &history.Site{Unit: 4, Strong: true, Event: *e, Side: detect.Side{Write: true}, Sync: order.StrongOf(e.Kind, e.Flags, e.Order, true)}
	return &Operation{Batch: &s.batch, Event: e, Site: site, Block: b, Warp: wi}
}

// perform performs an operation whose lanes observe others, and tells the Witness.
func (s *stage) perform(o *Operation) {
	s.Observed(o, 0, &order.Observations{Lanes: o.Event.Mask, InScope: o.Event.Mask, Within: true})
	s.Accessed(o, 0, o.Event.Mask)
}

func (s *stage) sync(block uint32, k event.Kind) {
	e := &event.Event{Kind: k, Order: event.SC, Scope: event.ScopeGPU, Launch: 1, Warp: block, Mask: ^uint32(0)}
	b, wi := s.launch.Block(block)
	s.launch.Sync(e)
	s.Sync(&s.batch, e, b, wi)
}

// TestBounded checks that the memory kept for a block does not grow with its operations, which allocate nothing, and
// that the memory for ended blocks does not grow with their number.
func TestBounded(t *testing.T) {
	s := newStage(3 * maxEnded)
	takes, gives, adds := s.atomic(0, event.CompareAndSwap), s.atomic(0, event.Exchange), s.atomic(0, event.OtherRMW)
	s.perform(takes)
	fence := &event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Launch: 1, Mask: ^uint32(0)}
	work := func() {
		for range 8 { // more sections than are kept
			for _, o := range []*Operation{takes, gives, adds} {
				s.perform(o)
				s.Sync(&s.batch, fence, o.Block, o.Warp)
			}
		}
	}
	work()
	if n := testing.AllocsPerRun(100, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
	b := s.launches[s.launch].blocks[0]
	if n := len(b.sections); n < maxSections || n > 2*maxSections+32 || len(b.warps[0].held) > 32 {
		t.Errorf("%d critical sections, %d now", n, len(b.warps[0].held))
	}
	s.sync(0, event.Exit)
	if n := len(s.launches[s.launch].ended[0].sections); n != maxSections {
		t.Errorf("%d critical sections are kept", n)
	}
	for i := range uint32(2 * maxEnded) {
		s.perform(s.atomic(1+i, event.CompareAndSwap))
		s.sync(1+i, event.Fence)
		s.sync(1+i, event.Exit)
	}
	l := s.launches[s.launch]
	if len(l.blocks) > 0 || len(l.ended) != maxEnded || len(s.spare) != 1 {
		t.Errorf("%d blocks run, %d ended, memory of %d", len(l.blocks), len(l.ended), len(s.spare))
	}
	if old, last := l.past(0), l.past(2*maxEnded); old.within != never || len(old.sections) > 0 || len(last.sections) != 32 {
		t.Errorf("%d sections of the first block, %d of the last", len(old.sections), len(last.sections))
	}
	if p := l.past(3*maxEnded - 1); p.within != never { // nothing can be excluded for dropped blocks
		t.Error("a block that has not begun is known")
	}
	if s.End(s.launch); len(s.launches) > 0 {
		t.Error("a launch is kept")
	}
}

// TestMemoryIsUsedAgain checks that a block that reuses the memory of another begins empty.
func TestMemoryIsUsedAgain(t *testing.T) {
	s := newStage(4)
	var locks *lock.Tracker
	for i := range uint32(2) {
		s.perform(s.atomic(i, event.CompareAndSwap))
		s.sync(i, event.Fence)
		b := s.launches[s.launch].blocks[i]
		if x := &b.warps[0]; len(x.held) != 32 || x.held[7].from != 2 || x.held[7].taken.address != 4*(7*7%32) || x.seenIn[0].last[0].lanes != 0 || x.seenIn[0].before != nil {
			t.Errorf("block %d: %d sections, the eighth %+v", i, len(x.held), x.held[7])
		}
		if s.sync(i, event.Exit); len(s.spare) != 1 || i > 0 && b.locks != locks {
			t.Errorf("block %d: memory of %d blocks", i, len(s.spare))
		}
		locks = b.locks
	}
	o := s.atomic(2, event.OtherRMW)
	s.Observed(o, 0, &order.Observations{Lanes: 1})
	if b := s.launches[s.launch].blocks[2]; b.within != 0 || b.locked || len(b.sections) > 0 || len(b.warps[0].held) > 0 || b.warps[0].seen(1) != [8]handover{} {
		t.Errorf("a block begins with %+v", b.past)
	}
}

// TestSeen checks that for each lane the last handovers are known: the newest, and one of another location.
func TestSeen(t *testing.T) {
	s := newStage(1)
	o := s.atomic(0, event.OtherRMW)
	see := func(offset uint64, lanes uint32) {
		s.Observed(o, offset, &order.Observations{Lanes: lanes, InScope: 1})
	}
	steps := []struct {
		offset uint64
		lanes  uint32
		want   string // addresses that lane 0 has observed, newest first; those of lane 1
	}{
		{0, 3, "0; 28"},
		{400, 1, "400 0; 28"},
		{400, 1, "400 0; 28"}, // polls
		{800, 1, "800 400; 28"},
		{800, 2, "800; 828 28"}, // the polling operation has been dropped
		{900, 2, "800; 928 828 28"},
		{800, 2, "800; 828 928 28"},
		{900, 2, "800; 928 828 28"},
		{900, 1, "900 800; 928 28"},
		{1000, 1, "1000 900 800; 928 28"},
		{1100, 1, "1100 1000 800; 928 28"},
		{1200, 3, "1200 1100 800; 1228 928 28"},
	}
	for i, step := range steps {
		see(step.offset, step.lanes)
		x := &s.launches[s.launch].blocks[0].warps[0]
		var got []string
		for lane := range 2 {
			all := x.seen(lane)
			slices.SortFunc(all[:], func(a, b handover) int { return cmp.Compare(b.number, a.number) })
			var text []string
			for _, h := range all {
				if h.size != 0 {
					text = append(text, fmt.Sprint(h.address))
					if h.inScope != (lane == 0) || h.epoch != 1 {
						t.Errorf("step %d, lane %d: %+v", i, lane, h)
					}
				}
			}
			got = append(got, strings.Join(text, " "))
		}
		if text := strings.Join(got, "; "); text != step.want {
			t.Errorf("step %d: %s, not %s", i, text, step.want)
		}
	}
}

// TestScattered checks that an operation at other addresses counts as another operation.
func TestScattered(t *testing.T) {
	s := newStage(1)
	o := s.atomic(0, event.OtherRMW)
	for range 2 {
		s.perform(o)
		o.Event.Side += 32
	}
	x := &s.launches[s.launch].blocks[0].warps[0]
	if all := x.seen(31); all[0].address != 1000+100 || all[1].address != 100 {
		t.Errorf("lane 31 observed %+v", all)
	}
}

// BenchmarkAtomic is a relaxed atomic of a whole warp that observes others, at other addresses each time.
func BenchmarkAtomic(b *testing.B) {
	for _, bb := range []struct {
		name  string
		rmw   event.RMW
		apart bool
	}{{"counter", event.OtherRMW, false}, {"scattered", event.OtherRMW, true}, {"swap", event.CompareAndSwap, true}} {
		b.Run(bb.name, func(b *testing.B) {
			s := newStage(1)
			o := s.atomic(0, bb.rmw)
			if !bb.apart {
				o.Event.Flags &^= event.FlagScattered
			}
			for b.Loop() {
				if s.perform(o); bb.apart {
					o.Event.Side ^= 32
				}
			}
		})
	}
}
