package descriptor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/isa"
)

// Texture is what a texture or surface object stands for: where its elements lie, of what format they are, and how they are read
// (CUDA Runtime API, "Texture Object Management"). The object is the address of the encoded Texture in device memory.
//
// An array is laid out in rows, as pitched memory is: the element at (x, y, z), of a layered array z is the layer, of a cube it is the
// face, begins at Data + x*Texel() + y*Pitch + z*Slice.
type Texture struct {
	Magic                uint64
	Data, Pitch, Slice   uint64
	Width, Height, Depth uint32 // elements, each at least 1; Depth counts layers and faces as well
	Dims                 uint8  // 1 to 3
	Layered, Cube        bool
	Linear               bool // linear memory: 1 dimension, what is outside is 0
	Surface              bool // for loads and stores, not for fetches
	Format               ChannelFormat
	Bits                 [4]uint8 // of the channels, 0 where there is none
	Address              [3]AddressMode
	Filter               bool // linear filtering
	Normalized           bool // coordinates are
	AsFloat              bool // integers are read as fractions of their range
	SRGB                 bool
	Border               [4]float32
	Levels               uint8   // of a mipmapped array, 0 as good as 1; they lie one after the other: see Level
	Blend                bool    // linear filtering between two levels
	Bias, Least, Most    float32 // added to a level of detail, which is then bounded
}

// ChannelFormat is what channels hold (cudaChannelFormatKind).
type ChannelFormat uint8

// The formats.
const (
	SignedChannel ChannelFormat = iota
	UnsignedChannel
	FloatChannel
)

// AddressMode is what stands for elements outside (cudaTextureAddressMode).
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

// Encode gives the bytes that a texture or surface object points to.
func (t *Texture) Encode() []byte {
	t.Magic = textureMagic
	b, err := binary.Append(nil, binary.LittleEndian, t)
	if err != nil || len(b) > TextureSize {
		panic(fmt.Sprintf("BUG: a texture of %d bytes: %v", len(b), err))
	}
	return append(b, make([]byte, TextureSize-len(b))...)
}

// DecodeTexture reads the bytes of a texture, nil where they are none.
func DecodeTexture(b []byte) *Texture {
	t := &Texture{}
	if binary.Read(bytes.NewReader(b), binary.LittleEndian, t) != nil || t.Magic != textureMagic {
		return nil
	}
	return t
}

// Check says what of a texture breaks the rules of cudaCreateTextureObject, or is not supported.
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

// MaxLevels is the number of levels that an array can have: those of 2^20 elements, down to one.
const MaxLevels = 21

// levelAlign is what a level's address is a multiple of, counted from that of the first. array.h has it too.
const levelAlign = 512

// Level gives level l of a mipmapped texture as a texture of its own. Each level has half the elements of the one before in each dimension, at
// least one, and as many layers and faces.
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

// End is where the last level ends.
func (t *Texture) End() uint64 {
	last := t.Level(max(int(t.Levels), 1) - 1)
	return last.Data + last.Slice*uint64(last.Depth)
}

// Between gives the level that a level of detail means, and with linear filtering between levels the weight of the next one, share/256. The
// rules are those of OpenGL, which the CUDA C++ Programming Guide does not tell.
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

// Texel is the size of an element in bytes.
func (t *Texture) Texel() int {
	n := 0
	for _, b := range t.Bits {
		n += int(b) / 8
	}
	return n
}

// Size is the number of elements along a dimension.
func (t *Texture) Size(d int) int64 { return int64([3]uint32{t.Width, t.Height, t.Depth}[d]) }

// Axis is what a coordinate means along a dimension: element at, or with linear filtering what lies between it and the next, which
// has the weight share/256 (CUDA C++ Programming Guide, "Linear Filtering").
type Axis struct {
	At    int64
	Share int
}

// Axis gives the meaning of coordinate x of dimension d; near says that what lies between elements has no weight of its own.
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
	x = min(max(x, -(1<<40)), 1<<40) // beyond all dimensions
	if near {
		return Axis{At: int64(math.Floor(x))}
	}
	x -= 0.5
	a := Axis{At: int64(math.Floor(x))}
	a.Share = int(math.Floor((x-math.Floor(x))*256 + 0.5))
	return a
}

// mode is the address mode of a dimension. Wrapping and mirroring are for normalized coordinates, and mean clamping otherwise.
func (t *Texture) mode(d int) AddressMode {
	m := t.Address[d]
	if !t.Normalized && (m == AddressWrap || m == AddressMirror) {
		return AddressClamp
	}
	return m
}

// Wrap gives the element that stands for element i along dimension d; false for none, which is the border.
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

// IsFloat says that elements are read as floating-point numbers.
func (t *Texture) IsFloat() bool { return t.Format == FloatChannel || t.AsFloat }

// ChannelOf gives channel c of the element in data as what a register gets: the bits of a float32 or an integer of 32 bits.
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

// linearOf gives the linear value of one of sRGB (IEC 61966-2-1).
func linearOf(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// BorderOf gives channel c of what stands for elements outside.
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

// FaceOf gives the face of a cube that a direction meets and where, as coordinates from 0 to 1 (CUDA C++ Programming Guide, "Cubemap
// Textures").
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

// sign gives 1 for what is below 0, else 0.
func sign(x float64) int64 {
	if x < 0 {
		return 1
	}
	return 0
}

// onFace turns a direction so that its part m leads to the middle of a face, and s and t to its edges.
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

// FaceGradient gives by how much the place on a face changes where a direction changes by d.
func FaceGradient(face int64, at, d [3]float64) (s, t float64) {
	m, u, v := onFace(face, at[0], at[1], at[2])
	dm, du, dv := onFace(face, d[0], d[1], d[2])
	if m == 0 {
		return 0, 0
	}
	return (du*m - u*dm) / (2 * m * m), (dv*m - v*dm) / (2 * m * m)
}

// ToChannel converts 32 bits of a formatted store to channel c: integers saturate.
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

// HasDims says that an instruction for dims dimensions can access the texture: one of more is as good if it has one row, or slice, as arrays
// have that are allocated with a height of 1.
func (t *Texture) HasDims(dims int) bool {
	return dims == int(t.Dims) || dims < int(t.Dims) && t.Depth == 1 && (dims > 1 || t.Height == 1)
}

// String says what kind of object the texture is of.
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

// Query gives what txq and suq ask for.
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
