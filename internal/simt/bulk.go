package simt

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// bulkCopy is a bulk copy in flight: see copies for when it is performed.
type bulkCopy struct {
	number   uint64 // in the block
	warp     *warp
	lane     int
	from, to []byte
	tracked  bool
	mbarrier uint64 // that tracks it
	group    uint32
	data     []byte // what has been read, nil before
	written  bool
}

// bulkUnit is what sizes and addresses of bulk copies must be multiples of.
const bulkUnit = 16

// bulk executes cp.async.bulk for the lanes of on. A lane whose operands are wrong copies nothing.
func (r *run) bulk(w *warp, in *inst, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		to, from := r.m.value(w, i, &in.src[0])+uint64(in.Off), r.m.value(w, i, &in.src[1])+uint64(in.Off2)
		n := r.m.value(w, i, &in.src[2]) & 0xffff_ffff
		x := &bulkCopy{number: w.cta.bulksDone, warp: w, lane: i, tracked: !in.Has("bulk_group"), group: w.copies.bulkGroups[i]}
		fromSpace := event.Global
		if in.Space == event.Global || !in.Has("global") {
			fromSpace = event.Shared
		}
		if n%bulkUnit != 0 || n == 0 {
			r.faults.at(r, Misaligned, w, i, place, "copies", "%s is told to copy %d bytes: the number must be a multiple of %d", in.mnemonic(), n, bulkUnit)
			continue
		}
		x.from = r.bulkBytes(w, i, in, touch{event.FlagRead, fromSpace, from, n}, place)
		x.to = r.bulkBytes(w, i, in, touch{event.FlagWrite, in.Space, to, n}, place)
		if x.from == nil || x.to == nil {
			continue
		}
		if x.tracked {
			if x.mbarrier = r.m.value(w, i, &in.src[3]) + uint64(in.Off3); x.mbarrier%8 != 0 || w.cta.liveBarrier(x.mbarrier) == nil {
				r.faults.at(r, MbarrierMisuse, w, i, place, "executes "+in.mnemonic(), "%s is given an object as mbarrier that was not initialised, or has been invalidated", in.mnemonic())
				continue
			}
		}
		w.cta.bulksDone++
		r.out.bulk(w, i, place, x, event.FlagRead, fromSpace, from, n)
		r.out.bulk(w, i, place, x, event.FlagWrite, in.Space, to, n)
		w.cta.bulks = append(w.cta.bulks, x)
		read, write := r.early(w)
		w.copies.issued++
		if read {
			x.read()
		}
		if write {
			x.write()
		}
	}
}

// bulkBytes gives the bytes that a bulk copy reads or writes, nil after a fault.
func (r *run) bulkBytes(w *warp, lane int, in *inst, t touch, place uint32) []byte {
	var data []byte
	var kind FaultKind
	if t.space == event.Shared {
		if all := uint64(len(w.cta.shared)); t.addr > all || t.size > all-t.addr {
			kind = OutOfBounds
		} else {
			data = w.cta.shared[t.addr:][:t.size:t.size]
		}
	} else {
		data, kind = r.globalBytes(t.addr, t.size, in, t.flags, place)
	}
	if kind == "" && t.addr%bulkUnit != 0 {
		kind = Misaligned
		r.faults.at(r, kind, w, lane, place, "copies", "%s is given address %#x of %s memory, which is not a multiple of %d", in.mnemonic(), t.addr, t.space, bulkUnit)
		return nil
	}
	if kind != "" {
		r.faults.access(r, kind, w, lane, place, t)
		return nil
	}
	return data
}

func (x *bulkCopy) read() {
	if x.data == nil {
		x.data = slices.Clone(x.from)
	}
}

func (x *bulkCopy) write() {
	if !x.written {
		x.read()
		copy(x.to, x.data)
		x.written = true
		x.warp.writes++
	}
}

// awaitsBulk performs the bulk copies of all groups of the lanes of on but the last n; with read, only their reads.
func (r *run) awaitsBulk(w *warp, on uint32, n uint32, read bool, place uint32) {
	c := w.cta
	c.bulks = slices.DeleteFunc(c.bulks, func(x *bulkCopy) bool {
		if x.warp != w || on>>x.lane&1 == 0 || x.tracked || uint64(x.group)+uint64(n) >= uint64(w.copies.bulkGroups[x.lane]) {
			return false
		}
		if x.read(); read {
			return false
		}
		x.write()
		return true
	})
	if !r.out.sync() {
		return
	}
	e := event.Event{Kind: event.BulkWait, Warp: w.number, Mask: on, Place: place, Aux: n}
	if read {
		e.Flags = event.FlagRead
	}
	r.out.add(e)
}

// endBulks performs the writes of bulk copies of a block that ends, of those that have been waited for as to what they read.
func (c *cta) endBulks() {
	for _, x := range c.bulks {
		if !x.tracked && x.data != nil {
			x.write()
		}
	}
	c.bulks = c.bulks[:0]
}

// completeBulks performs the bulk copies that the barrier tracks.
func (x *mbarrierOp) completeBulks() {
	c := x.w.cta
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
		x.r.out.bulkDone(b, x.place)
		x.transfer(-int64(len(b.from)))
		x.complete()
	}
}

// bulk tells of a half of a bulk copy.
func (o *emitter) bulk(w *warp, lane int, place uint32, x *bulkCopy, flags event.Flags, space event.Space, addr, n uint64) {
	need := event.NeedGlobal
	if space == event.Shared {
		need = event.NeedShared
	}
	if o.needs&need == 0 {
		return
	}
	e := event.Event{Kind: event.Bulk, Flags: flags, Warp: w.number, Mask: 1 << lane, Place: place, Addr: addr, Stride: int64(x.number), Space: space, Aux: uint32(n)}
	if x.tracked {
		e.Barrier = 1
	}
	o.add(e)
}

func (o *emitter) bulkDone(x *bulkCopy, place uint32) {
	if o.sync() {
		o.add(event.Event{Kind: event.BulkDone, Warp: x.warp.number, Mask: 1 << x.lane, Place: place, Addr: x.mbarrier, Stride: int64(x.number)})
	}
}
