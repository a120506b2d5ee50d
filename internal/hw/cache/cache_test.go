package cache

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestListsAreLRU compares a cache of the model with lists of the most recently used lines.
func TestListsAreLRU(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	a := newLists(4*4*LineBytes, 4)
	sets := map[*entry][]Line{}
	for range 20_000 {
		l := Line(r.IntN(40)) + Line(r.IntN(3))<<SpaceShift
		key := &a.set(l)[0]
		at := slices.Index(sets[key], l)
		switch e := a.use(l); {
		case (e != nil) != (at >= 0):
			t.Fatalf("line %d is there: %v, and should be: %v", l, e != nil, at >= 0)
		case e != nil:
			sets[key] = slices.Delete(sets[key], at, at+1)
		default:
			left := a.insert(l, 1)
			if full := len(sets[key]) == 4; full != (left != 0) || full && left.line() != sets[key][3] {
				t.Fatalf("%x leaves the set %v", left, sets[key])
			} else if full {
				sets[key] = sets[key][:3]
			}
		}
		sets[key] = slices.Insert(sets[key], 0, l)
		if r.IntN(10) == 0 {
			if a.remove(l) == 0 {
				t.Fatalf("line %d was not there", l)
			}
			sets[key] = slices.Delete(sets[key], 0, 1)
		}
	}
}

func TestSpacesAreInOtherSets(t *testing.T) {
	a := newArray(Geometry{32 << 10, 8})
	if a.set(5) == a.set(5+1<<SpaceShift) {
		t.Error("a line and its metadata are in one set")
	}
}

// TestLevels checks the latencies of section 4.4 for a line that moves between cores.
func TestLevels(t *testing.T) {
	s := New(Thesis())
	for i, step := range []struct {
		core  int
		write bool
		want  int
	}{
		{0, false, 120}, // exclusive
		{0, true, 1},    // modified, without a message
		{1, false, 15},  // both shared
		{0, false, 1},
		{0, true, 15}, // taken from core 1
		{1, true, 15}, // taken back
		{0, false, 15},
	} {
		if got := s.Access(step.core, 7, step.write); got != step.want {
			t.Errorf("step %d takes %d cycles, not %d", i, got, step.want)
		}
	}
	for l := Line(1); l <= 8; l++ { // 8 lines of line 7's set in L1
		s.Access(0, 7+l*64, false)
	}
	if got := s.Access(0, 7, false); got != 10 {
		t.Errorf("a line that left L1 takes %d cycles", got)
	}
	for l := Line(2); l <= 10; l++ { // likewise in L2
		s.Access(0, 7+l*512, false)
		s.Access(1, 7+l*512, false)
	}
	if got := s.Access(0, 7, false); got != 35 {
		t.Errorf("a line that left L2 takes %d cycles", got)
	}
}

// TestCoherence checks invariants after each access. A modified or exclusive copy is the only one. The directory knows
// each private copy. L1 is a subset of L2, and L2 of L3. Left is called for each line that leaves.
func TestCoherence(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	c := Thesis()
	c.Cores, c.L1, c.L2, c.L3 = 3, Geometry{2 * LineBytes, 2}, Geometry{8 * LineBytes, 4}, Geometry{16 * LineBytes, 4}
	s := newModel(c)
	in := map[Line]bool{}
	s.Left = func(core int, l Line, last bool) {
		if last {
			delete(in, l)
		} else if r.IntN(4) == 0 && s.Discard(core, l) {
			delete(in, l)
		}
	}
	for range 50_000 {
		core, l := r.IntN(c.Cores), Line(r.IntN(40))
		in[l] = true
		s.Access(core, l, r.IntN(3) == 0)
		for l := range Line(40) {
			dir := s.l3.peek(l)
			if (dir != nil) != in[l] {
				t.Fatalf("line %d is in L3: %v, and as Left tells: %v", l, dir != nil, in[l])
			}
			states := []entry{}
			for core := range c.Cores {
				first, second := s.l1[core].peek(l), s.l2[core].peek(l)
				if first != nil && (second == nil || *first&3 < *second&3) {
					t.Fatalf("line %d is in L1 of core %d and not in L2, or less", l, core)
				}
				known := dir != nil && *dir>>core&1 != 0
				if known != (second != nil) {
					t.Fatalf("core %d has line %d: %v, and the directory says %v", core, l, second != nil, known)
				}
				if second != nil {
					states = append(states, *second&3)
				}
			}
			if len(states) > 1 && slices.Max(states) != shared {
				t.Fatalf("line %d has copies in states %v", l, states)
			}
			if dir != nil && *dir&owned != 0 && len(states) != 1 {
				t.Fatalf("line %d is owned, by %d", l, len(states))
			}
		}
	}
}

// TestAgainstModel compares the latency of each access, the calls of Left, and the places of lines with those of the
// model.
func TestAgainstModel(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		c := Thesis()
		c.Cores = 1 + r.IntN(maxCores)
		for i, g := range []*Geometry{&c.L1, &c.L2, &c.L3} {
			g.Ways = 1 << r.IntN(4)
			g.Bytes = LineBytes * g.Ways << (r.IntN(2) + i)
		}
		lines := 1 + r.IntN(100)
		s, m := New(c), newModel(c)
		var told, want []departure
		discard := r.IntN(3)
		s.now -= uint32(r.IntN(2000)) // so that times of use are renumbered
		s.Left = func(core int, l Line, last bool) {
			told = append(told, departure{core, l, last})
			if discard > 0 && !last && int(l)%(2*discard) == 0 {
				told = append(told, departure{core, l, s.Discard(core, l)})
			}
		}
		m.Left = func(core int, l Line, last bool) {
			want = append(want, departure{core, l, last})
			if discard > 0 && !last && int(l)%(2*discard) == 0 {
				want = append(want, departure{core, l, m.Discard(core, l)})
			}
		}
		for step := range 2000 {
			core, l, write := r.IntN(c.Cores), Line(r.IntN(lines))|Line(r.IntN(3))<<SpaceShift, r.IntN(3) == 0
			got := s.Access(core, l, write)
			if want := m.Access(core, l, write); got != want {
				t.Fatalf("seed %d, step %d: an access takes %d cycles, and %d in the model", seed, step, got, want)
			}
			if r.IntN(50) == 0 {
				if s.Discard(core, l) != m.Discard(core, l) {
					t.Fatalf("seed %d, step %d: Discard differs", seed, step)
				}
			}
		}
		if !slices.Equal(told, want) {
			t.Fatalf("seed %d: Left is told %v, and of the model %v", seed, told, want)
		}
		if s.Counts() != m.counts {
			t.Fatalf("seed %d: counts are %v, and of the model %v", seed, s.Counts(), m.counts)
		}
		for i := range 3 * lines {
			l := Line(i/3) | Line(i%3)<<SpaceShift
			var d directory
			if in, n := s.at(l); n < len(in.directories) {
				d = in.directories[n]
			}
			e := m.l3.peek(l)
			if d.present != (e != nil) || e != nil && (d.owned != (*e&owned != 0) || d.sharers != uint32(*e&sharers)) {
				t.Fatalf("seed %d: L3 has line %x as %+v, and %x in the model", seed, l, d, e)
			}
			for core := range c.Cores {
				var p place
				if in, n := s.at(l); n < len(in.directories) {
					p = in.places[n*c.Cores+core]
				}
				first, second := m.l1[core].peek(l), m.l2[core].peek(l)
				if (p != 0) != (second != nil) || (p.first() >= 0) != (first != nil) || second != nil && entry(p&states) != *second&3 {
					t.Fatalf("seed %d: core %d has line %x as %x", seed, core, l, p)
				}
			}
		}
	}
}
