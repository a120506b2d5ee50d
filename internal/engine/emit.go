package engine

import (
	"math/bits"
	"slices"
	"sync"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// batchEvents is the number of events that are passed on at once: with their addresses and values they stay in the
// cache.
const batchEvents = 512

// Emitter produces the events that the launch's sink needs.
type Emitter struct {
	l     *Launch
	Needs event.Needs
	Batch event.Batch
	Row   uint8 // log2 of the lanes in a row, if a warp has several rows of its block; otherwise 0
}

// newEmitter makes the Emitter of a launch.
func newEmitter(l *Launch) Emitter {
	o := Emitter{l: l, Needs: l.Needs}
	if x := l.Block.X; x < 32 && x&(x-1) == 0 && l.Block.Y*l.Block.Z > 1 {
		o.Row = uint8(bits.TrailingZeros32(x))
	}
	if o.Needs&event.NeedReconverge != 0 && l.Places != nil && !l.Places.DivergesAgain(l.Func) {
		o.Needs &^= event.NeedReconverge
	}
	if l.ClusterShape().Count() > 1 {
		o.Needs &^= event.NeedAgain // series are only for memory that its own block alone accesses
	}
	if l.Sink == nil {
		o.Needs = 0
	} else {
		o.Batch = spareOf(l.Program).take()
	}
	return o
}

// spareBatch is the memory of a batch, passed from one launch to the next.
type spareBatch struct {
	mu    sync.Mutex
	batch event.Batch
}

type spareKey struct{}

// spareOf returns the spare batch of a program.
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
func (o *Emitter) add(e event.Event) {
	e.Launch = o.l.ID
	o.Batch.Events = append(o.Batch.Events, e)
	o.Added()
}

// Next appends an event of w with a kind, mask and place, to be completed by the caller in place. Building it elsewhere
// and copying it would stall on the store. Call Added afterwards.
func (o *Emitter) Next(kind event.Kind, w *Warp, mask, place uint32) *event.Event {
	if len(o.Batch.Events) == cap(o.Batch.Events) {
		o.Batch.Events = slices.Grow(o.Batch.Events, 1)
	}
	o.Batch.Events = o.Batch.Events[:len(o.Batch.Events)+1]
	e := &o.Batch.Events[len(o.Batch.Events)-1]
	*e = event.Event{}
	e.Kind, e.Launch, e.Warp, e.Mask, e.Place = kind, o.l.ID, w.Number, mask, place
	return e
}

// Added passes the events on if there are enough.
func (o *Emitter) Added() {
	if len(o.Batch.Events) >= batchEvents {
		event.Hand(o.l.Sink, &o.Batch)
	}
}

// begin emits the beginning of the launch.
func (o *Emitter) begin() {
	if o.Needs&event.NeedLaunch == 0 {
		return
	}
	l := o.l.Launch
	img := o.l.Program.Image(o.l.Func)
	l.Synchronises, l.Swaps, l.NonCoherent, l.Bulk = img.Synchronises, img.Swaps, img.NonCoherentLoad, img.Bulk
	o.Batch.Launches = append(o.Batch.Launches, l)
	o.add(event.Event{Kind: event.KernelBegin})
}

// end emits the end of the launch, however it ended, and passes the remaining events on.
func (o *Emitter) end() {
	if o.Needs&event.NeedLaunch != 0 {
		o.add(event.Event{Kind: event.KernelEnd})
	}
	event.Hand(o.l.Sink, &o.Batch)
	if o.l.Sink != nil {
		spareOf(o.l.Program).put(o.Batch)
	}
}

// accesses emits the events of a warp's load or store: one for each space that its lanes accessed.
func (o *Emitter) accesses(kind event.Kind, flags event.Flags, w *Warp, in *loader.Instr, place uint32, acc *access) {
	if acc.Global != 0 && o.Needs&event.NeedGlobal != 0 {
		o.access(kind, flags, w, in, place, event.Global, acc.Global, acc)
	}
	if acc.Shared != 0 && o.Needs&event.NeedShared != 0 {
		o.access(kind, flags, w, in, place, event.Shared, acc.Shared, acc)
	}
}

// access emits one event, affine if the addresses are.
func (o *Emitter) access(kind event.Kind, flags event.Flags, w *Warp, in *loader.Instr, place uint32, space event.Space, mask uint32, acc *access) {
	e := event.Event{Kind: kind, Flags: flags, Warp: w.Number, Place: place, Mask: mask,
		Space: space, Order: in.Order, Scope: in.Scope, Size: uint8(in.Width)}
	if acc.size != 0 {
		e.Size = acc.size
	}
	if kind == event.Atomic {
		e.RMW = RMWOf(in.Op)
	}
	in.Qualify(&e)
	var affine bool
	if e.Addr, e.Stride, affine = fitLine(mask, &acc.Addr); !affine && !FitRows(&e, o.Row, &acc.Addr) {
		e.Flags |= event.FlagScattered
		e.Addr, e.Stride = 0, 0
		e.Side = uint32(len(o.Batch.Addrs))
		o.Batch.Addrs = Pack(o.Batch.Addrs, &acc.Addr, mask)
	}
	if o.Needs&event.NeedValues != 0 && flags&event.FlagWrite != 0 {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(o.Batch.Values))
		n := event.ValueWords(e.Size)
		o.Batch.Values = slices.Grow(o.Batch.Values, 32*n)
		for m := mask; m != 0; m &= m - 1 {
			o.Batch.Values = append(o.Batch.Values, acc.Value[bits.TrailingZeros32(m)][:n]...)
		}
		if o.Olds() {
			e.Flags |= event.FlagOld
			for m := mask; m != 0; m &= m - 1 {
				o.Batch.Values = append(o.Batch.Values, acc.Old[bits.TrailingZeros32(m)][:n]...)
			}
		}
	}
	o.add(e)
}

// Olds reports whether events carry the values that writes overwrite.
func (o *Emitter) Olds() bool {
	return o.Needs&(event.NeedValues|event.NeedOld) == event.NeedValues|event.NeedOld
}

// fitLine finds a base and a stride such that every lane l of mask has the address base + (l - lowest lane) * stride.
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

// FitRows gives an event rows of 1<<shift lanes if the addresses of its lanes form rows. It returns false if they do
// not.
func FitRows(e *event.Event, shift uint8, addr *[32]uint64) bool {
	if shift == 0 {
		return false
	}
	if e.Mask == ^uint32(0) {
		return AllRows(e, shift, addr)
	}
	first := bits.TrailingZeros32(e.Mask)
	top := first >> shift // its row
	var stride, rowStride int64
	rows := false
	// The first two lanes in one row determine the stride, and the first row below the lowest lane's row determines the
	// distance of rows.
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

// AllRows sets the addresses of an event of all lanes of a warp if they form rows or a line.
func AllRows(e *event.Event, shift uint8, addr *[32]uint64) bool {
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

// RMWOf returns the kind of a read-modify-write.
func RMWOf(op isa.Op) event.RMW {
	switch op {
	case isa.OpCas:
		return event.CompareAndSwap
	case isa.OpExch:
		return event.Exchange
	}
	return event.OtherRMW
}

// Wrote returns the flags of an atom or red that writes.
func Wrote(in *loader.Instr) event.Flags {
	switch {
	case len(in.Results) > 0:
		return event.FlagRead | event.FlagWrite
	case in.Op == isa.OpExch:
		return event.FlagWrite
	}
	return event.FlagRead | event.FlagWrite | event.FlagRed
}

// Atomics emits the events of a warp's atom or red. Lanes whose compare-and-swap failed only read: they are in events
// of their own, ordered so that every lane sees exactly the writes that precede it in the stream.
func (o *Emitter) Atomics(w *Warp, in *loader.Instr, place uint32, acc *access, failed uint32) {
	wrote := Wrote(in)
	read := wrote &^ event.FlagWrite // for the lanes that failed
	all := acc.Global | acc.Shared
	failed &= all
	emit := func(mask uint32, flags event.Flags) {
		global, shared := acc.Global, acc.Shared
		acc.Global, acc.Shared = global&mask, shared&mask
		o.accesses(event.Atomic, flags, w, in, place, acc)
		acc.Global, acc.Shared = global, shared
	}
	if failed == 0 || failed == all {
		if failed != 0 {
			wrote = read
		}
		o.accesses(event.Atomic, wrote, w, in, place, acc)
		return
	}
	before, after := false, false // some failed lane is below (above) a lane that wrote the same place
	for f := failed; f != 0; f &= f - 1 {
		i := bits.TrailingZeros32(f)
		for m := all &^ failed; m != 0; m &= m - 1 {
			if j := bits.TrailingZeros32(m); acc.Addr[i] == acc.Addr[j] {
				before = before || i < j
				after = after || i > j
			}
		}
	}
	switch {
	case before && after: // lane by lane, in runs with the same outcome
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

// Sync reports whether synchronisation events are needed.
func (o *Emitter) Sync() bool { return o.Needs&event.NeedSync != 0 }

// Fence emits a fence by the lanes of mask.
func (o *Emitter) Fence(w *Warp, in *loader.Instr, mask uint32, place uint32) {
	if o.Sync() {
		o.add(event.Event{Kind: in.Row.Event, Warp: w.Number, Mask: mask, Place: place, Order: in.Order, Scope: in.Scope})
	}
}

// exit emits the exit of the lanes of mask.
func (o *Emitter) exit(w *Warp, mask uint32, place uint32) {
	if o.Sync() {
		o.Next(event.Exit, w, mask, place)
		o.Added()
	}
}

// Arrive emits the arrival of the lanes of mask at barrier id. count is the number of threads requested; 0: all.
func (o *Emitter) Arrive(w *Warp, mask uint32, place uint32, id uint8, flags event.Flags, count int) {
	if o.Sync() {
		e := o.Next(event.Arrive, w, mask, place)
		e.Barrier, e.Flags, e.Aux = id, flags, uint32(count)
		o.Added()
	}
}

// BarrierDone emits the completion of barrier id of w's block, caused by the lanes of mask.
func (o *Emitter) BarrierDone(w *Warp, mask uint32, place uint32, id uint8) {
	if o.Sync() {
		o.Next(event.BarrierDone, w, mask, place).Barrier = id
		o.Added()
	}
}

// WarpSync emits the completion of bar.warp.sync for the lanes of mask.
func (o *Emitter) WarpSync(w *Warp, mask uint32, place uint32) {
	if o.Sync() {
		o.add(event.Event{Kind: event.WarpSync, Warp: w.Number, Mask: mask, Place: place})
	}
}

// deviceOp emits operation n of its launch, which a lane puts into a stream of the device.
func (o *Emitter) deviceOp(w *Warp, lane int, place uint32, n uint32) {
	if o.Sync() {
		o.add(event.Event{Kind: event.DeviceOp, Warp: w.Number, Mask: 1 << lane, Place: place, Aux: n})
	}
}

// copies emits a commit of asynchronous copies, or a wait for all groups except the last n.
func (o *Emitter) copies(kind event.Kind, w *Warp, mask uint32, place uint32, n uint32) {
	if o.Sync() {
		o.add(event.Event{Kind: kind, Warp: w.Number, Mask: mask, Place: place, Aux: n})
	}
}

// proxyFence emits fence.proxy.async.
func (o *Emitter) proxyFence(w *Warp, in *loader.Instr, mask uint32, place uint32) {
	if o.Sync() {
		o.add(event.Event{Kind: event.ProxyFence, Warp: w.Number, Mask: mask, Place: place, Space: in.Space})
	}
}

// reconverged emits that all live lanes of a warp, after divergence, execute together again.
func (o *Emitter) reconverged(w *Warp) {
	if o.Needs&event.NeedReconverge != 0 {
		o.add(event.Event{Kind: event.Reconverge, Warp: w.Number, Mask: w.Live})
	}
}

// branch emits a split, a change of path or a reconvergence of a warp in lockstep.
func (o *Emitter) branch(kind event.Kind, w *Warp, place uint32, mask, others uint32) {
	if o.Needs&event.NeedBranches != 0 || o.Needs&event.NeedReconverge != 0 && kind == event.Reconverge && mask == w.Live {
		o.add(event.Event{Kind: kind, Warp: w.Number, Mask: mask, Place: place, Aux: others})
	}
}

// Pack appends the values of the lanes of on, lowest lane first.
func Pack(to []uint64, from *lanes.V64, on uint32) []uint64 {
	if on == ^uint32(0) {
		return append(to, from[:]...)
	}
	for m := on; m != 0; m &= m - 1 {
		to = append(to, from[bits.TrailingZeros32(m)&31])
	}
	return to
}
