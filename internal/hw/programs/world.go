// Package programs has CPU programs for the simulated processors: the accesses and the synchronisation of parallel
// programs whose threads are coroutines. The programs were written for Fencepost. They follow the descriptions of the
// programs in seed 001, sections 3.4 and 4.4, and share no code with them. All are free of races.
//
// A variable is a number that represents an address, so variables with adjacent numbers are adjacent in memory.
package programs

import (
	"iter"
	"math/rand/v2"

	"fencepost.dev/fencepost/internal/cpu"
)

// Program is a program as a value in a list.
type Program struct {
	Name, Doc string
	body      func(t *thread, size int)
	// prepare is executed by the first thread before the others begin. It may be nil.
	prepare func(t *thread, size int)
	unit    int // approximate number of events of size 1
}

// thread is a coroutine.
type thread struct {
	id, threads int
	world       *world
	yield       func(struct{}) bool
	left        int // number of events until another thread may run
	rand        *rand.Rand
}

// world is the state that the threads of a program share.
type world struct {
	out   func([]cpu.Event)
	batch []cpu.Event
	owner map[uint32]int // by lock: the thread, plus one
	in    map[uint32]int // number of threads that wait at a barrier
	round map[uint32]int
	value map[uint32]int // values that determine the control flow
	count int
}

const batch = 1 << 12

// Events runs the program for approximately the given number of events. The first of the threads also executes prepare.
// Events passes batches of events to out, and reuses them.
func (p *Program) Events(threads, events int, out func([]cpu.Event)) {
	size := max(1, events/p.unit)
	w := &world{out: out, owner: map[uint32]int{}, in: map[uint32]int{}, round: map[uint32]int{}, value: map[uint32]int{}}
	type running struct {
		next func() (struct{}, bool)
		stop func()
	}
	var all []running
	start := func(id int, body func(t *thread)) running {
		t := &thread{id: id, threads: threads, world: w, rand: rand.New(rand.NewPCG(uint64(id), 7))}
		next, stop := iter.Pull(func(yield func(struct{}) bool) { t.yield = yield; body(t) })
		return running{next, stop}
	}
	begun := false
	all = append(all, start(0, func(t *thread) {
		if p.prepare != nil {
			p.prepare(t, size)
		}
		for id := 1; id < threads; id++ {
			t.emit(cpu.Fork, uint32(id))
		}
		begun = true
		p.body(t, size)
		for t.world.count > 1 {
			t.pause()
		}
		for id := 1; id < threads; id++ {
			t.emit(cpu.Join, uint32(id))
		}
	}))
	for id := 1; id < threads; id++ {
		all = append(all, start(id, func(t *thread) { p.body(t, size); w.count-- }))
	}
	w.count = threads
	for live := threads; live > 0; {
		for i := range all {
			if all[i].next == nil || i > 0 && !begun {
				continue
			}
			if _, ok := all[i].next(); !ok {
				all[i].stop()
				all[i].next = nil
				live--
			}
		}
	}
	out(w.batch)
}

func (t *thread) emit(op cpu.Op, object uint32) {
	w := t.world
	w.batch = append(w.batch, cpu.Event{Thread: uint16(t.id), Op: op, Object: object})
	if len(w.batch) == batch {
		w.out(w.batch)
		w.batch = w.batch[:0]
	}
	if t.left--; t.left <= 0 {
		t.pause()
	}
}

// pause lets other threads run.
func (t *thread) pause() {
	t.yield(struct{}{})
	t.left = 20 + t.rand.IntN(60)
}

func (t *thread) read(x int)  { t.emit(cpu.Read, uint32(x)) }
func (t *thread) write(x int) { t.emit(cpu.Write, uint32(x)) }

func (t *thread) lock(l uint32) {
	for t.world.owner[l] != 0 {
		t.pause()
	}
	t.world.owner[l] = t.id + 1
	t.emit(cpu.Acquire, l)
}

func (t *thread) unlock(l uint32) {
	t.world.owner[l] = 0
	t.emit(cpu.Release, l)
}

// Numbers of synchronisation objects: barriers begin at barriers, atomic variables at atomics.
const barriers, atomics = 1 << 12, 1<<12 + 1

// barrier waits for all threads.
func (t *thread) barrier() {
	w := t.world
	round := w.round[barriers]
	t.emit(cpu.BarrierEnter, barriers)
	if w.in[barriers]++; w.in[barriers] == t.threads {
		w.in[barriers] = 0
		w.round[barriers]++
	}
	for w.round[barriers] == round {
		t.pause()
	}
	t.emit(cpu.BarrierLeave, barriers)
}

// add adds to an atomic variable and returns its old value, which depends on the order of the threads.
func (t *thread) add(x uint32) int {
	v := t.world.value[x]
	t.world.value[x]++
	t.emit(cpu.AtomicUpdate, atomics+x)
	return v
}

// load reads an atomic variable.
func (t *thread) load(x uint32) { t.emit(cpu.AtomicRead, atomics+x) }
