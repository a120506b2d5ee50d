package barracuda

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// program makes the stream of a random kernel with few locations, and with fences, barriers and atomic operations as
// programs use them. In lockstep, warps split, change paths and reconverge.
type program struct {
	rng      *rand.Rand
	lockstep bool
	wide     bool // accesses are mostly to arrays in lane order
	b        *event.Batch
	launch   event.Launch
	forms    []event.Event // by place - 1
	warps    []*randomWarp
}

type randomWarp struct {
	live, waits uint32
	splits      [][2]uint32 // path, other; other 0 once it runs
}

func randomProgram(rng *rand.Rand, lockstep bool) *event.Batch {
	p := &program{rng: rng, lockstep: lockstep, b: &event.Batch{}}
	p.launch = event.Launch{ID: 1, Kernel: "k", Grid: event.Dim3{X: 1 + uint32(rng.IntN(3)), Y: 1, Z: 1},
		Block: event.Dim3{X: []uint32{2, 4, 5, 34}[rng.IntN(4)], Y: 1, Z: 1}}
	p.run(10 + rng.IntN(70))
	return p.b
}

// run makes the launch, with a number of operations.
func (p *program) run(steps int) {
	p.b.Launches = append(p.b.Launches, p.launch)
	p.emit(event.Event{Kind: event.KernelBegin, Launch: 1})
	for i := range p.launch.Grid.Count() * uint64(p.launch.WarpsPerBlock()) {
		left := int(p.launch.Block.Count()) - 32*int(uint32(i)%p.launch.WarpsPerBlock())
		p.warps = append(p.warps, &randomWarp{live: uint32(1<<min(left, 32) - 1)})
	}
	for range 2 + p.pick(7) {
		p.forms = append(p.forms, p.form())
	}
	for range steps {
		p.step(p.pick(len(p.warps)))
	}
	p.emit(event.Event{Kind: event.KernelEnd, Launch: 1})
}

func (p *program) pick(n int) int { return p.rng.IntN(n) }

func (p *program) emit(e event.Event) {
	e.Launch = 1
	p.b.Events = append(p.b.Events, e)
}

// form makes an instruction.
func (p *program) form() event.Event {
	e := event.Event{Place: uint32(len(p.forms) + 1), Space: event.Global, Size: []uint8{4, 4, 4, 1, 2, 8, 8, 16}[p.pick(8)]}
	if p.pick(3) == 0 {
		e.Space = event.Shared
	}
	if p.wide && p.pick(8) > 0 {
		e.Kind, e.Flags, e.Size, e.Space = event.Load, event.FlagRead, 4, event.Global
		if p.pick(2) == 0 {
			e.Kind, e.Flags = event.Store, event.FlagWrite
		}
		return e
	}
	switch p.pick(5) {
	case 0, 1:
		e.Kind, e.Flags = event.Load, event.FlagRead
		e.Order = []event.Order{event.Weak, event.Weak, event.Volatile, event.Acquire}[p.pick(4)]
	case 2:
		e.Kind, e.Flags = event.Store, event.FlagWrite
		e.Order = []event.Order{event.Weak, event.Weak, event.Volatile, event.Release}[p.pick(4)]
	default:
		e.Kind, e.Flags, e.RMW, e.Size = event.Atomic, event.FlagRead|event.FlagWrite, event.RMW(p.pick(3)), []uint8{4, 4, 8}[p.pick(3)]
		e.Order = []event.Order{event.Relaxed, event.Relaxed, event.Relaxed, event.AcqRel, event.Acquire, event.Release}[p.pick(6)]
	}
	if e.Order > event.Volatile {
		e.Scope = p.scope()
	}
	return e
}

func (p *program) scope() event.Scope {
	return []event.Scope{event.ScopeCTA, event.ScopeGPU, event.ScopeGPU, event.ScopeSys}[p.pick(4)]
}

func (w *randomWarp) active() uint32 {
	if n := len(w.splits); n > 0 {
		return w.splits[n-1][0] & w.live
	}
	return w.live
}

func (p *program) some(mask uint32) uint32 {
	if m := mask & p.rng.Uint32(); m != 0 && p.pick(2) == 0 {
		return m
	}
	return mask
}

func (p *program) step(n int) {
	w := p.warps[n]
	free := w.active() &^ w.waits
	e := event.Event{Warp: uint32(n), Mask: free}
	if free == 0 {
		if len(w.splits) > 0 && w.waits == 0 && w.live != 0 {
			p.turn(w, e)
		}
		return
	}
	switch k := p.pick(24); {
	case k < 11:
		e.Mask = p.some(free)
		p.access(e)
	case k < 14: // a hand-over
		e.Mask = p.some(free)
		if p.pick(2) == 0 {
			p.fence(e)
		}
		p.access(e)
		if p.pick(2) == 0 {
			p.fence(e)
		}
	case k < 16:
		e.Mask = p.some(free)
		p.fence(e)
	case k < 19 && p.lockstep:
		p.turn(w, e)
	case k < 18:
		e.Kind, e.Mask = event.WarpSync, p.some(free)
		p.emit(e)
	case k < 22:
		p.barrier(w, e, k == 21)
	case k < 23 && p.pick(4) == 0:
		e.Kind, e.Mask = event.Exit, p.some(free)
		w.live &^= e.Mask
		p.emit(e)
		p.complete(n)
	}
}

// turn splits the warp, switches to the other path, or ends the split.
func (p *program) turn(w *randomWarp, e event.Event) {
	last := len(w.splits) - 1
	switch {
	case last < 2 && bits.OnesCount32(e.Mask) > 1 && p.pick(2) == 0:
		first := e.Mask & p.rng.Uint32()
		if first == 0 || first == e.Mask {
			return
		}
		w.splits = append(w.splits, [2]uint32{first, e.Mask &^ first})
		e.Kind, e.Aux, e.Mask = event.Branch, e.Mask&^first, first
	case last < 0:
		return
	case w.splits[last][1] != 0:
		w.splits[last] = [2]uint32{w.splits[last][1] & w.live, 0}
		if e.Kind, e.Mask = event.Else, w.splits[last][0]; e.Mask == 0 {
			return
		}
	default:
		w.splits = w.splits[:last]
		e.Kind, e.Mask = event.Reconverge, w.active()
	}
	p.emit(e)
}

func (p *program) fence(e event.Event) {
	e.Kind, e.Order, e.Scope, e.Place = event.Fence, event.SC, p.scope(), 90
	p.emit(e)
}

// access makes an instruction execute, sometimes several times: a poll.
func (p *program) access(e event.Event) {
	f := p.forms[p.pick(len(p.forms))]
	f.Warp, f.Mask = e.Warp, e.Mask
	size := uint64(f.Size)
	one := func() uint64 { return 0x1000 + uint64(p.pick(max(2, int(16/size))))*size }
	switch kind := p.pick(4); {
	case p.wide && p.pick(30) > 0:
		f.Addr, f.Stride = 0x1000+128*uint64(f.Warp%3)+4*uint64(bits.TrailingZeros32(f.Mask)), int64(size)
		if p.pick(6) == 0 {
			f.Addr += []uint64{4, 128, 256, 64, 8}[p.pick(5)]
		}
		f.Addr &^= size - 1
	case kind == 0:
		f.Flags |= event.FlagScattered
		f.Side = uint32(len(p.b.Addrs))
		for range bits.OnesCount32(f.Mask) {
			p.b.Addrs = append(p.b.Addrs, one())
		}
	case kind == 1:
		f.Addr, f.Stride = one(), int64(size)*int64(1+p.pick(5)/4)
	default:
		f.Addr = one()
	}
	if f.Kind != event.Load && p.pick(4) > 0 {
		f.Flags |= event.FlagValues
		f.Val = uint32(len(p.b.Values))
		for range bits.OnesCount32(f.Mask) {
			v := uint64(p.pick(4)/3) * 0x0101010101010101 >> max(0, 64-8*int(size)) // the same in each byte
			for range event.ValueWords(f.Size) {
				p.b.Values = append(p.b.Values, v)
			}
		}
	}
	for range 1 + p.pick(4)/3*p.pick(3) {
		p.emit(f)
		if f.Kind == event.Load && p.pick(4) == 0 {
			f.Mask = p.some(f.Mask)
			if f.Flags&event.FlagScattered != 0 {
				return
			}
		}
	}
}

func (p *program) barrier(w *randomWarp, e event.Event, odd bool) {
	if p.lockstep && (len(w.splits) > 0 || e.Mask != w.live) && !odd {
		return
	}
	e.Kind, e.Flags, e.Place = event.Arrive, event.FlagWait, 91
	if !p.lockstep {
		e.Mask = p.some(e.Mask)
	}
	if odd && p.pick(2) == 0 {
		e.Flags = 0
		e.Barrier, e.Aux = 1, 32
		p.emit(e)
		return
	}
	w.waits |= e.Mask
	p.emit(e)
	p.complete(int(e.Warp))
}

// complete completes the barrier of a warp's block when no other thread is to come.
func (p *program) complete(n int) {
	wpb := int(p.launch.WarpsPerBlock())
	block := p.warps[n/wpb*wpb:][:wpb]
	any := false
	for _, w := range block {
		if w.waits &= w.live; w.waits != w.live && !(p.lockstep && w.waits != 0) {
			return
		}
		any = any || w.waits != 0
	}
	if !any {
		return
	}
	for _, w := range block {
		w.waits = 0
	}
	id := uint8(0)
	if p.pick(8) == 0 {
		p.emit(event.Event{Kind: event.BarrierDone, Warp: uint32(n), Mask: 1, Barrier: 1})
	}
	p.emit(event.Event{Kind: event.BarrierDone, Warp: uint32(n), Mask: 1, Barrier: id})
}

// racesOf returns the detector's races for a stream, access by access.
func racesOf(b *event.Batch, plus bool, size int, each func(d *Detector, i int)) map[string]bool {
	return racesBy(newTest(plus, "off"), b, size, each)
}

func racesBy(d *Detector, b *event.Batch, size int, each func(d *Detector, i int)) map[string]bool {
	out := map[string]bool{}
	d.witness = func(a *access, lane int, addr uint64, n int, r race) {
		for x := addr; x < addr+uint64(n); x++ {
			place := fmt.Sprint("g", x)
			if a.e.Space == event.Shared {
				place = fmt.Sprint("s", a.w.block.number, ":", x)
			}
			out[fmt.Sprintf("%d lane %d %s %s", a.e.Aux, lane, place, map[bool]string{true: "W", false: "R"}[r.write])] = true
		}
	}
	for i := 0; i < len(b.Events); i += size {
		part := *b
		part.Events = slices.Clone(b.Events[i:min(i+size, len(b.Events))])
		for j := range part.Events { // the number of an access is in Aux, which only vectors use
			if e := &part.Events[j]; e.Kind >= event.Load && e.Kind <= event.Atomic {
				e.Aux = uint32(i + j)
			}
		}
		d.Events(&part)
		if each != nil {
			each(d, i)
		}
	}
	return out
}

func newTest(plus bool, prune string) *Detector {
	name := baseName
	if plus {
		name = plusName
	}
	return newDetector(detect.Config{Options: map[string]string{"prune": prune}}, name, plus)
}

func without(a, b map[string]bool) map[string]bool {
	out := maps.Clone(a)
	maps.DeleteFunc(out, func(k string, _ bool) bool { return b[k] })
	return out
}

// shrink removes events from a stream as long as it fails.
func shrink(b *event.Batch, fails func(*event.Batch) bool) *event.Batch {
	for again := true; again; {
		again = false
		for i := len(b.Events) - 2; i > 0; i-- {
			if k := b.Events[i].Kind; isBranch(k) || k == event.Exit {
				continue
			}
			part := *b
			part.Events = slices.Delete(slices.Clone(b.Events), i, i+1)
			if fails(&part) {
				b, again = &part, true
			}
		}
	}
	return b
}

func text(races map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(races)), "\n")
}

func show(b *event.Batch) string {
	var s strings.Builder
	fmt.Fprintln(&s, b.Launches[0])
	for i := range b.Events {
		e := &b.Events[i]
		fmt.Fprintf(&s, "%3d %v w%d %08x aux%x p%d %v.%v rmw%d", i, e.Kind, e.Warp, e.Mask, e.Aux, e.Place, e.Order, e.Scope, e.RMW)
		if e.Kind >= event.Load && e.Kind <= event.Atomic {
			fmt.Fprintf(&s, " %v size %d", e.Space, e.Size)
			for _, l := range lanesOf(e.Mask) {
				fmt.Fprintf(&s, " %d@%x=%v", l, b.AddrOf(e, l), b.ValueOf(e, l))
			}
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// TestRandomPrograms compares the detectors with the rules as printed in the papers, in batches of any size.
func TestRandomPrograms(t *testing.T) {
	n := 3000
	if !testsize.Long() {
		n = 500
	}
	for _, plus := range []bool{false, true} {
		racy := 0
		for seed := range n {
			b := randomProgram(rand.New(rand.NewPCG(uint64(seed), 7)), !plus)
			want := text(runModel(b, plus, false, nil).races)
			for _, size := range []int{1, 3, 1000} {
				if text(racesOf(b, plus, size, nil)) != want {
					b := shrink(b, func(b *event.Batch) bool {
						return text(racesOf(b, plus, size, nil)) != text(runModel(b, plus, false, nil).races)
					})
					got, want := racesOf(b, plus, size, nil), runModel(b, plus, false, nil).races
					t.Fatalf("plus %v, seed %d, batches of %d\n%s\nof the detector alone:\n%s\n\nof the model alone:\n%s",
						plus, seed, size, show(b), text(without(got, want)), text(without(want, got)))
				}
			}
			if want != "" {
				racy++
			}
		}
		if racy < n/10 || racy > n*9/10 {
			t.Errorf("%d of %d programs have a race: the comparison shows little", racy, n)
		}
		t.Logf("plus %v: %d of %d have a race", plus, racy, n)
	}
}

// TestCompress compares the detectors with themselves when every thread has its own clock with a number for each other
// thread.
func TestCompress(t *testing.T) {
	for _, plus := range []bool{false, true} {
		grown := 0
		for seed := range 600 {
			b := randomProgram(rand.New(rand.NewPCG(uint64(seed), 8)), !plus)
			on, off := newTest(plus, "off"), newTest(plus, "off")
			off.each = true
			var held [2]uint64
			want := racesBy(on, b, 7, func(d *Detector, _ int) { held[0] = max(held[0], d.MemoryBytes()) })
			got := racesBy(off, b, 7, func(d *Detector, _ int) { held[1] = max(held[1], d.MemoryBytes()) })
			if text(got) != text(want) {
				t.Fatalf("plus %v, seed %d\n%s\nof clocks with numbers for each alone:\n%s\n\nof compressed ones alone:\n%s",
					plus, seed, show(b), text(without(got, want)), text(without(want, got)))
			}
			if held[1] > held[0] {
				grown++
			}
		}
		if grown < 300 {
			t.Errorf("plus %v: clocks took more memory without compression in %d of 600 programs only", plus, grown)
		}
	}
}

// TestRows makes whole warps access arrays in lane order, aligned to lines of shadow memory or not, so that runs of
// cells are read, written, overwritten by others and divided.
func TestRows(t *testing.T) {
	n := 800
	if !testsize.Long() {
		n = 100
	}
	for _, plus := range []bool{false, true} {
		racy, compact := 0, 0
		for seed := range n {
			rng := rand.New(rand.NewPCG(uint64(seed), 17))
			p := &program{rng: rng, lockstep: !plus, b: &event.Batch{}, wide: true}
			p.launch = event.Launch{ID: 1, Kernel: "k", Grid: event.Dim3{X: 1 + uint32(rng.IntN(2)), Y: 1, Z: 1}, Block: event.Dim3{X: []uint32{32, 48, 64}[rng.IntN(3)], Y: 1, Z: 1}}
			p.run(10 + rng.IntN(30))
			want := runModel(p.b, plus, false, nil).races
			segments := 0
			got := racesOf(p.b, plus, 1000, func(d *Detector, i int) {
				for at := uint64(0); at < 1024; at += wordBytes * shadow.LineCells {
					l, _ := d.words.Global(0x1000 + at)
					for i := range shadow.LineCells - 1 {
						c := d.words.At(l, i)
						if c.Turn(1); c != (cell{}) && c == d.words.At(l, i+1) {
							segments++
							break
						}
					}
				}
			})
			if text(got) != text(want) {
				t.Fatalf("plus %v, seed %d\n%s\nof the detector alone:\n%s\n\nof the model alone:\n%s", plus, seed, show(p.b),
					text(without(got, want)), text(without(want, got)))
			}
			if len(want) > 0 {
				racy++
			}
			compact += segments
		}
		t.Logf("plus %v: %d of %d programs have a race; %d lines ended with a run of several cells", plus, racy, n, compact)
		if racy < n/10 || racy > n*9/10 || compact < n/4 {
			t.Errorf("plus %v: the comparison shows little", plus)
		}
	}
}

// TestTiles writes and reads tiles in turn, with barriers between: in rows, broadcasts and columns, unaligned,
// sometimes by only some lanes or without the barrier. Many lanes and warps read each word.
func TestTiles(t *testing.T) {
	n := testsize.Of(20, 30, 250)
	for _, plus := range []bool{false, true} {
		racy := 0
		for seed := range n {
			rng := rand.New(rand.NewPCG(uint64(seed), 23))
			p := &program{rng: rng, lockstep: !plus, b: &event.Batch{}}
			p.launch = event.Launch{ID: 1, Kernel: "k", Grid: event.Dim3{X: 1 + uint32(rng.IntN(2)), Y: 1, Z: 1}, Block: event.Dim3{X: []uint32{32, 64, 64, 96}[rng.IntN(4)], Y: 1, Z: 1}}
			p.tiles(4 + rng.IntN(6))
			want := runModel(p.b, plus, false, nil).races
			if got := racesOf(p.b, plus, 1000, nil); text(got) != text(want) {
				t.Fatalf("plus %v, seed %d\n%s\nof the detector alone:\n%s\n\nof the model alone:\n%s", plus, seed, show(p.b),
					text(without(got, want)), text(without(want, got)))
			}
			if len(want) > 0 {
				racy++
			}
		}
		if racy < n/10 || racy > n*9/10 {
			t.Errorf("plus %v: %d of %d programs have a race: the comparison shows little", plus, racy, n)
		}
	}
}

// tiles makes a launch of a number of phases.
func (p *program) tiles(phases int) {
	p.b.Launches = append(p.b.Launches, p.launch)
	p.emit(event.Event{Kind: event.KernelBegin, Launch: 1})
	warps := p.launch.WarpsPerBlock()
	place := uint32(0)
	for phase := range phases {
		for block := range uint32(p.launch.Grid.Count()) {
			for i := range warps {
				w := block*warps + i
				if phase%2 == 0 { // words of its own
					place++
					e := event.Event{Kind: event.Store, Flags: event.FlagWrite, Space: event.Shared, Size: 4, Stride: 4, Addr: uint64(i) * 128, Mask: ^uint32(0), Warp: w, Place: place}
					switch p.pick(12) {
					case 0:
						e.Addr += 4
					case 1:
						e.Mask &= 0xffff
					case 2:
						e.Kind, e.Flags = event.Load, event.FlagRead
					}
					p.emit(e)
					continue
				}
				for range p.pick(7) {
					place++
					p.emit(p.tileRead(w, i, place))
				}
			}
			if p.pick(14) > 0 {
				for i := range warps {
					p.emit(event.Event{Kind: event.Arrive, Flags: event.FlagWait, Mask: ^uint32(0), Warp: block*warps + i, Place: 900})
				}
				p.emit(event.Event{Kind: event.BarrierDone, Mask: ^uint32(0), Warp: block*warps + warps - 1, Place: 900})
			}
		}
	}
	p.emit(event.Event{Kind: event.KernelEnd, Launch: 1})
}

// tileRead makes a read of a tile, or of a table in global memory that all blocks read.
func (p *program) tileRead(w, i, place uint32) event.Event {
	e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Shared, Size: 4, Mask: ^uint32(0), Warp: w, Place: place}
	base := uint64(p.pick(3)) * 64
	at := func(f func(l uint64) uint64) {
		e.Flags |= event.FlagScattered
		e.Side = uint32(len(p.b.Addrs))
		for l := range uint64(32) {
			p.b.Addrs = append(p.b.Addrs, base+4*f(l))
		}
	}
	switch p.pick(8) {
	case 0:
		e.Addr = base + 4*uint64(p.pick(16)) // all the same
	case 1:
		e.Addr, e.Stride = base+4*uint64(p.pick(3)), 4
	case 2:
		k := uint64(p.pick(16))
		if e.Addr = base + 4*k; p.pick(2) == 0 {
			e.InRows(4, 0, 64)
			break
		}
		at(func(l uint64) uint64 { return l/16*16 + k })
	case 3:
		if e.Addr = base; p.pick(2) == 0 {
			e.InRows(uint8(3+p.pick(2)), 4, 64*int64(p.pick(2)))
			if p.pick(2) == 0 {
				e.Mask = p.rng.Uint32() | 1
			}
			break
		}
		at(func(l uint64) uint64 { return l % 16 })
	case 4:
		e.Addr, e.Stride = uint64(p.pick(4))*4, 132
	case 5:
		e.Mask = 1 << p.pick(32)
		e.Addr = base + 4*uint64(p.pick(32))
	case 6:
		e.Mask = p.rng.Uint32() | 1
		e.Addr, e.Stride = base, 4
	case 7:
		e.Addr, e.Stride = uint64(i)*128, 4
	}
	if p.pick(4) == 0 && e.Affine() {
		e.Space = event.Global
		e.Addr += 0x1000
		if p.pick(12) == 0 {
			e.Kind, e.Flags = event.Store, event.FlagWrite
		}
	}
	return e
}

// TestManyReaders makes so many warps read a location that its readers are indexed.
func TestManyReaders(t *testing.T) {
	for _, plus := range []bool{false, true} {
		for seed := range 60 {
			rng := rand.New(rand.NewPCG(uint64(seed), 13))
			p := &program{rng: rng, lockstep: !plus, b: &event.Batch{}}
			p.launch = event.Launch{ID: 1, Kernel: "k", Grid: event.Dim3{X: 50, Y: 1, Z: 1}, Block: event.Dim3{X: 3, Y: 1, Z: 1}}
			p.b.Launches = append(p.b.Launches, p.launch)
			p.emit(event.Event{Kind: event.KernelBegin, Launch: 1})
			for range 150 {
				e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Global, Size: 4, Addr: 0x1000,
					Warp: uint32(rng.IntN(50)), Mask: 1 + uint32(rng.IntN(7)), Place: 1 + uint32(rng.IntN(3))}
				switch rng.IntN(40) {
				case 0:
					e.Kind, e.Flags, e.Place = event.Store, event.FlagWrite, 4
				case 1:
					e.Size, e.Place = 1, 5
				case 2, 3:
					e.Kind, e.Place = event.WarpSync, 6
				}
				p.emit(e)
			}
			p.emit(event.Event{Kind: event.KernelEnd, Launch: 1})
			want := runModel(p.b, plus, false, nil).races
			if got := racesOf(p.b, plus, 1000, nil); text(got) != text(want) {
				t.Fatalf("plus %v, seed %d\n%s\nof the detector alone:\n%s\n\nof the model alone:\n%s", plus, seed, show(p.b),
					text(without(got, want)), text(without(want, got)))
			}
		}
	}
}

// TestPruning checks that pruning does not change which locations race, in batches of any size. Its programs repeat
// accesses more often than the others here.
func TestPruning(t *testing.T) {
	n := 1500
	if !testsize.Long() {
		n = 300
	}
	for _, plus := range []bool{false, true} {
		left := 0
		for seed := range n {
			b := randomProgram(rand.New(rand.NewPCG(uint64(seed), 11)), !plus)
			b = repeated(b)
			all, some := racyBytes(b, plus, "off"), racyBytes(b, plus, "on")
			if text(all.bytes) != text(some.bytes) {
				b = shrink(b, func(b *event.Batch) bool {
					return text(racyBytes(b, plus, "off").bytes) != text(racyBytes(b, plus, "on").bytes)
				})
				all, some = racyBytes(b, plus, "off"), racyBytes(b, plus, "on")
				t.Fatalf("plus %v, seed %d\n%s\nwith pruning alone:\n%s\n\nwithout alone:\n%s", plus, seed, show(b),
					text(without(some.bytes, all.bytes)), text(without(all.bytes, some.bytes)))
			}
			left += all.judged - some.judged
		}
		if left < n {
			t.Errorf("plus %v: pruning left out %d accesses of %d programs: the comparison shows little", plus, left, n)
		}
	}
}

// repeated makes each plain access in lane order happen two or three times, by consecutive instructions.
func repeated(b *event.Batch) *event.Batch {
	out := *b
	out.Events = nil
	for _, e := range b.Events {
		e.Place *= 4
		out.Events = append(out.Events, e)
		for i := uint32(1); prunable(&e) && e.Kind <= event.Store && e.Kind > event.None && i < 3; i++ {
			e.Place++
			if i == 2 {
				e.Kind, e.Flags, e.Order, e.Scope = event.Load, event.FlagRead, event.Weak, event.NoScope
			}
			out.Events = append(out.Events, e)
		}
	}
	return &out
}

type judged struct {
	bytes  map[string]bool
	judged int
}

func racyBytes(b *event.Batch, plus bool, prune string) judged {
	d := newTest(plus, prune)
	out := judged{bytes: map[string]bool{}}
	d.witness = func(a *access, lane int, addr uint64, n int, r race) {
		for x := addr; x < addr+uint64(n); x++ {
			if a.e.Space == event.Shared {
				out.bytes[fmt.Sprint("s", a.w.block.number, ":", x)] = true
			} else {
				out.bytes[fmt.Sprint("g", x)] = true
			}
		}
	}
	d.Events(b)
	out.judged = d.performed
	return out
}
