// Package descriptor holds the objects of the CUDA API that kernels refer to by address: tensor maps, and texture and
// surface objects. The API encodes them into device memory, and the engine decodes them.
package descriptor

import (
	"encoding/binary"
	"fmt"

	"fencepost.dev/fencepost/internal/isa"
)

// TensorMapSize is the size of a CUtensorMap in bytes. TensorMapAlign is the required alignment of its address.
const (
	TensorMapSize  = 128
	TensorMapAlign = 64
	MaxRank        = 5
)

// TensorMap is what cuTensorMapEncodeTiled makes a CUtensorMap of (CUDA Driver API, "Tensor Map Object Management"): an array in
// global memory of up to five dimensions, the first the innermost, and the box of it that a copy moves.
//
// The 128 bytes are opaque to programs. Here they are, little-endian:
//
//	0   u8      rank - 1
//	1   u8      element type, as tensormap.replace numbers them: see TensorTypes
//	2   u8      interleave: 0
//	3   u8      swizzle: 0 none, 1 to 3 of 32, 64 and 128 bytes
//	4   u8      what elements outside the array are filled with: 0 zero, 1 NaN
//	5   u8      1 in im2col mode: then the first two of box are the channels of a pixel and the pixels
//	8   u64     address
//	16  u32 [5] elements of the array in each dimension
//	36  u32 [5] elements of the box
//	56  u8  [5] element strides
//	64  u64 [4] bytes from one element of the dimensions but the first to the next
//	96  i16 [3] in im2col mode, the lower corner of the box that pixels are taken of, in the dimensions between the first and the last
//	102 i16 [3] and its upper corner, from the end of these on
type TensorMap struct {
	Rank       int
	Type       uint8
	Interleave uint8
	Swizzle    uint8
	Fill       uint8
	Address    uint64
	Dims       [MaxRank]uint32
	Box        [MaxRank]uint32
	Steps      [MaxRank]uint8
	Strides    [MaxRank - 1]uint64
	Im2col     bool
	Lower      [MaxRank - 2]int16
	Upper      [MaxRank - 2]int16
}

// TensorTypes are the element types, indexed by their numbers in tensormap.replace (PTX ISA, "tensormap.replace").
// NoType represents the packed types, which are not supported.
var TensorTypes = []isa.Type{isa.U8, isa.U16, isa.U32, isa.S32, isa.U64, isa.S64, isa.F16, isa.F32, isa.F32, isa.F64, isa.BF16, isa.F32, isa.F32,
	isa.NoType, isa.NoType, isa.NoType}

// driverTensorTypes are the numbers of element types, indexed by CUtensorMapDataType.
var driverTensorTypes = []uint8{0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13, 14, 15}

// TensorType returns the number of the element type for a CUtensorMapDataType.
func TensorType(driver uint64) (uint8, bool) {
	if driver >= uint64(len(driverTensorTypes)) {
		return 0, false
	}
	return driverTensorTypes[driver], true
}

// Encode returns the bytes of the map.
func (t *TensorMap) Encode() []byte {
	b := make([]byte, TensorMapSize)
	b[0], b[1], b[2], b[3], b[4] = uint8(t.Rank-1), t.Type, t.Interleave, t.Swizzle, t.Fill
	binary.LittleEndian.PutUint64(b[8:], t.Address)
	for i := range MaxRank {
		binary.LittleEndian.PutUint32(b[16+4*i:], t.Dims[i])
		binary.LittleEndian.PutUint32(b[36+4*i:], t.Box[i])
		b[56+i] = t.Steps[i]
	}
	for i, s := range t.Strides {
		binary.LittleEndian.PutUint64(b[64+8*i:], s)
	}
	if t.Im2col {
		b[5] = 1
	}
	for i := range t.Lower {
		binary.LittleEndian.PutUint16(b[96+2*i:], uint16(t.Lower[i]))
		binary.LittleEndian.PutUint16(b[102+2*i:], uint16(t.Upper[i]))
	}
	return b
}

// DecodeTensorMap reads the bytes of a map.
func DecodeTensorMap(b []byte) (*TensorMap, error) {
	t := &TensorMap{Rank: int(b[0]) + 1, Type: b[1], Interleave: b[2], Swizzle: b[3], Fill: b[4], Address: binary.LittleEndian.Uint64(b[8:])}
	for i := range MaxRank {
		t.Dims[i] = binary.LittleEndian.Uint32(b[16+4*i:])
		t.Box[i] = binary.LittleEndian.Uint32(b[36+4*i:])
		t.Steps[i] = b[56+i]
	}
	for i := range t.Strides {
		t.Strides[i] = binary.LittleEndian.Uint64(b[64+8*i:])
	}
	t.Im2col = b[5] == 1
	for i := range t.Lower {
		t.Lower[i] = int16(binary.LittleEndian.Uint16(b[96+2*i:]))
		t.Upper[i] = int16(binary.LittleEndian.Uint16(b[102+2*i:]))
	}
	return t, t.Check()
}

// Element returns the size of an element in bytes.
func (t *TensorMap) Element() uint64 { return uint64(TensorTypes[t.Type].Size()) }

// Check says what violates the rules of cuTensorMapEncodeTiled or is not supported.
func (t *TensorMap) Check() error {
	switch {
	case t.Rank < 1 || t.Rank > MaxRank:
		return fmt.Errorf("the rank is %d: it must be between 1 and 5", t.Rank)
	case int(t.Type) >= len(TensorTypes):
		return fmt.Errorf("%d is no type of elements", t.Type)
	case TensorTypes[t.Type] == isa.NoType:
		return fmt.Errorf("packed types of elements are not supported")
	case t.Interleave != 0:
		return fmt.Errorf("interleaved layouts are not supported")
	case t.Swizzle > 3:
		return fmt.Errorf("swizzle mode %d is not supported", t.Swizzle)
	case t.Fill > 1 || t.Fill == 1 && !TensorTypes[t.Type].Float():
		return fmt.Errorf("elements outside can be filled with NaN only where they are floating-point numbers")
	case t.Im2col && t.Rank < 3:
		return fmt.Errorf("the rank is %d: in im2col mode it must be between 3 and 5", t.Rank)
	case t.Im2col && (t.Box[0] == 0 || t.Box[0] > 256 || t.Box[1] == 0 || t.Box[1] > 1024):
		return fmt.Errorf("%d channels of %d pixels are copied: it must be 1 to 256 of 1 to 1024", t.Box[0], t.Box[1])
	case t.Address%16 != 0:
		return fmt.Errorf("the address %#x of the tensor is not a multiple of 16", t.Address)
	}
	for i := range t.Rank {
		switch {
		case t.Dims[i] == 0 || t.Dims[i] > 1<<31:
			return fmt.Errorf("dimension %d has %d elements: it must have between 1 and 2^31", i, t.Dims[i])
		case !t.Im2col && (t.Box[i] == 0 || t.Box[i] > 256):
			return fmt.Errorf("the box has %d elements in dimension %d: it must have between 1 and 256", t.Box[i], i)
		case t.Steps[i] == 0 || t.Steps[i] > 8:
			return fmt.Errorf("the element stride of dimension %d is %d: it must be between 1 and 8", i, t.Steps[i])
		case i > 0 && (t.Strides[i-1]%16 != 0 || t.Strides[i-1] >= 1<<40):
			return fmt.Errorf("the stride of dimension %d is %d bytes: it must be a multiple of 16 below 2^40", i, t.Strides[i-1])
		}
	}
	inner := uint64(t.Box[0]) * t.Element()
	if inner%16 != 0 {
		return fmt.Errorf("a row of the box has %d bytes: it must be a multiple of 16", inner)
	}
	if span := uint64(16) << t.Swizzle; t.Swizzle != 0 && inner > span {
		return fmt.Errorf("a row of the box has %d bytes: with a swizzle of %d bytes it must not have more than these", inner, span)
	}
	return nil
}

// Extent returns the number of elements that a copy moves along a dimension.
func (t *TensorMap) Extent(d int) uint64 {
	if d >= t.Rank {
		return 1
	}
	if d == 0 { // the stride of the innermost dimension is ignored
		return uint64(t.Box[0])
	}
	return (uint64(t.Box[d]) + uint64(t.Steps[d]) - 1) / uint64(t.Steps[d])
}

// Bytes returns the number of bytes that a copy moves, including elements outside the array.
func (t *TensorMap) Bytes() uint64 {
	n := t.Element()
	if t.Im2col {
		return n * uint64(t.Box[0]) * uint64(t.Box[1])
	}
	for d := range t.Rank {
		n *= t.Extent(d)
	}
	return n
}

// Swizzle returns the location in shared memory of the byte that would be at addr without swizzling: 16-byte chunks
// within 32, 64 or 128 bytes are exchanged, depending on the address bits from the 7th on.
func Swizzle(mode uint8, addr uint64) uint64 {
	return addr ^ addr>>7&(1<<mode-1)<<4
}

// EachPixel calls f for each pixel that a copy in im2col mode moves, beginning at the given coordinates. It advances
// first through the dimensions between the first and the last, which restart at the lower corner of the box, and then
// through the last. Each pixel is displaced by the offsets.
func (t *TensorMap) EachPixel(at, offsets *[MaxRank]int64, f func(BoxRow)) {
	size := t.Element()
	width := uint64(t.Box[0]) * size
	low, high := min(max(-at[0], 0), int64(t.Box[0])), min(max(int64(t.Dims[0])-at[0], 0), int64(t.Box[0]))
	c, last := *at, t.Rank-1
	for i := range uint64(t.Box[1]) {
		r := BoxRow{At: i * width, Global: t.Address + uint64(max(at[0], 0))*size, From: uint64(low) * size, To: uint64(max(low, high)) * size}
		for d := 1; d <= last; d++ {
			x := c[d]
			if d < last {
				x += offsets[d-1]
			}
			if x < 0 || x >= int64(t.Dims[d]) {
				r.To = r.From
			}
			r.Global += uint64(x) * t.Strides[d-1]
		}
		f(r)
		for d := 1; d <= last; d++ {
			c[d] += int64(t.Steps[d])
			if d == last || c[d] < int64(t.Dims[d])+int64(t.Upper[d-1]) {
				break
			}
			c[d] = int64(t.Lower[d-1])
		}
	}
}

// BoxRow is a row of the innermost dimension of a box: adjacent elements.
type BoxRow struct {
	At       uint64 // offset in the box, in bytes
	Global   uint64 // address of the part that lies inside the array
	From, To uint64 // the bytes of the row inside the array; from == to: none
}

// EachRow calls f for each row of the box at coordinates.
func (t *TensorMap) EachRow(at *[MaxRank]int64, f func(BoxRow)) {
	size := t.Element()
	width := t.Extent(0) * size
	low, high := min(max(-at[0], 0), int64(t.Extent(0))), min(max(int64(t.Dims[0])-at[0], 0), int64(t.Extent(0)))
	var i [MaxRank]uint64
	for row := uint64(0); ; row++ {
		r := BoxRow{At: row * width, Global: t.Address + uint64(max(at[0], 0))*size, From: uint64(low) * size, To: uint64(max(low, high)) * size}
		for d := 1; d < t.Rank; d++ {
			c := at[d] + int64(i[d])*int64(t.Steps[d])
			if c < 0 || c >= int64(t.Dims[d]) {
				r.To = r.From
			}
			r.Global += uint64(c) * t.Strides[d-1]
		}
		f(r)
		d := 1
		for ; d < t.Rank; d++ {
			if i[d]++; i[d] < t.Extent(d) {
				break
			}
			i[d] = 0
		}
		if d == t.Rank {
			return
		}
	}
}
