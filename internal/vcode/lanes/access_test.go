package lanes

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// reach is memory with a middle part that operations may access, so that overruns are detected.
type reach struct {
	mem   [4096]byte
	base  unsafe.Pointer
	reach [8]Access
	log   Log
}

const (
	reachBegin = 1024 // of mem
	reachSize  = 2048
)

func newReach(r *rand.Rand) *reach {
	m := &reach{}
	for i := range m.mem {
		m.mem[i] = byte(r.Uint32())
	}
	for i := range m.reach {
		// Any Origin that leaves addresses aligned as their offsets are; Room such that no way to lie leaves mem.
		m.reach[i] = Access{Origin: uint64(r.IntN(1<<20)) << 3, Room: uint64(r.IntN(reachSize)), Row: uint64(int64(r.IntN(65)-32) * 8), Told: uint64(r.IntN(2))}
	}
	m.point()
	return m
}

func (m *reach) point() {
	m.base = unsafe.Pointer(&m.mem[reachBegin])
	for i := range m.reach {
		m.reach[i].Base = &m.base
	}
}

func (m *reach) clone() *reach {
	c := *m
	c.point()
	return &c
}

// aim sets the first registers of f to addresses that the Access of their number contains, and the others to offsets
// for patterns.
func (m *reach) aim(r *rand.Rand, f *files) {
	for i := range 4 {
		w := &m.reach[i]
		f.scalars[i] = w.Origin + uint64(r.IntN(int(w.Room)+16))&^uint64(7*r.IntN(2))
		for l := range 32 {
			at := w.Origin + uint64(r.IntN(int(w.Room)+1))&^7
			f.v32[i][l], f.v64[i][l] = uint32(at), at
			f.v32[4+i][l] = uint32(r.IntN(1000) - 500)
		}
	}
}

// TestAccess compares every load and store with moves of single bytes.
func TestAccess(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(31, 32))
		for c := OpLoad8ULine; c < OpSteadyS; c++ {
			done := 0
			for range 300 {
				f, m := randomFiles(r), newReach(r)
				m.aim(r, f)
				want, after := *f, m.clone()
				mask := randomMask(r)
				from := []int32{int32(r.IntN(4)), int32(r.IntN(8)), 4 + int32(r.IntN(4))}
				if r.IntN(2) == 0 {
					from[1] = from[0]
				}
				o := Make(c, 7, int32(r.IntN(8)), from[:count(c)]...)
				a := accessOps[c-OpLoad8ULine]
				w := &after.reach[o.B/sizes[reaches]]
				at, ok := lanesAt(a, f, &o, w, mask)
				m.log.N = uint64(len(m.log.List) - r.IntN(3))
				after.log.N = m.log.N
				end := uint64(7)
				if ok = ok && (w.Told == 0 || m.log.N < uint64(len(m.log.List)) && (!a.tellsBytes() || at[0]%4 == 0)); ok {
					end, done = 1, done+1
					note(a, f, &o, w, after, at, mask)
					moveBytes(a, &want, &o, after, at, mask)
				}
				x := f.regs()
				x.Reach, x.Log = &m.reach[0], &m.log
				if got := runList([]Op{o, {Imm: 1}}, x, mask); got != end {
					t.Fatalf("operation %d, mask %08x: ends with %d, want %d", c, mask, got, end)
				}
				if *f != want || m.mem != after.mem {
					t.Fatalf("operation %d (%+v), mask %08x: not what is wanted", c, a, mask)
				}
				if s := differs(a, &m.log, &after.log, mask); s != "" {
					t.Fatalf("operation %d (%+v), mask %08x: it is told otherwise: %s", c, a, mask, s)
				}
			}
			if done < 20 || done > 290 {
				t.Errorf("operation %d: %d of 300 tries done; the test is one-sided", c, done)
			}
		}
	})
}

// lanesAt returns the places of the lanes in the accessible memory, and whether they are valid.
func lanesAt(a accessOp, f *files, o *Op, w *Access, mask uint32) (at [32]int, ok bool) {
	inside := func(off uint64) bool { return off < w.Room && off%a.size == 0 }
	size, scalar := int(a.size), f.scalars[o.A/8%8]-w.Origin
	ok = a.how >= each || inside(scalar)
	for l := range 32 {
		at[l] = int(scalar)
		switch a.how {
		case line:
			at[l] += l * size
		case rows:
			at[l] += l%16*size + l/16*int(w.Row)
		case spread:
			at[l] += l / 16 * int(w.Row)
		case pattern:
			at[l] += int(int32(f.v32[o.C/sizes[vectors32]][l]))
		case each, eachLow:
			off := f.v64[o.A/sizes[vectors64]%8][l] - w.Origin
			if a.how == eachLow {
				off = uint64(f.v32[o.A/sizes[vectors32]][l]) - w.Origin
			}
			at[l] = int(off)
			ok = ok && (mask>>l&1 == 0 || inside(off))
		}
	}
	return at, ok
}

// note logs the access.
func note(a accessOp, f *files, o *Op, w *Access, m *reach, at [32]int, mask uint32) {
	log := &m.log
	if w.Told == 0 {
		return
	}
	head, to := &log.Heads[log.N], &log.List[log.N]
	log.N++
	head.Imm, head.At = o.Imm, f.scalars[o.A/8%8]-w.Origin
	for l := range 32 {
		if mask>>l&1 != 0 {
			to.Offsets[l] = uint64(at[l])
		}
		if a.tellsBefore() && mask>>l&1 != 0 {
			v := number(m.mem[reachBegin+at[l]:], int(a.size), false)
			to.Before[l], to.Before32[l] = v, uint32(v)
		}
		if a.tellsBytes() && l < 8*int(a.size) {
			to.Before32[l] = uint32(number(m.mem[reachBegin+at[0]+4*l:], 4, false))
		}
		to.Values[l], to.Values32[l] = f.v64[o.D/sizes[vectors64]%8][l], f.v32[o.D/sizes[vectors32]%8][l]
	}
}

// differs compares the last log entry, as far as it belongs to the access.
func differs(a accessOp, x, y *Log, mask uint32) string {
	if x.N != y.N {
		return "other numbers"
	}
	return differsAt(a, x, y, (x.N+31)%32, mask)
}

// differsAt compares one log entry.
func differsAt(a accessOp, x, y *Log, at uint64, mask uint32) string {
	h, i, p, q := &x.Heads[at], &y.Heads[at], &x.List[at], &y.List[at]
	scattered := a.how == each || a.how == eachLow
	switch {
	case h.Imm != i.Imm || !scattered && h.At != i.At:
		return "Imm or At"
	case a.store && a.size < 8 && p.Values32 != q.Values32, a.store && a.size == 8 && p.Values != q.Values:
		return "values"
	case a.tellsBytes() && !slices.Equal(p.Before32[:8*a.size], q.Before32[:8*a.size]):
		return "bytes that were there before"
	}
	for m := mask; m != 0; m &= m - 1 {
		switch l := first(m); {
		case scattered && p.Offsets[l] != q.Offsets[l]:
			return "offsets"
		case a.tellsBefore() && (a.size < 8 && p.Before32[l] != q.Before32[l] || a.size == 8 && p.Before[l] != q.Before[l]):
			return "what was there before"
		}
	}
	return ""
}

// moveBytes makes the access.
func moveBytes(a accessOp, f *files, o *Op, m *reach, at [32]int, mask uint32) {
	if a.how == same {
		v := number(m.mem[reachBegin+at[0]:], int(a.size), a.signed)
		if a.size < 8 {
			v = uint64(uint32(v))
		}
		f.scalars[o.D/8] = v
		return
	}
	for l := range 32 {
		if mask>>l&1 == 0 {
			continue
		}
		p := m.mem[reachBegin+at[l]:]
		switch {
		case a.store:
			v := uint64(f.v32[o.D/sizes[vectors32]%8][l])
			if a.size == 8 {
				v = f.v64[o.D/sizes[vectors64]][l]
			}
			if a.add {
				v += number(p, int(a.size), false)
			}
			for i := range a.size {
				p[i] = byte(v >> (8 * i))
			}
		case a.size == 8:
			f.v64[o.D/sizes[vectors64]][l] = number(p, 8, false)
		default:
			f.v32[o.D/sizes[vectors32]][l] = uint32(number(p, int(a.size), a.signed))
		}
	}
}

func TestSteady(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(33, 34))
		seen := [2]int{}
		for range 4000 {
			f := randomFiles(r)
			c := OpSteadyS + Code(r.IntN(2))
			d, a := int32(r.IntN(8)), int32(r.IntN(8))
			least, more := int64(r.IntN(2000)-1000), int64(r.IntN(2000))
			v := f.scalars[a]&^(1<<32-1) | uint64(uint32([]int{0, 1 << 31, 1 << 30}[r.IntN(3)]+r.IntN(4000)-2000))
			f.scalars[a] = v
			want := *f
			whole := int64(uint32(v))
			low, high := int64(0), int64(1<<32-1)
			if c == OpSteadyS {
				whole, low, high = int64(int32(v)), -1<<31, 1<<31-1
			}
			end := uint64(9)
			if ok := whole+least >= low && whole+least+more <= high; ok {
				end, want.scalars[d] = 1, uint64(whole)
			}
			if got := runList([]Op{Make(c, 9, d, a, int32(least), int32(more)), {Imm: 1}}, f.regs(), randomMask(r)); got != end || *f != want {
				t.Fatalf("%d of %#x, %d to %d: ends with %d, want %d", c-OpSteadyS, v, least, least+more, got, end)
			}
			seen[end/9]++
		}
		if seen[0] < 100 || seen[1] < 100 {
			t.Fatal("the test is one-sided", seen)
		}
	})
}
