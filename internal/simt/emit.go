package simt

import (
	"math/bits"
	"slices"
	"sync"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/lanes"
	"fencepost.dev/fencepost/internal/simt/loader"
)

// batchEvents is how many events are handed on at once: with their addresses and values they stay in the cache.
const batchEvents = 512

// emitter makes the events that the launch's sink asks for.
type emitter struct {
	l     *Launch
	needs event.Needs
	batch event.Batch
	row   uint8 // logarithm of the lanes of a row, where a warp has several rows of its block; else 0
}

// newEmitter makes the emitter of a launch.
func newEmitter(l *Launch) emitter {
	o := emitter{l: l, needs: l.Needs}
	if x := l.Block.X; x < 32 && x&(x-1) == 0 && l.Block.Y*l.Block.Z > 1 {
		o.row = uint8(bits.TrailingZeros32(x))
	}
	if o.needs&event.NeedReconverge != 0 && l.Places != nil && !l.Places.PartsAgain(l.Func) {
		o.needs &^= event.NeedReconverge
	}
	if l.ClusterShape().Count() > 1 {
		o.needs &^= event.NeedAgain // series are of memory that its block alone accesses
	}
	if l.Sink == nil {
		o.needs = 0
	} else {
		o.batch = spareOf(l.Program).take()
	}
	return o
}

// spareBatch is the memory of a batch, from one launch for the next.
type spareBatch struct {
	mu    sync.Mutex
	batch event.Batch
}

type spareKey struct{}

// spareOf is the batch that a program keeps.
func spareOf(p *loader.Program) *spareBatch {
	return p.Keep(spareKey{}, func() any { return new(spareBatch) }).(*spareBatch)
}

func (s *spareBatch) take() event.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.batch
	s.batch = event.Batch{}
	return b
}

func (s *spareBatch) put(b event.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = b
}

// add appends an event of w.
func (o *emitter) add(e event.Event) {
	e.Launch = o.l.ID
	o.batch.Events = append(o.batch.Events, e)
	o.added()
}

// next appends an event of w that has its kind, mask and place, to be filled in where it is: what is put together elsewhere field by
// field, and copied, waits for itself. It is to be followed by added.
func (o *emitter) next(kind event.Kind, w *warp, mask, place uint32) *event.Event {
	if len(o.batch.Events) == cap(o.batch.Events) {
		o.batch.Events = slices.Grow(o.batch.Events, 1)
	}
	o.batch.Events = o.batch.Events[:len(o.batch.Events)+1]
	e := &o.batch.Events[len(o.batch.Events)-1]
	*e = event.Event{}
	e.Kind, e.Launch, e.Warp, e.Mask, e.Place = kind, o.l.ID, w.number, mask, place
	return e
}

// added hands the events on when there are enough of them.
func (o *emitter) added() {
	if len(o.batch.Events) >= batchEvents {
		event.Hand(o.l.Sink, &o.batch)
	}
}

// begin tells that the launch begins.
func (o *emitter) begin() {
	if o.needs&event.NeedLaunch == 0 {
		return
	}
	l := o.l.Launch
	img := o.l.Program.Image(o.l.Func)
	l.Synchronises, l.Swaps, l.NonCoherent, l.Bulk = img.Synchronises, img.Swaps, img.NonCoherentLoad, img.Bulk
	o.batch.Launches = append(o.batch.Launches, l)
	o.add(event.Event{Kind: event.KernelBegin})
}

// end tells that the launch has ended, in whatever way, and hands on what is left.
func (o *emitter) end() {
	if o.needs&event.NeedLaunch != 0 {
		o.add(event.Event{Kind: event.KernelEnd})
	}
	event.Hand(o.l.Sink, &o.batch)
	if o.l.Sink != nil {
		spareOf(o.l.Program).put(o.batch)
	}
}

// accesses makes the events of a warp's load or store: one for each space that its lanes touched.
func (o *emitter) accesses(kind event.Kind, flags event.Flags, w *warp, in *loader.Instr, place uint32, acc *access) {
	if acc.global != 0 && o.needs&event.NeedGlobal != 0 {
		o.access(kind, flags, w, in, place, event.Global, acc.global, acc)
	}
	if acc.shared != 0 && o.needs&event.NeedShared != 0 {
		o.access(kind, flags, w, in, place, event.Shared, acc.shared, acc)
	}
}

// access makes one event: affine where the addresses are.
func (o *emitter) access(kind event.Kind, flags event.Flags, w *warp, in *loader.Instr, place uint32, space event.Space, mask uint32, acc *access) {
	e := event.Event{Kind: kind, Flags: flags, Warp: w.number, Place: place, Mask: mask,
		Space: space, Order: in.Order, Scope: in.Scope, Size: uint8(in.Width)}
	if acc.size != 0 {
		e.Size = acc.size
	}
	if kind == event.Atomic {
		e.RMW = rmwOf(in.Op)
	}
	in.Qualify(&e)
	var affine bool
	if e.Addr, e.Stride, affine = fitLine(mask, &acc.addr); !affine && !fitRows(&e, o.row, &acc.addr) {
		e.Flags |= event.FlagScattered
		e.Addr, e.Stride = 0, 0
		e.Side = uint32(len(o.batch.Addrs))
		o.batch.Addrs = pack(o.batch.Addrs, &acc.addr, mask)
	}
	if o.needs&event.NeedValues != 0 && flags&event.FlagWrite != 0 {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(o.batch.Values))
		n := event.ValueWords(e.Size)
		o.batch.Values = slices.Grow(o.batch.Values, 32*n)
		for m := mask; m != 0; m &= m - 1 {
			o.batch.Values = append(o.batch.Values, acc.value[bits.TrailingZeros32(m)][:n]...)
		}
		if o.olds() {
			e.Flags |= event.FlagOld
			for m := mask; m != 0; m &= m - 1 {
				o.batch.Values = append(o.batch.Values, acc.old[bits.TrailingZeros32(m)][:n]...)
			}
		}
	}
	o.add(e)
}

// olds says that events tell what writes overwrite.
func (o *emitter) olds() bool {
	return o.needs&(event.NeedValues|event.NeedOld) == event.NeedValues|event.NeedOld
}

// fitLine finds base and stride such that every lane l of mask has address base + (l - lowest lane) * stride.
func fitLine(mask uint32, addr *[32]uint64) (base uint64, stride int64, ok bool) {
	first := bits.TrailingZeros32(mask)
	base = addr[first]
	rest := mask & (mask - 1)
	if rest == 0 {
		return base, 0, true
	}
	second := bits.TrailingZeros32(rest)
	gap := int64(second - first)
	diff := int64(addr[second] - base)
	if diff%gap != 0 {
		return 0, 0, false
	}
	stride = diff / gap
	for m := rest & (rest - 1); m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if addr[i] != base+uint64(int64(i-first)*stride) {
			return 0, 0, false
		}
	}
	return base, stride, true
}

// fitRows gives an event rows of 1<<shift lanes, if the addresses of its lanes are such. It says false if not.
func fitRows(e *event.Event, shift uint8, addr *[32]uint64) bool {
	if shift == 0 {
		return false
	}
	if e.Mask == ^uint32(0) {
		return allRows(e, shift, addr)
	}
	first := bits.TrailingZeros32(e.Mask)
	top := first >> shift // its row
	var stride, rowStride int64
	rows := false
	// The first two lanes of one row tell the stride, the first row below the lowest one what is between rows.
	for last, m := first, e.Mask&(e.Mask-1); m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if i>>shift == last>>shift {
			stride = int64(addr[i]-addr[last]) / int64(i-last)
			break
		}
		last = i
	}
	for m := e.Mask & (e.Mask - 1); m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		row := i>>shift - top
		far := int64(addr[i] - addr[first])
		far -= int64(i-first-row<<shift) * stride
		if row > 0 && !rows {
			rows, rowStride = true, far/int64(row)
		}
		if far != int64(row)*rowStride {
			return false
		}
	}
	e.Addr = addr[first]
	return e.InRows(shift, stride, rowStride)
}

// allRows gives an event of all lanes of a warp their addresses where they lie in rows, or in a line.
func allRows(e *event.Event, shift uint8, addr *[32]uint64) bool {
	n := uint64(1) << shift & 31
	stride, rowStride := addr[1]-addr[0], addr[n]-addr[0]
	at := addr[0]
	for row := uint64(0); row < 32; row += n {
		for l, want := uint64(0), at; l < n; l, want = l+1, want+stride {
			if addr[(row+l)&31] != want {
				return false
			}
		}
		at += rowStride
	}
	e.Addr = addr[0]
	if rowStride == n*stride {
		e.Stride = int64(stride)
		return true
	}
	return e.InRows(shift, int64(stride), int64(rowStride))
}

// rmwOf names the read-modify-writes that locks are made of.
func rmwOf(op isa.Op) event.RMW {
	switch op {
	case isa.OpCas:
		return event.CompareAndSwap
	case isa.OpExch:
		return event.Exchange
	}
	return event.OtherRMW
}

// wrote gives the flags of an atom or red that writes.
func wrote(in *loader.Instr) event.Flags {
	switch {
	case len(in.Results) > 0:
		return event.FlagRead | event.FlagWrite
	case in.Op == isa.OpExch:
		return event.FlagWrite
	}
	return event.FlagRead | event.FlagWrite | event.FlagRed
}

// atomics makes the events of a warp's atom or red. The lanes whose compare-and-swap failed only read, in events of
// their own, which stand so that every lane sees the writes before it in the stream and no others.
func (o *emitter) atomics(w *warp, in *loader.Instr, place uint32, acc *access, failed uint32) {
	wrote := wrote(in)
	read := wrote &^ event.FlagWrite // of those that failed
	all := acc.global | acc.shared
	failed &= all
	emit := func(mask uint32, flags event.Flags) {
		global, shared := acc.global, acc.shared
		acc.global, acc.shared = global&mask, shared&mask
		o.accesses(event.Atomic, flags, w, in, place, acc)
		acc.global, acc.shared = global, shared
	}
	if failed == 0 || failed == all {
		if failed != 0 {
			wrote = read
		}
		o.accesses(event.Atomic, wrote, w, in, place, acc)
		return
	}
	before, after := false, false // a failed lane below (above) a lane that wrote the same place
	for f := failed; f != 0; f &= f - 1 {
		i := bits.TrailingZeros32(f)
		for m := all &^ failed; m != 0; m &= m - 1 {
			if j := bits.TrailingZeros32(m); acc.addr[i] == acc.addr[j] {
				before = before || i < j
				after = after || i > j
			}
		}
	}
	switch {
	case before && after: // lane by lane, in runs of one outcome
		for rest := all; rest != 0; {
			run, other, flags := rest&^failed, rest&failed, wrote
			if failed&(rest&-rest) != 0 {
				run, other, flags = other, run, read
			}
			if other != 0 {
				run &= other&-other - 1
			}
			emit(run, flags)
			rest &^= run
		}
	case before:
		emit(failed, read)
		emit(all&^failed, wrote)
	default:
		emit(all&^failed, wrote)
		emit(failed, read)
	}
}

func (o *emitter) sync() bool { return o.needs&event.NeedSync != 0 }

// fence tells of a fence by the lanes of mask.
func (o *emitter) fence(w *warp, in *loader.Instr, mask uint32, place uint32) {
	if o.sync() {
		o.add(event.Event{Kind: in.Row.Event, Warp: w.number, Mask: mask, Place: place, Order: in.Order, Scope: in.Scope})
	}
}

// exit tells that the lanes of mask have finished.
func (o *emitter) exit(w *warp, mask uint32, place uint32) {
	if o.sync() {
		o.next(event.Exit, w, mask, place)
		o.added()
	}
}

// arrive tells that the lanes of mask arrived at barrier id; count is the number of threads asked for, 0 for all.
func (o *emitter) arrive(w *warp, mask uint32, place uint32, id uint8, flags event.Flags, count int) {
	if o.sync() {
		e := o.next(event.Arrive, w, mask, place)
		e.Barrier, e.Flags, e.Aux = id, flags, uint32(count)
		o.added()
	}
}

// barrierDone tells that barrier id of w's block completed by what the lanes of mask did.
func (o *emitter) barrierDone(w *warp, mask uint32, place uint32, id uint8) {
	if o.sync() {
		o.next(event.BarrierDone, w, mask, place).Barrier = id
		o.added()
	}
}

// warpSync tells that bar.warp.sync completed for the lanes of mask.
func (o *emitter) warpSync(w *warp, mask uint32, place uint32) {
	if o.sync() {
		o.add(event.Event{Kind: event.WarpSync, Warp: w.number, Mask: mask, Place: place})
	}
}

// deviceOp tells that a lane puts operation n of its launch into a stream of the device.
func (o *emitter) deviceOp(w *warp, lane int, place uint32, n uint32) {
	if o.sync() {
		o.add(event.Event{Kind: event.DeviceOp, Warp: w.number, Mask: 1 << lane, Place: place, Aux: n})
	}
}

// copies tells of a commit of asynchronous copies, or of a wait for all groups but the last n.
func (o *emitter) copies(kind event.Kind, w *warp, mask uint32, place uint32, n uint32) {
	if o.sync() {
		o.add(event.Event{Kind: kind, Warp: w.number, Mask: mask, Place: place, Aux: n})
	}
}

// reconverged tells that all live lanes of a warp that had parted execute together again.
func (o *emitter) reconverged(w *warp) {
	if o.needs&event.NeedReconverge != 0 {
		o.add(event.Event{Kind: event.Reconverge, Warp: w.number, Mask: w.live})
	}
}

// branch tells of a split, a change of path or a reconvergence of a warp in lockstep.
func (o *emitter) branch(kind event.Kind, w *warp, place uint32, mask, others uint32) {
	if o.needs&event.NeedBranches != 0 || o.needs&event.NeedReconverge != 0 && kind == event.Reconverge && mask == w.live {
		o.add(event.Event{Kind: kind, Warp: w.number, Mask: mask, Place: place, Aux: others})
	}
}

// pack appends the lanes of on, lowest first.
func pack(to []uint64, from *lanes.V64, on uint32) []uint64 {
	if on == ^uint32(0) {
		return append(to, from[:]...)
	}
	for m := on; m != 0; m &= m - 1 {
		to = append(to, from[bits.TrailingZeros32(m)&31])
	}
	return to
}
