package gwcp

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// lanewise returns a stream in which each memory event is by a single lane.
func lanewise(b *event.Batch) *event.Batch {
	out := *b
	out.Events = nil
	for i := range b.Events {
		e := b.Events[i]
		if e.Kind != event.Load && e.Kind != event.Store && e.Kind != event.Atomic {
			out.Events = append(out.Events, e)
			continue
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			one := b.Events[i]
			one.Mask = m & -m
			one.Addr, one.Stride = b.AddrOf(&e, bits.TrailingZeros32(m)), 0
			one.Flags &^= event.FlagScattered | event.FlagRows | event.FlagValues
			out.Events = append(out.Events, one)
		}
	}
	return &out
}

// judged lists the places that race with an earlier one or with themselves, and how.
func judged(b *event.Batch) string {
	d := New(detect.Config{})
	d.Events(b)
	places := map[string]bool{}
	for _, f := range d.Findings() {
		places[fmt.Sprintf("%d predicted %v bytes %d", f.Accesses[1].Place, f.Predicted, f.Accesses[1].Size)] = true
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(places)))
}

// TestWholeWarps checks that accesses of whole warps are judged like those of their lanes one after the other.
func TestWholeWarps(t *testing.T) {
	rounds := testsize.Of(800, 1000, 4000)
	racy := 0
	for seed := 0; seed < rounds; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		b := oracle.Traffic(r.IntN)
		places := uint32(1000)
		for i := range b.Events { // every instruction executes once, so that its place identifies the access
			if e := &b.Events[i]; e.Kind <= event.Atomic {
				places++
				e.Place = places
			}
		}
		got, want := judged(b), judged(lanewise(b))
		if got != want {
			t.Fatalf("seed %d: whole warps\n%s\nlane by lane\n%s\n%s", seed, got, want, oracle.Print(b))
		}
		if want != "[]" {
			racy++
		}
	}
	if racy < rounds/4 || racy == rounds {
		t.Errorf("%d of %d streams race", racy, rounds)
	}
}

// TestAnyStream checks that no stream makes the detector fail, whatever its synchronisation, and that its division into
// batches does not matter.
func TestAnyStream(t *testing.T) {
	racy := 0
	for seed := 0; seed < 3000; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		b := oracle.Random(r.IntN)
		for i := range b.Events {
			if e := &b.Events[i]; e.Kind == event.Atomic {
				e.RMW = event.RMW(r.IntN(3))
			}
		}
		whole, cut := New(detect.Config{}), New(detect.Config{})
		whole.Events(b)
		for i := range b.Events {
			one := *b
			one.Events = b.Events[i : i+1]
			cut.Events(&one)
		}
		found := whole.Findings()
		if got, want := fmt.Sprintf("%+v", cut.Findings()), fmt.Sprintf("%+v", found); got != want {
			t.Fatalf("seed %d: event by event\n%s\nin one batch\n%s", seed, got, want)
		}
		if len(found) > 0 {
			racy++
		}
	}
	if racy < 300 || racy == 3000 {
		t.Errorf("%d of 3000 streams race", racy)
	}
}

// TestSameValueOfLanes checks that lanes of one store that write the same value race as same-value, unless one of them
// writes another value.
func TestSameValueOfLanes(t *testing.T) {
	for _, c := range []struct {
		values []uint64
		order  event.Order
		want   detect.Kind
	}{
		{[]uint64{7, 7, 7}, event.Weak, detect.SameValue},
		{[]uint64{7, 7, 8}, event.Weak, detect.Unordered},
		{[]uint64{7, 8, 7}, event.Weak, detect.Unordered},
		{[]uint64{7, 7, 7}, event.Volatile, detect.VolatileOnly},
		{nil, event.Weak, detect.Unordered},
	} {
		b := stream(t, "0.0.0 rd a")
		b.Events = b.Events[:1]
		e := event.Event{Kind: event.Store, Launch: 1, Mask: 7, Place: 1, Size: 4, Space: event.Global, Addr: 64, Flags: event.FlagWrite, Order: c.order}
		if b.Values = c.values; c.values != nil {
			e.Flags |= event.FlagValues
		}
		b.Events = append(b.Events, e)
		d := New(detect.Config{})
		d.Events(b)
		if f := d.Findings(); len(f) != 1 || f[0].Kind != c.want {
			t.Errorf("values %v, order %v: %v, want one finding %s", c.values, c.order, f, c.want)
		}
	}
}

// TestSomeMeet checks that a barrier of some lanes of a warp orders these and no others, whether they have met before
// or not.
func TestSomeMeet(t *testing.T) {
	for _, before := range []bool{false, true} {
		for _, block := range []bool{false, true} {
			b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}}}
			add := func(e event.Event) {
				e.Launch = 1
				b.Events = append(b.Events, e)
			}
			meet := func(lanes uint32) {
				if !block {
					add(event.Event{Kind: event.WarpSync, Mask: lanes})
					return
				}
				add(event.Event{Kind: event.Arrive, Mask: lanes, Flags: event.FlagWait})
				add(event.Event{Kind: event.BarrierDone, Mask: lanes & -lanes})
			}
			store := func(lane int, addr uint64, place uint32) {
				add(event.Event{Kind: event.Store, Mask: 1 << lane, Place: place, Size: 4, Space: event.Global, Addr: addr, Flags: event.FlagWrite})
			}
			add(event.Event{Kind: event.KernelBegin})
			if before {
				meet(^uint32(0))
			}
			store(0, 64, 1)
			store(5, 128, 2)
			store(0, 256, 8)
			meet(0x21)
			store(5, 64, 3)
			store(0, 128, 4)
			store(9, 64, 5)
			store(9, 256, 9)
			meet(0x220)
			store(9, 128, 6)
			store(20, 128, 7)
			if got := found(b, nil); got != "3-5 4-6 6-7 8-9" {
				t.Errorf("whole warp before %v, barrier of the block %v: found %q", before, block, got)
			}
		}
	}
}
