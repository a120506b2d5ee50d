package curd

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// plainSets are the sets of figure 6.3 literally: of one kind, for all threads of a block, with the first regions of
// all threads before the second ones.
type plainSets struct {
	regions []region // number i of thread t is at i*threads + t
	lengths []uint32 // by thread
	rows    uint32   // the greatest of lengths
}

// insert adds an access of thread t: it is merged with the latest regions that it touches, and becomes the latest.
func (s *plainSets) insert(t int, r region) {
	threads := len(s.lengths)
	n := int(s.lengths[t])
	if n > 0 {
		if last := &s.regions[(n-1)*threads+t]; last.lo <= r.lo && r.hi <= last.hi {
			r.merge(*last)
			*last = r
			return
		}
	}
	for i := n - 1; i >= max(0, int(s.lengths[t])-searched); i-- {
		if x := &s.regions[i*threads+t]; r.touches(*x) {
			r.merge(*x)
			n--
			*x = s.regions[n*threads+t]
		}
	}
	if n*threads == len(s.regions) {
		s.regions = append(s.regions, make([]region, threads)...)
	}
	s.regions[n*threads+t] = r
	s.lengths[t] = uint32(n + 1)
	s.rows = max(s.rows, uint32(n+1))
}

// compress appends the union of the sets to out: regions that touch their left neighbour in the layout are merged with
// it (figure 6.5).
func (s *plainSets) compress(out []region) []region {
	threads := len(s.lengths)
	var left region
	for i := range int(s.rows) {
		for t, n := range s.lengths {
			if uint32(i) >= n {
				continue
			}
			r := s.regions[i*threads+t]
			if left.hi > 0 && r.touches(left) {
				last := &out[len(out)-1]
				x := r
				x.merge(*last)
				*last = x
			} else {
				out = append(out, r)
			}
			left = r
		}
	}
	return out
}

// each appends the regions of all threads to out.
func (s *plainSets) each(out []owned) []owned {
	threads := len(s.lengths)
	for i := range int(s.rows) {
		for t, n := range s.lengths {
			if uint32(i) < n {
				out = append(out, owned{s.regions[i*threads+t], uint32(t)})
			}
		}
	}
	return out
}

// clear empties the sets. It keeps their memory unless it is large.
func (s *plainSets) clear() {
	if s.rows > 64 {
		s.regions = nil
	}
	s.rows = 0
	clear(s.lengths)
}

// randomAccess makes an access of a warp as kernels do: adjacent words, with a stride, in rows, at one address, or at
// random addresses.
func randomAccess(g *rand.Rand, per int, warp int, base uint64) (e event.Event, addrs []uint64) {
	size := []uint8{1, 4, 4, 4, 8, 16}[g.IntN(6)]
	e = event.Event{Mask: ^uint32(0), Size: size, Place: uint32(g.IntN(4)), Order: event.Order(g.IntN(2)), Flags: event.FlagScattered}
	switch g.IntN(6) {
	case 0:
		e.Mask = 1 << g.IntN(32)
	case 1:
		e.Mask = g.Uint32()
	case 2:
		e.Mask = 1<<g.IntN(32) - 1
	case 3:
		e.Mask &^= 1 << g.IntN(32)
	}
	e.Mask |= uint32(g.IntN(2)) // nearly always some
	if e.Mask == 0 {
		e.Mask = 1
	}
	strides := []int64{int64(size), int64(size), 0, 4, -4, 12, 64, -int64(size), 128}
	lane, row := strides[g.IntN(len(strides))], strides[g.IntN(len(strides))]
	flat := g.IntN(2) == 0
	from := base + uint64(warp)*uint64(g.IntN(3))*uint64(size)*32 + uint64(g.IntN(12))*4
	anywhere := g.IntN(8) == 0
	for l := range 32 {
		a := from + uint64(int64(l%per)*lane+int64(l/per)*row)
		if flat {
			a = from + uint64(int64(l)*lane)
		}
		if anywhere {
			a = base + uint64(g.IntN(200))*4
		}
		if e.Mask>>l&1 != 0 {
			addrs = append(addrs, a)
		}
	}
	if !flat && !anywhere && per < 32 && g.IntN(4) > 0 {
		e.Addr, e.Flags = addrs[0], 0
		e.InRows(uint8(bits.TrailingZeros(uint(per))), lane, row)
	}
	if s := int64(0); flat && !anywhere && g.IntN(4) > 0 {
		if len(addrs) > 1 {
			s = lane
		}
		e.Addr, e.Stride, e.Flags = addrs[0], s, 0
	}
	return e, addrs
}

// TestSets compares sets stored by warp with sets stored by thread: every region, and the union. If raceFree says so,
// no two threads may race.
func TestSets(t *testing.T) {
	free, racy := 0, 0
	for seed := range uint64(2500) {
		g := rand.New(rand.NewPCG(seed, 5))
		warps, per := 1+g.IntN(3), []int{32, 16, 8, 4}[g.IntN(4)]
		d := newTest("lazy")
		d.shape, d.perBlock = shape(per), uint32(warps)
		c := &block{threads: d.newThreads()}
		d.blocks = map[uint32]*block{0: c}
		var plain [2]plainSets
		for range 2 { // the second time, memory is reused
			spread := uint64(g.IntN(2)) << 16 // reads and writes are far apart
			wild := g.IntN(3)
			for k := range plain {
				plain[k].clear()
				plain[k].lengths = make([]uint32, 32*warps)
				c.threads[0][k].clear()
			}
			for range 1 + g.IntN(20) {
				kind, warp := g.IntN(2), g.IntN(warps)
				e, addrs := randomAccess(g, per, warp, 1<<40+uint64(kind)*spread)
				if wild == 0 { // like coalesced kernels
					e = event.Event{Mask: ^uint32(0), Size: 4, Stride: 4, Addr: 1<<40 + uint64(kind)*spread + uint64(warp)*128 + uint64(g.IntN(4))<<10, Place: e.Place}
					addrs = nil
					for l := range uint64(32) {
						addrs = append(addrs, e.Addr+4*l)
					}
				}
				e.Warp, e.Space = uint32(warp), event.Global
				b := &event.Batch{Addrs: addrs}
				d.access(b, &e, kind)
				for m, k := e.Mask, 0; m != 0; m, k = m&(m-1), k+1 {
					lane := bits.TrailingZeros32(m)
					plain[kind].insert(32*warp+lane, region{addrs[k], addrs[k] + uint64(e.Size), e.Place, uint16(32*warp + lane), true, strength(&e)})
				}
			}
			for k := range plain {
				set := &c.threads[0][k]
				got, want := set.each(nil), plain[k].each(nil)
				orderOwned(got)
				orderOwned(want)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, %d to a row: sets\n%v, want\n%v", seed, per, got, want)
				}
				if got, want := set.compress(nil), plain[k].compress(nil); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %d to a row: union\n%v, want\n%v", seed, per, got, want)
				}
			}
			race := ""
			found := func(x, y *owned) { race = fmt.Sprint(*x, *y) }
			readWrite(plain[writes].each(nil), plain[reads].each(nil), found)
			writeWrite(plain[writes].each(nil), found)
			switch still := d.raceFree(&c.threads[0][reads], &c.threads[0][writes]); {
			case still && race != "":
				t.Fatalf("seed %d: %s", seed, race)
			case still:
				free++
			case race != "":
				racy++
			}
		}
	}
	if free < 500 || racy < 500 {
		t.Errorf("%d free of races, %d racy", free, racy)
	}
}
