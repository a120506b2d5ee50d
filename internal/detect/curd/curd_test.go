package curd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

func newTest(mode string) *Detector {
	return newDetector(detect.Config{Options: map[string]string{"mode": mode}})
}

// verdict returns the findings of a detector: places, the smaller first, and the published name of the race.
func verdict(d detect.Detector) string {
	var out []string
	for _, f := range d.Findings() {
		x, y := f.Accesses[0].Place, f.Accesses[1].Place
		_, note, _ := strings.Cut(f.Message, "(")
		note = strings.TrimSuffix(note, " race)")
		if strings.Contains(note, "; accesses at other places") {
			note = note[:strings.Index(note, " race;")] + " incomplete"
		}
		out = append(out, fmt.Sprintf("%d-%d %s", min(x, y), max(x, y), note))
	}
	return strings.Join(out, ", ")
}

// TestLitmus has a stream for each rule. Warps 0 and 1 form a block, and 2 and 3; words have 4 bytes.
func TestLitmus(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"read and write of one block", "0 ld 0; 1 st 0", "1-2 curd: intra-block"},
		{"write and write of one block", "0 st 0; 1 st 0", "1-2 curd: intra-block"},
		{"reads", "0 ld 0; 1 ld 0; 2 ld 0", ""},
		{"a barrier between", "0 st 0; 0 bar; 1 ld 0", ""},
		{"a barrier of another block between", "0 st 0; 2 bar; 1 ld 0", "1-3 curd: intra-block"},
		{"two blocks, a barrier between", "0 st 0; 0 bar; 2 bar; 2 ld 0", "1-4 curd: inter-block"},
		{"a block that read before another wrote", "0 ld 0; 0 bar; 2 st 0; 2 bar", "1-3 curd: inter-block"},
		{"a write of two blocks", "0 st 0; 2 st 0", "1-2 curd: inter-block"},
		{"one thread", "0 ld 0; 0 st 0; 0 ld 0", ""},
		{"one thread, and another that reads beside it", "0 ld 0; 0 st 0; 1 ld 1", ""},
		{"lanes of a warp, even in lockstep", "0.0 st 0; 0.1 ld 0", "1-2 curd: intra-warp"},
		{"__syncwarp orders nothing", "0.0 st 0; 0 sync; 0.1 ld 0", "1-3 curd: intra-warp"},
		{"volatile is plain", "0 stv 0; 2 ldv 0", "1-2 curd: inter-block"},
		{"shared memory within a block", "0 sts 0; 1 lds 0", "1-2 curd: intra-block"},
		{"shared memory, a barrier between", "0 sts 0; 0 bar; 1 lds 0", ""},
		{"shared memory of two blocks", "0 sts 0; 2 sts 0", ""},
		{"merged regions tell the latest place", "0 st 0; 0 st 1; 1 ld 0", "2-3 curd: intra-block incomplete"},
		{"regions apart do not", "0 st 0; 0 st 2; 1 ld 0", "1-3 curd: intra-block"},
	} {
		for _, mode := range mode.Values {
			b := litmus.Launch(2)
			litmus.Do(b, c.stream)
			litmus.Add(b, event.Event{Kind: event.KernelEnd})
			d := newTest(mode)
			d.Events(b)
			if got := verdict(d); got != c.want {
				t.Errorf("%s (%s): %q, want %q", c.name, mode, got, c.want)
			}
		}
	}
}

// TestWarpSynchronous checks that a race of threads of one warp by two instructions is a warning. If it is in one
// instruction, or if a thread of another warp races at the same two places, it is an error.
func TestWarpSynchronous(t *testing.T) {
	at := func(kind event.Kind, warp, mask, place uint32) event.Event {
		flags := event.FlagRead
		if kind == event.Store {
			flags = event.FlagWrite
		}
		return event.Event{Kind: kind, Flags: flags, Warp: warp, Mask: mask, Place: place, Addr: litmus.Base, Size: 4, Space: event.Global}
	}
	const ld, st = event.Load, event.Store
	for _, c := range []struct {
		what   string
		events []event.Event
		want   detect.Severity
		kind   detect.Kind
	}{
		{"a write and a read", []event.Event{at(st, 0, 1, 1), at(ld, 0, 2, 2)}, detect.Warning, detect.WarpSynchronous},
		{"two writes", []event.Event{at(st, 0, 1, 1), at(st, 0, 2, 2)}, detect.Warning, detect.WarpSynchronous},
		{"two writes by one instruction", []event.Event{at(st, 0, 3, 1)}, detect.Error, detect.MissingBarrier},
		{"the last lane, and the first of the next warp", []event.Event{at(st, 0, 1<<31, 1), at(ld, 1, 1, 2)}, detect.Error, detect.MissingBarrier},
		{"the next warp too, later", []event.Event{at(st, 0, 1, 1), at(ld, 0, 2, 2), at(ld, 1, 1, 2)}, detect.Error, detect.MissingBarrier},
		{"the next warp too, earlier", []event.Event{at(st, 1, 1, 1), at(ld, 0, 1, 2), at(ld, 1, 2, 2)}, detect.Error, detect.MissingBarrier},
		{"two blocks, warps of one number", []event.Event{at(st, 0, 1, 1), at(ld, 2, 1, 2)}, detect.Error, detect.Unordered},
	} {
		for _, mode := range mode.Values {
			b := litmus.Launch(2)
			for _, e := range c.events {
				litmus.Add(b, e)
			}
			litmus.Add(b, event.Event{Kind: event.KernelEnd})
			d := newTest(mode)
			d.Events(b)
			if f := d.Findings(); len(f) != 1 || f[0].Severity != c.want || f[0].Kind != c.kind {
				t.Errorf("%s (%s): %+v, want one finding, %v %s", c.what, mode, f, c.want, c.kind)
			}
		}
	}
}

// TestPartialBarriers checks that barriers for only part of the block end no region.
func TestPartialBarriers(t *testing.T) {
	for _, c := range []struct {
		arrive event.Event
		races  int
	}{
		{event.Event{Flags: event.FlagWait}, 0},
		{event.Event{Flags: event.FlagWait, Aux: 64}, 0},
		{event.Event{Flags: event.FlagWait, Aux: 32}, 1},
		{event.Event{Aux: 64}, 1},
	} {
		b := litmus.Launch(1)
		litmus.Do(b, "0 st 0")
		c.arrive.Kind, c.arrive.Mask, c.arrive.Barrier = event.Arrive, ^uint32(0), 3
		litmus.Add(b, c.arrive)
		litmus.Add(b, event.Event{Kind: event.BarrierDone, Mask: 1, Barrier: 3})
		litmus.Do(b, "1 ld 0")
		d := newTest("lazy") // without the end of the kernel: Findings judges what was recorded
		d.Events(b)          // and no end of the kernel: what was recorded until then is judged
		if got := len(d.Findings()); got != c.races {
			t.Errorf("%+v: %d races, want %d", c.arrive, got, c.races)
		}
	}
}

// TestChoice checks that a kernel whose code synchronises goes to barracuda, even if the synchronisation is not
// executed. It uses kernels of both kinds in one batch, and in batches of one event.
func TestChoice(t *testing.T) {
	stream := func(synchronises bool, line string) *event.Batch {
		b := litmus.Launch(2)
		b.Launches[0].Synchronises = synchronises
		litmus.Do(b, line)
		litmus.Add(b, event.Event{Kind: event.KernelEnd})
		return b
	}
	const lanes = "0.0 st 0; 0.1 ld 0"
	const fenced = "0 st 1; 0 fence; 0 st 0; 2 ld 0; 2 fence; 2 ld 1"
	const atomic = "0 add 0; 2 st 0"
	for _, c := range []struct {
		synchronises bool
		line, want   string
	}{
		{false, lanes, "1-2 curd: intra-warp"},
		{true, lanes, ""}, // lockstep orders it
		{true, fenced, ""},
		{true, atomic, "1-2 barracuda: inter-block"},
	} {
		d := newTest("lazy")
		d.Events(stream(c.synchronises, c.line))
		if got := verdict(d); got != c.want {
			t.Errorf("%q (%v): %q, want %q", c.line, c.synchronises, got, c.want)
		}
		for _, f := range d.Findings() {
			if f.Detector != name {
				t.Errorf("a finding is of %s", f.Detector)
			}
		}
	}
	all := &event.Batch{}
	for i, part := range []*event.Batch{stream(false, lanes), stream(true, fenced), stream(true, atomic), stream(false, lanes), stream(true, lanes)} {
		for _, e := range part.Events {
			if e.Kind == event.KernelBegin {
				e.Side = uint32(i)
			}
			all.Events = append(all.Events, e)
		}
		all.Launches = append(all.Launches, part.Launches...)
	}
	const want = "1-2 curd: intra-warp, 1-2 barracuda: inter-block"
	whole, pieces := newTest("eager"), newTest("eager")
	whole.Events(all)
	for i := range all.Events {
		part := *all
		part.Events = all.Events[i : i+1]
		pieces.Events(&part)
	}
	if x, y := verdict(whole), verdict(pieces); x != want || y != want {
		t.Errorf("%q and %q, want %q", x, y, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("an atomic operation of a kernel that has none was taken")
		}
	}()
	newTest("lazy").Events(stream(false, atomic))
}

// fact says that two threads of one block, or two blocks, race at a byte.
type fact struct {
	x, y   uint32 // for a write and a read the writer first, otherwise the smaller first
	at     uint64
	op     detect.Op // the operation of y
	shared bool
	intra  bool
	block  uint32 // of an intra-block race
}

func (f fact) ordered() fact {
	if f.op == detect.Write && f.x > f.y {
		f.x, f.y = f.y, f.x
	}
	return f
}

type access struct {
	block, thread, region uint32
	at                    uint64
	write, shared         bool
}

// program makes a random launch, and lists its threads' accesses byte by byte.
func program(rng *rand.Rand) (*event.Batch, []access) {
	blocks, size := 1+uint32(rng.IntN(4)), []uint32{20, 32, 50, 96}[rng.IntN(4)]
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: blocks, Y: 1, Z: 1}, Block: event.Dim3{X: size, Y: 1, Z: 1}}}}
	litmus.Add(b, event.Event{Kind: event.KernelBegin, Place: 1})
	warps := b.Launches[0].WarpsPerBlock()
	regions := make([]uint32, blocks)
	words := []int{40, 200, 2000}[rng.IntN(3)]
	var done []access
	for range 5 + rng.IntN(40) {
		block := rng.Uint32N(blocks)
		warp := rng.Uint32N(warps)
		e := event.Event{Warp: block*warps + warp, Space: event.Global, Kind: event.Load, Flags: event.FlagRead,
			Size: []uint8{1, 4, 4, 4, 16}[rng.IntN(5)], Place: 1 + rng.Uint32N(6)}
		if rng.IntN(4) == 0 {
			litmus.Add(b, event.Event{Kind: event.BarrierDone, Warp: e.Warp, Mask: 1})
			regions[block]++
			continue
		}
		if rng.IntN(3) == 0 {
			e.Kind, e.Flags = event.Store, event.FlagWrite
		}
		if rng.IntN(3) == 0 {
			e.Space = event.Shared
		}
		exist := ^uint32(0)
		if left := size - warp*32; left < 32 {
			exist = 1<<left - 1
		}
		if e.Mask = exist; rng.IntN(2) == 0 {
			if e.Mask &= rng.Uint32() & rng.Uint32() & rng.Uint32(); e.Mask == 0 {
				e.Mask = 1
			}
		}
		e.Addr = uint64(rng.IntN(words)) * uint64(e.Size)
		e.Stride = []int64{0, 1, 1, 1, 2}[rng.IntN(5)] * int64(e.Size)
		if rng.IntN(4) == 0 {
			e.Flags |= event.FlagScattered
			e.Side = uint32(len(b.Addrs))
			for range 32 {
				b.Addrs = append(b.Addrs, uint64(rng.IntN(words))*uint64(e.Size))
			}
		}
		litmus.Add(b, e)
		for lane := range 32 {
			if e.Mask>>lane&1 == 0 {
				continue
			}
			for i := range uint64(e.Size) {
				done = append(done, access{block, warp*32 + uint32(lane), regions[block], b.AddrOf(&e, lane) + i,
					e.Kind == event.Store, e.Space == event.Shared})
			}
		}
	}
	if rng.IntN(2) == 0 {
		for w := range blocks * warps {
			n := min(32, size-w%warps*32)
			litmus.Add(b, event.Event{Kind: event.Exit, Warp: w, Mask: uint32(1<<n - 1)})
		}
	}
	litmus.Add(b, event.Event{Kind: event.KernelEnd, Place: 1})
	return b, done
}

// definition returns the races of accesses straight from the definition: within one block and one interval between
// barriers, and between different blocks in global memory at any time.
func definition(done []access) map[fact]bool {
	byByte := map[uint64][]access{}
	for _, a := range done {
		byByte[a.at] = append(byByte[a.at], a)
	}
	out := map[fact]bool{}
	for at, list := range byByte {
		for _, x := range list {
			for _, y := range list {
				if !x.write || x.shared != y.shared {
					continue
				}
				op := detect.Read
				if y.write {
					op = detect.Write
				}
				switch {
				case x.block == y.block && x.thread != y.thread && x.region == y.region:
					out[fact{x.thread, y.thread, at, op, x.shared, true, x.block}.ordered()] = true
				case x.block != y.block && !x.shared:
					out[fact{x.block, y.block, at, op, false, false, 0}.ordered()] = true
				}
			}
		}
	}
	return out
}

// TestDefinition compares both modes with the definition on random launches without atomics and fences: the same
// bytes, threads and blocks.
func TestDefinition(t *testing.T) {
	n, racy := testsize.Of(300, 400, 1500), 0
	for seed := range uint64(n) {
		b, done := program(rand.New(rand.NewPCG(seed, 1)))
		want := definition(done)
		if len(want) > 0 {
			racy++
		}
		for _, mode := range mode.Values {
			d := newTest(mode)
			got := map[fact]bool{}
			d.witness = func(r race) {
				for at := max(r.rx.lo, r.ry.lo); at < min(r.rx.hi, r.ry.hi); at++ {
					f := fact{r.x, r.y, at, r.op, r.shared, r.x == r.y, 0}
					if f.intra {
						f.x, f.y, f.block = uint32(r.rx.thread), uint32(r.ry.thread), r.x
					}
					got[f.ordered()] = true
				}
			}
			d.Events(b)
			for f := range want {
				if !got[f] {
					t.Fatalf("seed %d, %s: missed %+v", seed, mode, f)
				}
			}
			for f := range got {
				if !want[f] {
					t.Fatalf("seed %d, %s: no race: %+v", seed, mode, f)
				}
			}
			if found := len(d.Findings()) > 0; found != (len(want) > 0) {
				t.Fatalf("seed %d, %s: findings: %v, races: %d", seed, mode, found, len(want))
			}
			if d.MemoryBytes() == 0 {
				t.Fatal("no memory")
			}
		}
	}
	if racy < n/5 || racy > n-n/150 {
		t.Errorf("%d of %d launches race", racy, n)
	}
}

// TestSources checks that the places of a finding are those of overlapping accesses, if it says that they are complete.
func TestSources(t *testing.T) {
	for seed := range uint64(300) {
		b, _ := program(rand.New(rand.NewPCG(seed, 2)))
		for _, mode := range mode.Values {
			d := newTest(mode)
			d.witness = func(r race) {
				lo, hi := max(r.rx.lo, r.ry.lo), min(r.rx.hi, r.ry.hi)
				for _, x := range []struct {
					block uint32
					r     region
				}{{r.x, r.rx}, {r.y, r.ry}} {
					if x.r.complete && !accessed(b, x.block, x.r.place, lo, hi, r.shared) {
						t.Fatalf("seed %d, %s: place %d accessed nothing of %x-%x", seed, mode, x.r.place, lo, hi)
					}
				}
			}
			d.Events(b)
		}
	}
}

// accessed reports whether a place accessed every byte of a range in a block.
func accessed(b *event.Batch, block, place uint32, lo, hi uint64, shared bool) bool {
	left := map[uint64]bool{}
	for at := lo; at < hi; at++ {
		left[at] = true
	}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind > event.Store || e.Place != place || (e.Space == event.Shared) != shared || e.Warp/b.Launches[0].WarpsPerBlock() != block {
			continue
		}
		for lane := range 32 {
			if e.Mask>>lane&1 != 0 {
				for at := range uint64(e.Size) {
					delete(left, b.AddrOf(e, lane)+at)
				}
			}
		}
	}
	return len(left) == 0
}

// TestCompact checks that the sets of a coalesced kernel are one region for each block.
func TestCompact(t *testing.T) {
	for _, mode := range mode.Values {
		b := litmus.Launch(8)
		d := newTest(mode)
		for warp := range uint32(16) {
			for i := range uint64(50) {
				litmus.Add(b, event.Event{Kind: event.Store, Flags: event.FlagWrite, Space: event.Global, Mask: ^uint32(0), Warp: warp, Place: 7,
					Size: 4, Stride: 200, Addr: litmus.Base + uint64(warp)*6400 + 4*i})
			}
		}
		d.Events(b)
		for _, c := range d.blocks {
			set := &c.threads[0][writes]
			if n := len(set.warps[0].groups[0].lines); n != 1 {
				t.Fatalf("a thread that walks over memory has %d regions", n)
			}
			if r := set.compress(nil); len(r) != 1 || r[0].hi-r[0].lo != 12800 || !r[0].complete {
				t.Errorf("%s: a block has the regions %+v", mode, r)
			}
		}
		litmus.Add(b, event.Event{Kind: event.KernelEnd})
		d.Events(&event.Batch{Events: b.Events[len(b.Events)-1:]})
		if f := d.Findings(); len(f) != 0 {
			t.Errorf("%s: %v", mode, f)
		}
	}
}

// TestBoundedSearch checks that the size of sets stays bounded if a block repeats scattered accesses after each
// barrier.
func TestBoundedSearch(t *testing.T) {
	d := newTest("lazy")
	d.Events(litmus.Launch(1))
	for range 200 {
		b := &event.Batch{}
		for i := range uint64(100) {
			litmus.Add(b, event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Global, Mask: 1, Place: 1, Size: 4, Addr: litmus.Base + i*64})
		}
		litmus.Add(b, event.Event{Kind: event.BarrierDone, Mask: 1})
		d.Events(b)
	}
	if n := len(d.blocks[0].total[reads].regions); n < 100 || n > 400 {
		t.Errorf("a block that reads 100 regions has a set of %d", n)
	}
	var set warpSet
	for i := range uint64(2 * searched) {
		set.insert(32, 1, line{lo: i * 8, size: 4, from: i * 8, to: i*8 + 4})
	}
	set.insert(32, 1, line{lo: 8*searched*2 - 12, size: 4, from: 8*searched*2 - 12, to: 8*searched*2 - 8}) // between the last two
	got := set.groups[0].lines
	if n := len(got); n != 2*searched-1 || got[n-1].lo != 8*searched*2-16 || got[n-1].size != 12 {
		t.Errorf("%+v", got)
	}
}

// BenchmarkCoalesced is a block of 256 threads that reads two arrays and writes a third, with occasional barriers.
func BenchmarkCoalesced(b *testing.B) {
	launch := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 256, Y: 1, Z: 1}}}}
	litmus.Add(launch, event.Event{Kind: event.KernelBegin})
	d := newTest("lazy")
	d.Events(launch)
	round := &event.Batch{}
	for i := range uint64(4) {
		for warp := range uint32(8) {
			e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Global, Mask: ^uint32(0), Warp: warp, Size: 4, Stride: 4,
				Addr: litmus.Base + uint64(warp)*128 + i<<12}
			litmus.Add(round, e)
			e.Addr += 1 << 20
			litmus.Add(round, e)
			e.Addr, e.Kind, e.Flags = e.Addr+1<<20, event.Store, event.FlagWrite
			litmus.Add(round, e)
		}
	}
	litmus.Add(round, event.Event{Kind: event.BarrierDone, Mask: 1})
	b.ReportAllocs()
	for b.Loop() {
		d.Events(round)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(round.Events)), "ns/event")
}
