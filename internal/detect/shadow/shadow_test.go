package shadow

import (
	"math/rand/v2"
	"testing"
)

// TestAgainstMap compares a Memory with a map under random use.
func TestAgainstMap(t *testing.T) {
	type key struct {
		shared bool
		w      Window
		n      uint64
	}
	for _, granule := range []int{1, 4, 16} {
		rng := rand.New(rand.NewPCG(1, uint64(granule)))
		m, want := New[uint32](granule), map[key]uint32{}
		g := uint64(granule)
		for range 20000 {
			addr := rng.Uint64N(1 << 16)
			if rng.IntN(4) == 0 {
				addr += 0x2000_0000_0000 + rng.Uint64N(4)<<30
			}
			w := Window{uint32(rng.IntN(2)), uint32(rng.IntN(3))}
			k, c := key{n: addr / g}, (*uint32)(nil)
			switch rng.IntN(40) {
			case 0:
				m.EndWindow(w)
				for k := range want {
					if k.shared && k.w == w {
						delete(want, k)
					}
				}
				continue
			case 2, 3, 4, 5:
				k = key{true, w, addr % (1 << 14) / g}
				c = m.Shared(w, addr%(1<<14))
			default:
				c = m.Global(addr)
			}
			if *c != want[k] {
				t.Fatalf("granule %d: cell %+v holds %d, want %d", granule, k, *c, want[k])
			}
			*c = rng.Uint32()
			want[k] = *c
		}
		cells, touched := 0, 0
		m.Each(func(c *uint32) {
			cells++
			if *c != 0 {
				touched++
			}
		})
		n := 0
		for _, v := range want {
			if v != 0 {
				n++
			}
		}
		if touched != n || cells%pageCells != 0 {
			t.Errorf("granule %d: %d cells in all, %d not zero, want %d", granule, cells, touched, n)
		}
		m.Clear()
		if *m.Global(64) != 0 {
			t.Error("a cell outlived Clear")
		}
	}
}

// TestTaken checks the memory that cells take: pages are allocated and freed as a whole, and reused.
func TestTaken(t *testing.T) {
	const page, dir = pageCells * 4, dirPages * 8 // bytes
	m := New[uint32](16)
	step := func(what string, bytes uint64) {
		t.Helper()
		if m.Bytes() != bytes {
			t.Errorf("%s: %d bytes, want %d", what, m.Bytes(), bytes)
		}
	}
	step("nothing", 0)
	*m.Global(16 * 7) = 1
	step("a cell", dir+page)
	m.Global(16*pageCells - 1)
	step("another of its page", dir+page)
	m.Global(16 * pageCells)
	step("one of the next", dir+2*page)
	first := m.Shared(Window{1, 2}, 16*7)
	*first = 1
	step("a cell of a window", dir+3*page)
	m.EndWindow(Window{1, 2})
	step("the window ended", dir+2*page)
	if again := m.Shared(Window{1, 3}, 16*7); again != first || *again != 0 {
		t.Errorf("a page of a window that has ended is not used again, or holds %d", *again)
	}
	m.Shared(Window{1, 3}, 16*pageCells*3)
	step("the fourth page of another window", dir+6*page)
	m.EndWindow(Window{1, 3})
	step("that ended", dir+2*page)
	for range 4 {
		m.Shared(Window{2, 0}, 0)
		m.EndWindow(Window{2, 0})
	}
	step("others too", dir+2*page)
	m.Clear()
	step("all", 0)
}
