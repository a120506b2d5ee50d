package engine

import (
	"encoding/binary"
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// mapPiece is the number of bytes of a tensor map in one event.
const mapPiece = 32

// mapBytes returns the bytes of a tensor map in global or shared memory that a lane changes or copies; nil after a
// fault.
func (r *Run) mapBytes(w *Warp, lane int, in *loader.Instr, space event.Space, at uint64, flags event.Flags, place uint32) []byte {
	t := touch{flags, space, at, descriptor.TensorMapSize}
	var data []byte
	kind := OutOfBounds
	switch space {
	case event.Global:
		data, kind = r.globalBytes(at, descriptor.TensorMapSize, in, flags, place)
	case event.Shared:
		data, kind = window(w.CTA.Shared, at, descriptor.TensorMapSize)
	}
	if kind == "" && at%descriptor.TensorMapAlign != 0 {
		kind = Misaligned
	}
	if kind != "" {
		r.Faults.access(r, kind, w, lane, place, t)
		return nil
	}
	return data
}

// tellMap emits the events of a plain access by a lane to a tensor map. data is its content now, and before the old
// content that was overwritten.
func (r *Run) tellMap(w *Warp, lane int, in *loader.Instr, kind event.Kind, flags event.Flags, space event.Space, at uint64, data, before []byte, place uint32) {
	need := event.NeedGlobal
	if space == event.Shared {
		need = event.NeedShared
	}
	if r.Out.Needs&need == 0 {
		return
	}
	acc := &r.Access
	as := loader.Instr{Inst: in.Inst, Width: mapPiece}
	for i := uint64(0); i < descriptor.TensorMapSize; i += mapPiece {
		acc.Addr[lane], acc.Value[lane], acc.Old[lane] = at+i, wordsOf(data[i:i+mapPiece]), wordsOf(before[i:i+mapPiece])
		r.Out.access(kind, flags, w, &as, place, space, 1<<lane, acc)
	}
}

// replace executes tensormap.replace for the lanes of on.
func (r *Run) replace(w *Warp, in *loader.Instr, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		at, space := r.Machine.Value(w, i, &in.Operands[0])+uint64(in.Off), in.Space
		if space != event.Global && space != event.Shared {
			space, at = SplitGeneric(at)
		}
		data := r.mapBytes(w, i, in, space, at, event.FlagWrite, place)
		if data == nil {
			continue
		}
		before := [descriptor.TensorMapSize]byte(data)
		ordinal := uint64(0)
		if len(in.Operands) > 2 {
			ordinal = r.Machine.Value(w, i, &in.Operands[1])
		}
		if !replaceField(data, in, ordinal, r.Machine.Value(w, i, &in.Operands[len(in.Operands)-1])) {
			r.Faults.At(r, TensorMisuse, w, i, place, "changes", "%s is given the field of dimension %d: there are five, of global_stride four", in.Mnemonic(), ordinal)
			continue
		}
		r.tellMap(w, i, in, event.Store, event.FlagWrite, space, at, data, before[:], place)
	}
	w.Writes++
}

// replaceField changes a field of the bytes of a map, see TensorMap; false if it has no such dimension.
func replaceField(data []byte, in *loader.Instr, ordinal, v uint64) bool {
	le := binary.LittleEndian
	dimensions := uint64(descriptor.MaxRank)
	if in.Has("global_stride") {
		dimensions--
	}
	if ordinal >= dimensions {
		return false
	}
	switch {
	case in.Has("rank"):
		data[0] = uint8(v)
	case in.Has("elemtype"):
		data[1] = uint8(v)
	case in.Has("interleave_layout"):
		data[2] = uint8(v)
	case in.Has("swizzle_mode"):
		data[3] = uint8(v)
	case in.Has("fill_mode"):
		data[4] = uint8(v)
	case in.Has("global_address"):
		le.PutUint64(data[8:], v)
	case in.Has("global_dim"):
		le.PutUint32(data[16+4*ordinal:], uint32(v))
	case in.Has("box_dim"):
		le.PutUint32(data[36+4*ordinal:], uint32(v))
	case in.Has("element_stride"):
		data[56+ordinal] = uint8(v)
	case in.Has("global_stride"):
		le.PutUint64(data[64+8*ordinal:], v)
	}
	return true
}

// copyMap executes tensormap.cp_fenceproxy. The lanes of on execute it together, and one of them performs it.
func (r *Run) copyMap(w *Warp, in *loader.Instr, on uint32, place uint32) {
	i := bits.TrailingZeros32(on)
	to, from := r.Machine.Value(w, i, &in.Operands[0])+uint64(in.Off), r.Machine.Value(w, i, &in.Operands[1])+uint64(in.Off2)
	source := r.mapBytes(w, i, in, event.Shared, from, event.FlagRead, place)
	if source == nil {
		return
	}
	data := r.mapBytes(w, i, in, event.Global, to, event.FlagWrite, place)
	if data == nil {
		return
	}
	r.tellMap(w, i, in, event.Load, event.FlagRead, event.Shared, from, source, source, place)
	before := [descriptor.TensorMapSize]byte(data)
	copy(data, source)
	r.tellMap(w, i, in, event.Store, event.FlagWrite, event.Global, to, data, before[:], place)
	w.Writes++
}

// fenceMaps executes fence.proxy.tensormap::generic.acquire for the lanes of on.
func (r *Run) fenceMaps(w *Warp, in *loader.Instr, on uint32, place uint32) {
	if !r.Out.Sync() {
		return
	}
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if space, at := SplitGeneric(r.Machine.Value(w, i, &in.Operands[0]) + uint64(in.Off)); space == event.Global {
			r.Out.add(event.Event{Kind: event.MapFence, Warp: w.Number, Mask: 1 << i, Place: place, Addr: at, Space: event.Global})
		}
	}
}

// readsMap emits the read of a tensor map in global memory by a lane's copy.
func (r *Run) readsMap(w *Warp, lane int, at uint64, place uint32) {
	if r.Out.Needs&event.NeedGlobal != 0 {
		r.Out.add(event.Event{Kind: event.MapRead, Flags: event.FlagRead, Warp: w.Number, Mask: 1 << lane, Place: place, Addr: at, Space: event.Global, Aux: descriptor.TensorMapSize})
	}
}

// mapOps executes the operations on tensor maps.
func (r *Run) mapOps(w *Warp, in *loader.Instr, on uint32, place uint32) {
	switch in.Op {
	case isa.OpReplace:
		r.replace(w, in, on, place)
	case isa.OpMapCopy:
		r.copyMap(w, in, on, place)
	case isa.OpMapFence:
		r.fenceMaps(w, in, on, place)
	}
}
