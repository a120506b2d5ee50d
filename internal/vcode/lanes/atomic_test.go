package lanes

import (
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
)

// atomicSpellings are the instructions of the read-modify-writes, with 32 and 64 bits.
var atomicSpellings = map[RMW][2]string{
	RMWAdd: {"atom.add.u32", "atom.add.u64"}, RMWAnd: {"atom.and.b32", "atom.and.b64"}, RMWOr: {"atom.or.b32", "atom.or.b64"},
	RMWXor: {"atom.xor.b32", "atom.xor.b64"}, RMWExch: {"atom.exch.b32", "atom.exch.b64"}, RMWCas: {"atom.cas.b32", "atom.cas.b64"},
	RMWMinS: {"atom.min.s32", "atom.min.s64"}, RMWMinU: {"atom.min.u32", "atom.min.u64"}, RMWMaxS: {"atom.max.s32", "atom.max.s64"},
	RMWMaxU: {"atom.max.u32", "atom.max.u64"}, RMWFAdd: {"atom.add.f32", "atom.add.f64"}, RMWInc: {"atom.inc.u32", ""}, RMWDec: {"atom.dec.u32", ""},
}

// TestAtomic compares the atomics with the rows of package isa, executed one by one. There are few addresses, so that
// lanes contend, and numbers are often equal or special.
func TestAtomic(t *testing.T) {
	insts := map[string]isa.Inst{}
	for _, s := range isa.Spellings() {
		if _, ok := insts[s.Text]; !ok {
			insts[s.Text] = s.Inst()
		}
	}
	for op := NoRMW + 1; op <= RMWDec; op++ {
		for i, name := range atomicSpellings[op] {
			if name == "" {
				continue
			}
			in, ok := insts[name]
			if !ok {
				t.Fatalf("isa spells no %s", name)
			}
			r := rand.New(rand.NewPCG(31, uint64(op)))
			for range 300 {
				testAtomic(t, r, op, &in, 4<<i)
			}
		}
	}
}

// odd64 and odd32 are numbers with something special about them, some of them NaN and infinity.
var (
	odd64 = []uint64{0, 1, 2, ^uint64(0), 1 << 63, 1<<63 - 1, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001, 0xfff8000000001234, 0x3ff0000000000000, 0x8000000000000001}
	odd32 = []uint64{0, 1, 2, 1<<32 - 1, 1 << 31, 1<<31 - 1, 0x7f800000, 0xff800000, 0x7f800001, 0xffc01234, 0x3f800000, 0x80000001}
)

// operand returns a random operand of size bytes.
func operand(r *rand.Rand, size int) uint64 {
	odd := odd64
	if size == 4 {
		odd = odd32
	}
	if r.IntN(3) == 0 {
		return r.Uint64() >> (64 - 8*size)
	}
	return odd[r.IntN(len(odd))]
}

func testAtomic(t *testing.T, r *rand.Rand, op RMW, in *isa.Inst, size int) {
	t.Helper()
	mem, mask := make([]byte, size*(1+r.IntN(40))), randomMask(r)
	for at := 0; at < len(mem); at += size {
		putNumber(mem[at:], operand(r, size), size)
	}
	var off, d, b, c, want, left V64
	for l := range off {
		off[l], d[l], b[l], c[l] = 1<<63, r.Uint64()>>(64-8*size), operand(r, size), operand(r, size)
		if mask>>l&1 != 0 {
			off[l] = uint64(r.IntN(len(mem)/size) * size)
		}
	}
	alias := r.IntN(2) == 0 // what is found overwrites the operand
	if alias {
		d = b
	}
	after, changed := append([]byte(nil), mem...), false
	want = d
	for l := range 32 {
		if mask>>l&1 == 0 {
			continue
		}
		want[l] = number(after[off[l]:], size, false)
		left[l] = in.RMW(in, want[l], b[l], c[l])
		putNumber(after[off[l]:], left[l], size)
		changed = changed || left[l] != want[l]
	}
	old, leaves, got := d, V64{}, false
	if size == 8 {
		from := &b
		if alias {
			from = &old
		}
		got = Atomic64(op, &old, mem, &off, from, &c, mask)
		op.Leaves64(&leaves, &old, &b, &c, mask)
	} else {
		var old32, b32, c32 V32
		Low32(&old32, &d, ^uint32(0))
		Low32(&b32, &b, ^uint32(0))
		Low32(&c32, &c, ^uint32(0))
		from := &b32
		if alias {
			from = &old32
		}
		got = Atomic32(op, &old32, mem, &off, from, &c32, mask)
		op.Leaves32(&leaves, &old32, &b32, &c32, mask)
		ZExt64(&old, &old32, ^uint32(0))
	}
	for l := range 32 {
		if old[l] != want[l] || leaves[l] != left[l] {
			t.Fatalf("operation %d, %d bytes, mask %08x, lane %d: found %#x, want %#x; leaves %#x, want %#x", op, size, mask, l, old[l], want[l], leaves[l], left[l])
		}
	}
	if string(mem) != string(after) || got != changed {
		t.Fatalf("operation %d, %d bytes, mask %08x: memory %x, want %x; changed %v, want %v", op, size, mask, mem, after, got, changed)
	}
}

// putNumber writes a little-endian number byte by byte.
func putNumber(b []byte, x uint64, size int) {
	for i := range size {
		b[i] = byte(x >> (8 * i))
	}
}
