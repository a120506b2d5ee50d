package descriptor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestEncoding checks that decoding returns every encoded field.
func TestEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		m := TensorMap{Rank: 1 + rng.IntN(MaxRank), Type: uint8(rng.IntN(12)), Interleave: uint8(rng.Uint32()), Swizzle: uint8(rng.Uint32()), Fill: uint8(rng.Uint32()),
			Address: rng.Uint64(), Im2col: rng.IntN(2) == 0}
		for i := range MaxRank {
			m.Dims[i], m.Box[i], m.Steps[i] = rng.Uint32(), rng.Uint32(), uint8(rng.Uint32())
		}
		for i := range m.Strides {
			m.Strides[i] = rng.Uint64()
		}
		for i := range m.Lower {
			m.Lower[i], m.Upper[i] = int16(rng.Uint32()), int16(rng.Uint32())
		}
		if got, _ := DecodeTensorMap(m.Encode()); *got != m { // although it is invalid
			t.Errorf("%+v becomes %+v", m, *got)
		}
		x := Texture{Data: rng.Uint64(), Pitch: rng.Uint64(), Slice: rng.Uint64(), Width: rng.Uint32(), Height: rng.Uint32(), Depth: rng.Uint32(), Dims: uint8(1 + rng.IntN(3)),
			Layered: rng.IntN(2) == 0, Cube: rng.IntN(2) == 0, Linear: rng.IntN(2) == 0, Surface: rng.IntN(2) == 0, Format: ChannelFormat(rng.IntN(3)), Filter: rng.IntN(2) == 0,
			Normalized: rng.IntN(2) == 0, AsFloat: rng.IntN(2) == 0, SRGB: rng.IntN(2) == 0,
			Levels: uint8(rng.Uint32()), Blend: rng.IntN(2) == 0, Bias: rng.Float32(), Least: rng.Float32(), Most: rng.Float32()}
		for i := range x.Bits {
			x.Bits[i], x.Border[i] = uint8(rng.Uint32()), rng.Float32()
		}
		for i := range x.Address {
			x.Address[i] = AddressMode(rng.IntN(4))
		}
		got := DecodeTexture(x.Encode())
		if got == nil {
			t.Fatalf("%+v cannot be decoded", x)
		}
		if x.Magic = got.Magic; *got != x {
			t.Errorf("%+v becomes %+v", x, *got)
		}
	}
	if DecodeTexture(make([]byte, TextureSize)) != nil {
		t.Error("zeros are a texture")
	}
}

// TestLevels checks which levels a level of detail selects, and their places.
func TestLevels(t *testing.T) {
	x := &Texture{Data: 1 << 20, Width: 5, Height: 3, Depth: 2, Dims: 2, Layered: true, Pitch: 20, Slice: 60, Format: FloatChannel, Bits: [4]uint8{32}, Levels: 3, Most: 2, Bias: 0.25}
	last := x.Level(2)
	if last.Data != 1<<20+1024 || last.Width != 1 || last.Height != 1 || last.Depth != 2 || last.Slice != 4 || x.End() != last.Data+8 {
		t.Errorf("level 2 is %+v, and the last ends at %#x", last, x.End())
	}
	for _, c := range []struct {
		lod          float64
		level, share int
	}{{-9, 0, 0}, {0, 0, 64}, {0.25, 0, 128}, {0.76, 1, 3}, {1.75, 2, 0}, {7, 2, 0}, {math.NaN(), 0, 0}} {
		x.Blend = true
		if level, share := x.Between(c.lod); level != c.level || share != c.share {
			t.Errorf("%g between levels: %d and %d/256 of the next; want %d and %d", c.lod, level, share, c.level, c.share)
		}
		x.Blend = false
		near := c.level
		if c.share > 128 {
			near++
		}
		if level, share := x.Between(c.lod); level != near || share != 0 {
			t.Errorf("%g: level %d and %d/256 of the next; want %d alone", c.lod, level, share, near)
		}
	}
}

// TestCube checks that a direction selects the face and the coordinates of the guide's table.
func TestCube(t *testing.T) {
	for _, c := range []struct {
		at   [3]float64
		face int64
		s, t float64
	}{
		{[3]float64{2, 1, 0.5}, 0, (-0.25 + 1) / 2, (-0.5 + 1) / 2},
		{[3]float64{-2, 1, 0.5}, 1, (0.25 + 1) / 2, (-0.5 + 1) / 2},
		{[3]float64{1, 2, 0.5}, 2, (0.5 + 1) / 2, (0.25 + 1) / 2},
		{[3]float64{1, -2, 0.5}, 3, (0.5 + 1) / 2, (-0.25 + 1) / 2},
		{[3]float64{1, 0.5, 2}, 4, (0.5 + 1) / 2, (-0.25 + 1) / 2},
		{[3]float64{1, 0.5, -2}, 5, (-0.5 + 1) / 2, (-0.25 + 1) / 2},
	} {
		if face, s, u := FaceOf(c.at[0], c.at[1], c.at[2]); face != c.face || s != c.s || u != c.t {
			t.Errorf("%v: face %d at %g, %g; want %d at %g, %g", c.at, face, s, u, c.face, c.s, c.t)
		}
	}
}
