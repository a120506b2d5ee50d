package descriptor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/isa"
)

// Texture describes a texture or surface object: the location and format of its elements, and how they are read (CUDA
// Runtime API, "Texture Object Management"). The object is the address of the encoded Texture in device memory.
//
// An array consists of rows, like pitched memory. The element at (x, y, z) begins at Data + x*Texel() + y*Pitch +
// z*Slice; in a layered array z is the layer, and in a cube the face.
type Texture struct {
	Magic                uint64
	Data, Pitch, Slice   uint64
	Width, Height, Depth uint32 // in elements, each at least 1; Depth counts layers and faces as well
	Dims                 uint8  // 1 to 3
	Layered, Cube        bool
	Linear               bool // linear memory: 1 dimension, elements outside are 0
	Surface              bool // for loads and stores, not for fetches
	Format               ChannelFormat
	Bits                 [4]uint8 // of each channel; 0: no channel
	Address              [3]AddressMode
	Filter               bool // linear filtering
	Normalized           bool // coordinates are normalized
	AsFloat              bool // integers are read as fractions of their range
	SRGB                 bool
	Border               [4]float32
	Levels               uint8   // of a mipmapped array; 0 is equivalent to 1; the levels are stored one after the other: see Level
	Blend                bool    // linear filtering between two levels
	Bias, Least, Most    float32 // Bias is added to a level of detail, which is then clamped to [Least, Most]
}

// ChannelFormat is the format of channels (cudaChannelFormatKind).
type ChannelFormat uint8

// The formats.
const (
	SignedChannel ChannelFormat = iota
	UnsignedChannel
	FloatChannel
)

// AddressMode says what replaces elements outside (cudaTextureAddressMode).
type AddressMode uint8

// The address modes.
const (
	AddressWrap AddressMode = iota
	AddressClamp
	AddressMirror
	AddressBorder
)

// TextureSize is the size of an encoded Texture in bytes.
const TextureSize = 128

const textureMagic = 0x7465787475726521

// Encode returns the bytes that a texture or surface object points to.
func (t *Texture) Encode() []byte {
	t.Magic = textureMagic
	b, err := binary.Append(nil, binary.LittleEndian, t)
	if err != nil || len(b) > TextureSize {
		panic(fmt.Sprintf("BUG: a texture of %d bytes: %v", len(b), err))
	}
	return append(b, make([]byte, TextureSize-len(b))...)
}

// DecodeTexture decodes a texture; nil if the bytes are not one.
func DecodeTexture(b []byte) *Texture {
	t := &Texture{}
	if binary.Read(bytes.NewReader(b), binary.LittleEndian, t) != nil || t.Magic != textureMagic {
		return nil
	}
	return t
}

// Check says what violates the rules of cudaCreateTextureObject or is not supported.
func (t *Texture) Check() error {
	channels := 0
	for channels < 4 && t.Bits[channels] != 0 {
		channels++
	}
	width := t.Bits[0]
	for i, n := range t.Bits {
		if i < channels && n != width || i >= channels && n != 0 {
			return fmt.Errorf("channels of %d bits: all must have the same number", t.Bits)
		}
	}
	switch {
	case channels == 0 || channels == 3:
		return fmt.Errorf("%d channels: there must be 1, 2 or 4", channels)
	case t.Format > FloatChannel || width != 8 && width != 16 && width != 32 || t.Format == FloatChannel && width == 8:
		return fmt.Errorf("channels of %d bits and format %d are not supported", width, t.Format)
	case t.Data%uint64(t.Texel()) != 0 || t.Pitch%uint64(t.Texel()) != 0:
		return fmt.Errorf("the address %#x or the pitch %d is not a multiple of the size of an element, %d bytes", t.Data, t.Pitch, t.Texel())
	case t.Filter && t.Format != FloatChannel && !t.AsFloat:
		return fmt.Errorf("linear filtering needs elements that are read as floating-point numbers (cudaReadModeNormalizedFloat)")
	case t.AsFloat && t.Format != FloatChannel && width == 32:
		return fmt.Errorf("integers of 32 bits cannot be read as normalized floating-point numbers")
	}
	if t.Levels > MaxLevels {
		return fmt.Errorf("%d levels: there are at most %d", t.Levels, MaxLevels)
	}
	for _, m := range t.Address {
		if m > AddressBorder {
			return fmt.Errorf("address mode %d does not exist", m)
		}
	}
	return nil
}

// MaxLevels is the largest number of levels of an array: those for 2^20 elements, down to one.
const MaxLevels = 21

// levelAlign is the alignment of a level's address, relative to the first level. It must agree with array.h.
const levelAlign = 512

// Level returns level l of a mipmapped texture as a texture. In each dimension a level has half the elements of the
// previous one, at least one, and the same number of layers and faces.
func (t *Texture) Level(l int) *Texture {
	if l == 0 {
		return t
	}
	level, half := *t, func(n *uint32) { *n = max(*n/2, 1) }
	for range l {
		depth := uint64(level.Depth)
		level.Data += (level.Slice*depth + levelAlign - 1) &^ (levelAlign - 1)
		half(&level.Width)
		half(&level.Height)
		if t.Dims == 3 {
			half(&level.Depth)
		}
		level.Pitch = uint64(level.Width) * uint64(t.Texel())
		level.Slice = level.Pitch * uint64(level.Height)
	}
	return &level
}

// End returns the offset of the end of the last level.
func (t *Texture) End() uint64 {
	last := t.Level(max(int(t.Levels), 1) - 1)
	return last.Data + last.Slice*uint64(last.Depth)
}

// Between returns the level for a level of detail, and with linear filtering between levels the weight of the next one,
// share/256. The rules are those of OpenGL; the CUDA C++ Programming Guide does not give any.
func (t *Texture) Between(lod float64) (level, share int) {
	lod += float64(t.Bias)
	lod = min(max(lod, float64(t.Least)), float64(t.Most))
	if lod != lod {
		lod = 0
	}
	lod = min(max(lod, 0), float64(t.Levels)-1)
	if !t.Blend {
		return max(int(math.Ceil(lod+0.5))-1, 0), 0
	}
	level = int(lod)
	return level, int((lod-float64(level))*256 + 0.5)
}

// Texel returns the size of an element in bytes.
func (t *Texture) Texel() int {
	n := 0
	for _, b := range t.Bits {
		n += int(b) / 8
	}
	return n
}

// Size returns the number of elements along a dimension.
func (t *Texture) Size(d int) int64 { return int64([3]uint32{t.Width, t.Height, t.Depth}[d]) }

// Axis is the meaning of a coordinate along a dimension: element at or, with linear filtering, a value between it and
// the next element, whose weight is share/256 (CUDA C++ Programming Guide, "Linear Filtering").
type Axis struct {
	At    int64
	Share int
}

// Axis returns the meaning of coordinate x in dimension d. near turns linear filtering off.
func (t *Texture) Axis(d int, x float64, near bool) Axis {
	n := float64(t.Size(d))
	if t.Normalized {
		switch t.mode(d) {
		case AddressWrap:
			x -= math.Floor(x)
		case AddressMirror:
			whole := math.Floor(x)
			if x -= whole; math.Mod(whole, 2) != 0 {
				x = 1 - x
			}
		}
		x *= n
	}
	if x != x {
		x = 0
	}
	x = min(max(x, -(1<<40)), 1<<40) // larger than all dimensions
	if near {
		return Axis{At: int64(math.Floor(x))}
	}
	x -= 0.5
	a := Axis{At: int64(math.Floor(x))}
	a.Share = int(math.Floor((x-math.Floor(x))*256 + 0.5))
	return a
}

// mode returns the address mode of a dimension. Wrapping and mirroring apply to normalized coordinates, and mean
// clamping otherwise.
func (t *Texture) mode(d int) AddressMode {
	m := t.Address[d]
	if !t.Normalized && (m == AddressWrap || m == AddressMirror) {
		return AddressClamp
	}
	return m
}

// Wrap returns the element that replaces element i along dimension d; false: the border.
func (t *Texture) Wrap(d int, i int64) (int64, bool) {
	n := t.Size(d)
	if i >= 0 && i < n {
		return i, true
	}
	switch {
	case t.Linear || t.mode(d) == AddressBorder:
		return 0, false
	case t.mode(d) == AddressWrap:
		return (i%n + n) % n, true
	}
	return min(max(i, 0), n-1), true
}

// IsFloat reports whether elements are read as floating-point numbers.
func (t *Texture) IsFloat() bool { return t.Format == FloatChannel || t.AsFloat }

// ChannelOf returns channel c of the element in data as it appears in a register: the bits of a float32 or a 32-bit
// integer.
func (t *Texture) ChannelOf(data []byte, c int) uint32 {
	n := uint64(t.Bits[0]) / 8
	if t.Bits[c] == 0 {
		switch {
		case c < 3:
			return 0
		case t.IsFloat():
			return math.Float32bits(1)
		}
		return 1
	}
	raw := uint32(devmem.Uint(data[uint64(c)*n:], n))
	bits := t.Bits[0]
	switch {
	case t.Format == FloatChannel && bits == 16:
		return math.Float32bits(isa.HalfToFloat(uint16(raw)))
	case t.Format == FloatChannel:
		return raw
	case t.Format == UnsignedChannel && !t.AsFloat:
		return raw
	case t.Format == UnsignedChannel:
		v := float64(raw) / float64(uint32(1)<<bits-1)
		if t.SRGB && c < 3 && bits == 8 {
			v = linearOf(v)
		}
		return math.Float32bits(float32(v))
	}
	signed := int32(raw<<(32-bits)) >> (32 - bits)
	if !t.AsFloat {
		return uint32(signed)
	}
	return math.Float32bits(float32(max(float64(signed)/float64(int32(1)<<(bits-1)-1), -1)))
}

// linearOf converts a value from sRGB to linear (IEC 61966-2-1).
func linearOf(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// BorderOf returns channel c of the value for elements outside.
func (t *Texture) BorderOf(c int) uint32 {
	switch {
	case t.Linear:
		return 0
	case t.IsFloat():
		return math.Float32bits(t.Border[c])
	case t.Format == SignedChannel:
		return uint32(int32(min(max(t.Border[c], math.MinInt32), math.MaxInt32)))
	}
	return uint32(min(max(float64(t.Border[c]), 0), math.MaxUint32))
}

// FaceOf returns the face of a cube that a direction intersects, and the point there in coordinates from 0 to 1 (CUDA
// C++ Programming Guide, "Cubemap Textures").
func FaceOf(x, y, z float64) (face int64, s, t float64) {
	switch ax, ay, az := math.Abs(x), math.Abs(y), math.Abs(z); {
	case ax >= ay && ax >= az:
		face = sign(x)
	case ay >= az:
		face = 2 + sign(y)
	default:
		face = 4 + sign(z)
	}
	m, s, t := onFace(face, x, y, z)
	if m == 0 {
		return face, 0.5, 0.5
	}
	return face, (s/m + 1) / 2, (t/m + 1) / 2
}

// sign returns 1 for negative numbers, otherwise 0.
func sign(x float64) int64 {
	if x < 0 {
		return 1
	}
	return 0
}

// onFace converts a direction to the coordinates of a face: m is the component towards its middle, and s and t those
// towards its edges.
func onFace(face int64, x, y, z float64) (m, s, t float64) {
	switch face {
	case 0:
		return x, -z, -y
	case 1:
		return -x, z, -y
	case 2:
		return y, x, z
	case 3:
		return -y, x, -z
	case 4:
		return z, x, -y
	}
	return -z, -x, -y
}

// FaceGradient returns the change of the point on a face when a direction changes by d.
func FaceGradient(face int64, at, d [3]float64) (s, t float64) {
	m, u, v := onFace(face, at[0], at[1], at[2])
	dm, du, dv := onFace(face, d[0], d[1], d[2])
	if m == 0 {
		return 0, 0
	}
	return (du*m - u*dm) / (2 * m * m), (dv*m - v*dm) / (2 * m * m)
}

// ToChannel converts the 32 bits of a formatted store to channel c. Integers saturate.
func (t *Texture) ToChannel(v uint32) uint64 {
	bits := t.Bits[0]
	switch {
	case t.Format == FloatChannel && bits == 16:
		return uint64(isa.FloatToHalf(math.Float32frombits(v)))
	case bits == 32:
		return uint64(v)
	case t.Format == UnsignedChannel:
		return uint64(min(v, 1<<bits-1))
	}
	high := int32(1)<<(bits-1) - 1
	return uint64(uint32(min(max(int32(v), -high-1), high))) & (1<<bits - 1)
}

// HasDims reports whether an instruction for dims dimensions can access the texture. A texture of more dimensions
// qualifies if it has only one row, or slice, like arrays that are allocated with a height of 1.
func (t *Texture) HasDims(dims int) bool {
	return dims == int(t.Dims) || dims < int(t.Dims) && t.Depth == 1 && (dims > 1 || t.Height == 1)
}

// String returns the kind of object.
func (t *Texture) String() string {
	s := [...]string{"one dimension", "two dimensions", "three dimensions"}[t.Dims-1]
	what := "a texture of "
	if t.Surface {
		what = "a surface of "
	}
	if t.Cube {
		s = "a cube"
	}
	if t.Layered {
		s += " with layers"
	}
	return what + s
}

// Query answers txq and suq.
func (t *Texture) Query(what string) uint32 {
	switch what {
	case "width":
		return t.Width
	case "height":
		return t.Height
	case "depth":
		if t.Dims == 3 {
			return t.Depth
		}
		return 0
	case "array_size":
		if t.Layered {
			return t.Depth
		}
		return 0
	case "num_mipmap_levels":
		return max(uint32(t.Levels), 1)
	case "num_samples":
		return 1
	case "normalized_coords":
		if t.Normalized {
			return 1
		}
		return 0
	}
	panic("BUG: a query for " + what)
}
