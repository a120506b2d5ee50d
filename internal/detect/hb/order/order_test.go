package order

import (
	"maps"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestMemory compares Memory with a map by location.
func TestMemory(t *testing.T) {
	type model map[location]uint16 // a bit for each byte that is valid
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var m Memory
		want := model{}
		overwrite := func(from, end uint64, but location) {
			for l := range want {
				for i := range uint64(l.size) {
					if at := l.address + i; from <= at && at < end && l != but {
						want[l] &^= 1 << i
					}
				}
			}
			maps.DeleteFunc(want, func(_ location, valid uint16) bool { return valid == 0 })
		}
		span := []uint64{16, 48, 400, 1 << 20}[seed%4]
		for range 200 {
			size := []uint8{1, 2, 4, 4, 4, 8, 16}[rng.IntN(7)]
			at := 1<<40 + rng.Uint64N(span)/uint64(size)*uint64(size)
			l := location{address: at, size: size}
			switch rng.IntN(8) {
			case 0:
				end := at + rng.Uint64N(span)
				m.overwrite(at, end, nil, nil)
				overwrite(at, end, location{})
			case 1:
				if rng.IntN(20) == 0 {
					m.reset()
					clear(want)
				}
			default:
				v := m.find(at, size)
				if (v != nil) != (want[l] != 0) {
					t.Fatalf("seed %d: there is a variable at %v: %v", seed, l, v != nil)
				}
				if v == nil {
					v = m.make(at, size)
				}
				v.valid = 1<<size - 1
				if m.piece(at / pieceBytes).mixed {
					m.overwrite(at, at+uint64(size), v, nil)
				}
				want[l] = 1<<size - 1
				overwrite(at, at+uint64(size), l)
			}
			for l, valid := range want {
				if v := m.find(l.address, l.size); v == nil || v.valid != valid {
					t.Fatalf("seed %d: %v has %+v, not the bytes %x", seed, l, v, valid)
				}
			}
		}
		live := 0
		for _, r := range m.regions {
			for _, p := range r.pieces {
				if p != nil {
					live += p.live
				}
			}
		}
		if live != len(want) || m.live != live {
			t.Fatalf("seed %d: %d variables, not %d", seed, live, len(want))
		}
	}
}

// TestViews gives lanes of a warp views and compares each lane's view with the one given to it last. Lanes that are
// given a view together must share it.
func TestViews(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var x views
		var want [32]*View
		for range 30 {
			lanes, v := rng.Uint32()&rng.Uint32(), &View{Epoch: rng.Uint32()}
			if rng.IntN(3) == 0 {
				lanes = ^uint32(0)
			}
			if rng.IntN(5) == 0 {
				v = nil
			}
			x.set(^uint32(0), lanes, v)
			for i := range want {
				if lanes>>i&1 != 0 {
					want[i] = v
				}
				if x.view(i) != want[i] {
					t.Fatalf("seed %d: lane %d has %v, not %v", seed, i, x.view(i), want[i])
				}
			}
			if lanes == ^uint32(0) && x.each != nil {
				t.Fatalf("seed %d: lanes that have one view stand apart", seed)
			}
		}
	}
}

// TestBlocks checks that blocks whose memory is reused begin as new ones, and that a block is found among many.
func TestBlocks(t *testing.T) {
	o := New()
	l := benchLaunch(o, 1, 1000)
	fence := benchFence
	fence.Mask = 3
	for round := range uint32(3) {
		for i := range uint32(100) {
			blk, wi := l.Block((round*100+i)*8 + 5)
			if blk.Index != round*100+i || wi != 5 || blk.number != 1 || blk.alive != 256 || len(blk.Log.ops) != 0 || blk.Shared.live != 0 || blk.leftAny || blk.leftShared {
				t.Fatalf("block %d is %+v", i, blk)
			}
			for id := range blk.barriers {
				if len(blk.barriers[id]) != 0 {
					t.Fatalf("block %d has arrivals at barrier %d", i, id)
				}
			}
			for j := range blk.warps {
				w := &blk.warps[j]
				if w.same != l.first || w.each != nil || w.live != ^uint32(0) || w.used != 0 || w.patterns != nil || w.fenced.any() {
					t.Fatalf("warp %d of block %d is %+v", j, i, w)
				}
			}
			s := benchRelaxed
			s.Shared, s.Releases = true, true
			blk.Accesses(wi, ^uint32(0), true)
			blk.Perform(wi, 0, &s)
			fence.Warp, fence.Place = blk.Index*8+5, blk.Index
			l.Sync(&fence)
			l.Sync(&event.Event{Kind: event.Arrive, Warp: blk.Index*8 + 4, Mask: 1})
			if i%2 == 0 {
				l.Sync(&event.Event{Kind: event.Exit, Warp: blk.Index * 8, Mask: ^uint32(0)})
			}
		}
		for i := range uint32(100 * 8) {
			if blk, wi := l.Block(round*800 + i); blk.Index != round*100+i/8 || wi != i%8 {
				t.Fatalf("warp %d is number %d of block %d", round*800+i, wi, blk.Index)
			}
		}
		for i := range uint32(100 * 8) {
			if i%16 != 0 {
				l.Sync(&event.Event{Kind: event.Exit, Warp: round*800 + i, Mask: ^uint32(0)})
			}
		}
		last := round*800 + 799
		if blk, _ := l.Block(last); blk.alive != 256 || blk.number != 1 {
			t.Fatalf("a block that has ended is %+v", blk)
		}
		for w := range uint32(8) {
			l.Sync(&event.Event{Kind: event.Exit, Warp: last - w, Mask: ^uint32(0)})
		}
		if len(l.blocks) != 0 || len(o.free) != 100 {
			t.Fatalf("%d blocks run and %d have ended", len(l.blocks), len(o.free))
		}
	}
	for i := range uint32(300) {
		if s := l.LogOf(i).After(5, 1, 0); s == nil || s.Place != i {
			t.Fatalf("block %d has synchronised at %+v", i, s)
		}
	}
}

// program executes operations of warps of a launch with blocks of 8 warps. Warps are numbered within the grid.
type program struct {
	*testing.T
	*Launch
}

func (p *program) sync(k event.Kind, warp, lanes, place uint32, flags event.Flags) {
	p.Sync(&event.Event{Kind: k, Order: event.SC, Scope: event.ScopeGPU, Warp: warp, Mask: lanes, Place: place, Flags: flags})
}

// access performs a strong access of a word by lane 0.
func (p *program) access(warp uint32, s Strong, address uint64) {
	s.Address = address
	b, wi := p.Block(warp)
	b.Observe(wi, 0, &s)
	b.Perform(wi, 0, &s)
	if s.Acquires || s.Releases {
		b.Synchronised(wi, &event.Event{Kind: event.Atomic, Mask: 1})
	}
}

// knows checks that the first lane of a warp knows lane 0 of another up to an epoch and no further.
func (p *program) knows(warp, other, epoch uint32) {
	p.Helper()
	b, wi := p.Block(warp)
	a := b.Actor(wi, 0)
	if epoch > 0 && a.Unknown(p.Launch, other, 1, epoch) != 0 || a.Unknown(p.Launch, other, 1, epoch+1) == 0 {
		p.Errorf("warp %d does not know warp %d up to %d alone", warp, other, epoch)
	}
}

// TestAlike checks that values which are cached or shared because they are alike are not used for values that differ.
func TestAlike(t *testing.T) {
	const all, waits = ^uint32(0), event.FlagWait
	release, acquire := Strong{Size: 4, Writes: true, Wide: true, Releases: true}, Strong{Size: 4, Reads: true, Wide: true, Acquires: true}
	write, read := Strong{Size: 4, Writes: true, Wide: true}, Strong{Size: 4, Reads: true, Wide: true}
	begin := func(t *testing.T) *program { return &program{t, benchLaunch(New(), 1, 8)} }
	t.Run("lanes", func(t *testing.T) {
		p := begin(t)
		p.sync(event.Arrive, 0, 1, 1, waits)
		p.sync(event.Arrive, 1, 2, 1, waits)
		p.sync(event.BarrierDone, 0, 0, 0, 0)
		p.knows(0, 1, 0)
	})
	t.Run("wait", func(t *testing.T) {
		p := begin(t)
		p.sync(event.Arrive, 0, all, 1, waits)
		p.sync(event.Arrive, 1, all, 1, 0)
		p.sync(event.BarrierDone, 0, 0, 0, 0)
		p.knows(0, 1, 1)
		p.knows(1, 0, 0)
	})
	t.Run("view", func(t *testing.T) {
		p := begin(t)
		p.sync(event.WarpSync, 1, all, 1, 0)
		p.sync(event.Arrive, 0, all, 1, 0)
		p.sync(event.Arrive, 1, all, 1, 0)
		p.sync(event.Arrive, 2, all, 1, waits)
		p.sync(event.BarrierDone, 0, 0, 0, 0)
		p.knows(2, 0, 1)
		p.knows(2, 1, 2)
	})
	t.Run("place", func(t *testing.T) {
		p := begin(t)
		p.sync(event.Arrive, 0, all, 1, waits)
		p.sync(event.Arrive, 1, all, 2, waits)
		p.sync(event.BarrierDone, 0, 0, 0, 0)
		for w := range uint32(2) {
			if s := p.LogOf(0).After(w, 0, 1); s == nil || s.Place != 1+w {
				t.Errorf("warp %d waited at %+v", w, s)
			}
		}
	})
	t.Run("fences", func(t *testing.T) {
		p := begin(t)
		p.sync(event.Fence, 8, 1, 1, 0) // block 1 releases by fences, before and after a barrier of block 0
		p.access(8, write, benchBase)
		p.access(1, read, benchBase)
		for _, first := range []uint32{16, 0} { // block 2 is at the same epoch and has read nothing
			for w := range uint32(8) {
				p.sync(event.Arrive, first+w, all, 1, waits)
			}
			p.sync(event.BarrierDone, first, 0, 0, 0)
		}
		p.sync(event.Fence, 0, all, 1, 0)
		p.knows(0, 8, 1)
		p.sync(event.Fence, 16, all, 1, 0)
		p.knows(16, 8, 0)
	})
	t.Run("warp, grid", func(t *testing.T) {
		p := begin(t)
		p.access(8, release, benchBase)
		p.access(9, release, benchBase+4)
		p.access(3, acquire, benchBase+4)
		p.knows(3, 9, 1)
		p.knows(3, 8, 0)
		benchBarrier(p.Launch, 16)
		benchBarrier(p.Launch, 16)
		benchBarrier(p.Launch, 0)
		p.knows(1, 9, 1)
		p.knows(17, 9, 0)
	})
}

// TestRecords checks that a value updated by many launches of one stream does not carry the releases of each of them:
// acquiring the last release conveys all.
func TestRecords(t *testing.T) {
	o := New()
	s := benchRelaxed
	s.Address = benchBase
	for id := range uint32(50) {
		l := benchLaunch(o, id+1, 2)
		for block := range uint32(2) {
			fence := benchFence
			fence.Warp = block * l.WarpsPerBlock
			l.Sync(&fence)
			b, wi := l.Block(fence.Warp)
			b.Observe(wi, 0, &s)
			b.Perform(wi, 0, &s)
		}
		o.End(id + 1)
	}
	if v := o.global.find(s.Address, s.Size); v == nil || v.traits&hasRecords == 0 || len(v.more.wide) != 1 {
		t.Errorf("the value carries %+v", v)
	}
	// Another stream that has not waited: both must be known.
	l := o.Begin(event.Launch{ID: 99, Agent: 7, Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}})
	fence := benchFence
	l.Sync(&fence)
	b, wi := l.Block(0)
	b.Perform(wi, 0, &s)
	if v := o.global.find(s.Address, s.Size); len(v.more.wide) != 2 {
		t.Errorf("the value carries %d records, not those of both streams", len(v.more.wide))
	}
}
