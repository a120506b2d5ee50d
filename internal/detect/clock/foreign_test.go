package clock

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// beyond is a Foreign without compression: epochs of agents by ID, and of the threads of blocks by launch and block.
type beyond struct {
	agents map[uint32]uint32
	blocks map[[2]uint32]uint32
}

const (
	testAgents   = 5
	testLaunches = 6
)

func (m beyond) clone() beyond { return beyond{maps.Clone(m.agents), maps.Clone(m.blocks)} }

func (m beyond) join(o beyond) beyond {
	out := m.clone()
	for id, v := range o.agents {
		out.agents[id] = max(out.agents[id], v)
	}
	for at, v := range o.blocks {
		out.blocks[at] = max(out.blocks[at], v)
	}
	return out
}

func (m beyond) equal(o beyond) bool {
	return maps.Equal(m.agents, o.agents) && maps.Equal(m.blocks, o.blocks)
}

// check compares a Foreign with what it should know.
func (m beyond) check(t *testing.T, seed uint64, f *Foreign) {
	t.Helper()
	for id := range uint32(testAgents) {
		if got := f.Agent(id); got != m.agents[id] {
			t.Fatalf("seed %d: agent %d is known up to %d, want %d", seed, id, got, m.agents[id])
		}
	}
	for launch := range uint32(testLaunches) {
		g := f.Part(launch)
		for block := range uint32(testBlocks) {
			v := m.blocks[[2]uint32{launch, block}]
			b := g.At(Depth(testBlocks), block)
			if v > 0 && b.Unknown(0, 1, v) != 0 || b.Unknown(0, 1, v+1) == 0 {
				t.Fatalf("seed %d: block %d of launch %d is not known up to %d alone", seed, block, launch, v)
			}
		}
	}
}

// TestForeign compares Foreigns with clocks that have a number for each agent and block. It also checks Foreigns after
// they have been joined: they must not change.
func TestForeign(t *testing.T) {
	same, dropped := 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		all := []*Foreign{nil}
		models := []beyond{{map[uint32]uint32{}, map[[2]uint32]uint32{}}}
		for range 40 {
			i, j := rng.IntN(len(all)), rng.IntN(len(all))
			f, m := all[i], models[i].clone()
			switch rng.IntN(5) {
			case 0:
				id, v := uint32(rng.IntN(testAgents)), uint32(1+rng.IntN(4))
				f, m.agents[id] = f.WithAgent(id, v), max(m.agents[id], v)
			case 1:
				launch, block, v := uint32(rng.IntN(testLaunches)), uint32(rng.IntN(3)), uint32(1+rng.IntN(4))
				f = f.WithPart(launch, (*Grid)(nil).With(Depth(testBlocks), block, Uniform(v)))
				m.blocks[[2]uint32{launch, block}] = max(m.blocks[[2]uint32{launch, block}], v)
			case 2:
				bits := rng.IntN(1 << testLaunches)
				drop := func(launch uint32) bool { return bits>>launch&1 != 0 }
				f = f.Without(drop)
				maps.DeleteFunc(m.blocks, func(at [2]uint32, _ uint32) bool { return drop(at[0]) })
				if m.equal(models[i]) != (f == all[i]) {
					t.Fatalf("seed %d: dropping launches %b: the same Foreign: %v", seed, bits, f == all[i])
				}
				dropped++
			default:
				f, m = f.Join(all[j]), m.join(models[j])
				if all[i] != nil && m.equal(models[i]) && len(m.blocks) == 0 && f != all[i] {
					t.Fatalf("seed %d: a join with what is known is another Foreign", seed)
				}
				if m.equal(models[j]) && len(m.blocks) == 0 && f != all[j] && f != all[i] {
					t.Fatalf("seed %d: a join with what knows more is another Foreign", seed)
				}
				if f == all[i] || f == all[j] {
					same++
				}
			}
			if f.WithPart(0, nil) != f {
				t.Fatalf("seed %d: knowledge of nothing makes another Foreign", seed)
			}
			all, models = append(all, f), append(models, m)
		}
		for i, f := range all {
			models[i].check(t, seed, f)
		}
	}
	if same < 100 || dropped < 100 {
		t.Errorf("%d joins that gave what was there, %d with launches dropped", same, dropped)
	}
}

// TestFullGrids uses clocks that know something of every thread of a launch. Their bounds must be exact, and joining a
// clock that knows all threads further than another knows any must give the first one.
func TestFullGrids(t *testing.T) {
	for _, blocks := range []uint32{32, 1024} {
		depth := Depth(uint64(blocks))
		full := func(low uint32) (g *Grid) {
			for b := range blocks {
				g = g.With(depth, b, Uniform(low+b%7))
			}
			return g
		}
		g, h, k := full(1), full(7), full(8)
		if g.Min != 1 || g.Max != 7 || k.Min != 8 || k.Max != 14 {
			t.Errorf("%d blocks: bounds %d to %d and %d to %d", blocks, g.Min, g.Max, k.Min, k.Max)
		}
		if g.Join(k) != k || k.Join(g) != k || g.Join(h) != h || h.Join(g) != h || !k.Covers(g) || g.Covers(k) {
			t.Errorf("%d blocks: a join of clocks apart is not the later one", blocks)
		}
		x := h.With(depth, 5, Uniform(3)).Join(k.With(depth, 9, Uniform(2)))
		for b := range blocks {
			want := 8 + b%7
			if b == 9 {
				want = 7 + b%7
			}
			if got := x.At(depth, b); got.Min != want || got.Max != want {
				t.Fatalf("%d blocks: block %d is known up to %d, want %d", blocks, b, got.Min, want)
			}
		}
		if gap := g.With(depth, blocks-1, nil); gap.Min != 0 || gap.At(depth, blocks-1) != nil {
			t.Errorf("%d blocks: one of which nothing is known is known up to %d", blocks, gap.Min)
		}
	}
}

// TestJoiner checks that a repeated join gives the same Grid, and the right one if others were made in between.
func TestJoiner(t *testing.T) {
	var grids []*Grid
	for b := range uint32(4) {
		grids = append(grids, (*Grid)(nil).With(Depth(testBlocks), b, Uniform(1+b)))
	}
	grids = append(grids, nil)
	var j Joiner
	for range 3 {
		for _, g := range grids {
			for _, h := range grids {
				got := j.Join(g, h)
				if again := j.Join(g, h); again != got {
					t.Error("the same join is another Grid at once")
				}
				for b := range uint32(4) {
					at := func(g *Grid) uint32 {
						if b := g.At(Depth(testBlocks), b); b != nil {
							return b.Min
						}
						return 0
					}
					if want := max(at(g), at(h)); at(got) != want {
						t.Fatalf("block %d is known up to %d, want %d", b, at(got), want)
					}
				}
			}
		}
	}
}
