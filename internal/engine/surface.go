package engine

import (
	"fmt"
	"math/bits"
	"strings"

	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// surface executes suld, sust or sured for the lanes of on.
func (r *Run) surface(w *Warp, in *loader.Instr, on uint32, place uint32) {
	acc := &r.Access
	acc.Global, acc.Shared = 0, 0
	values, olds := r.Out.Needs&event.NeedValues != 0, r.Out.Olds()
	var sizes [5]uint32 // see taps
	x := surfaceOp{r: r, w: w, in: in, place: place}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		x.lane = i
		data, addr := x.reach()
		if in.Op == isa.OpSurfaceLoad {
			n := uint64(in.Type.Size())
			for _, d := range in.Results {
				v := uint64(0)
				if data != nil {
					v = devmem.Uint(data[uint64(d.At)*n:], n)
				}
				r.Machine.Put(w, i, d, v)
			}
		}
		if data == nil {
			continue
		}
		acc.Addr[i] = addr
		acc.Global |= 1 << i
		sizes[bits.TrailingZeros(uint(len(data)))] |= 1 << i
		if in.Op == isa.OpSurfaceLoad {
			continue
		}
		if olds {
			r.noteOld(w, i, data)
		}
		x.write(data)
		if values {
			acc.Value[i] = wordsOf(data)
		}
	}
	if in.Op != isa.OpSurfaceLoad && acc.Global != 0 {
		w.Writes++
	}
	if r.Out.Needs&event.NeedGlobal == 0 {
		return
	}
	switch in.Op {
	case isa.OpSurfaceLoad:
		r.tellSizes(event.Load, event.FlagRead|event.FlagNonCoherent|event.FlagTexture, w, in, place, acc.Global, &sizes)
	case isa.OpSurfaceStore:
		r.tellSizes(event.Store, event.FlagWrite, w, in, place, acc.Global, &sizes)
	default:
		r.tellSizes(event.Atomic, event.FlagRead|event.FlagWrite|event.FlagRed, w, in, place, acc.Global, &sizes)
	}
}

// surfaceOp is an access of a lane to a surface.
type surfaceOp struct {
	r     *Run
	w     *Warp
	in    *loader.Instr
	lane  int
	place uint32
	t     *descriptor.Texture
}

// source returns source operand k.
func (x *surfaceOp) source(k int) uint64 { return x.r.Machine.Value(x.w, x.lane, &x.in.Operands[k]) }

// reach returns the bytes that the lane accesses, and their address; nil if the access has no effect: outside, or after
// a fault.
func (x *surfaceOp) reach() ([]byte, uint64) {
	r, in, s := x.r, x.in, x.in.Texel
	x.t = r.textureOf(x.w, x.lane, in, x.place)
	if x.t == nil {
		return nil, 0
	}
	t := x.t
	size, step := uint64(t.Texel()), int64(t.Texel())
	if s.Bytes {
		size, step = uint64(in.Type.Size())*uint64(max(in.Vec, 1)), 1
	}
	flags := event.FlagWrite
	switch in.Op {
	case isa.OpSurfaceLoad:
		flags = event.FlagRead
	case isa.OpSurfaceRed:
		flags |= event.FlagRead
	}
	limit := [3]int64{int64(t.Width)*int64(t.Texel()) - int64(size), int64(t.Height) - 1, int64(t.Depth) - 1}
	var at [3]int64
	k := 1
	if s.Layered {
		at[2] = int64(int32(x.source(1)))
		k = 2
	}
	for d := range s.Dims {
		at[d] = int64(int32(x.source(k + d)))
	}
	given := at
	at[0] *= step
	outside := false
	for d := range at {
		outside = outside || at[d] < 0 || at[d] > limit[d]
		at[d] = max(min(at[d], limit[d]), 0)
	}
	if outside && s.Boundary == "trap" || limit[0] < 0 {
		r.Faults.At(r, OutOfBounds, x.w, x.lane, x.place, "traps", "%s at coordinates %s, outside %s: %d x %d x %d elements of %d bytes", in.Mnemonic(),
			coordinateText(given, s), t, t.Width, t.Height, t.Depth, t.Texel())
		return nil, 0
	}
	if outside && s.Boundary == "zero" {
		return nil, 0
	}
	addr := t.Data + uint64(at[0]) + uint64(at[1])*t.Pitch + uint64(at[2])*t.Slice
	data, kind := r.globalBytes(addr, size, in, flags, x.place)
	if kind == "" && uint64(at[0])%size != 0 {
		kind = Misaligned
	}
	if kind != "" {
		r.Faults.access(r, kind, x.w, x.lane, x.place, touch{flags, event.Global, addr, size})
		return nil, 0
	}
	return data, addr
}

// write performs a store or a reduction.
func (x *surfaceOp) write(data []byte) {
	in, t := x.in, x.t
	first := 1 + in.Texel.Coordinates()
	switch {
	case in.Op == isa.OpSurfaceRed:
		old := devmem.Uint(data, uint64(len(data)))
		devmem.PutUint(data, in.RMW(in.Inst, old, x.source(first), 0))
	case in.Texel.Bytes:
		n := in.Type.Size()
		for k := range int(max(in.Vec, 1)) {
			devmem.PutUint(data[k*n:][:n], x.source(first+k))
		}
	default: // formatted: channels that are not given are zero
		n := int(t.Bits[0]) / 8
		for c := 0; c*n < len(data); c++ {
			v := uint64(0)
			if c < int(max(in.Vec, 1)) {
				v = t.ToChannel(uint32(x.source(first + c)))
			}
			devmem.PutUint(data[c*n:][:n], v)
		}
	}
}

// coordinateText returns the coordinates of an access, in bytes if the instruction counts bytes.
func coordinateText(at [3]int64, s *isa.Texel) string {
	names := [3]string{"x", "y", "z"}
	if s.Layered {
		names[2] = "layer"
	}
	var list []string
	for d, name := range names {
		switch {
		case d == 0 && s.Bytes:
			list = append(list, fmt.Sprintf("x = byte %d", at[d]))
		case d < s.Dims || d == 2 && s.Layered:
			list = append(list, fmt.Sprintf("%s = %d", name, at[d]))
		}
	}
	return strings.Join(list, ", ")
}
