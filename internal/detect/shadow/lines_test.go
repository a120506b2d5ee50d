package shadow

import (
	"math/rand/v2"
	"testing"
)

// mark is a cell: something done by a lane; 0: nothing.
type mark struct{ what, lane uint8 }

func (c *mark) Turn(n int) {
	if c.what != 0 {
		c.lane = (c.lane + uint8(n)) % 32
	}
}

func (c mark) turned(n int) mark {
	c.Turn(n)
	return c
}

// TestLinesAgainstMap compares Lines with a map under random accesses by lanes in order and by single lanes.
func TestLinesAgainstMap(t *testing.T) {
	type key struct {
		shared bool
		w      Window
		n      uint64
	}
	rng := rand.New(rand.NewPCG(2, 9))
	m, want := NewLines[mark](4), map[key]mark{}
	line := func(k key) (*Line[mark], int) {
		if k.shared {
			return m.Shared(k.w, k.n*4)
		}
		return m.Global(k.n*4 + 3)
	}
	whole, parted := 0, 0
	for step := range 60000 {
		k := key{n: rng.Uint64N(6 * LineCells)}
		if rng.IntN(3) == 0 {
			k.shared, k.w = true, Window{1, uint32(rng.IntN(3))}
		}
		if k.shared && rng.IntN(100) == 0 {
			m.EndWindow(k.w)
			for o := range want {
				if o.shared && o.w == k.w {
					delete(want, o)
				}
			}
			continue
		}
		n, made := 1, mark{uint8(rng.IntN(3)), uint8(rng.IntN(32))}
		switch rng.IntN(4) {
		case 0, 1: // a whole warp, mostly aligned to a line
			n, made.lane = LineCells, 0
			if rng.IntN(3) > 0 {
				k.n = k.n / LineCells * LineCells
			}
		case 2:
			n = 1 + rng.IntN(LineCells)
		}
		if made.what == 0 {
			made.lane = 0
		}
		for done := 0; done < n; {
			at := key{k.shared, k.w, k.n + uint64(done)}
			l, from := line(at)
			to := min(LineCells, from+n-done)
			start := from
			for from < to {
				first, run := (*mark)(nil), 1
				switch {
				case n == 1 && rng.IntN(4) == 0:
					first = &m.Cells(l)[from]
				case n == 1:
					first = m.Cell(l, from)
				default:
					first, run = m.Run(l, from, to)
				}
				for i := range run {
					if got, is := first.turned(i), want[key{k.shared, k.w, at.n + uint64(from-start+i)}]; got != is {
						t.Fatalf("step %d: cell %+v + %d is %v, want %v", step, at, from-start+i, got, is)
					}
				}
				*first = made.turned(done)
				for i := range run {
					want[key{k.shared, k.w, at.n + uint64(from-start+i)}] = made.turned(done + i)
				}
				from, done = from+run, done+run
			}
			m.Join(l, start, to)
			if l.starts == 0 {
				whole++
			} else {
				parted++
			}
		}
		l, i := line(k)
		if got := m.At(l, i); got != want[k] {
			t.Fatalf("step %d: At gives %v, want %v", step, got, want[k])
		}
	}
	if whole < 5000 || parted < 5000 {
		t.Errorf("%d lines of one run, %d of several", whole, parted)
	}
	for k, is := range want {
		if l, i := line(k); m.At(l, i) != is {
			t.Errorf("cell %+v is %v, want %v", k, m.At(l, i), is)
		}
	}
	if held := m.Bytes(); held < m.global.Bytes()+m.parted*2 {
		t.Errorf("%d bytes", held)
	}
	m.Clear()
	if l, i := m.Global(8); m.At(l, i) != (mark{}) {
		t.Error("a cell outlived Clear")
	}
}

// TestLinesJoin divides a line by an access of a lane, and makes it whole again by an access of a warp.
func TestLinesJoin(t *testing.T) {
	m := NewLines[mark](4)
	l, _ := m.Global(0)
	set := func(from, to int, c mark) {
		for i := from; i < to; {
			first, n := m.Run(l, i, to)
			*first = c.turned(i - from)
			i += n
		}
		m.Join(l, from, to)
	}
	for _, c := range []struct {
		from, to int
		made     mark
		starts   uint32 // without bit 0
	}{
		{0, 32, mark{1, 0}, 0},
		{5, 6, mark{1, 5}, 0}, // the same
		{5, 6, mark{1, 6}, 1<<5 | 1<<6},
		{6, 7, mark{1, 7}, 1<<5 | 1<<7}, // follows from the one before
		{5, 7, mark{1, 5}, 0},
		{4, 32, mark{2, 0}, 1 << 4},
		{0, 32, mark{1, 0}, 0},
	} {
		set(c.from, c.to, c.made)
		if l.starts&^1 != c.starts || (l.starts == 0) != (c.starts == 0) {
			t.Fatalf("%+v: runs start at %b, want %b", c, l.starts, c.starts)
		}
	}
	if len(m.few) != 1 || len(m.many) != 0 {
		t.Errorf("runs to spare: of %d lines with few, of %d with many", len(m.few), len(m.many))
	}
}

// TestLinesTaken uses one window after the other, each with lines that lanes divide. The windows must use the same
// memory, empty each time.
func TestLinesTaken(t *testing.T) {
	m := NewLines[mark](4)
	taken := uint64(0)
	for block := range uint32(5) {
		w := Window{1, block}
		for i := range uint64(8) {
			l, at := m.Shared(w, i*4*LineCells+12)
			for n := range LineCells {
				if got := m.At(l, n); got != (mark{}) {
					t.Fatalf("block %d: cell %d of line %d is %v", block, n, i, got)
				}
			}
			*m.Cell(l, at) = mark{1, 9}
			for n := range LineCells {
				if got := m.At(l, n); got != (mark{}) != (n == 3) {
					t.Fatalf("block %d: cell %d of line %d is %v after another was changed", block, n, i, got)
				}
			}
		}
		if block == 0 {
			taken = m.Bytes()
		}
		if m.Bytes() != taken {
			t.Errorf("with block %d cells take %d bytes, with the first %d", block, m.Bytes(), taken)
		}
		if m.EndWindow(w); m.Bytes() != 0 {
			t.Errorf("block %d has ended, cells take %d bytes", block, m.Bytes())
		}
	}
	if want := uint64(8 * (24 + fewRuns*2)); taken < want || taken > want+4*24 {
		t.Errorf("8 lines take %d bytes, want %d", taken, want)
	}
}

// TestLinesSpare uses one window after the other, each with a line whose cells are all runs of their own. The lines
// must be empty at first.
func TestLinesSpare(t *testing.T) {
	m := NewLines[mark](4)
	for block := range uint32(3) {
		w := Window{1, block}
		l, _ := m.Shared(w, 0)
		cells := m.Cells(l)
		if *cells != ([LineCells]mark{}) {
			t.Fatalf("block %d begins with %v", block, *cells)
		}
		for i := range cells {
			cells[i] = mark{1, uint8(i)}
		}
		m.EndWindow(w)
	}
}

// TestLinesPart uses cells that refer to memory of their own. Part must be called for each new run, and each must visit
// every run once.
func TestLinesPart(t *testing.T) {
	m := NewLines[mark](4)
	told := 0
	m.Part = func(c *mark) { c.what, told = c.what+10, told+1 }
	global, _ := m.Global(0)
	shared, _ := m.Shared(Window{1, 0}, 0)
	for _, l := range []*Line[mark]{global, shared} {
		first, _ := m.Run(l, 0, LineCells)
		*first = mark{1, 0}
		m.Run(l, 7, 8)
	}
	seen := map[mark]int{}
	for _, l := range []*Line[mark]{global, shared} {
		l.each(func(c *mark) { seen[*c]++ })
	}
	if told != 4 || seen[mark{1, 0}] != 2 || seen[mark{11, 7}] != 2 || seen[mark{21, 8}] != 2 {
		t.Errorf("%d cells begin runs, the runs are %v", told, seen)
	}
	if m.Clear(); m.Part == nil {
		t.Error("Clear forgot Part")
	}
}
