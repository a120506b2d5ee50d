package clock

import (
	"math/rand/v2"
	"testing"
)

// threads is a clock without compression: what is known of each thread, by block and number within.
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
			if b.Behind(i/32, 1<<(i%32), v) != 0 && v > 0 || b.Behind(i/32, 1<<(i%32), v+1) == 0 {
				t.Fatalf("seed %d: thread %d of block %d is not known up to %d alone", seed, i, block, v)
			}
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

// TestRandomClocks compares Grids and Blocks, which change between lists and trees, with clocks that have a number for each thread.
func TestRandomClocks(t *testing.T) {
	depth := Depth(testBlocks)
	trees, lists, same := 0, 0, 0
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
				if g == grids[i] || g == grids[j] {
					same++
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
			grids[i], models[i] = grids[i].With(depth, block, b), m
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
			models[i].check(t, seed, g.Expanded(testWarps), depth)
			if g.list() {
				lists++
			} else {
				trees++
			}
		}
	}
	if trees < 100 || lists < 100 || same < 100 {
		t.Errorf("%d trees, %d lists, %d joins that gave what was there", trees, lists, same)
	}
}
