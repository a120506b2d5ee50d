package engine

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// groupWarps is the number of warps in a warpgroup. The number of its first warp is a multiple of it.
const groupWarps = 4

// warpgroup executes wgmma for the lanes of on, which are all live lanes of a warp.
func (r *Run) warpgroup(w *Warp, in *loader.Instr, on uint32, place uint32) {
	if on != ^uint32(0) {
		r.incomplete(w, in, on, place)
		return
	}
	switch in.Op {
	case isa.OpTcAlloc, isa.OpTcFree, isa.OpTcRelinquish, isa.OpTcLoad, isa.OpTcStore, isa.OpTcWait:
		r.core(w, in, on, place)
	case isa.OpWgmma:
		if w.async().fenced {
			r.unfenced(w, in, place)
		} else {
			r.Faults.At(r, WgmmaNoFence, w, 0, place, "executes "+in.Mnemonic(), "the warpgroup executes its first wgmma.mma_async with no wgmma.fence before it, which orders the accesses to its registers")
		}
		w.async().operations = append(w.async().operations, matrixOp{in.Wgmma, w.async().wgmmas, place})
		r.wgmma(w, in, place)
	case isa.OpWgmmaFence:
		w.async().fenced, w.async().written = true, w.async().written[:0]
	case isa.OpWgmmaCommit:
		w.async().wgmmas++
		r.Out.copies(event.WgmmaCommit, w, on, place, 0)
		r.wakeGroup(w)
	case isa.OpWgmmaWait:
		n := uint32(r.Machine.Value(w, 0, &in.Operands[0]))
		w.async().allowed, w.async().wanted = n, w.async().wgmmas-min(n, w.async().wgmmas)
		w.async().operations = slices.DeleteFunc(w.async().operations, func(o matrixOp) bool { return o.group < w.async().wanted })
		if w.issued() {
			r.Out.copies(event.WgmmaWait, w, on, place, n)
			return
		}
		w.CTA.grouped = true
		w.block(r, on, Standing(waitGroup, 0, 0), place)
	}
}

// matrixOp is a wgmma.mma_async that a warp has not waited for.
type matrixOp struct {
	of    *isa.Wgmma
	group uint32
	place uint32
}

// written is a write of registers of an operation without a wgmma.fence after it.
type written struct {
	of    *isa.Wgmma
	place uint32
	on    uint32
}

// unfenced reports a write of registers of the next operation without a wgmma.fence between.
func (r *Run) unfenced(w *Warp, in *loader.Instr, place uint32) {
	i := slices.IndexFunc(w.async().written, func(x written) bool { return x.of == in.Wgmma })
	if i < 0 {
		return
	}
	x := w.async().written[i]
	w.async().written = slices.DeleteFunc(w.async().written, func(x written) bool { return x.of == in.Wgmma })
	fault, fresh := r.Faults.count(r, WgmmaNoFence, place, false)
	if !fresh {
		return
	}
	lane := bits.TrailingZeros32(x.on)
	fault.Message = "the warpgroup executes wgmma.mma_async after another instruction has written registers of it, with no wgmma.fence between, which orders the two"
	fault.Stands = []Stand{
		{Place: x.place, Block: w.CTA.id, Thread: w.tid(lane), Threads: bits.OnesCount32(x.on), Doing: "write its registers"},
		{Place: place, Block: w.CTA.id, Thread: w.tid(lane), Threads: 32, Doing: "execute " + in.Mnemonic()},
	}
}

// touch reports an access to registers of operations in flight, and records a write of registers of a possible later
// operation.
func (r *Run) touch(w *Warp, in *loader.Instr, on uint32, place uint32) {
	for _, g := range in.Touch.Unfenced {
		if !slices.ContainsFunc(w.async().written, func(x written) bool { return x.of == g }) {
			w.async().written = append(w.async().written, written{g, place, on})
		}
	}
	lane := bits.TrailingZeros32(on)
	tell := func(kind FaultKind, message string, issued uint32, doing string) {
		if fault, fresh := r.Faults.count(r, kind, place, false); fresh {
			fault.Message = message
			fault.Stands = []Stand{
				{Place: issued, Block: w.CTA.id, Thread: w.tid(lane), Threads: 32, Doing: "issue the operation"},
				{Place: place, Block: w.CTA.id, Thread: w.tid(lane), Threads: bits.OnesCount32(on), Doing: doing},
			}
		}
	}
	for _, o := range slices.Backward(w.async().loads) {
		if !slices.Contains(in.Touch.Loads, o.of) {
			continue
		}
		if len(in.Operands) > 0 {
			if space, _ := SplitGeneric(r.Machine.Value(w, lane, &in.Operands[0]) + uint64(in.Off)); space == event.Local {
				return
			}
		}
		tell(WgmmaTouched, "the thread uses what a tcgen05.ld loads that may not be complete: its warp has not executed tcgen05.wait::ld", o.place, "use its registers")
		return
	}
	for _, o := range slices.Backward(w.async().operations) {
		access, doing := "accesses accumulators", "access its accumulators"
		if !slices.Contains(in.Touch.Accumulators, o.of) {
			if !slices.Contains(in.Touch.Fragments, o.of) {
				continue
			}
			access, doing = "writes registers of operand A", "write its operand A"
		}
		why := "its warpgroup has not waited for its group"
		if o.group == w.async().wgmmas {
			why = "it was not even committed to a group"
		}
		tell(WgmmaTouched, "the thread "+access+" of a wgmma.mma_async that may not be complete: "+why, o.place, doing)
		return
	}
}

// issued reports whether all warps of a warpgroup have issued the groups that this one waits for.
func (w *Warp) issued() bool {
	for _, v := range w.group4() {
		if v.Live != 0 && v.async().wgmmas < w.async().wanted {
			return false
		}
	}
	return true
}

// group4 returns the warps of the warpgroup.
func (w *Warp) group4() []*Warp {
	first := w.Index &^ (groupWarps - 1)
	return w.CTA.Warps[first:min(first+groupWarps, len(w.CTA.Warps))]
}

// wakeGroup lets warps of a warpgroup continue that have waited for this one, which has issued a group or exited.
func (r *Run) wakeGroup(w *Warp) {
	for _, v := range w.group4() {
		if v.Live == 0 || v.standOf(bits.TrailingZeros32(v.Live)).waits() != waitGroup || !v.issued() {
			continue
		}
		r.Out.copies(event.WgmmaWait, v, v.Live, r.Machine.Place(v, bits.TrailingZeros32(v.Live)), v.async().allowed)
		r.Machine.Pass(v, v.Live)
		v.wake(r, v.Live)
	}
}

// wgmma executes wgmma.mma_async for a warp: its rows of the matrix.
func (r *Run) wgmma(w *Warp, in *loader.Instr, place uint32) {
	g := in.Wgmma
	if r.wgmmaArgs == nil {
		r.wgmmaArgs = &isa.WgmmaArgs{}
	}
	x := r.wgmmaArgs
	b := len(in.Operands) - isa.WgmmaB
	add := r.Machine.Value(w, 0, &in.Operands[b+1])&1 != 0
	if add {
		for k := range g.Accumulators {
			for i := range 32 {
				x.D[k][i] = uint32(r.Machine.Value(w, i, &in.Operands[k]))
			}
		}
	}
	var extents []extent
	ok := true
	if g.A.Registers {
		var a [4][32]uint32
		for k := range a {
			for i := range 32 {
				a[k][i] = uint32(r.Machine.Value(w, i, &in.Operands[g.Accumulators+k]))
			}
		}
		g.FromRegisters(x, &a)
	} else {
		d := isa.DescriptorOf(r.Machine.Value(w, 0, &in.Operands[g.Accumulators]))
		if extents, ok = r.matrixAt(w, in, &d, &g.A, 16*(w.Index%groupWarps), x.A[:], extents, place); !ok {
			return
		}
	}
	d := isa.DescriptorOf(r.Machine.Value(w, 0, &in.Operands[b]))
	if extents, ok = r.matrixAt(w, in, &d, &g.B, 0, x.B[:g.Columns], extents, place); !ok {
		return
	}
	g.Multiply(x, add)
	for k, d := range in.Results {
		for i := range 32 {
			r.Machine.Put(w, i, d, uint64(x.D[k][i]))
		}
	}
	number := w.CTA.number()
	if r.Out.Needs&event.NeedShared == 0 {
		return
	}
	for _, e := range joined(extents) {
		r.Out.add(event.Event{Kind: event.Wgmma, Flags: event.FlagRead, Warp: w.Number, Mask: ^uint32(0), Place: place, Addr: e.from, Stride: int64(number),
			Space: event.Shared, Aux: uint32(e.end - e.from)})
	}
}

// matrixAt reads the rows of a matrix in shared memory (of B the columns), beginning with row first, and adds their
// addresses to extents. It returns false after a fault.
func (r *Run) matrixAt(w *Warp, in *loader.Instr, d *isa.Descriptor, l *isa.Layout, first int, rows [][32]uint32, extents []extent, place uint32) ([]extent, bool) {
	m := matrixAt{c: w.CTA, d: d, l: l, depth: in.Wgmma.Depth, first: first}
	bad, ok := m.read(rows, &extents)
	if !ok {
		r.Faults.access(r, OutOfBounds, w, 0, place, touch{event.FlagRead, event.Shared, bad, chunk})
	}
	return extents, ok
}

// matrixAt is a matrix in shared memory.
type matrixAt struct {
	c     *CTA
	d     *isa.Descriptor
	l     *isa.Layout
	depth int
	first int // the first row
}

// read reads rows, and adds their addresses to extents. If one is outside, it returns the first such address, and
// false.
func (m *matrixAt) read(rows [][32]uint32, extents *[]extent) (bad uint64, ok bool) {
	l := m.l
	per := chunk / l.Size
	di, dk, ni, nk := 1, per, len(rows), m.depth
	if l.Major {
		di, dk = per, 1
	}
	for i := 0; i < ni; i += di {
		for k := 0; k < nk; k += dk {
			at := m.d.Chunk(l, uint64(m.first+i), uint64(k))
			if at+chunk > uint64(len(m.c.Shared)) {
				return at, false
			}
			data := m.c.Shared[at:][:chunk]
			*extents = append(*extents, extent{at, at + chunk})
			for j := range per {
				v := uint32(devmem.Uint(data[j*l.Size:], uint64(l.Size)))
				if l.Major {
					rows[i+j][k] = v
				} else {
					rows[i][k+j] = v
				}
			}
		}
	}
	return 0, true
}
