package shadow

import (
	"math/rand/v2"
	"testing"
)

// TestAgainstMap compares a Memory with a map over random use.
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
			case 1:
				size := rng.Uint64N(8192)
				m.Forget(addr, size)
				for k := range want {
					if !k.shared && k.n*g >= addr && (k.n+1)*g <= addr+size {
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
		if m.Bytes() == 0 || m.Peak() < m.Bytes() {
			t.Errorf("granule %d: %d bytes, peak %d", granule, m.Bytes(), m.Peak())
		}
		m.Clear()
		if *m.Global(64) != 0 {
			t.Error("a cell outlived Clear")
		}
	}
}

// TestTaken follows the memory that cells take: pages come and go as a whole, and are used again.
func TestTaken(t *testing.T) {
	const page, dir = pageCells * 4, dirPages * 8 // bytes
	m := New[uint32](16)
	step := func(what string, bytes, peak uint64) {
		t.Helper()
		if m.Bytes() != bytes || m.Peak() != peak {
			t.Errorf("%s: %d bytes, at most %d, want %d and %d", what, m.Bytes(), m.Peak(), bytes, peak)
		}
	}
	step("nothing", 0, 0)
	first := m.Global(16 * 7)
	*first = 1
	step("a cell", dir+page, dir+page)
	m.Global(16*pageCells - 1)
	step("another of its page", dir+page, dir+page)
	m.Global(16 * pageCells)
	step("one of the next", dir+2*page, dir+2*page)
	m.Forget(0, 16*pageCells-1)
	step("some of a page forgotten", dir+2*page, dir+2*page)
	m.Forget(0, 16*pageCells)
	step("a page forgotten", dir+page, dir+2*page)
	m.Forget(0, 16*pageCells)
	step("the same again", dir+page, dir+2*page)
	if again := m.Shared(Window{1, 2}, 16*7); again != first || *again != 0 {
		t.Errorf("a page that was forgotten is not used again, or holds %d", *again)
	}
	step("a cell of a window", dir+2*page, dir+2*page)
	m.Shared(Window{1, 2}, 16*pageCells*3)
	step("of its fourth page", dir+5*page, dir+5*page)
	m.EndWindow(Window{1, 2})
	step("the window ended", dir+page, dir+5*page)
	for range 4 {
		m.Shared(Window{2, 0}, 0)
		m.EndWindow(Window{2, 0})
	}
	step("others too", dir+page, dir+5*page)
	m.Clear()
	step("all", 0, dir+5*page)
}
