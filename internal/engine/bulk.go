package engine

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// bulkCopy is a bulk copy in flight. See copies for the time at which it is performed.
type bulkCopy struct {
	number   uint64 // number within the block
	warp     *Warp
	lane     int
	parts    []bulkPart
	bytes    uint64 // to be reported to the mbarrier
	tracked  bool
	of       *CTA   // the block whose mbarrier tracks it; otherwise the block of the thread
	mbarrier uint64 // address of that mbarrier in of
	told     uint64 // the same address in events
	group    uint32
	isRead   bool
	written  bool
	source   bool // its thread has waited until the source was read
	own      bool // it copies from shared memory of the issuing block
	stand    Stand
	// For a reduction: the operation on an element, and the element size.
	reduce  func(old, b uint64) uint64
	element uint64
	generic bool   // through the generic proxy
	nan     uint64 // size of the NaNs to fill in; 0: zeros
}

// bulkPart is a range of bytes that is contiguous on both sides.
type bulkPart struct {
	from, to []byte
	skip     uint64 // bytes of to before the destination of from; they, and the bytes after it, are filled
	data     []byte // what has been read, of the length of to
}

// bulkUnit is the unit of sizes and addresses of bulk copies.
const bulkUnit = 16

// bulk executes cp.async.bulk for the lanes of on. A lane with wrong operands copies nothing.
func (r *Run) bulk(w *Warp, in *loader.Instr, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		to, from := r.Machine.Value(w, i, &in.Operands[0])+uint64(in.Off), r.Machine.Value(w, i, &in.Operands[1])+uint64(in.Off2)
		n := r.Machine.Value(w, i, &in.Operands[2]) & 0xffff_ffff
		fromSpace := event.Global
		if in.Space == event.Global || !in.Has("global") {
			fromSpace = event.Shared
		}
		if n%bulkUnit != 0 || n == 0 {
			r.Faults.At(r, Misaligned, w, i, place, "copies", "%s is told to copy %d bytes: the number must be a multiple of %d", in.Mnemonic(), n, bulkUnit)
			continue
		}
		targets, ok := r.targets(w, i, in, to, bulkBarrier, place)
		if !ok {
			continue
		}
		pieces, ok := r.bulkPieces(w, i, in, n, place)
		if !ok {
			continue
		}
		sources := make([][]byte, len(pieces))
		for k, p := range pieces {
			if sources[k] = r.bulkBytes(w, w.CTA, i, in, touch{event.FlagRead, fromSpace, from + p.at, p.size}, p.at, place); sources[k] == nil {
				ok = false
				break
			}
		}
		for _, t := range targets {
			parts := make([]bulkPart, len(pieces))
			for k, p := range pieces {
				if !ok {
					break
				}
				parts[k].from = sources[k]
				parts[k].to = r.bulkBytes(w, t.of, i, in, touch{event.FlagWrite, in.Space, t.to + p.at, p.size}, p.at, place)
				ok = parts[k].to != nil
			}
			if !ok {
				break
			}
			x := r.newBulk(w, i, in, t)
			x.bytes, x.parts, x.own = n, parts, fromSpace == event.Shared
			x.reduces(in)
			for _, p := range pieces {
				r.Out.bulk(x, place, event.FlagRead, fromSpace, from+p.at, p.size)
				r.Out.bulk(x, place, event.FlagWrite, in.Space, w.CTA.tell(t.of, t.to)+p.at, p.size)
			}
			r.fly(x, place)
		}
	}
}

// bulkPiece is bytes of a bulk copy that are copied, at an offset.
type bulkPiece struct{ at, size uint64 }

// bulkPieces returns the pieces of a copy of n bytes: all bytes, or all except some at both ends (.ignore_oob), or the
// bytes of each bulkUnit that a mask selects (.cp_mask). It returns false after a fault.
func (r *Run) bulkPieces(w *Warp, lane int, in *loader.Instr, n uint64, place uint32) ([]bulkPiece, bool) {
	switch {
	case in.Has("ignore_oob"):
		left, right := r.Machine.Value(w, lane, &in.Operands[bulkBarrier+1])&0xffff_ffff, r.Machine.Value(w, lane, &in.Operands[bulkBarrier+2])&0xffff_ffff
		if max(left, right) >= bulkUnit {
			r.Faults.At(r, Misaligned, w, lane, place, "copies", "%s is told to ignore %d bytes: up to %d can be, at each end", in.Mnemonic(), max(left, right), bulkUnit-1)
			return nil, false
		}
		if left+right >= n {
			return nil, true
		}
		return []bulkPiece{{left, n - left - right}}, true
	case in.Has("cp_mask"):
		mask := r.Machine.Value(w, lane, &in.Operands[bulkBarrier])
		var list []bulkPiece
		for at := range n {
			last := len(list) - 1
			switch {
			case mask>>(at%bulkUnit)&1 == 0:
			case last >= 0 && list[last].at+list[last].size == at:
				list[last].size++
			default:
				list = append(list, bulkPiece{at, 1})
			}
		}
		return list, true
	}
	return []bulkPiece{{0, n}}, true
}

// bulkTarget is the destination of a bulk copy and the mbarrier that it signals. A copy to several blocks has several
// targets.
type bulkTarget struct {
	of        *CTA // the block whose shared memory it writes or reads
	to        uint64
	barrierOf *CTA
	barrier   uint64
}

// bulkBarrier is the index of the source operand that is the address of the mbarrier.
const bulkBarrier = 3

// targets returns the targets of a copy to an address. bar is the index of the source operand that is the mbarrier's
// address, if there is one. It returns false after a fault.
func (r *Run) targets(w *Warp, lane int, in *loader.Instr, to uint64, bar int, place uint32) ([]bulkTarget, bool) {
	own := bulkTarget{of: w.CTA, to: to, barrierOf: w.CTA}
	if in.Has("bulk_group") {
		return []bulkTarget{own}, true
	}
	generic, ok := !in.Has("shared::cluster") && !in.Has("shared::cta"), false
	if generic {
		to = withoutWindow(to)
	}
	if own.of, own.to, ok = r.resolve(w, lane, to, place); !ok {
		return nil, false
	}
	barrier := r.Machine.Value(w, lane, &in.Operands[bar]) + uint64(in.Off3)
	if generic {
		barrier = withoutWindow(barrier)
	}
	if own.barrierOf, own.barrier, ok = r.resolve(w, lane, barrier, place); !ok {
		return nil, false
	}
	pair := in.Has("cta_group::2") && own.barrierOf.rank%2 == 0
	list := []bulkTarget{own}
	if in.Multicast > 0 {
		list = list[:0]
		mask := r.Machine.Value(w, lane, &in.Operands[in.Multicast])
		for rank, of := range w.CTA.cluster.ctas {
			if mask>>rank&1 == 0 {
				continue
			}
			t := bulkTarget{of, own.to, of, own.barrier}
			if pair { // the first of two blocks waits for both
				t.barrierOf = w.CTA.cluster.ctas[rank&^1]
			}
			list = append(list, t)
		}
	}
	for _, t := range list {
		if t.barrier%8 != 0 || t.barrierOf.liveBarrier(t.barrier) == nil {
			r.notLive(w, t.barrierOf, lane, in, t.barrier, place)
			return nil, false
		}
	}
	return list, true
}

// withoutWindow converts a generic address in shared memory to an address of shared memory.
func withoutWindow(addr uint64) uint64 {
	if space, at := SplitGeneric(addr); space == event.Shared {
		return at
	}
	return addr
}

// resolve returns the block of the cluster whose shared memory contains an address, and the address there. It returns
// false after a fault.
func (r *Run) resolve(w *Warp, lane int, addr uint64, place uint32) (*CTA, uint64, bool) {
	of, _, kind := w.CTA.owner(addr)
	if kind != "" {
		r.Faults.access(r, kind, w, lane, place, touch{event.FlagWrite, event.Shared, addr, 8})
		return nil, 0, false
	}
	r.reaches(w, of, lane, place)
	return of, addr & (1<<event.PeerShift - 1), true
}

// newBulk makes a copy that a lane issues to a target.
func (r *Run) newBulk(w *Warp, lane int, in *loader.Instr, t bulkTarget) *bulkCopy {
	return &bulkCopy{number: w.CTA.number(), warp: w, lane: lane, tracked: !in.Has("bulk_group"), group: w.async().bulkGroups[lane],
		of: t.barrierOf, mbarrier: t.barrier, told: w.CTA.tell(t.barrierOf, t.barrier)}
}

// reduces makes a copy a reduction of elements of the instruction's type, if the instruction is a reduction.
func (x *bulkCopy) reduces(in *loader.Instr) {
	if in.Reduce != isa.NoOp {
		x.reduce, x.element = isa.Reduction(in.Reduce, in.Type), uint64(in.Type.Size())
	}
}

// fly issues a copy.
func (r *Run) fly(x *bulkCopy, place uint32) {
	w := x.warp
	x.stand = Stand{Place: place, Block: w.CTA.id, Thread: w.tid(x.lane), Threads: 1, Doing: "copies"}
	x.of.bulks = append(x.of.bulks, x)
	read, write := r.early(w)
	w.async().issued++
	if read {
		x.read()
	}
	if write {
		x.write()
	}
}

// bulkBytes returns the bytes at an offset that a bulk copy reads or writes; nil after a fault.
func (r *Run) bulkBytes(w *Warp, of *CTA, lane int, in *loader.Instr, t touch, offset uint64, place uint32) []byte {
	var data []byte
	var kind FaultKind
	if t.space == event.Shared {
		if all := uint64(len(of.Shared)); t.addr > all || t.size > all-t.addr {
			kind = OutOfBounds
		} else {
			data = of.Shared[t.addr:][:t.size:t.size]
		}
	} else {
		data, kind = r.globalBytes(t.addr, t.size, in, t.flags, place)
	}
	if base := t.addr - offset; kind == "" && base%bulkUnit != 0 {
		kind = Misaligned
		r.Faults.At(r, kind, w, lane, place, "copies", "%s is given address %#x of %s memory, which is not a multiple of %d", in.Mnemonic(), base, t.space, bulkUnit)
		return nil
	}
	if kind != "" {
		r.Faults.access(r, kind, w, lane, place, t)
		return nil
	}
	return data
}

func (x *bulkCopy) read() {
	if x.isRead {
		return
	}
	for i := range x.parts {
		p := &x.parts[i]
		p.data = make([]byte, len(p.to))
		if x.nan != 0 {
			for k := range p.data {
				if p.data[k] = 0xff; uint64(k)%x.nan == x.nan-1 {
					p.data[k] = 0x7f
				}
			}
		}
		copy(p.data[p.skip:], p.from)
	}
	x.isRead = true
}

func (x *bulkCopy) write() {
	if x.written {
		return
	}
	x.read()
	for i := range x.parts {
		p := &x.parts[i]
		if x.reduce == nil {
			copy(p.to, p.data)
			continue
		}
		for n := x.element; len(p.to) > 0; p.to, p.data = p.to[n:], p.data[n:] {
			devmem.PutUint(p.to[:n], x.reduce(devmem.Uint(p.to, n), devmem.Uint(p.data, n)))
		}
	}
	x.written = true
	x.warp.Writes++
}

// awaitsBulk performs the bulk copies of the lanes of on, except those of the last n groups; with read, only their
// reads.
func (r *Run) awaitsBulk(w *Warp, on uint32, n uint32, read bool, place uint32) {
	c := w.CTA
	c.bulks = slices.DeleteFunc(c.bulks, func(x *bulkCopy) bool {
		if x.warp != w || on>>x.lane&1 == 0 || x.tracked || uint64(x.group)+uint64(n) >= uint64(w.async().bulkGroups[x.lane]) {
			return false
		}
		if x.read(); read {
			x.source = true
			return false
		}
		x.write()
		return true
	})
	if !r.Out.Sync() {
		return
	}
	e := event.Event{Kind: event.BulkWait, Warp: w.Number, Mask: on, Place: place, Aux: n}
	if read {
		e.Flags = event.FlagRead
	}
	r.Out.add(e)
}

// endBulks performs the bulk copies to global memory of a block that ends: the end of a kernel waits for them. The
// block's shared memory is then reused. A copy that reads it may not have read its source yet, unless that has been
// waited for. A copy from global memory may still write it.
func (r *Run) endBulks(c *CTA) {
	for _, x := range c.bulks {
		if !x.tracked {
			x.write()
		}
		switch {
		case x.source:
		case x.tracked:
			r.outlives(x, "write its shared memory: nobody has waited for the phase of its mbarrier")
		default:
			r.outlives(x, "read its shared memory: its thread has not waited for the copy's group")
		}
	}
	c.bulks = c.bulks[:0]
	for _, p := range c.cluster.ctas { // copies to them continue
		for _, x := range p.bulks {
			if x.warp.CTA == c && x.own && !x.isRead {
				x.read()
				r.outlives(x, "read its shared memory: it is complete when the mbarrier of another block says so")
			}
		}
	}
}

// outlives reports a copy that its block does not wait for.
func (r *Run) outlives(x *bulkCopy, what string) {
	if f, fresh := r.Faults.count(r, CopyOutlives, x.stand.Place, true); fresh {
		f.Message = "the block ends while a bulk copy may still " + what
		f.Stands = []Stand{x.stand}
	}
}

// completeBulks performs the bulk copies that the barrier tracks.
func (x *mbarrierOp) completeBulks() {
	c := x.of
	var done []*bulkCopy
	c.bulks = slices.DeleteFunc(c.bulks, func(b *bulkCopy) bool {
		if !b.tracked || b.mbarrier != x.addr {
			return false
		}
		done = append(done, b)
		return true
	})
	for _, b := range done {
		b.write()
		x.r.Out.bulkDone(b, x.place)
		x.transfer(-int64(b.bytes))
		x.complete()
	}
}

// bulk emits the event for a contiguous range of a half of a bulk copy.
func (o *Emitter) bulk(x *bulkCopy, place uint32, flags event.Flags, space event.Space, addr, n uint64) {
	need := event.NeedGlobal
	if space == event.Shared {
		need = event.NeedShared
	}
	if o.Needs&need == 0 {
		return
	}
	e := event.Event{Kind: event.Bulk, Flags: flags, Warp: x.warp.Number, Mask: 1 << x.lane, Place: place, Addr: addr, Stride: int64(x.number), Space: space, Aux: uint32(n)}
	if x.tracked {
		if e.Barrier = 1; x.generic {
			e.Barrier = 2
		}
		e.Stride |= int64(x.told) << 32
	}
	if x.reduce != nil && flags == event.FlagWrite {
		e.Order, e.Scope, e.Size = event.Relaxed, event.ScopeGPU, uint8(x.element)
	}
	o.add(e)
}

func (o *Emitter) bulkDone(x *bulkCopy, place uint32) {
	if o.Sync() {
		o.add(event.Event{Kind: event.BulkDone, Warp: x.warp.Number, Mask: 1 << x.lane, Place: place, Addr: x.told, Stride: int64(x.number)})
	}
}
