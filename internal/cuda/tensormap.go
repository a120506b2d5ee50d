package cuda

import (
	"context"
	"encoding/binary"

	"fencepost.dev/fencepost/internal/engine/descriptor"
)

// tensorMap makes the bytes of a CUtensorMap.
func (p *process) tensorMap(_ context.Context, r *request) ([]uint64, []byte, error) {
	leave, err := p.ctx.enter()
	defer leave()
	if err != nil {
		return nil, nil, err
	}
	const most = 5
	if len(r.blob) != 8*(4*most-1+2*(most-2)) {
		return nil, nil, fail(InvalidValue, "a tensor map of %d bytes of arrays", len(r.blob))
	}
	const sizes, strides, box, steps, corners = 0, most, 2*most - 1, 3*most - 1, 4*most - 1 // the starts of the arrays
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(r.blob[8*i:]) }
	a := r.args
	bad := func(format string, args ...any) ([]uint64, []byte, error) {
		call := "cuTensorMapEncodeTiled: "
		if r.args[8] != 0 {
			call = "cuTensorMapEncodeIm2col: "
		}
		return nil, nil, misuse(BadTensorMap, InvalidValue, call+format, args...)
	}
	if a[0]%descriptor.TensorMapAlign != 0 {
		return bad("the CUtensorMap is at %#x: the address must be a multiple of %d", a[0], descriptor.TensorMapAlign)
	}
	typ, ok := descriptor.TensorType(a[1])
	if !ok || a[2] < 1 || a[2] > most || max(a[4], a[5], a[7]) > 255 {
		return bad("type %d, rank %d, interleave %d, swizzle %d or fill %d does not exist", a[1], a[2], a[4], a[5], a[7])
	}
	t := descriptor.TensorMap{Rank: int(a[2]), Type: typ, Address: a[3], Interleave: uint8(a[4]), Swizzle: uint8(a[5]), Fill: uint8(a[7])}
	for i := range t.Rank {
		t.Dims[i], t.Box[i], t.Steps[i] = uint32(min(word(sizes+i), 1<<32-1)), uint32(min(word(box+i), 1<<32-1)), uint8(min(word(steps+i), 255))
		if i < t.Rank-1 {
			t.Strides[i] = word(strides + i)
		}
	}
	if t.Im2col = a[8] != 0; t.Im2col {
		for i := range t.Lower {
			t.Lower[i], t.Upper[i] = int16(word(corners+i)), int16(word(corners+most-2+i))
		}
	}
	if err := t.Check(); err != nil {
		return bad("%v", err)
	}
	return nil, t.Encode(), nil
}
