package warp

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Where the buffer of a texture test holds the coordinates of the lanes and what they got: 16 bytes each. The object is at 0.
const (
	texturePlaces  = 64
	textureResults = 1024
)

// textureKernel executes an instruction with the object in %rd1 and coordinates in %r1 to %r4, and stores %r5 to %r8.
func textureKernel(text string) string {
	return kernel(fmt.Sprintf(`
	ld.global.u64 %%rd1, [%%out];
	mul.wide.u32 %%rd2, %%tx, 16;
	add.u64 %%rd2, %%out, %%rd2;
	ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r4}, [%%rd2+%d];
	mov.b32 %%f1, %%r1;
	mov.b32 %%f2, %%r2;
	mov.b32 %%f3, %%r3;
	mov.b32 %%f4, %%r4;
	mov.u32 %%r5, 0;
	mov.u32 %%r6, 0;
	mov.u32 %%r7, 0;
	mov.u32 %%r8, 0;
	%s
	st.global.v4.u32 [%%rd2+%d], {%%r5, %%r6, %%r7, %%r8};`, texturePlaces, text, textureResults))
}

// textured is a rig with a texture and random elements.
type textured struct {
	*rig
	buffer, handle uint64
	data           []byte
}

func newTextured(t testing.TB, text string, x *descriptor.Texture, rng *rand.Rand) *textured {
	g := &textured{rig: newRig(t, textureKernel(text))}
	g.buffer = g.rig.buffer(1024)
	n := uint64(x.Texel())
	x.Pitch = devmem.RoundUp(n*uint64(x.Width), 32)
	x.Slice = x.Pitch * uint64(x.Height)
	size := x.End()
	x.Data = testAlloc(t, g.mem, size, devmem.ArrayAlloc, "array")
	g.data, _ = g.mem.Bytes(x.Data, size)
	for i := range g.data {
		g.data[i] = byte(rng.Uint32())
	}
	if x.Format == descriptor.FloatChannel { // numbers of about one size
		for i := 0; i+4 <= len(g.data); i += 4 {
			if x.Bits[0] == 32 {
				binary.LittleEndian.PutUint32(g.data[i:], math.Float32bits(rng.Float32()*2-1))
			} else {
				binary.LittleEndian.PutUint32(g.data[i:], uint32(isa.FloatToHalf(rng.Float32()))|uint32(isa.FloatToHalf(-rng.Float32()))<<16)
			}
		}
	}
	g.handle = testAlloc(t, g.mem, descriptor.TextureSize, devmem.ObjectAlloc, "texture object")
	object, _ := g.mem.Bytes(g.handle, descriptor.TextureSize)
	copy(object, x.Encode())
	head, _ := g.mem.Bytes(g.buffer, 8)
	binary.LittleEndian.PutUint64(head, g.handle)
	return g
}

// value returns a channel of an element by the manual: a number, or an integer as a register holds it.
func (g *textured) value(x *descriptor.Texture, at [3]int64, c int) (*big.Rat, uint32) {
	n := int(x.Bits[0]) / 8
	if x.Bits[c] == 0 {
		one := uint32(0)
		if c == 3 {
			one = 1
		}
		return big.NewRat(int64(one), 1), one
	}
	off := at[0]*int64(x.Texel()) + at[1]*int64(x.Pitch) + at[2]*int64(x.Slice) + int64(c*n)
	raw := devmem.Uint(g.data[off:], uint64(n))
	number := func(f float64) *big.Rat { return new(big.Rat).SetFloat64(f) }
	switch {
	case x.Format == descriptor.FloatChannel && n == 2:
		return number(float64(isa.HalfToFloat(uint16(raw)))), 0
	case x.Format == descriptor.FloatChannel:
		return number(float64(math.Float32frombits(uint32(raw)))), 0
	case x.Format == descriptor.UnsignedChannel:
		if n == 4 {
			return nil, uint32(raw)
		}
		return number(float64(float32(float64(raw) / float64(map[int]int{1: 255, 2: 65535}[n])))), uint32(raw)
	case n == 1:
		return number(float64(float32(max(float64(int8(raw))/127, -1)))), uint32(int8(raw))
	case n == 2:
		return number(float64(float32(max(float64(int16(raw))/32767, -1)))), uint32(int16(raw))
	}
	return nil, uint32(raw)
}

// manualCoordinate returns a coordinate in elements, after the changes that the guide's "Texture Fetching" makes before
// the look-up.
func manualCoordinate(v float32, n int64, mode descriptor.AddressMode, normalized bool) *big.Rat {
	x := new(big.Rat).SetFloat64(float64(v))
	if !normalized {
		return x
	}
	floor, frac := floorOf(x)
	switch mode {
	case descriptor.AddressWrap:
		x = frac
	case descriptor.AddressMirror:
		if x = frac; new(big.Int).And(floor, big.NewInt(1)).Sign() != 0 {
			x = new(big.Rat).Sub(big.NewRat(1, 1), frac)
		}
	}
	return x.Mul(x, big.NewRat(n, 1))
}

func floorOf(x *big.Rat) (*big.Int, *big.Rat) {
	whole := new(big.Int).Div(x.Num(), x.Denom()) // Euclidean: rounds down, the denominator being positive
	return whole, new(big.Rat).Sub(x, new(big.Rat).SetInt(whole))
}

// lookUp returns channel c of an element inside the texture, or of the border.
func (g *textured) lookUp(x *descriptor.Texture, dims int, at [3]int64, c int) (*big.Rat, uint32) {
	for d := range dims {
		n := [3]int64{int64(x.Width), int64(x.Height), int64(x.Depth)}[d]
		if at[d] >= 0 && at[d] < n {
			continue
		}
		switch mode := x.Address[d]; {
		case x.Linear:
			return new(big.Rat), 0
		case mode == descriptor.AddressBorder:
			b := float64(x.Border[c])
			return new(big.Rat).SetFloat64(b), uint32(int32(max(b, float64(x.Format)*-1*b)))
		case mode == descriptor.AddressWrap && x.Normalized:
			for ; at[d] < 0; at[d] += n {
			}
			for ; at[d] >= n; at[d] -= n {
			}
		case at[d] < 0:
			at[d] = 0
		default:
			at[d] = n - 1
		}
	}
	return g.value(x, at, c)
}

// expect computes the result of a fetch exactly.
func (g *textured) expect(x *descriptor.Texture, dims int, places [3]*big.Rat, layer int64, filter bool) (out [4]uint32) {
	var first [3]int64
	var share [3]*big.Rat
	half := big.NewRat(1, 2)
	for d := range dims {
		p := new(big.Rat).Set(places[d])
		if filter {
			p.Sub(p, half)
		}
		floor, frac := floorOf(p)
		first[d] = floor.Int64()
		// 9 bits, 8 of them of the fraction: the nearest such number.
		scaled := frac.Mul(frac, big.NewRat(256, 1))
		near, _ := floorOf(scaled.Add(scaled, half))
		share[d] = new(big.Rat).SetFrac(near, big.NewInt(256))
	}
	if dims < 3 {
		first[2] = layer
	}
	for c := range out {
		if !filter {
			v, raw := g.lookUp(x, dims, first, c)
			if out[c] = raw; x.IsFloat() {
				f, _ := v.Float32()
				out[c] = math.Float32bits(f)
			}
			continue
		}
		sum := new(big.Rat)
		for corner := range 1 << dims {
			at, weight := first, big.NewRat(1, 1)
			for d := range dims {
				if corner>>d&1 != 0 {
					at[d]++
					weight.Mul(weight, share[d])
				} else {
					weight.Mul(weight, new(big.Rat).Sub(big.NewRat(1, 1), share[d]))
				}
			}
			v, _ := g.lookUp(x, dims, at, c)
			sum.Add(sum, weight.Mul(weight, v))
		}
		f, _ := sum.Float32()
		out[c] = math.Float32bits(f)
	}
	return out
}

// randomTexture returns a random texture of dims dimensions.
func randomTexture(rng *rand.Rand, dims int) *descriptor.Texture {
	for {
		x := &descriptor.Texture{Dims: uint8(dims), Width: uint32(1 + rng.IntN(9)), Height: 1, Depth: 1, Format: descriptor.ChannelFormat(rng.IntN(3)),
			Filter: rng.IntN(2) == 0, Normalized: rng.IntN(2) == 0, AsFloat: rng.IntN(2) == 0, Border: [4]float32{0.5, 7, 0, 1}}
		if dims > 1 {
			x.Height = uint32(1 + rng.IntN(9))
		}
		if dims > 2 {
			x.Depth = uint32(1 + rng.IntN(5))
		} else if rng.IntN(4) == 0 {
			x.Layered, x.Depth = true, uint32(1+rng.IntN(4))
		}
		width, channels := uint8(8<<rng.IntN(3)), 1<<rng.IntN(3)
		for c := range channels {
			x.Bits[c] = width
		}
		for d := range x.Address {
			x.Address[d] = descriptor.AddressMode(rng.IntN(4))
		}
		if x.Check() == nil {
			return x
		}
	}
}

// TestTextureFetch compares random fetches of random textures with the guide's formulas in exact arithmetic.
func TestTextureFetch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 240 {
		dims := 1 + n%3
		x := randomTexture(rng, dims)
		whole := n%7 == 0
		if whole && dims == 1 && n%2 == 0 {
			x.Linear, x.Layered, x.Depth = true, false, 1
		}
		geometry, places := fmt.Sprintf("%dd", dims), []string{"%f1", "%f2", "%f3"}[:dims]
		typ := "f32"
		if whole {
			typ, places = "s32", []string{"%r1", "%r2", "%r3"}[:dims]
			x.Normalized = false
		}
		if x.Layered {
			geometry, places = "a"+geometry, append([]string{"%r4"}, places...)
		}
		if len(places) == 3 {
			places = append(places, places[2])
		}
		level := []string{"", ".level", ".base"}[rng.IntN(3)]
		text := fmt.Sprintf("tex%s.%s.v4.u32.%s {%%r5, %%r6, %%r7, %%r8}, [%%rd1, {%s}]", level, geometry, typ, strings.Join(places, ", "))
		if level == ".level" {
			text += ", 0f00000000"
			if whole {
				text = strings.Replace(text, "0f00000000", "0", 1)
			}
		}
		if n%5 == 0 { // the texels are resident
			text = strings.Replace(text, "}", "}|%p1", 1) + ";\n\t@!%p1 not.b32 %r5, %r5"
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			g := newTextured(t, text+";", x, rng)
			head, _ := g.mem.Bytes(g.buffer, 2048)
			var want [32][4]uint32
			for lane := range want {
				var at [3]*big.Rat
				for d := range dims {
					size := float32(x.Size(d))
					v := (rng.Float32()*4 - 1.5) * size
					if rng.IntN(3) == 0 {
						v = float32(math.Round(float64(v*2)) / 2) // the middle or the edge of an element
					}
					if x.Normalized {
						v /= size
					}
					mode := x.Address[d]
					at[d] = manualCoordinate(v, x.Size(d), mode, x.Normalized)
					bits := math.Float32bits(v)
					if whole {
						bits = uint32(int32(math.Floor(float64(v))))
						at[d] = big.NewRat(int64(int32(bits)), 1)
					}
					binary.LittleEndian.PutUint32(head[texturePlaces+16*lane+4*d:], bits)
				}
				layer := int64(0)
				if x.Layered {
					given := rng.IntN(int(x.Depth) + 2)
					binary.LittleEndian.PutUint32(head[texturePlaces+16*lane+12:], uint32(given))
					layer = min(int64(given), int64(x.Depth)-1)
				}
				want[lane] = g.expect(x, dims, at, layer, x.Filter && !whole)
			}
			g.mustRun(launch{out: g.buffer})
			for lane := range want {
				for c := range 4 {
					if got := binary.LittleEndian.Uint32(head[textureResults+16*lane+4*c:]); got != want[lane][c] {
						t.Fatalf("%s of %+v: lane %d at %v, channel %d: %#x, want %#x", text, x, lane, head[texturePlaces+16*lane:][:16], c, got, want[lane][c])
					}
				}
			}
		})
	}
}

func floatTexture(dims uint8, w, h, d uint32) *descriptor.Texture {
	return &descriptor.Texture{Dims: dims, Width: w, Height: h, Depth: d, Format: descriptor.FloatChannel, Bits: [4]uint8{32}, Address: [3]descriptor.AddressMode{descriptor.AddressClamp, descriptor.AddressClamp, descriptor.AddressClamp}}
}

// lanePlaces gives each lane coordinates.
func (g *textured) lanePlaces(of func(lane int) [4]uint32) []byte {
	head, _ := g.mem.Bytes(g.buffer, 2048)
	for lane := range 32 {
		for k, v := range of(lane) {
			binary.LittleEndian.PutUint32(head[texturePlaces+16*lane+4*k:], v)
		}
	}
	return head
}

// TestTextureOthers checks gathers, cubes and queries.
func TestTextureOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	word := func(g *textured, x *descriptor.Texture, i, j, k int) uint32 {
		return binary.LittleEndian.Uint32(g.data[4*i+j*int(x.Pitch)+k*int(x.Slice):])
	}
	f := math.Float32bits
	t.Run("gather", func(t *testing.T) {
		x := floatTexture(2, 9, 5, 1)
		g := newTextured(t, "tld4.r.2d.v4.f32.f32 {%f5, %f6, %f7, %f8}|%p1, [%rd1, {%f1, %f2}];\nmov.b32 %r5, %f5;\n@!%p1 not.b32 %r5, %r5;\nmov.b32 %r6, %f6;\nmov.b32 %r7, %f7;\nmov.b32 %r8, %f8;", x, rng)
		head := g.lanePlaces(func(lane int) [4]uint32 { return [4]uint32{f(float32(lane%8) + 0.75), f(float32(lane/8) + 1.25)} })
		g.mustRun(launch{out: g.buffer})
		for lane := range 32 {
			i, j := lane%8, lane/8
			want := [4]uint32{word(g, x, i, j+1, 0), word(g, x, i+1, j+1, 0), word(g, x, i+1, j, 0), word(g, x, i, j, 0)}
			for c, v := range want {
				if got := binary.LittleEndian.Uint32(head[textureResults+16*lane+4*c:]); got != v {
					t.Fatalf("lane %d, element %d: %#x, want %#x", lane, c, got, v)
				}
			}
		}
	})
	t.Run("cube", func(t *testing.T) {
		x := floatTexture(2, 4, 4, 12)
		x.Cube, x.Layered, x.Normalized = true, true, true
		g := newTextured(t, "tex.acube.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r4, %f1, %f2, %f3}];", x, rng)
		head := g.lanePlaces(func(lane int) [4]uint32 { return [4]uint32{f(0.3), f(-1), f(0.6), 5} })
		g.mustRun(launch{out: g.buffer})
		// Face 3, at s = 0.65 and t = 0.2 of the second cube, the last one.
		if got, want := binary.LittleEndian.Uint32(head[textureResults:]), word(g, x, 2, 0, 9); got != want {
			t.Errorf("%#x, want %#x", got, want)
		}
	})
	t.Run("one row", func(t *testing.T) { // an array of height 1 serves as one of one dimension
		x := floatTexture(2, 32, 1, 1)
		g := newTextured(t, "tex.1d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1}];", x, rng)
		head := g.lanePlaces(func(lane int) [4]uint32 { return [4]uint32{f(float32(lane))} })
		g.mustRun(launch{out: g.buffer})
		for lane := range 32 {
			if got, want := binary.LittleEndian.Uint32(head[textureResults+16*lane:]), word(g, x, lane, 0, 0); got != want {
				t.Errorf("lane %d: %#x, want %#x", lane, got, want)
			}
		}
	})
	for name, text := range map[string]string{
		"levels":    "tex.level.2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}], %f3;",
		"gradients": "tex.grad.2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}], {%f4, 0f00000000}, {0f00000000, 0f3C000000};", // 1/128
		"level 0":   "tex.base.2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];",
		"between":   "tex.level.2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%rd1, {%f1, %f2}], %f3;\nmov.b32 %r5, %f5;",
	} {
		t.Run(name, func(t *testing.T) {
			x := floatTexture(2, 16, 8, 1)
			x.Normalized, x.Levels, x.Most, x.Blend = true, 3, 9, name == "between"
			g := newTextured(t, text, x, rng)
			head := g.lanePlaces(func(lane int) [4]uint32 {
				level := float32(lane % 4)
				if x.Blend {
					level = min(level, 1) + 0.25
				}
				return [4]uint32{f(float32(lane) / 32), f(float32(lane%5) / 5), f(level), f(float32(int(1)<<(lane%4)) / 16)}
			})
			g.mustRun(launch{out: g.buffer})
			for lane := range 32 {
				at := func(l int) float32 {
					v := x.Level(l)
					off := int(v.Data-x.Data) + 4*(lane*int(v.Width)/32) + int(v.Pitch)*(lane%5*int(v.Height)/5)
					return math.Float32frombits(binary.LittleEndian.Uint32(g.data[off:]))
				}
				want := at(min(lane%4, 2))
				switch l := min(lane%4, 1); name {
				case "level 0":
					want = at(0)
				case "between":
					want = float32(float64(at(l)) + 0.25*(float64(at(l+1))-float64(at(l))))
				}
				if got := math.Float32frombits(binary.LittleEndian.Uint32(head[textureResults+16*lane:])); got != want {
					t.Errorf("lane %d: %g, want %g", lane, got, want)
				}
			}
		})
	}
	t.Run("queries", func(t *testing.T) {
		x := floatTexture(2, 9, 5, 3)
		x.Layered = true
		g := newTextured(t, "txq.width.b32 %r5, [%rd1];\ntxq.height.b32 %r6, [%rd1];\ntxq.array_size.b32 %r7, [%rd1];\ntxq.depth.b32 %r8, [%rd1];", x, rng)
		head := g.lanePlaces(func(int) [4]uint32 { return [4]uint32{} })
		g.mustRun(launch{out: g.buffer})
		for c, v := range []uint32{9, 5, 3, 0} {
			if got := binary.LittleEndian.Uint32(head[textureResults+4*c:]); got != v {
				t.Errorf("query %d: %d, want %d", c, got, v)
			}
		}
	})
}

// TestSurface checks loads, stores and reductions, inside and outside the surface.
func TestSurface(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		name, text string
		bits       uint8
		format     descriptor.ChannelFormat
		channels   int
		step       int // what the x coordinate counts, in bytes
		outside    bool
		// expect gives what an element becomes, and what the lane gets.
		expect func(old, lane uint32) (element, got uint32)
	}{
		{"load", "suld.b.2d.b32.trap {%r5}, [%rd1, {%r1, %r2}];", 32, descriptor.UnsignedChannel, 1, 4, false, func(old, _ uint32) (uint32, uint32) { return old, old }},
		{"load zero", "suld.b.2d.b32.zero {%r5}, [%rd1, {%r1, %r2}];", 32, descriptor.UnsignedChannel, 1, 4, true, func(old, _ uint32) (uint32, uint32) { return old, old }},
		{"store", "sust.b.2d.b32.zero [%rd1, {%r1, %r2}], {%r3};", 32, descriptor.UnsignedChannel, 1, 4, true, func(_, lane uint32) (uint32, uint32) { return 1000 * lane, 0 }},
		{"bytes", "cvt.u16.u32 %rs1, %r3;\nsust.b.2d.v4.b8.trap [%rd1, {%r1, %r2}], {%rs1, %rs1, %rs1, %rs1};", 8, descriptor.UnsignedChannel, 4, 4, false,
			func(_, lane uint32) (uint32, uint32) { return 0x01010101 * (1000 * lane & 0xff), 0 }},
		{"formatted", "mul.lo.u32 %r3, %r3, 100;\nsust.p.2d.v2.b32.zero [%rd1, {%r1, %r2}], {%r3, %r1};", 16, descriptor.UnsignedChannel, 2, 1, true,
			func(_, lane uint32) (uint32, uint32) { return min(100*min(1000*lane, 20000), 65535) | lane%8<<16, 0 }},
		{"add", "sured.b.add.2d.u32.trap [%rd1, {%r1, %r2}], %r3;", 32, descriptor.UnsignedChannel, 1, 4, false, func(old, lane uint32) (uint32, uint32) { return old + 1000*lane, 0 }},
		{"min", "sured.b.min.2d.s32.trap [%rd1, {%r1, %r2}], %r3;", 32, descriptor.SignedChannel, 1, 4, false,
			func(old, lane uint32) (uint32, uint32) { return uint32(min(int32(old), int32(1000*lane))), 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &descriptor.Texture{Dims: 2, Width: 8, Height: 4, Depth: 1, Surface: true, Format: c.format}
			for i := range c.channels {
				x.Bits[i] = c.bits
			}
			g := newTextured(t, c.text, x, rng)
			before := append([]byte(nil), g.data...)
			off := uint32(0)
			if c.outside { // the first and the last row lie outside
				off = 1
			}
			head := g.lanePlaces(func(lane int) [4]uint32 {
				return [4]uint32{uint32(lane % 8 * c.step), uint32(lane/8)*2 - 3*off, min(1000*uint32(lane), 20000)}
			})
			if !c.outside {
				head = g.lanePlaces(func(lane int) [4]uint32 {
					return [4]uint32{uint32(lane % 8 * c.step), uint32(lane / 8), 1000 * uint32(lane)}
				})
			} else if c.name == "store" {
				head = g.lanePlaces(func(lane int) [4]uint32 {
					return [4]uint32{uint32(lane % 8 * c.step), uint32(lane/8)*2 - 3, 1000 * uint32(lane)}
				})
			}
			g.mustRun(launch{out: g.buffer})
			for lane := range uint32(32) {
				row := int(lane / 8)
				if c.outside {
					row = row*2 - 3
				}
				got := binary.LittleEndian.Uint32(head[textureResults+16*lane:])
				if row < 0 || row > 3 {
					if got != 0 {
						t.Errorf("lane %d, outside, got %#x", lane, got)
					}
					continue
				}
				at := row*int(x.Pitch) + int(lane%8)*4
				is, want := binary.LittleEndian.Uint32(g.data[at:]), uint32(0)
				wantElement, want := c.expect(binary.LittleEndian.Uint32(before[at:]), lane)
				if is != wantElement || got != want {
					t.Errorf("lane %d: the element is %#x and the result %#x, want %#x and %#x", lane, is, got, wantElement, want)
				}
				binary.LittleEndian.PutUint32(before[at:], is)
			}
			if string(before) != string(g.data) {
				t.Error("other elements have changed")
			}
		})
	}
}

// TestTextureFaults checks invalid objects and places.
func TestTextureFaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	const fetch, load = "tex.2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];", "suld.b.2d.b32.trap {%r5}, [%rd1, {%r1, %r2}];"
	for _, c := range []struct {
		name, text string
		change     func(g *textured, x *descriptor.Texture)
		places     [4]uint32
		kind       engine.FaultKind
		want       string
	}{
		{"none", fetch, func(g *textured, _ *descriptor.Texture) { g.handle += 8 }, [4]uint32{}, engine.TextureMisuse, "which is no texture object"},
		{"dimensions", strings.ReplaceAll(fetch, "2d", "1d"), nil, [4]uint32{}, engine.TextureMisuse, "is given the object of a texture of two dimensions"},
		{"kind", load, nil, [4]uint32{}, engine.TextureMisuse, "is given the object of a texture of two dimensions"},
		{"destroyed", fetch, func(g *textured, _ *descriptor.Texture) { _, _ = g.mem.Free(g.handle) }, [4]uint32{}, engine.TextureMisuse, "a texture object that was destroyed"},
		{"freed", fetch, func(g *textured, x *descriptor.Texture) { _, _ = g.mem.Free(x.Data) }, [4]uint32{}, engine.UseAfterFree, "reads 4 bytes at"},
		{"outside", load, func(_ *textured, x *descriptor.Texture) { x.Surface = true }, [4]uint32{4, 5}, engine.OutOfBounds, "suld.b.2d.b32.trap at coordinates x = byte 4, y = 5, outside a surface of two dimensions: 8 x 5 x 1 elements of 4 bytes"},
		{"negative", load, func(_ *textured, x *descriptor.Texture) { x.Surface = true }, [4]uint32{1<<32 - 4, 0}, engine.OutOfBounds, "x = byte -4, y = 0"},
		{"misaligned", load, func(_ *textured, x *descriptor.Texture) { x.Surface = true }, [4]uint32{2, 0}, engine.Misaligned, "reads 4 bytes at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := floatTexture(2, 8, 5, 1)
			g := newTextured(t, strings.ReplaceAll(c.text, "{%f1, %f2}]", map[bool]string{true: "{%f1}]", false: "{%f1, %f2}]"}[c.name == "dimensions"]), x, rng)
			if c.change != nil {
				c.change(g, x)
			}
			if object, err := g.mem.Bytes(g.handle, descriptor.TextureSize-8); err == nil && c.name != "none" {
				copy(object, x.Encode())
			}
			head := g.lanePlaces(func(int) [4]uint32 { return c.places })
			binary.LittleEndian.PutUint64(head, g.handle)
			g.run(launch{out: g.buffer}).wantFault(t, c.kind, c.want)
		})
	}
}

// TestTextureEvents checks that exactly the elements with a weight are read.
func TestTextureEvents(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := floatTexture(2, 8, 8, 1)
	x.Filter = true
	g := newTextured(t, "tex.2d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];", x, rng)
	// Lane 0 in the middle of an element, lane 1 between two of a row, lane 2 between four, lane 3 at a corner, all of it element 0.
	places := [4][2]float32{{2.5, 3.5}, {2.75, 3.5}, {2.75, 3.25}, {-3, 0}}
	g.lanePlaces(func(lane int) [4]uint32 {
		p := places[min(lane, 3)]
		return [4]uint32{math.Float32bits(p[0]), math.Float32bits(p[1])}
	})
	read := map[int]map[int64]bool{}
	g.mustRun(launch{out: g.buffer, set: func(l *engine.Launch) {
		l.Sink = eachEvent(func(b *event.Batch, e *event.Event) {
			if e.Kind == event.KernelBegin && !b.Launches[e.Side].NonCoherent {
				t.Error("the launch does not tell of the fetches")
			}
			if e.Flags&event.FlagTexture == 0 {
				return
			}
			if e.Kind != event.Load || e.Size != 4 || e.Flags&event.FlagNonCoherent == 0 {
				t.Errorf("event %+v", e)
			}
			for lane := range 4 {
				if e.Mask>>lane&1 != 0 {
					if read[lane] == nil {
						read[lane] = map[int64]bool{}
					}
					read[lane][int64(b.AddrOf(e, lane)-x.Data)] = true
				}
			}
		})
	}})
	row := int64(x.Pitch)
	for lane, want := range [][]int64{{8 + 3*row}, {8 + 3*row, 12 + 3*row}, {8 + 2*row, 12 + 2*row, 8 + 3*row, 12 + 3*row}, {0}} {
		for _, at := range want {
			if !read[lane][at] {
				t.Errorf("lane %d does not read byte %d", lane, at)
			}
		}
		if len(read[lane]) != len(want) {
			t.Errorf("lane %d reads %v, want %v", lane, read[lane], want)
		}
	}
}
