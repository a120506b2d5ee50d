package record

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"fencepost.dev/fencepost/internal/cpu"
)

// process reads the rings of a process.
type process struct {
	mem     []byte // its region
	asm     *assembler
	cursors [slotCount]cursor
	slots   int             // slots from this one on have not been used
	next    uint64          // the next ticket
	waiting [1 << 12]uint16 // by ticket: the slot that has the ticket, plus one, if its turn has not come
}

// cursor is the reading position of a slot.
type cursor struct {
	tail   uint64
	thread *thread // the acting thread: own, or a task of OpenMP that it executes
	own    *thread
	number uint32 // number of own, before own begins
}

func newProcess(mem []byte, sink func([]cpu.Event)) *process {
	return &process{mem: mem, asm: newAssembler(sink)}
}

func (p *process) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&p.mem[at])) }
func (p *process) half(at int) *uint32 { return (*uint32)(unsafe.Pointer(&p.mem[at])) }

// drain reads all available records, and reports whether there were any.
func (p *process) drain() (some bool) {
	for {
		for p.slots < slotCount && atomic.LoadUint32(p.half(slotsAt+p.slots*slotBytes+slotState)) != slotFree {
			p.slots++
		}
		before := some
		some = false
		for i := range p.slots {
			for slot := i; slot >= 0; {
				var read bool
				slot, read = p.slot(slot)
				some = some || read
			}
		}
		if !some {
			return before
		}
	}
}

// slot reads a slot until its thread has to wait for its turn. It returns the slot whose turn it is, or -1.
func (p *process) slot(i int) (turn int, read bool) {
	at := slotsAt + i*slotBytes
	state := atomic.LoadUint32(p.half(at + slotState))
	if state == slotFree {
		return -1, false
	}
	c := &p.cursors[i]
	head := atomic.LoadUint64(p.word(at + slotHead))
	ring := p.mem[ringsAt+i*ringBytes:][:ringBytes]
	begin := c.tail
	turn = -1
	for c.tail != head {
		a, b := record(ring, c.tail)
		if kind := uint8(a >> 48); kind < kindLock {
			if kind <= kindWrite && c.thread != nil && !c.local(a) && p.asm.again(c.thread, kind, a, b) {
				c.tail++
			} else {
				c.tail += p.access(c, ring, kind, a, b)
			}
			continue
		}
		ticket, number := record(ring, c.tail+1)
		if ticket != p.next {
			p.waiting[ticket%uint64(len(p.waiting))] = uint16(i + 1)
			break
		}
		c.tail += 2
		p.ticketed(c, a, b, number)
		p.next++
		if w := &p.waiting[p.next%uint64(len(p.waiting))]; *w != 0 {
			turn = int(*w) - 1
			*w = 0
			if turn != i {
				break
			}
			turn = -1
		}
	}
	atomic.StoreUint64(p.word(at+slotTail), c.tail)
	if state == slotEnded && c.tail == atomic.LoadUint64(p.word(at+slotHead)) {
		c.thread, c.own = nil, nil
		atomic.StoreUint32(p.half(at+slotState), slotFree)
	}
	return turn, c.tail != begin
}

func record(ring []byte, n uint64) (a, b uint64) {
	at := n % records * 16
	return *(*uint64)(unsafe.Pointer(&ring[at])), *(*uint64)(unsafe.Pointer(&ring[at+8]))
}

// access makes events of a record without a ticket, and returns the number of records consumed.
func (p *process) access(c *cursor, ring []byte, kind uint8, a, b uint64) uint64 {
	n := uint64(1)
	if kind == kindReadRange || kind == kindWriteRange {
		n = 2
	}
	t := c.thread
	if t == nil || t.unknown {
		return n
	}
	address, size := a&(1<<48-1), a>>56
	op := cpu.Read
	switch kind {
	case kindEnter:
		p.asm.calls.enter(&t.calls, b)
		return n
	case kindExit:
		p.asm.calls.exit(&t.calls)
		return n
	case kindWrite:
		op = cpu.Write
	case kindReadRange, kindWriteRange:
		if kind == kindWriteRange {
			op = cpu.Write
		}
		size, _ = record(ring, c.tail+1)
		size = min(size, 1<<40)
	}
	location := p.asm.calls.location(&t.calls, b)
	if c.local(a) {
		t = c.own
	}
	p.asm.memory.access(t, address, size, op, location)
	return n
}

func (p *process) ticketed(c *cursor, a, b, number uint64) {
	kind := uint8(a >> 48)
	switch kind {
	case kindThread:
		c.number = uint32(number)
		return
	case kindBegin:
		c.own = p.asm.thread(c.number)
		c.thread = c.own
	case kindTask:
		p.task(c, a&(1<<48-1), uint32(number), a>>56 != 0)
		return
	case kindLocal:
		if c.own != nil {
			c.own.locals = append(c.own.locals, span{a & (1<<48 - 1), number})
		}
		return
	}
	if t := c.thread; t != nil && !t.unknown {
		p.asm.ticketed(t, kind, uint8(a>>56), a&(1<<48-1), number, p.asm.calls.location(&t.calls, b))
	}
}

// local reports whether a task accesses a variable of the thread that executes it.
func (c *cursor) local(a uint64) bool {
	if c.thread == c.own {
		return false
	}
	address := a & (1<<48 - 1)
	return slices.ContainsFunc(c.own.locals, func(s span) bool { return s.from <= address && address < s.to })
}

// task makes the thread of a cursor continue with a task. The stack below frame is unused from then on.
func (p *process) task(c *cursor, frame uint64, number uint32, ended bool) {
	if c.own == nil || c.own.unknown {
		return
	}
	if ended && c.thread != c.own {
		p.asm.end(c.thread)
	}
	if from := c.own.stackFrom; from < frame && frame < c.own.stackTo {
		p.asm.memory.forget(c.own, from, frame-from)
	}
	c.thread = c.own
	if t := p.asm.threads[number]; t != nil && t.task {
		c.thread = t
		if !t.begun {
			t.begun = true
			p.asm.emit(cpu.Begin, t, 0, 0)
		}
	}
}

// skip continues after a thread that was stopped between taking a ticket and writing the record. It reports whether
// there was such a thread.
func (p *process) skip() bool {
	least, found := uint64(0), false
	for i := range p.slots {
		at := slotsAt + i*slotBytes
		c := &p.cursors[i]
		if c.tail == atomic.LoadUint64(p.word(at+slotHead)) {
			continue
		}
		ring := p.mem[ringsAt+i*ringBytes:][:ringBytes]
		if ticket, _ := record(ring, c.tail+1); !found || ticket < least {
			least, found = ticket, true
		}
	}
	if found {
		p.next = max(p.next, least)
	}
	return found
}
