package engine

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// maxStands bounds the number of stands in a deadlock.
const maxStands = 64

// faultLog collects the faults of a launch: one for each kind and place, in the order in which they first happened.
// They are reported when the launch ends.
type faultLog struct {
	list  []*Fault
	index map[faultKey]*Fault
	// lost is the kind of the first fault after which a device would be lost.
	lost FaultKind
	// stuck holds the places of threads in blocks that can never finish, by the reason.
	stuck [len(stuckFaults)]standSet
}

type faultKey struct {
	kind    FaultKind
	place   uint32
	warning bool
}

// touch describes a memory access for messages.
type touch struct {
	flags event.Flags
	space event.Space
	addr  uint64
	size  uint64
}

// count returns the fault of a kind at a place. If it is new (fresh), the caller fills it in.
func (f *faultLog) count(r *Run, kind FaultKind, place uint32, warning bool) (fault *Fault, fresh bool) {
	switch kind {
	case OutOfBounds, Misaligned, UseAfterFree, NoPeerAccess, ReadOnly, TrapHit, Assertion, StackOverflow, BadCall, DeviceHeap, PeerGone:
		if f.lost == "" {
			f.lost = kind
		}
	}
	if f.index == nil {
		f.index = map[faultKey]*Fault{}
	}
	key := faultKey{kind, place, warning}
	if old := f.index[key]; old != nil {
		old.Count++
		return old, false
	}
	fault = &Fault{Kind: kind, Launch: r.Launch.Launch, Warning: warning, Count: 1}
	f.index[key] = fault
	f.list = append(f.list, fault)
	return fault, true
}

// deliver reports the faults to the owner of the launch.
func (f *faultLog) deliver(l *Launch) {
	if l.OnFault == nil {
		return
	}
	for _, fault := range f.list {
		l.OnFault(*fault)
	}
}

// At counts a fault of one lane.
func (f *faultLog) At(r *Run, kind FaultKind, w *Warp, lane int, place uint32, doing, format string, args ...any) {
	fault, fresh := f.count(r, kind, place, false)
	if !fresh {
		return
	}
	fault.Message = fmt.Sprintf(format, args...)
	fault.Stands = []Stand{{Place: place, Block: w.CTA.id, Thread: w.tid(lane), Threads: 1, Doing: doing}}
}

// access counts a fault of a memory access.
func (f *faultLog) access(r *Run, kind FaultKind, w *Warp, lane int, place uint32, t touch) {
	if fault, fresh := f.count(r, kind, place, false); fresh {
		fault.touched(w, lane, place, t, r.describe(kind, w, lane, t))
	}
}

// beside counts an access whose index leads out of the shared variable that the source names.
func (f *faultLog) beside(r *Run, w *Warp, lane int, place uint32, t touch, of *isa.Var) {
	if fault, fresh := f.count(r, OutOfVariable, place, false); fresh {
		fault.touched(w, lane, place, t, r.describeVariable(t, of))
	}
}

// touched fills in a fault of a memory access. what describes the address.
func (fault *Fault) touched(w *Warp, lane int, place uint32, t touch, what string) {
	doing := "reads"
	switch {
	case t.flags == event.FlagWrite:
		doing = "writes"
	case t.flags&event.FlagWrite != 0:
		doing = "updates"
	}
	fault.Message = fmt.Sprintf("the thread %s %d bytes at %s", doing, t.size, what)
	fault.Stands = []Stand{{Place: place, Block: w.CTA.id, Thread: w.tid(lane), Threads: 1, Doing: doing,
		Flags: t.flags, Space: t.space, Address: t.addr, Size: int(t.size)}}
}

// describe describes the address of a faulting access.
func (r *Run) describe(kind FaultKind, w *Warp, lane int, t touch) string {
	switch t.space {
	case event.Shared:
		if t.addr>>event.PeerShift != 0 {
			return r.describePeer(kind, w, t)
		}
		name, at, ok := r.p.SharedVar(r.Launch.Func, t.addr)
		switch {
		case kind == Misaligned && ok:
			return fmt.Sprintf("offset %#x of shared memory (%s + %d), which is not a multiple of %d", t.addr, name, t.addr-at, t.size)
		case kind == Misaligned:
			return fmt.Sprintf("offset %#x of shared memory, which is not a multiple of %d", t.addr, t.size)
		}
		return fmt.Sprintf("offset %#x of shared memory, of which the block has %d bytes%s", t.addr, len(w.CTA.Shared), past(t, 0, uint64(len(w.CTA.Shared))))
	case event.Local:
		if kind == Misaligned {
			return fmt.Sprintf("offset %#x of local memory, which is not a multiple of %d", t.addr, t.size)
		}
		return fmt.Sprintf("offset %#x of local memory, of which the thread has %d bytes here", t.addr, len(r.Machine.Local(w, lane)))
	case event.Param:
		return fmt.Sprintf("offset %#x of the parameters, which are fewer bytes", t.addr)
	case event.Generic:
		return fmt.Sprintf("%#x, which is no address of data", t.addr)
	}
	return DescribeAddress(r.Memory, kind, t.addr, t.size)
}

// describeVariable describes an access outside of the variable that it names: what is there, and the distance.
func (r *Run) describeVariable(t touch, of *isa.Var) string {
	at, size := uint64(r.Image.Layout.Offset[of.Index]), uint64(of.Size)
	off := fmt.Sprintf("%d bytes before it", at-t.addr)
	if t.addr >= at {
		off = strings.TrimPrefix(past(t, at, size), ": ")
	}
	there := "no variable"
	if name, begin, ok := r.p.SharedVar(r.Launch.Func, t.addr); ok && begin != at {
		there = fmt.Sprintf("%s + %d", name, t.addr-begin)
	}
	return fmt.Sprintf("offset %#x of shared memory (%s), by an index of %s, which has %d bytes: %s", t.addr, there, of.Name, size, off)
}

// DescribeAddress describes the address of a faulting access to size bytes of global memory.
func DescribeAddress(m *devmem.Memory, kind FaultKind, addr, size uint64) string {
	if a, ok := m.Hidden(addr); ok {
		if m.IsShut(addr) {
			return fmt.Sprintf("%#x (%s + %d), memory of another process, which this one has closed (cudaIpcCloseMemHandle)", addr, a.Name, addr-a.Addr)
		}
		return fmt.Sprintf("%#x (%s + %d), memory of device %d, to which the device of the kernel has no peer access", addr, a.Name, addr-a.Addr, a.Device)
	}
	if a, ok := m.Find(addr); ok {
		in := fmt.Sprintf("%#x (%s + %d)", addr, a.Name, addr-a.Addr)
		switch kind {
		case Misaligned:
			return fmt.Sprintf("%s, which is not a multiple of %d", in, size)
		case UseAfterFree:
			return in + ", which has been freed"
		case ReadOnly:
			if a.Kind == devmem.DeviceAlloc {
				return in + ", which cuMemSetAccess has made readable only"
			}
			return in + ", which is constant memory"
		}
		return fmt.Sprintf("%s, of which the last %d pass the end", in, addr+size-(a.Addr+a.Size))
	}
	if addr < 1<<16 {
		return fmt.Sprintf("%#x: a null pointer", addr)
	}
	before, after := m.Neighbours(addr)
	const far = 1 << 20
	past, short := uint64(far), uint64(far)
	if before != nil {
		past = addr - (before.Addr + before.Size)
	}
	if after != nil {
		short = after.Addr - addr
	}
	switch {
	case past < far && past <= short:
		return fmt.Sprintf("%#x, %s of %s%s", addr, pastEnd(past), before.Name, freedNote(before))
	case short < far:
		return fmt.Sprintf("%#x, %d bytes before %s%s", addr, short, after.Name, freedNote(after))
	case !m.Spans(addr):
		return fmt.Sprintf("%#x, which is host memory that the device cannot reach, or no memory at all", addr)
	}
	return fmt.Sprintf("%#x, where nothing is allocated", addr)
}

func freedNote(a *devmem.Alloc) string {
	if a.Freed {
		return ", which has been freed"
	}
	return ""
}

// past returns the distance by which an access passes the end of a range.
func past(t touch, begin, size uint64) string {
	if t.addr < begin+size {
		return fmt.Sprintf(": the last %d pass the end", t.addr+t.size-(begin+size))
	}
	return ": " + pastEnd(t.addr-(begin+size))
}

func pastEnd(n uint64) string {
	if n == 0 {
		return "just past the end"
	}
	return fmt.Sprintf("%d bytes past the end", n)
}

// standSet groups threads by place and activity.
type standSet struct {
	index map[standKey]int
	list  []Stand
}

type standKey struct {
	place uint32
	doing string
}

// add counts a thread.
func (s *standSet) add(place uint32, doing string, block, thread event.Dim3) {
	if s.index == nil {
		s.index = map[standKey]int{}
	}
	key := standKey{place, doing}
	i, ok := s.index[key]
	if !ok {
		i = len(s.list)
		s.index[key] = i
		s.list = append(s.list, Stand{Place: place, Doing: doing, Block: block, Thread: thread})
	}
	s.list[i].Threads++
}

// stands returns the largest groups, waiting threads first.
func (s *standSet) stands() []Stand {
	sort.SliceStable(s.list, func(i, j int) bool {
		a, b := &s.list[i], &s.list[j]
		if x, y := a.Doing == "exited", b.Doing == "exited"; x != y {
			return y
		}
		return a.Threads > b.Threads
	})
	return s.list[:min(len(s.list), maxStands)]
}

// addBlock counts the threads of a block.
func (s *standSet) addBlock(r *Run, c *CTA) {
	for _, w := range c.Warps {
		for i := range min(32, c.Threads-32*w.Index) {
			s.add(r.Machine.Place(w, i), w.doing(r, i), c.id, w.tid(i))
		}
	}
}

// doing describes what a lane is doing.
func (w *Warp) doing(r *Run, i int) string {
	s := w.standOf(i)
	switch {
	case w.Live&(1<<i) == 0:
		return "exited"
	case s.waits() == WaitBarrier:
		b := &w.CTA.Bars[s.bar()]
		return fmt.Sprintf("waits at barrier %d (%d of %d threads have arrived)", s.bar(), b.arrived(w.CTA), b.needs(w.CTA))
	case s.waits() == waitWarp:
		return fmt.Sprintf("waits at bar.warp.sync with member mask %#x for lanes %#x", s.members(), w.missing(r, i))
	case s.waits() == waitLanes:
		return fmt.Sprintf("waits at %s with member mask %#x for lanes %#x", r.Machine.At(w, i).Mnemonic(), s.members(), w.missing(r, i))
	case s.waits() == waitCluster:
		return w.CTA.cluster.waiting()
	case s.waits() == waitGroup:
		return "waits for the other warps of its warpgroup to issue the same groups of wgmma.mma_async"
	case s.waits() == waitColumns:
		return "waits for tensor memory of its block to be freed"
	case w.Stalled, len(w.Splits) > 0 && r.Machine.Running(w)&(1<<i) == 0:
		return "waits for the other lanes of its warp (lockstep)"
	}
	return "runs"
}

// missing returns the lanes that a lane's warp-level wait still lacks.
func (w *Warp) missing(r *Run, lane int) uint32 {
	lack := w.standOf(lane).members() & w.Live
	for m := lack; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros32(m); w.waitsWith(r, lane, i) {
			lack &^= 1 << i
		}
	}
	return lack
}

// stuckFaults are the faults of blocks that can never finish. The last one that applies describes a block.
var stuckFaults = [3]struct {
	kind    FaultKind
	message string
}{
	{Deadlock, "threads wait for each other and none can continue"},
	{BarrierDivergence, "threads wait at a barrier for all threads of their block, and the others never reach it"},
	{WarpDivergence, "lanes of a warp wait for others that their member mask names, and those never execute the same instruction with the same mask"},
}

// addStuck records the places of the threads of a block that can never finish.
func (f *faultLog) addStuck(r *Run, c *CTA) {
	parted := 0
	for _, w := range c.Warps {
		for m := w.Live; m != 0; m &= m - 1 {
			s := w.standOf(bits.TrailingZeros32(m))
			switch {
			case s.waits() == waitWarp || s.waits() == waitLanes:
				parted = 2
			case s.waits() == WaitBarrier && c.Bars[s.bar()].Expect == AllThreads:
				parted = max(parted, 1)
			}
		}
	}
	f.stuck[parted].addBlock(r, c)
}

// reportStuck makes the faults of blocks that can never finish.
func (f *faultLog) reportStuck(r *Run) {
	for i := len(stuckFaults) - 1; i >= 0; i-- {
		if list := f.stuck[i].stands(); len(list) > 0 {
			fault, _ := f.count(r, stuckFaults[i].kind, list[0].Place, false)
			fault.Message = stuckFaults[i].message
			fault.Stands = list
		}
	}
}

// reportSpin makes the fault of a grid whose threads loop for ever.
func (f *faultLog) reportSpin(r *Run) {
	var s standSet
	for _, c := range r.Sched.resident {
		s.addBlock(r, c)
	}
	s.list = slices.DeleteFunc(s.list, func(s Stand) bool { return s.Doing == "exited" })
	list := s.stands()
	for i := range list {
		if list[i].Doing == "runs" {
			list[i].Doing = "loops"
		}
	}
	fault, _ := f.count(r, Deadlock, list[0].Place, false)
	fault.Message = "threads loop forever: the values that they read do not change any more, because no thread of the launch is left to change them, and no other launch or copy has to run at the same time" +
		r.waitedBarriers()
	fault.Stands = list
}

// waitedBarriers lists barriers in shared memory, of one block, whose current phase threads have tested and which has
// not completed.
func (r *Run) waitedBarriers() string {
	for _, c := range r.Sched.resident {
		var list []string
		for i := range c.barriers {
			l := &c.barriers[i]
			data, kind := window(c.Shared, l.addr, 8)
			if !l.failed || kind != "" {
				continue
			}
			name := fmt.Sprintf("at offset %#x of shared memory", l.addr)
			if v, at, ok := r.p.SharedVar(r.Launch.Func, l.addr); ok {
				name = v
				if l.addr != at {
					name = fmt.Sprintf("%s + %d", v, l.addr-at)
				}
			}
			b := mbarrier(devmem.Uint(data, 8))
			text := fmt.Sprintf("phase %d (parity %d) of the mbarrier %s ", l.phase, l.phase&1, name)
			switch tx := b.tx(); {
			case b.pending() == 0 && tx > 0:
				text += fmt.Sprintf("has all arrivals and lacks %d bytes of transactions that it expects", tx)
			case b.pending() == 0:
				text += fmt.Sprintf("has all arrivals, and %d bytes of transactions too many: it did not expect them", -tx)
			default:
				text += fmt.Sprintf("lacks %d of %d arrivals", b.pending(), b.expected())
				switch {
				case tx > 0:
					text += fmt.Sprintf(" and %d bytes of transactions", tx)
				case tx < 0:
					text += fmt.Sprintf(" and has %d bytes of transactions that it did not expect", -tx)
				}
			}
			if l.unseen > 1 {
				text += fmt.Sprintf("; the %d earlier phases ended, and no thread has observed that: there are more arrivals than the count of %d that it was initialised with", l.unseen, b.expected())
			}
			list = append(list, text)
		}
		if len(list) > 0 {
			return "; " + strings.Join(list, "; ")
		}
	}
	return ""
}

// reportStopped makes the fault of a run that was stopped from outside.
func (f *faultLog) reportStopped(r *Run, err error) {
	why := "the run was cancelled"
	switch {
	case errors.Is(err, ErrStopped):
		why = fmt.Sprintf("the step limit of %d warp instructions was reached", r.Launch.MaxSteps)
	case errors.Is(err, context.DeadlineExceeded):
		why = "the time limit was reached"
	case errors.Is(err, ErrHostWait), errors.Is(err, ErrDeviceWait):
		why = err.Error()
	}
	var s standSet
	for _, c := range r.Sched.resident {
		s.addBlock(r, c)
	}
	list := s.stands()
	if len(list) == 0 {
		return
	}
	fault, _ := f.count(r, StepLimit, list[0].Place, false)
	// Threads that read clocks while they wait, like those of cuda::barrier, may loop for ever without being
	// recognised.
	fault.Message = fmt.Sprintf("%s with %d of %d blocks finished", why, r.Stats.Blocks, r.Sched.blocks) + r.waitedBarriers()
	fault.Stands = list
}
