package clock

import (
	"math/rand/v2"
	"testing"
)

// threads is a clock without compression: the known epoch of each thread, by block and number within the block.
type threads map[[2]uint32]uint32

const (
	testBlocks = 100
	testWarps  = 3
)

// check compares a Grid with what it should know.
func (m threads) check(t *testing.T, seed uint64, g *Grid, depth int) {
	t.Helper()
	high := uint32(0)
	for _, v := range m {
		high = max(high, v)
	}
	if g != nil && g.Max < high {
		t.Fatalf("seed %d: largest epoch %d, want at least %d", seed, g.Max, high)
	}
	for block := range uint32(testBlocks) {
		b := g.At(depth, block)
		for i := range uint32(testWarps * 32) {
			v := m[[2]uint32{block, i}]
			if b != nil && (b.Min > v || b.Max < v) || g != nil && g.Min > v {
				t.Fatalf("seed %d: thread %d of block %d is known up to %d, beyond bounds", seed, i, block, v)
			}
			if v > 0 && g.Unknown(depth, block, i/32, 1<<(i%32), v) != 0 || g.Unknown(depth, block, i/32, 1<<(i%32), v+1) == 0 {
				t.Fatalf("seed %d: thread %d of block %d is not known by the Grid up to %d alone", seed, i, block, v)
			}
			if b.Unknown(i/32, 1<<(i%32), v) != 0 && v > 0 || b.Unknown(i/32, 1<<(i%32), v+1) == 0 {
				t.Fatalf("seed %d: thread %d of block %d is not known up to %d alone", seed, i, block, v)
			}
		}
	}
}

// bounds checks that the bounds of Blocks that are not lists are exact.
func (m threads) bounds(t *testing.T, seed uint64, g *Grid, depth int) {
	t.Helper()
	for block := range uint32(testBlocks) {
		b := g.At(depth, block)
		if b == nil || b.warps == nil {
			continue
		}
		low, top := ^uint32(0), uint32(0)
		for i := range uint32(testWarps * 32) {
			v := m[[2]uint32{block, i}]
			low, top = min(low, v), max(top, v)
		}
		if b.Min != low || b.Max != top || low == top {
			t.Fatalf("seed %d: block %d is known from %d to %d, its bounds are %d and %d", seed, block, low, top, b.Min, b.Max)
		}
	}
}

func join(m, o threads) threads {
	out := threads{}
	for k, v := range m {
		out[k] = v
	}
	for k, v := range o {
		out[k] = max(out[k], v)
	}
	return out
}

// equal reports whether two clocks know the same.
func equal(m, o threads) bool {
	for k, v := range m {
		if o[k] != v {
			return false
		}
	}
	for k, v := range o {
		if m[k] != v {
			return false
		}
	}
	return true
}

// TestRandomClocks compares Grids and Blocks, which change between lists and trees, with clocks that have a number for
// each thread.
func TestRandomClocks(t *testing.T) {
	depth := Depth(testBlocks)
	trees, lists, same, covered := 0, 0, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var grids [4]*Grid
		models := [4]threads{{}, {}, {}, {}}
		blocks, epochs := []int{3, 20, testBlocks}[seed%3], []int{2, 4, 50}[seed/3%3]
		for range 60 {
			i, j := rng.IntN(4), rng.IntN(4)
			if rng.IntN(3) == 0 {
				g := grids[i].Join(grids[j])
				m := join(models[i], models[j])
				alike := equal(m, models[j])
				if g == grids[i] || g == grids[j] {
					same++
				} else if alike && grids[j] != nil && !grids[j].list() {
					t.Fatalf("seed %d: a join of what a tree covers is another", seed)
				}
				if grids[i].Covers(grids[j]) {
					if covered++; !equal(m, models[i]) {
						t.Fatalf("seed %d: a clock covers another that knows more", seed)
					}
				}
				grids[i], models[i] = g, m
				continue
			}
			block := uint32(rng.IntN(blocks))
			b, m := grids[i].At(depth, block), join(models[i], nil)
			for range 1 + rng.IntN(2) {
				w, lanes, v := uint32(rng.IntN(testWarps)), rng.Uint32()&rng.Uint32()&rng.Uint32(), uint32(1+rng.IntN(epochs))
				if rng.IntN(4) == 0 {
					lanes = ^uint32(0)
				}
				set := func(w, lanes, v uint32, most bool) {
					for l := range uint32(32) {
						if k := (&[2]uint32{block, w*32 + l}); lanes>>l&1 != 0 && (!most || m[*k] < v) {
							m[*k] = v
						}
					}
				}
				switch rng.IntN(8) {
				case 0:
					b = b.Join(Uniform(v))
					for w := range uint32(testWarps) {
						set(w, ^uint32(0), v, true)
					}
				case 1:
					all := []uint32{lanes, 0, ^uint32(0)}
					b = b.WithWarps(all, v)
					for w := range uint32(testWarps) {
						set(w, all[w], v, false)
					}
				case 2, 3:
					b = b.Join((*Block)(nil).With(testWarps, w, lanes, v))
					set(w, lanes, v, true)
				default:
					b = b.With(testWarps, w, lanes, v)
					set(w, lanes, v, false)
				}
			}
			if w, lanes, v := uint32(rng.IntN(testWarps)), rng.Uint32()|1, uint32(1+rng.IntN(epochs)); rng.IntN(3) == 0 {
				grids[i] = grids[i].WithLanes(depth, block, b, testWarps, w, lanes, v)
				for l := range uint32(32) {
					if lanes>>l&1 != 0 {
						m[[2]uint32{block, w*32 + l}] = v
					}
				}
			} else {
				grids[i] = grids[i].With(depth, block, b)
			}
			models[i] = m
			if rng.IntN(40) == 0 {
				grids[i] = grids[i].With(depth, block, nil)
				for k := range models[i] {
					if k[0] == block {
						delete(models[i], k)
					}
				}
			}
		}
		for i, g := range grids {
			models[i].check(t, seed, g, depth)
			models[i].bounds(t, seed, g, depth)
			models[i].check(t, seed, g.Expanded(testWarps), depth)
			if g.list() {
				lists++
			} else {
				trees++
			}
		}
	}
	if trees < 100 || lists < 100 || same < 100 || covered < 100 {
		t.Errorf("%d trees, %d lists, %d joins that gave what was there, %d covered", trees, lists, same, covered)
	}
}

// TestJoinShares checks that a join of clocks that know the same, completely or in some parts, uses the parts of the
// second clock, so that repeated joins share them.
func TestJoinShares(t *testing.T) {
	depth := Depth(testBlocks)
	make := func(blocks uint32) (g *Grid) {
		for b := range blocks {
			var x *Block
			for w := range uint32(testWarps) {
				for lane := range uint32(32) {
					x = x.With(testWarps, w, 1<<lane, 1+(b+w+lane)%7)
				}
			}
			g = g.With(depth, b, x)
		}
		return g
	}
	for _, n := range []uint32{2, 60} {
		if g, h := make(n), make(n); g.Join(h) != h || h.Join(g) != g {
			t.Errorf("%d blocks: a join of clocks that know the same is not the second", n)
		}
		g, h := make(n), make(n)
		more := g.With(depth, 0, Uniform(9))
		if got := h.With(depth, 1, Uniform(9)).Join(more); got.At(depth, n-1) != more.At(depth, n-1) && n > 2 {
			t.Errorf("%d blocks: what two clocks know alike is not that of the second", n)
		}
	}
}
