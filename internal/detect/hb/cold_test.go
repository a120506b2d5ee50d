package hb

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

type accessed struct {
	launch, place uint32
	cell, thread  uint64
}

type coldCounts struct{ cells, shared, edges, based int }

// checkColds checks that every thread that cold accesses name did access the cell, and gives how many cells were asked,
// how many pages share theirs, how many of these have one in a single line, and how many share with a page of another base.
func checkColds(t *testing.T, name string, d *Detector, b *event.Batch) (n coldCounts) {
	t.Helper()
	did := map[accessed]uint32{} // bytes
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind > event.Atomic || e.Kind == event.None || e.Space != event.Global {
			continue
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := b.AddrOf(e, lane)
			for at := addr &^ 3; at < addr+uint64(e.Size); at += 4 {
				did[accessed{e.Launch, e.Place, at, uint64(e.Warp)*32 + uint64(lane)}] |= coverage(at, addr, uint64(e.Size))
			}
		}
	}
	bases := map[*cold]uint32{}
	for _, dir := range d.mem.dirs {
		for _, p := range dir.pages {
			if p == nil {
				continue
			}
			if p.shares {
				n.shared++
				if base, ok := bases[&p.cold[0]]; ok && base != p.base {
					n.based++
				}
				bases[&p.cold[0]] = p.base
			}
			for i := range p.cold {
				c := &p.cold[i]
				if p.shares && c.launch != nil && c.lines() == 1 {
					n.edges++
				}
				for w, m := range c.cells {
					for ; m != 0 && c.launch != nil; m &= m - 1 {
						at := p.addr + uint64(w*64+bits.TrailingZeros64(m))*4
						n.cells++
						if c.bytes&^did[accessed{c.launch.info.ID, d.classes[c.class].key.place, at, c.thread(p, at)}] != 0 {
							t.Fatalf("%s: thread %d of launch %d is said to have accessed %#x at place %d\n%s", name, int64(c.thread(p, at)), c.launch.info.ID, at, d.classes[c.class].key.place, oracle.Print(b))
						}
					}
				}
			}
		}
	}
	return n
}

// lines is how many lines c has accesses in.
func (c *cold) lines() (n int) {
	for _, w := range c.cells {
		n += min(1, int(w&(1<<lineCells-1))) + min(1, int(w>>lineCells))
	}
	return n
}

// TestColdThreads checks the threads of cold accesses of regular launches, and of random programs.
func TestColdThreads(t *testing.T) {
	all := coldCounts{}
	run := func(name string, b *event.Batch) {
		b = oracle.Remember(b)
		d := New(detect.Config{})
		d.Events(b)
		n := checkColds(t, name, d, b)
		all = coldCounts{all.cells + n.cells, all.shared + n.shared, all.edges + n.edges, all.based + n.based}
	}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 4))
		s := &stream{}
		for range 1 + rng.IntN(3) {
			s.begin(16, 256)
			turned := rng.IntN(3) == 0 // as where a matrix is transposed
			first := heap + uint64(rng.IntN(4))*2*128
			for place := range uint32(1 + rng.IntN(3)) {
				stride := []int64{4, 4, 8, -4, 0, 16, 1, 2}[rng.IntN(8)]
				mul, add, n := []uint64{1, 1, 8, 127, 3, 0}[rng.IntN(6)], uint64(rng.IntN(3)), []uint64{128, 128, 120, 30}[rng.IntN(4)]
				odd := uint64(rng.IntN(8)) / 7 * 4
				only := []uint64{1, 1, 4, 8}[rng.IntN(4)] // one warp of so many, as those at the edges of blocks
				for i := add % only; i < n; i += only {
					w := i
					if turned {
						w = i%8*16 + i/8
					}
					e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Global, Warp: uint32(i), Place: place, Mask: ^uint32(0),
						Addr: first + (w*mul+add)%128*128 + odd, Stride: stride, Size: 4}
					if stride == 8 && place == 1 || stride == 16 {
						e.Size = uint8(stride)
						e.Addr = heap + (w*mul+add)%64*32*uint64(stride)
					}
					if stride == 1 || stride == 2 {
						e.Size = uint8(stride)
						e.Addr = heap + (w*mul+add)%512*32*uint64(stride) + odd/4*uint64(stride)
					}
					if place == 2 {
						e.Mask = 1 << (w % 3)
						e.Stride = 0
					}
					s.add(e)
				}
			}
			s.end()
		}
		run("launches", &s.Batch)
	}
	t.Logf("%+v", all)
	if all.cells < 100000 || all.shared < 1000 || all.edges < 30 || all.based < 500 {
		t.Error("too little was tested")
	}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		run("traffic", oracle.Traffic(rng.IntN))
		run("random", oracle.Random(rng.IntN))
	}
}
