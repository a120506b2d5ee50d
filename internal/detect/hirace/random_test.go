package hirace

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// model finds what HiRace claims to find, by brute force: for every byte it lists all accesses, and for each access the
// threads that are ordered after it by program order and barriers.
type model struct {
	launch event.Launch
	bytes  map[place]*history8
	pairs  map[[2]uint32]bool // places of racing accesses
}

type place struct {
	window uint32 // of a block, from 1; 0: global memory
	at     uint64
}

type history8 struct {
	raced bool
	all   []done
}

type done struct {
	act     action
	thread  uint32
	place   uint32
	ordered map[uint32]bool
}

func (m *model) access(e *event.Event, addr uint64, lane int) {
	thread := e.Warp<<5 | uint32(lane)
	for at := addr; at < addr+uint64(e.Size); at++ {
		p := place{0, at}
		if e.Space == event.Shared {
			p.window = 1 + e.Warp/2
		}
		h := m.bytes[p]
		if h == nil {
			h = &history8{}
			m.bytes[p] = h
		}
		act := actionOf(e)
		for _, x := range h.all {
			bothAtomic := x.act >= blockAtomic && act >= blockAtomic && (x.thread>>6 == thread>>6 || x.act == deviceAtomic && act == deviceAtomic)
			if !x.ordered[thread] && !bothAtomic && (x.act != read || act != read) {
				h.raced = true
				m.pairs[[2]uint32{x.place, e.Place}] = true
			}
		}
		h.all = append(h.all, done{act, thread, e.Place, map[uint32]bool{thread: true}})
	}
}

// barrier orders the threads of a group.
func (m *model) barrier(in func(thread uint32) bool, group []uint32) {
	for _, h := range m.bytes {
		for _, x := range h.all {
			for thread := range x.ordered {
				if in(thread) {
					for _, g := range group {
						x.ordered[g] = true
					}
					break
				}
			}
		}
	}
}

func threads(from, to uint32) (func(uint32) bool, []uint32) {
	var all []uint32
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return func(t uint32) bool { return from <= t && t < to }, all
}

// randomAccess makes an access, usually by a whole warp.
func randomAccess(rng *rand.Rand, place uint32) event.Event {
	e := event.Event{Kind: event.Load, Flags: event.FlagRead, Warp: uint32(rng.IntN(4)), Place: place, Size: 4, Stride: 4,
		Mask: ^uint32(0), Space: event.Global, Addr: litmus.Base + uint64(rng.IntN(5))*64}
	switch rng.IntN(8) {
	case 0, 1, 2:
		e.Kind, e.Flags = event.Store, event.FlagWrite
	case 3, 4:
		e.Kind, e.Flags, e.Order, e.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, event.ScopeCTA+event.Scope(2*rng.IntN(2))
	}
	switch rng.IntN(6) {
	case 0:
		e.Mask = rng.Uint32() | 1
	case 1:
		e.Mask, e.Addr = 1<<rng.IntN(32), e.Addr+uint64(rng.IntN(32))*4
	case 2:
		e.Addr += 4 * uint64(rng.IntN(3))
	case 3:
		e.Size = uint8(1 << rng.IntN(5))
		e.Stride = int64(e.Size)
	}
	if rng.IntN(3) == 0 {
		e.Space, e.Addr = event.Shared, e.Addr-litmus.Base
	}
	return e
}

// TestRandom compares random launches with the model: which bytes end in state RACE, and that the two accesses of every
// finding race.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	raced, clean := 0, 0
	for range 300 {
		b := litmus.Launch(2)
		m := model{b.Launches[0], map[place]*history8{}, map[[2]uint32]bool{}}
		for i := range 1 + rng.IntN(24) {
			warp := uint32(rng.IntN(4))
			switch rng.IntN(7) {
			case 0:
				barrier(b, warp&^1, warp|1)
				m.barrier(threads(warp&^1*32, warp&^1*32+64))
			case 1:
				litmus.Add(b, event.Event{Kind: event.WarpSync, Warp: warp, Mask: ^uint32(0)})
				m.barrier(threads(warp*32, warp*32+32))
			default:
				e := randomAccess(rng, uint32(i+1))
				litmus.Add(b, e)
				for lane := range 32 {
					if e.Mask>>lane&1 != 0 {
						m.access(&e, b.AddrOf(&e, lane), lane)
					}
				}
			}
		}
		d := Spec.New(detect.Config{}).(*Detector)
		d.Events(b)
		for p, h := range m.bytes {
			if h.raced {
				raced++
			} else {
				clean++
			}
			if got := d.racedAt(p); got != h.raced {
				t.Fatalf("%v: raced %t, want %t\n%+v", p, got, h.raced, b.Events)
			}
		}
		for _, f := range d.Findings() {
			if !m.pairs[[2]uint32{f.Accesses[0].Place, f.Accesses[1].Place}] {
				t.Fatalf("%s: places %d and %d do not race\n%+v", f.Message, f.Accesses[0].Place, f.Accesses[1].Place, b.Events)
			}
		}
	}
	t.Logf("%d bytes with a race, %d without", raced, clean)
}

// barrier adds a __syncthreads of warps.
func barrier(b *event.Batch, warps ...uint32) {
	for _, w := range warps {
		litmus.Add(b, event.Event{Kind: event.Arrive, Warp: w, Mask: ^uint32(0), Flags: event.FlagWait})
	}
	litmus.Add(b, event.Event{Kind: event.BarrierDone, Warp: warps[0], Mask: ^uint32(0)})
}

// racedAt reports whether the state of a byte is RACE.
func (d *Detector) racedAt(p place) bool {
	t := &turn{e: &event.Event{Space: event.Global}}
	t.perBlock = d.perBlock
	if p.window > 0 {
		t.e.Space, t.firstWarp = event.Shared, (p.window-1)*d.perBlock
	}
	w := d.words.Cell(d.line(t, d.words, p.at)).word
	if w&splitBit != 0 {
		w = d.byte(t, p.at).word
	}
	return state(w&stateBits) == raced
}

// TestTogether compares lanes that are handled together with the same lanes one by one: the findings, and every word.
func TestTogether(t *testing.T) {
	for name, stream := range map[string]func(func(int) int) *event.Batch{"traffic": oracle.Traffic, "random": oracle.Random,
		"early": oracle.Early} {
		found := 0
		for seed := range uint64(2000) {
			b := stream(rand.New(rand.NewPCG(seed, 5)).IntN)
			whole, apart := Spec.New(detect.Config{}).(*Detector), Spec.New(detect.Config{}).(*Detector)
			whole.Events(b)
			apart.Events(oracle.Apart(b))
			x, y := whole.Findings(), apart.Findings()
			found += len(x)
			if !reflect.DeepEqual(x, y) || !slices.Equal(whole.Notes(), apart.Notes()) {
				t.Fatalf("%s, seed %d: together\n%+v\nand apart\n%+v\n%s", name, seed, x, y, oracle.Print(b))
			}
			for at := uint64(0x8000); at < 0xb000; at += wordBytes {
				turn := turn{e: &event.Event{Space: event.Global}}
				p, q := whole.words.Cell(whole.line(&turn, whole.words, at)), apart.words.Cell(apart.line(&turn, apart.words, at))
				if *p != *q {
					t.Fatalf("%s, seed %d: the cells at %#x are\n%+v\nand apart\n%+v\n%s", name, seed, at, *p, *q, oracle.Print(b))
				}
			}
		}
		if found < 1000 {
			t.Errorf("%s: %d findings only", name, found)
		}
	}
}
