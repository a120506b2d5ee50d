package record

import (
	"fmt"
	"slices"

	"fencepost.dev/fencepost/internal/cpu"
)

// assembler turns records into events.
type assembler struct {
	sink     func([]cpu.Event)
	out      []cpu.Event
	memory   memory
	calls    calls
	threads  map[uint32]*thread // by the recorder's number
	ids      []*thread          // by number in events
	syncs    map[syncKey]uint32
	locks    []lockState // by number in events
	problems []string    // descriptions of what was not recorded
	tasks    int         // how many thread numbers are used by tasks
	count    uint64
	blocks   map[uint64]block // of the heap, by address
	recycled uint16           // number of the thread that was recycled last
	// Events number locations in the order of first use, from 1. numbers maps the recorder's numbers to these, and
	// located is the reverse.
	numbers, located []uint32
}

// thread is a thread of the program.
type thread struct {
	id    uint16
	calls callStack
	holds []uint32
	// spare are the threads that this one has joined, whose numbers it may give to threads that it creates.
	spare []*thread
	// stackFrom and stackTo bound its stack.
	stackFrom, stackTo uint64
	unknown            bool // there are too many threads
	ended              bool
	recycled           bool   // another thread has its number, although it was not joined
	number             uint32 // of the recorder
	// task is set if the thread is an explicit task of OpenMP, which any thread may execute.
	task, begun bool
	loop        bool // it makes no events itself; the tasks of a loop continue from it
	// tasks are the tasks that it has made and not joined. taken are the tasks of tasks that it has joined.
	tasks, taken []*thread
	locals       []span // memory that is private to the thread, whichever task uses it
}

// span is the memory from one address to another.
type span struct{ from, to uint64 }

type syncKey struct {
	address uint64
	class   uint8
}

type lockState struct {
	holder *thread
	depth  int
}

// block is an allocation of the heap.
type block struct {
	size     uint64
	location uint32
	freed    bool
}

// mostFreed is how many bytes of a freed block count as written even if they were never accessed.
const mostFreed = 1 << 10

// mostBlocks is the maximum number of allocations that are kept, to name them in findings.
const mostBlocks = 1 << 20

func newAssembler(sink func([]cpu.Event)) *assembler {
	a := &assembler{sink: sink, threads: map[uint32]*thread{}, syncs: map[syncKey]uint32{}, blocks: map[uint64]block{}}
	a.memory.to = a
	a.memory.pages = map[uint64]*page{}
	a.calls.nodes = make([]node, 1)
	a.calls.below = map[edge]uint32{}
	a.calls.locations = map[edge]uint32{}
	return a
}

const batch = 1 << 10

func (a *assembler) emit(op cpu.Op, t *thread, object, location uint32) {
	if location != 0 && op != cpu.Part {
		location = a.number(location)
	}
	a.out = append(a.out, cpu.Event{Op: op, Thread: t.id, Object: object, Location: location})
	if len(a.out) == batch {
		a.flush()
	}
}

// again makes the event of an access in the common case: its place in the code is known, and its bytes are one
// variable. It has the same effect as process.access but is faster.
func (a *assembler) again(t *thread, kind uint8, first, pc uint64) bool {
	r := t.calls.place(pc)
	if r.pc != pc || r.stack != t.calls.stack || r.location == 0 || int(r.location) >= len(a.numbers) || t.unknown {
		return false
	}
	number := a.numbers[r.location]
	address, size := first&(1<<48-1), first>>56
	v, ok := a.memory.whole(address, size)
	if !ok || number == 0 {
		return false
	}
	op := cpu.Read
	if kind == kindWrite {
		op = cpu.Write
	}
	a.out = append(a.out, cpu.Event{Op: op, Thread: t.id, Object: v, Location: number})
	if len(a.out) == batch {
		a.flush()
	}
	return true
}

func (a *assembler) number(location uint32) uint32 {
	if int(location) < len(a.numbers) && a.numbers[location] != 0 {
		return a.numbers[location]
	}
	return a.newNumber(location)
}

func (a *assembler) newNumber(location uint32) uint32 {
	for int(location) >= len(a.numbers) {
		a.numbers = append(a.numbers, 0)
	}
	a.located = append(a.located, location)
	a.numbers[location] = uint32(len(a.located))
	return a.numbers[location]
}

func (a *assembler) flush() {
	if len(a.out) > 0 {
		a.count += uint64(len(a.out))
		a.sink(a.out)
		a.out = a.out[:0]
		a.memory.spare = append(a.memory.spare, a.memory.forgotten...)
		a.memory.forgotten = a.memory.forgotten[:0]
	}
}

// problem records once that something was not recorded.
func (a *assembler) problem(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(a.problems, s) {
		a.problems = append(a.problems, s)
	}
}

// thread returns the thread with a number of the recorder.
func (a *assembler) thread(number uint32) *thread {
	t := a.threads[number]
	if t == nil {
		t = &thread{id: uint16(len(a.ids)), unknown: len(a.ids) >= cpu.MaxThreads, number: number}
		if t.unknown {
			a.problem("threads beyond the %d that a detector can tell apart", cpu.MaxThreads)
		} else {
			a.ids = append(a.ids, t)
		}
		a.threads[number] = t
	}
	return t
}

// fork begins the life of a thread that t creates.
func (a *assembler) fork(t *thread, number, location uint32) {
	if a.threads[number] != nil {
		return
	}
	for n := len(t.spare); n > 0 && a.ids[t.spare[n-1].id] != t.spare[n-1]; n-- {
		t.spare = t.spare[:n-1] // it was recycled after t joined it
	}
	if len(t.spare) == 0 && len(a.ids) == cpu.MaxThreads {
		a.recycle(t)
	}
	if n := len(t.spare); n > 0 {
		child := &thread{id: t.spare[n-1].id, number: number}
		t.spare = t.spare[:n-1]
		a.threads[number], a.ids[child.id] = child, child
	}
	if child := a.thread(number); !child.unknown {
		a.emit(cpu.Fork, t, uint32(child.id), location)
	}
}

func (a *assembler) join(t *thread, number, location uint32) {
	child := a.threads[number]
	if child == nil || child.unknown || !child.ended || child == t {
		return
	}
	delete(a.threads, number)
	if child.recycled {
		a.emit(cpu.AtomicRead, t, a.sync(0, ofRecycled), location)
	} else {
		a.emit(cpu.Join, t, uint32(child.id), location)
		t.spare = append(append(t.spare, child), child.spare...)
	}
	t.taken = append(append(t.taken, child.tasks...), child.taken...)
}

// ofRecycled is the namespace of one object for all recycled threads. A thread that joins a recycled thread is ordered
// after the threads that have reused numbers.
const ofRecycled = 255

// recycle lets t reuse the number of a thread that has ended, when there are no more numbers. It makes t join that
// thread, whether or not another thread has joined it. So the operations of all threads stay known, but t and the
// threads that it creates count as ordered after that thread.
func (a *assembler) recycle(t *thread) {
	for range cpu.MaxThreads {
		a.recycled = (a.recycled + 1) % cpu.MaxThreads
		child := a.ids[a.recycled]
		if !child.ended || child.task {
			continue
		}
		a.problem("all races of threads beyond the %d that a detector can tell apart (those that were joined by the thread that created them "+
			"do not count): each of them counts as after an earlier one that has ended", cpu.MaxThreads)
		a.emit(cpu.Join, t, uint32(child.id), 0)
		a.emit(cpu.AtomicWrite, t, a.sync(0, ofRecycled), 0)
		child.recycled = true
		t.spare = append(t.spare, child)
		return
	}
}

// end ends a thread. The locks that it still holds are never released.
func (a *assembler) end(t *thread) {
	if t.ended {
		return
	}
	for _, lock := range slices.Clone(t.holds) {
		a.locks[lock].depth = 1
		a.unlock(t, lock, 0)
	}
	a.emit(cpu.End, t, 0, 0)
	t.ended = true
	t.calls.recent = nil
}

func (a *assembler) sync(address uint64, class uint8) uint32 {
	key := syncKey{address, class}
	id, ok := a.syncs[key]
	if !ok {
		id = uint32(len(a.syncs))
		a.syncs[key] = id
		a.locks = append(a.locks, lockState{})
	}
	return id
}

// lock acquires a lock, exclusively or shared. If the recorder missed the release by the last holder, lock adds it.
func (a *assembler) lock(t *thread, lock uint32, op cpu.Op, location uint32) {
	s := &a.locks[lock]
	if s.holder == t && op == cpu.Acquire {
		s.depth++
		return
	}
	if s.holder != nil {
		s.depth = 1
		a.unlock(s.holder, lock, 0)
	}
	if op == cpu.Acquire {
		s.holder, s.depth = t, 1
		t.holds = append(t.holds, lock)
	}
	a.emit(op, t, lock, location)
}

func (a *assembler) unlock(t *thread, lock, location uint32) {
	s := &a.locks[lock]
	switch {
	case s.holder == nil:
		a.emit(cpu.Release, t, lock, location)
		return
	case s.holder != t: // for example a lock of OpenMP that a task on another thread releases
		t = s.holder
	}
	if s.depth--; s.depth == 0 {
		a.emit(cpu.Release, t, lock, location)
		t.holds = slices.DeleteFunc(t.holds, func(l uint32) bool { return l == lock })
		s.holder = nil
	}
}

// unlockRW releases a read-write lock. Only the lock knows whether it is held by a reader or the writer.
func (a *assembler) unlockRW(t *thread, lock, location uint32) {
	if a.locks[lock].holder == nil {
		a.emit(cpu.ReleaseShared, t, lock, location)
	} else {
		a.unlock(t, lock, location)
	}
}

// Memory orders, as the compiler numbers them.
const (
	relaxed = iota
	consume
	acquire
	release
	acquireRelease
	sequential
)

const atomicReads, atomicWrites = 1, 2

// atomic makes the events of an atomic operation: an access, and its ordering.
func (a *assembler) atomic(t *thread, address, size, number uint64, location uint32) {
	does, order := number&3, number>>2&7
	op := cpu.ReadAtomic
	if does&atomicWrites != 0 {
		op = cpu.WriteAtomic
	}
	if size > 0 {
		a.memory.access(t, address, size, op, location)
	}
	a.emit(atomicOp(does, order), t, a.sync(address, 0), location)
}

func atomicOp(does, order uint64) cpu.Op {
	acquires := order == consume || order == acquire || order >= acquireRelease
	releases := order >= release
	switch {
	case does == atomicReads && acquires:
		return cpu.AtomicRead
	case does == atomicReads:
		return cpu.ReadRelaxed
	case does == atomicWrites && releases:
		return cpu.StoreRelease
	case does == atomicWrites:
		return cpu.StoreRelaxed
	case acquires && releases:
		return cpu.AtomicUpdate
	case acquires:
		return cpu.UpdateAcquire
	case releases:
		return cpu.UpdateRelease
	}
	return cpu.UpdateRelaxed
}

func (a *assembler) fence(t *thread, order uint64, location uint32) {
	if order == consume || order == acquire || order >= acquireRelease {
		a.emit(cpu.FenceAcquire, t, 0, location)
	}
	if order >= release {
		a.emit(cpu.FenceRelease, t, 0, location)
	}
}

func (a *assembler) allocate(t *thread, address, size uint64, location uint32) {
	a.memory.forget(t, address, (size+7)&^7) // no other block uses the rest of the last word
	if len(a.blocks) >= mostBlocks {
		clear(a.blocks)
	}
	a.blocks[address] = block{size: size, location: location}
}

// released frees memory. If write is set, this counts as a write of all bytes that were accessed.
func (a *assembler) released(t *thread, address, size uint64, write bool, location uint32) {
	b, known := a.blocks[address]
	if known {
		size = b.size
	}
	if write {
		// Memory that was not accessed before may be accessed after the free. Of a large block, only the beginning
		// counts as written.
		begin := min(size, mostFreed)
		a.memory.access(t, address, begin, cpu.Write, location)
		a.memory.overwrite(t, address+begin, size-begin, location)
	}
	if known {
		b.freed = true
		a.blocks[address] = b
	}
}

// mostTasks is the maximum number of unjoined tasks that are distinguished from the threads that execute them.
const mostTasks = 256

// makeTask begins the life of a task that continues from t. If there are mostTasks already, the task counts as part of
// the thread that executes it. The tasks of a loop continue from a task that makes no events itself.
func (a *assembler) makeTask(t *thread, number uint32, loop bool, location uint32) {
	if len(t.spare) == 0 {
		if a.tasks == mostTasks {
			return
		}
		a.tasks++
	}
	a.fork(t, number, location)
	child := a.threads[number]
	child.task, child.loop, child.number = true, loop, number
	t.tasks = append(t.tasks, child)
}

// tasksEnded records that all tasks made by t have ended, and, if all is set, also those that they have made.
func (a *assembler) tasksEnded(t *thread, all bool, location uint32) {
	t.tasks = a.joinTasks(t, t.tasks, location)
	for all && slices.ContainsFunc(t.taken, func(child *thread) bool { return child.ended || child.loop }) {
		taken := t.taken
		t.taken = nil
		t.taken = append(a.joinTasks(t, taken, location), t.taken...)
	}
}

// joinTasks joins those of tasks that have ended, and returns the others: they never begin, or nobody waits for them.
func (a *assembler) joinTasks(t *thread, tasks []*thread, location uint32) (left []*thread) {
	for _, child := range tasks {
		if child.loop {
			child.tasks = a.joinTasks(t, child.tasks, location)
			a.end(child)
		}
		if child.ended {
			a.join(t, child.number, location)
		} else {
			left = append(left, child)
		}
	}
	return left
}

// taskJoined records that a task, and the tasks that continue from it, ended before the next operation of t.
func (a *assembler) taskJoined(t *thread, number, location uint32) {
	if child := a.threads[number]; child != nil {
		a.joinTasks(t, []*thread{child}, location)
		t.tasks = slices.DeleteFunc(t.tasks, func(o *thread) bool { return o == child && child.ended })
	}
}

// ticketed makes the events of a record that has a ticket.
func (a *assembler) ticketed(t *thread, kind, size uint8, address, number uint64, location uint32) {
	switch kind {
	case kindLock:
		a.lock(t, a.sync(address, size), cpu.Acquire, location)
	case kindLockShared:
		a.lock(t, a.sync(address, size), cpu.AcquireShared, location)
	case kindUnlock:
		a.unlock(t, a.sync(address, size), location)
	case kindUnlockRW:
		a.unlockRW(t, a.sync(address, size), location)
	case kindAtomic:
		a.atomic(t, address, uint64(size), number, location)
	case kindFence:
		a.fence(t, number>>2&7, location)
	case kindFork:
		a.fork(t, uint32(number), location)
	case kindJoin:
		if child := a.threads[uint32(number)]; size != 0 && child != nil {
			child.ended = true
		}
		a.join(t, uint32(number), location)
	case kindBegin:
		a.emit(cpu.Begin, t, 0, 0)
		t.stackFrom, t.stackTo = address, number
		if size != 0 && number > address {
			a.memory.forget(t, address, number-address)
		}
	case kindEnd:
		a.end(t)
	case kindBarrierEnter:
		a.emit(cpu.BarrierEnter, t, a.sync(address, size), location)
	case kindBarrierLeave:
		a.emit(cpu.BarrierLeave, t, a.sync(address, size), location)
	case kindAllocate:
		a.allocate(t, address, number, location)
	case kindRelease:
		a.released(t, address, number, size != 0, location)
	case kindTaskMade:
		if address != 0 {
			t = a.threads[uint32(address)]
		}
		if t != nil {
			a.makeTask(t, uint32(number), size != 0, location)
		}
	case kindTasksEnded:
		a.tasksEnded(t, size != 0, location)
	case kindTaskJoined:
		a.taskJoined(t, uint32(number), location)
	case kindFresh:
		a.memory.forget(t, address, number)
	case kindPublish:
		a.emit(cpu.AtomicWrite, t, a.sync(address, size), location)
	case kindLearn:
		a.emit(cpu.AtomicRead, t, a.sync(address, size), location)
	}
}
