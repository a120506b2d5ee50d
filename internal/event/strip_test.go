package event

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestParts divides strips by granules.
func TestParts(t *testing.T) {
	type part struct {
		at   uint64
		mask uint32
	}
	for _, c := range []struct {
		s             Strip
		size, granule uint64
		want          []part
	}{
		{Strip{Addr: 8, Mask: 0xff0, Step: 1}, 1, 4, []part{{8, 0xf0}, {12, 0xf00}}},
		{Strip{Addr: 10, Mask: 0x7e, Step: 2}, 2, 4, []part{{10, 2}, {12, 0xc}, {16, 0x30}, {20, 0x40}}},
		{Strip{Addr: 7, Mask: 0xf, Step: 2}, 2, 4, []part{{7, 1}, {9, 2}, {11, 4}, {13, 8}}},
		{Strip{Addr: 8, Mask: 3 << 30, Step: 8}, 8, 4, []part{{8, 1 << 30}, {16, 1 << 31}}},
		{Strip{Addr: 0, Mask: 1<<32 - 1, Step: 4}, 4, 128, []part{{0, 1<<32 - 1}}},
		{Strip{Addr: 20, Mask: 0x101}, 4, 4, []part{{20, 0x101}}},
		{Strip{Addr: 9, Mask: 0xe, Step: 2}, 1, 4, []part{{9, 6}, {13, 8}}},
		{Strip{Addr: 4, Mask: 7, Step: 12}, 4, 8, []part{{4, 1}, {16, 2}, {28, 4}}},
		{Strip{Addr: 6, Mask: 7, Step: -1}, 1, 4, []part{{6, 7}}},
		{Strip{Addr: 8, Mask: 7, Step: -4}, 4, 8, []part{{8, 1}, {4, 6}}},
	} {
		var got []part
		c.s.Parts(c.size, c.granule, func(s Strip) { got = append(got, part{s.Addr, s.Mask}) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v of %d bytes in %d: %x, want %x", c.s, c.size, c.granule, got, c.want)
		}
	}
}

// TestStrips divides random events into strips: every lane must be in one strip, which gives its address, and no strip
// could be longer.
func TestStrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	long, same := 0, 0
	for range 20000 {
		e := Event{Kind: Load, Flags: FlagRead, Size: 1 << rng.IntN(5), Mask: rng.Uint32() | rng.Uint32() | 1<<rng.IntN(32), Addr: 1 << 20}
		b := Batch{Addrs: []uint64{7, 7, 7}}
		if e.Stride = int64(e.Size) * int64(rng.IntN(4)-1); rng.IntN(2) == 0 {
			e.Flags |= FlagScattered
			e.Side = uint32(len(b.Addrs))
			at := e.Addr
			for range bits.OnesCount32(e.Mask) {
				b.Addrs = append(b.Addrs, at)
				at += uint64(e.Size) * uint64([]int{1, 1, 1, 0, 0, 3}[rng.IntN(6)])
			}
		}
		if e.Flags&FlagScattered == 0 && rng.IntN(2) == 0 && !e.InRows(uint8(1+rng.IntN(4)), e.Stride, int64(rng.IntN(5)-2)*int64(e.Size)) {
			t.Fatal("no rows")
		}
		last := uint32(0) // the previous strip
		for left := e.Mask; left != 0; left &^= last {
			s := b.Strip(&e, left)
			if s.Mask&^left != 0 || s.Low() != bits.TrailingZeros32(left) || s.Addr != b.AddrOf(&e, s.Low()) || s.Step != 0 && s.Mask&(s.Mask-1) == 0 {
				t.Fatalf("%+v of %b of %+v", s, left, e)
			}
			step := uint64(s.Step)
			if s.Same() {
				same++
			}
			if !s.Same() && bits.OnesCount32(s.Mask) != s.High()-s.Low()+1 {
				t.Fatalf("%+v has gaps", s)
			}
			for m, i := s.Mask, uint64(0); m != 0; m, i = m&(m-1), i+1 {
				if got := b.AddrOf(&e, bits.TrailingZeros32(m)); got != s.Addr+i*step {
					t.Fatalf("lane %d of %+v of %+v is at %#x", bits.TrailingZeros32(m), s, e, got)
				}
			}
			if next := s.High() + 1; next < 32 && left>>next&1 != 0 && e.Flags&FlagScattered != 0 {
				by := b.AddrOf(&e, next) - b.AddrOf(&e, s.High())
				if single := s.Mask&(s.Mask-1) == 0; !single && by == step || single && (by == 0 || by == uint64(e.Size)) {
					t.Fatalf("%+v of %+v goes on", s, e)
				}
			}
			if bits.OnesCount32(s.Mask) == 2 && s.Step != 0 && s.Step != int64(e.Size) {
				t.Fatalf("%+v of %+v: two lanes", s, e)
			}
			if bits.OnesCount32(s.Mask) > 3 {
				long++
			}
			last = s.Mask
		}
	}
	if long < 1000 || same < 1000 {
		t.Errorf("%d strips of more than three lanes, %d of one address", long, same)
	}
}
