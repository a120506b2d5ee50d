package engine

import (
	"cmp"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// The source operands of a tensor copy.
const (
	tensorShared = iota
	tensorMap
	tensorBarrier
	tensorCoordinates
)

// tensorUnit is the alignment of addresses of tensor copies in shared memory. Swizzling exchanges chunks of bytes.
const (
	tensorUnit = 128
	chunk      = 16
)

// tensor executes cp.async.bulk.tensor for the lanes of on. A lane with wrong operands copies nothing.
func (r *Run) tensor(w *Warp, in *loader.Instr, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		t := r.mapOf(w, i, in, place)
		if t == nil {
			continue
		}
		to := r.Machine.Value(w, i, &in.Operands[tensorShared]) + uint64(in.Off)
		targets, ok := r.targets(w, i, in, to, tensorBarrier, place)
		if !ok {
			continue
		}
		for _, to := range targets {
			if !r.tensorTo(w, i, in, t, to, place) {
				break
			}
		}
	}
}

// tensorTo issues a tensor copy to or from shared memory of a block. It returns false after a fault.
func (r *Run) tensorTo(w *Warp, lane int, in *loader.Instr, t *descriptor.TensorMap, to bulkTarget, place uint32) bool {
	x := tensorCopy{r: r, in: in, place: place, t: t, bulkCopy: r.newBulk(w, lane, in, to), out: in.Has("bulk_group"), of: to.of, at: to.to}
	if in.Reduce != isa.NoOp {
		x.element, x.reduce = t.Element(), isa.Reduction(in.Reduce, descriptor.TensorTypes[t.Type])
		if x.reduce == nil {
			r.Faults.At(r, TensorMisuse, w, lane, place, "copies", "%s has no operation on elements of type %s", in.Mnemonic(), descriptor.TensorTypes[t.Type])
			return false
		}
	}
	x.bytes = t.Bytes()
	if x.four() {
		x.bytes *= 4
	}
	if t.Fill == 1 {
		x.nan = t.Element()
	}
	if !x.gather() {
		return false
	}
	x.tell()
	r.fly(x.bulkCopy, place)
	return true
}

// four reports whether the copy is of four separate rows.
func (x *tensorCopy) four() bool { return x.in.Has("tile::gather4") || x.in.Has("tile::scatter4") }

// mapOf reads the tensor map whose address a lane gives; nil after a fault.
func (r *Run) mapOf(w *Warp, lane int, in *loader.Instr, place uint32) *descriptor.TensorMap {
	addr := r.Machine.Value(w, lane, &in.Operands[tensorMap]) + uint64(in.Off2)
	space, at := SplitGeneric(addr)
	var data []byte
	kind := OutOfBounds
	switch space {
	case event.Global:
		if data, kind = r.globalBytes(at, descriptor.TensorMapSize, in, event.FlagRead, place); kind == "" {
			r.readsMap(w, lane, at, place)
		}
	case event.Param:
		if n := uint64(len(r.Params)); at <= n && descriptor.TensorMapSize <= n-at {
			data, kind = r.Params[at:], ""
		}
	}
	if kind != "" {
		r.Faults.access(r, kind, w, lane, place, touch{event.FlagRead, space, at, descriptor.TensorMapSize})
		return nil
	}
	if at%descriptor.TensorMapAlign != 0 {
		r.Faults.At(r, Misaligned, w, lane, place, "copies", "%s is given a tensor map at %#x, which is not a multiple of %d", in.Mnemonic(), addr, descriptor.TensorMapAlign)
		return nil
	}
	t, err := descriptor.DecodeTensorMap(data)
	if n := in.Coordinates; err == nil && n != t.Rank && !(n == 5 && t.Rank == 2 && (in.Has("tile::gather4") || in.Has("tile::scatter4"))) {
		r.Faults.At(r, TensorMisuse, w, lane, place, "copies", "%s is given %d coordinates and the map of a tensor of %d dimensions", in.Mnemonic(), n, t.Rank)
		return nil
	}
	if im2col := in.Has("im2col") || in.Has("im2col_no_offs"); err == nil && im2col != t.Im2col {
		r.Faults.At(r, TensorMisuse, w, lane, place, "copies", "%s is given a tensor map of the other mode: tiled and im2col maps are made by different calls", in.Mnemonic())
		return nil
	}
	if err != nil {
		r.Faults.At(r, TensorMisuse, w, lane, place, "copies", "%s is given a tensor map that is none: %v", in.Mnemonic(), err)
		return nil
	}
	return t
}

// tensorCopy is a tensor copy that is being issued.
type tensorCopy struct {
	*bulkCopy
	r       *Run
	in      *loader.Instr
	place   uint32
	t       *descriptor.TensorMap
	out     bool     // to global memory
	of      *CTA     // the block of the shared memory
	at      uint64   // the address in it
	globals []extent // accessed in global memory
	shareds []extent
}

// extent is a range of addresses.
type extent struct{ from, end uint64 }

// gather finds what the copy moves. It returns false after a fault.
func (x *tensorCopy) gather() bool {
	r, w, in := x.r, x.warp, x.in
	value := func(k int) uint64 { return r.Machine.Value(w, x.lane, &in.Operands[k]) }
	at := x.at
	flags := event.FlagWrite
	if x.out {
		flags = event.FlagRead
	}
	if at%tensorUnit != 0 {
		r.Faults.At(r, Misaligned, w, x.lane, x.place, "copies", "%s is given address %#x of shared memory, which is not a multiple of %d", in.Mnemonic(), at, tensorUnit)
		return false
	}
	// A swizzle exchanges chunks of tensorUnit bytes.
	all := x.bytes
	if x.t.Swizzle != 0 {
		all = devmem.RoundUp(all, tensorUnit)
	}
	if n := uint64(len(x.of.Shared)); at > n || all > n-at {
		r.Faults.access(r, OutOfBounds, w, x.lane, x.place, touch{flags, event.Shared, at, all})
		return false
	}
	var coordinates, offsets [descriptor.MaxRank]int64
	for d := range in.Coordinates {
		coordinates[d] = int64(int32(value(tensorCoordinates + d)))
	}
	for d := range in.Offsets {
		offsets[d] = int64(value(tensorCoordinates+in.Coordinates+d) & 0xffff)
	}
	ok := true
	width := x.t.Extent(0) * x.t.Element()
	x.each(&coordinates, &offsets, func(row descriptor.BoxRow) {
		if !ok {
			return
		}
		var inside []byte
		if n := row.To - row.From; n > 0 {
			var kind FaultKind
			global := event.FlagRead | event.FlagWrite ^ flags
			if inside, kind = r.globalBytes(row.Global, n, in, global, x.place); kind != "" {
				r.Faults.access(r, kind, w, x.lane, x.place, touch{global, event.Global, row.Global, n})
				ok = false
				return
			}
			x.globals = append(x.globals, extent{row.Global, row.Global + n})
		}
		x.row(at+row.At, width, row.From, inside)
	})
	return ok
}

// each calls f for each row that the copy moves.
func (x *tensorCopy) each(coordinates, offsets *[descriptor.MaxRank]int64, f func(descriptor.BoxRow)) {
	switch {
	case x.t.Im2col:
		x.t.EachPixel(coordinates, offsets, f)
	case x.four():
		width := x.t.Extent(0) * x.t.Element()
		for i := range uint64(4) {
			at := [descriptor.MaxRank]int64{coordinates[0], coordinates[1+i]}
			x.t.EachRow(&at, func(row descriptor.BoxRow) {
				row.At = i * width
				f(row)
			})
		}
	default:
		x.t.EachRow(coordinates, f)
	}
}

// row adds the parts of a row at an address of shared memory, before swizzling. It has width bytes; those beginning
// with from are in global memory, as inside.
func (x *tensorCopy) row(addr, width, from uint64, inside []byte) {
	step := width
	if x.t.Swizzle != 0 {
		step = chunk
	}
	for at := uint64(0); at < width; at += step {
		place := descriptor.Swizzle(x.t.Swizzle, addr+at)
		low, high := max(at, from), min(at+step, from+uint64(len(inside)))
		var global []byte
		skip := uint64(0)
		if low < high {
			global, skip = inside[low-from:high-from], low-at
		}
		if !x.out {
			x.parts = append(x.parts, bulkPart{from: global, skip: skip, to: x.of.Shared[place:][:step]})
			x.shareds = append(x.shareds, extent{place, place + step})
		} else if low < high {
			x.parts = append(x.parts, bulkPart{from: x.of.Shared[place+low-at:][:high-low], to: global})
			x.shareds = append(x.shareds, extent{place + low - at, place + high - at})
		}
	}
}

// tell emits the events of the copy's accesses.
func (x *tensorCopy) tell() {
	global, shared := event.FlagRead, event.FlagWrite
	if x.out {
		global, shared = shared, global
	}
	o := &x.r.Out
	for _, e := range joined(x.globals) {
		o.bulk(x.bulkCopy, x.place, global, event.Global, e.from, e.end-e.from)
	}
	for _, e := range joined(x.shareds) {
		o.bulk(x.bulkCopy, x.place, shared, event.Shared, x.warp.CTA.tell(x.of, e.from), e.end-e.from)
	}
}

// joined sorts extents by address, and merges those that touch.
func joined(list []extent) []extent {
	slices.SortFunc(list, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	out := list[:0]
	for _, e := range list {
		if n := len(out); n > 0 && e.from <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, e.end)
		} else {
			out = append(out, e)
		}
	}
	return out
}
