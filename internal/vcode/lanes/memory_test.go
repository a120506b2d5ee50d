package lanes

import (
	"math/rand/v2"
	"testing"
)

// TestMemory compares every load with moves of single bytes. Lanes outside the mask have offsets far outside.
func TestMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		testLoad32(t, r)
	}
	for range 200 {
		testLoad64(t, r)
	}
}

func testLoad32(t *testing.T, r *rand.Rand) {
	t.Helper()
	m := newAccess(r, 4)
	var d V32
	m.random(r, &d)
	e, before := d, d
	Gather32(&d, m.mem, &m.off, m.mask)
	Load32(&e, m.side, m.mask)
	for l := range 32 {
		scattered, sideways := before[l], before[l]
		if m.mask>>l&1 != 0 {
			scattered, sideways = uint32(number(m.mem[m.off[l]:], 4, false)), uint32(number(m.side[l*4:], 4, false))
		}
		if d[l] != scattered || e[l] != sideways {
			t.Fatalf("32, mask %08x, lane %d: gathered %#x, want %#x; loaded %#x, want %#x", m.mask, l, d[l], scattered, e[l], sideways)
		}
	}
}

func testLoad64(t *testing.T, r *rand.Rand) {
	t.Helper()
	m := newAccess(r, 8)
	var d V64
	for l := range d {
		d[l] = r.Uint64()
	}
	e, before := d, d
	Gather64(&d, m.mem, &m.off, m.mask)
	Load64(&e, m.side, m.mask)
	for l := range 32 {
		scattered, sideways := before[l], before[l]
		if m.mask>>l&1 != 0 {
			scattered, sideways = number(m.mem[m.off[l]:], 8, false), number(m.side[l*8:], 8, false)
		}
		if d[l] != scattered || e[l] != sideways {
			t.Fatalf("64, mask %08x, lane %d: gathered %#x, want %#x; loaded %#x, want %#x", m.mask, l, d[l], scattered, e[l], sideways)
		}
	}
}

// TestMemoryWrites compares every store with moves of single bytes.
func TestMemoryWrites(t *testing.T) {
	type stores struct {
		name    string
		size    int
		scatter func(mem []byte, off *V64, a *V32, mask uint32)
		store   func(mem []byte, a *V32, mask uint32)
	}
	wide := func(a *V32) *V64 {
		var w V64
		for l := range w {
			w[l] = uint64(a[l]) * 0x100000001
		}
		return &w
	}
	for _, c := range []stores{
		{"32", 4, Scatter32, Store32},
		{"64", 8, func(mem []byte, off *V64, a *V32, mask uint32) { Scatter64(mem, off, wide(a), mask) },
			func(mem []byte, a *V32, mask uint32) { Store64(mem, wide(a), mask) }},
	} {
		r := rand.New(rand.NewPCG(11, 12))
		for range 200 {
			m := newAccess(r, c.size)
			var a V32
			m.random(r, &a)
			mem, side := append([]byte(nil), m.mem...), append([]byte(nil), m.whole...)
			for l := range 32 {
				if m.mask>>l&1 != 0 {
					for i := range c.size {
						b := byte(uint64(a[l]) * 0x100000001 >> (8 * i))
						mem[m.off[l]+uint64(i)], side[l*c.size+i] = b, b
					}
				}
			}
			c.scatter(m.mem, &m.off, &a, m.mask)
			c.store(m.side, &a, m.mask)
			if string(m.mem) != string(mem) {
				t.Fatalf("%s, mask %08x: scattered\n%x\nwant\n%x", c.name, m.mask, m.mem, mem)
			}
			if string(m.whole) != string(side) {
				t.Fatalf("%s, mask %08x: stored\n%x\nwant\n%x", c.name, m.mask, m.whole, side)
			}
		}
	}
}

// access is memory for scattered accesses, and memory for adjacent lanes that is as short as the mask allows.
type access struct {
	mem, whole, side []byte
	off              V64
	mask             uint32
}

func newAccess(r *rand.Rand, size int) *access {
	m := &access{mem: make([]byte, 8+r.IntN(200)), whole: make([]byte, 64+32*size), mask: randomMask(r)}
	for _, b := range [][]byte{m.mem, m.whole} {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	last := 0
	for l := range 32 {
		m.off[l] = r.Uint64() | 1<<63
		if m.mask>>l&1 != 0 {
			m.off[l] = uint64(r.IntN(len(m.mem) - size + 1))
			last = l + 1
		}
	}
	m.side = m.whole[: last*size : last*size]
	return m
}

func (m *access) random(r *rand.Rand, v *V32) {
	for l := range v {
		v[l] = r.Uint32()
	}
}

// number reads a little-endian number byte by byte.
func number(b []byte, size int, signed bool) uint64 {
	var x uint64
	for i := range size {
		x |= uint64(b[i]) << (8 * i)
	}
	if s := 64 - 8*size; signed {
		x = uint64(int64(x<<s) >> s)
	}
	return x
}

func TestPerm32(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for round := range 300 {
		var x [3]V32
		for i := range x {
			for l := range x[i] {
				x[i][l] = r.Uint32()
			}
		}
		before := x
		mask := randomMask(r)
		d := &x[round%3] // the sources too
		want := *d
		for l := range 32 {
			if mask>>l&1 != 0 {
				want[l] = before[1][before[2][l]%32]
			}
		}
		Perm32(d, &x[1], &x[2], mask)
		if *d != want {
			t.Fatalf("mask %08x: %x, want %x", mask, *d, want)
		}
	}
}

func TestStride(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 2000 {
		base, stride, mask := r.Uint64(), uint64(r.IntN(40)-20), randomMask(r)
		var a V64
		for l := range 32 {
			a[l] = r.Uint64()
			if mask>>l&1 != 0 {
				a[l] = base + uint64(l)*stride
			}
		}
		gotBase, gotStride, ok := Stride(&a, mask)
		several := mask&(mask-1) != 0
		if !ok || several && (gotBase != base || gotStride != stride) || !several && mask != 0 && (gotStride != 0 || gotBase != a[first(mask)]) {
			t.Fatalf("stride of %x under %08x: %x, %x, %v", a, mask, gotBase, gotStride, ok)
		}
		if !several {
			continue
		}
		l := 31 - first(bitsBack(mask)) // the last lane of the mask
		a[l]++
		_, _, ok = Stride(&a, mask)
		if two := mask & (mask - 1); ok && two&(two-1) != 0 {
			t.Fatalf("one lane of %x differs under %08x and is not seen", a, mask)
		}
	}
	var none V64
	if _, _, ok := Stride(&none, 0); !ok {
		t.Fatal("no lanes")
	}
}

func TestOffsets(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	seen := [2]int{}
	for range 3000 {
		origin, limit, align, mask := r.Uint64(), uint64(100+r.IntN(3)), uint64(1)<<r.IntN(4)-1, randomMask(r)
		var a, off V64
		for l := range a {
			a[l] = r.Uint64()
			if mask>>l&1 != 0 {
				a[l] = origin + uint64(r.IntN(100))&^align
			}
		}
		if r.IntN(2) == 0 {
			a[r.IntN(32)] = origin + []uint64{limit, limit + 1, 1, ^uint64(0)}[r.IntN(4)]
		}
		want := true
		for l := range a {
			if mask>>l&1 != 0 && (a[l]-origin > limit || (a[l]-origin)%(align+1) != 0) {
				want = false
			}
		}
		if Offsets(&off, &a, origin, limit, align, mask) != want {
			t.Fatalf("%x from %x, limit %d, align %d, mask %08x: not %v", a, origin, limit, align, mask, want)
		}
		seen[truth(want)]++
		for l := range a {
			if off[l] != a[l]-origin {
				t.Fatalf("lane %d: %x", l, off[l])
			}
		}
	}
	if seen[0] < 100 || seen[1] < 100 {
		t.Fatal("the test is one-sided", seen)
	}
}

// bitsBack reverses the bits.
func bitsBack(x uint32) (r uint32) {
	for i := range 32 {
		r |= x >> i & 1 << (31 - i)
	}
	return r
}
