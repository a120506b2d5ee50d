package instrument

import (
	"encoding/binary"
	"math"
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// StateSymbol is the variable of a module instrumented for HiRace that points to the state. While it is zero, nothing
// is checked.
const StateSymbol = reserved + "state"

// Sizes in device memory, as in device/hirace.cu, in bytes.
const (
	rangeBytes   = 4 * 8
	selectBytes  = 2 * 8
	historyBytes = 4 * 8
	pairBytes    = 15 * 8
	blockBytes   = 8
	barrierBytes = 3 * 8
	nodeBytes    = 8
	wordBytes    = 4 // bytes that share a shadow word
	splitWords   = 4 // number of shadow words of a split word, one for each byte

	maxThreads  = 1 << 26 // number of threads that a shadow word can distinguish
	numBarriers = 16
)

// Fields of the state in device memory, as in device/hirace.cu, of 8 bytes each.
const (
	stateRanges = iota
	stateRange
	stateSharedRanges
	stateSharedRange
	stateSharedWords
	stateSharedParts
	stateSharedWord
	stateSharedHistory
	stateOwner
	stateSplit
	stateTaken
	stateByteWord
	stateByteHistory
	statePairs
	stateDropped
	statePair
	stateNodes
	stateNode
	stateBarriers
	stateBarrier
	stateBlock
	stateClock
	stateSequence
	stateCaller
	stateMachine
	stateGroups
	stateUntracked
	stateSelections
	stateSelection
	stateCoarse
	stateTick // in the low half; the upper half is set when a clock has overflowed
	stateFields
)

// Flags of stateCaller and of the start of a selected range, as in device/hirace.cu.
const (
	unwatched  = 1 << 30
	inShared   = 1 << 63
	wholeBytes = 32 // size of the aligned unit that no access crosses
)

// Range is memory that a launch may access: an allocation, or offsets in the shared memory of a block.
type Range struct{ From, Bytes uint64 }

func (r Range) end() uint64 { return r.From + r.Bytes }

// Selection selects the part of a launch that is checked.
type Selection struct {
	Thread         func(warp uint32, lane int) bool // reports whether a thread's accesses are checked; nil for all threads
	Some           bool                             // only the following ranges of memory are checked
	Global, Shared []Range                          // disjoint, by address
}

// around returns the parts of ranges, by address, that need a shadow if selected is checked. An access is inside one of
// the parts, or touches none.
func around(selected, ranges []Range) (out []Range) {
	for _, s := range selected {
		from, to := s.From&^(wholeBytes-1), (s.end()+wholeBytes-1)&^(wholeBytes-1)
		for _, r := range ranges {
			part := Range{max(from, r.From), 0}
			if end := min(to, r.end()); end > part.From {
				part.Bytes = end - part.From
			} else {
				continue
			}
			if n := len(out); n > 0 && out[n-1].end() >= part.From && out[n-1].From >= r.From {
				out[n-1].Bytes = max(out[n-1].end(), part.end()) - out[n-1].From
				continue
			}
			out = append(out, part)
		}
	}
	return out
}

// Bounds limit the memory of HiRace (section IV). Accesses beyond the bounds count as not checked.
type Bounds struct {
	Global uint64 // bytes for the shadow of global memory, from the lowest address on
	Shared uint64 // bytes for the shadow of shared memory, of as many concurrent blocks as there is room for
	Split  uint64 // number of words that are split
	Pairs  uint64 // number of pairs of places that race; a power of two
	Nodes  uint64 // number of places in called functions, by call stack; a power of two
	Blocks uint64 // number of blocks of a grid that are checked, the first ones; 0 for all
	// Coarse keeps words whole that are accessed in parts.
	Coarse bool
	// Brief uses 8 bytes for a word instead of 40. Findings then have no place of the earlier access.
	Brief bool
}

// DefaultBounds are the bounds of an emulated device.
var DefaultBounds = Bounds{Global: 1 << 30, Shared: 1 << 28, Split: 1 << 16, Pairs: 1 << 12, Nodes: 1 << 14}

// CheckedLaunch describes a launch that HiRace checks.
type CheckedLaunch struct {
	Bounds
	Launch      *event.Launch
	Sites       []Site
	Enter       func(caller uint32, callee *isa.Func) uint32 // as in Launch
	Ranges      []Range                                      // by address
	SharedBytes uint64                                       // of a block
	Machine     []byte                                       // by state<<6|label: the next state, and flags for what detector hirace keeps for messages
	LastTick    uint32                                       // maximum value of a clock
	Selection   Selection
}

// Checked lays out the state of a launch in device memory.
type Checked struct {
	l       *CheckedLaunch
	fields  [stateFields]uint64
	pointer [stateFields]bool // fields whose values are offsets from the start of the state
	ranges  []Range
	words   []uint64 // by range with a shadow: the offset of its shadow words, which its histories follow
	shared  []Range
	size    uint64
}

// TooLarge reports whether a launch has more threads than a shadow word can distinguish.
func (l *CheckedLaunch) TooLarge() bool { return l.warps()*32 > maxThreads }

func (l *CheckedLaunch) warps() uint64 {
	return l.Launch.Grid.Count() * uint64(l.Launch.WarpsPerBlock())
}

// perWord returns the number of bytes for a word.
func (b *Bounds) perWord() uint64 {
	if b.Brief {
		return 8
	}
	return 8 + historyBytes
}

// Shadow returns the number of bytes for the given number of words of global memory.
func (b *Bounds) Shadow(words uint64) uint64 { return words * b.perWord() }

func words(bytes uint64) uint64 { return (bytes + wordBytes - 1) / wordBytes }

// NewChecked lays out the state of a launch.
func NewChecked(l *CheckedLaunch) *Checked {
	c := &Checked{l: l, size: 8 * stateFields}
	blocks := l.Launch.Grid.Count()
	c.fields[stateGroups] = math.MaxUint64
	if l.Blocks != 0 {
		c.fields[stateGroups] = l.Blocks
	}
	c.fields[stateTick] = uint64(l.LastTick)
	if l.Coarse {
		c.fields[stateCoarse] = 1
	}

	memory, shared := l.Ranges, []Range{{0, l.SharedBytes}}
	if l.Selection.Some {
		memory, shared = around(l.Selection.Global, memory), around(l.Selection.Shared, shared)
	}
	shadowed := c.divide(memory)
	c.fields[stateRanges] = uint64(len(c.ranges))
	c.put(stateRange, uint64(len(c.ranges))*rangeBytes)
	for _, r := range c.ranges[:shadowed] {
		c.words = append(c.words, c.take(l.Shadow(words(r.Bytes))))
	}
	c.share(shared, min(blocks, c.fields[stateGroups]))

	c.fields[stateSplit] = l.Split
	c.shadow(stateByteWord, stateByteHistory, splitWords*l.Split)
	c.fields[statePairs] = l.Pairs
	c.put(statePair, l.Pairs*pairBytes)
	c.fields[stateNodes] = l.Nodes
	c.put(stateNode, l.Nodes*nodeBytes)
	c.fields[stateBarriers] = numBarriers
	c.put(stateBarrier, blocks*numBarriers*barrierBytes)
	c.put(stateBlock, blocks*blockBytes)
	c.put(stateClock, l.warps()*32*4)
	c.put(stateCaller, l.warps()*32*4)
	c.put(stateSequence, l.warps()*4)
	c.put(stateMachine, uint64(len(l.Machine)))
	if l.Selection.Some {
		c.fields[stateSelections] = uint64(len(l.Selection.Global) + len(l.Selection.Shared))
		c.put(stateSelection, c.fields[stateSelections]*selectBytes)
	}
	return c
}

// divide returns how many of the ranges have a shadow: the first ones. If there is room for only a part of a range, it
// splits the range.
func (c *Checked) divide(ranges []Range) (shadowed int) {
	const whole = wholeBytes / wordBytes
	room := c.l.Global / c.l.perWord()
	for i, r := range ranges {
		n := words(r.Bytes)
		if n <= room {
			room -= n
			continue
		}
		c.ranges = slices.Clone(ranges[:i])
		if n = room / whole * whole; n > 0 {
			c.ranges = append(c.ranges, Range{r.From, n * wordBytes})
		}
		shadowed = len(c.ranges)
		c.ranges = append(c.ranges, Range{r.From + n*wordBytes, r.Bytes - n*wordBytes})
		c.ranges = append(c.ranges, ranges[i+1:]...)
		return shadowed
	}
	c.ranges = ranges
	return len(c.ranges)
}

// share lays out the shadow of ranges of shared memory, for as many blocks as there is room for.
func (c *Checked) share(ranges []Range, blocks uint64) {
	n := uint64(0)
	for _, r := range ranges {
		n += words(r.Bytes)
	}
	if n == 0 {
		return
	}
	parts := min(blocks, c.l.Shared/(n*c.l.perWord()))
	c.shared = ranges
	c.fields[stateSharedRanges] = uint64(len(ranges))
	c.put(stateSharedRange, uint64(len(ranges))*rangeBytes)
	c.fields[stateSharedWords], c.fields[stateSharedParts] = n, parts
	c.shadow(stateSharedWord, stateSharedHistory, parts*n)
	c.put(stateOwner, parts*4)
}

// take reserves bytes of the state and returns their offset.
func (c *Checked) take(bytes uint64) uint64 {
	at := c.size
	c.size += (bytes + 7) &^ 7
	return at
}

// put lays out the data of a field that is a pointer.
func (c *Checked) put(field int, bytes uint64) {
	c.fields[field], c.pointer[field] = c.take(bytes), true
}

// shadow lays out shadow words and their histories.
func (c *Checked) shadow(word, history int, n uint64) {
	if c.put(word, n*8); !c.l.Brief {
		c.put(history, n*historyBytes)
	}
}

// Bytes returns the size of the state.
func (c *Checked) Bytes() uint64 { return c.size }

// Format writes the initial state of a launch to mem, which has Bytes bytes. addr is the address of mem on the device.
func (c *Checked) Format(mem []byte, addr uint64) {
	clear(mem)
	le := binary.LittleEndian
	for i, v := range c.fields {
		if c.pointer[i] {
			v += addr
		}
		le.PutUint64(mem[8*i:], v)
	}
	put := func(at, i uint64, values ...uint64) {
		for k, v := range values {
			le.PutUint64(mem[at+i*uint64(8*len(values))+uint64(8*k):], v)
		}
	}
	for i, r := range c.ranges {
		word, history := uint64(0), uint64(0)
		if i < len(c.words) {
			word = addr + c.words[i]
			if !c.l.Brief {
				history = word + 8*words(r.Bytes)
			}
		}
		put(c.fields[stateRange], uint64(i), r.From, r.Bytes, word, history)
	}
	n := uint64(0)
	for i, r := range c.shared {
		word, history := addr+c.fields[stateSharedWord]+8*n, uint64(0)
		if !c.l.Brief {
			history = addr + c.fields[stateSharedHistory] + historyBytes*n
		}
		put(c.fields[stateSharedRange], uint64(i), r.From, r.Bytes, word, history)
		n += words(r.Bytes)
	}
	copy(mem[c.fields[stateMachine]:], c.l.Machine)
	if s := &c.l.Selection; s.Some {
		for i, r := range s.Global {
			put(c.fields[stateSelection], uint64(i), r.From, r.Bytes)
		}
		for i, r := range s.Shared {
			put(c.fields[stateSelection], uint64(len(s.Global)+i), r.From|inShared, r.Bytes)
		}
	}
	if watched := c.l.Selection.Thread; watched != nil {
		for i := range c.l.warps() * 32 {
			if !watched(uint32(i/32), int(i%32)) {
				le.PutUint32(mem[c.fields[stateCaller]+4*i:], unwatched)
			}
		}
	}
}

// Trace is an access of a race.
type Trace struct {
	Event    event.Event // its Kind, Place, Size, Order and Scope; if Kind is None, there was no such access
	Sequence uint32      // number of the instruction execution by its warp
}

// Race describes the races of a pair of places. Its fields are those of the first race.
type Race struct {
	Count, Bytes              uint64
	Word                      uint64 // the previous shadow word, with the thread and the clocks of Last
	Last, Other, Before       Trace  // earlier accesses
	OtherThread, BeforeThread uint32
	Now                       Trace
	Thread                    uint64 // the thread of Now and its clocks, as in a shadow word
	Address, Location, Size   uint64 // Address and Size are those of Now
	Space                     event.Space
}

// Result is the result of a launch.
type Result struct {
	Races     []Race // in the order of the table in device memory
	Dropped   uint64 // races for whose pair of places there was no room
	Cut       uint64 // races of which only the count is known, because the kernel ended while it wrote the rest
	Untracked uint64 // accesses to memory without a shadow
	Stopped   bool   // a clock overflowed
	Allocated bool   // the launch allocated memory, which was not checked
	TooLarge  bool   // nothing was checked: the launch has more threads than a shadow word can distinguish
}

// Result reads the result of a launch.
func (c *Checked) Result(mem []byte) *Result {
	le := binary.LittleEndian
	field := func(i int) uint64 { return le.Uint64(mem[8*i:]) }
	out := &Result{Dropped: field(stateDropped), Untracked: field(stateUntracked), Stopped: field(stateTick)>>32 != 0}
	for i := range c.l.Pairs {
		at := mem[c.fields[statePair]+i*pairBytes:]
		word := func(i int) uint64 { return le.Uint64(at[8*i:]) }
		switch {
		case word(0) == 0:
			continue
		case word(13) == 0:
			out.Cut += word(1)
			continue
		}
		r := Race{Count: word(1), Bytes: word(2), Word: word(3), Last: c.trace(mem, word(4)), Other: c.trace(mem, word(5)), Before: c.trace(mem, word(6)),
			OtherThread: uint32(word(7)), BeforeThread: uint32(word(7) >> 32), Now: c.trace(mem, word(8)), Thread: word(9), Address: word(10),
			Location: word(11), Size: word(12) & 255, Space: event.Global}
		if word(12)&256 != 0 {
			r.Space = event.Shared
		}
		out.Races = append(out.Races, r)
	}
	return out
}

// trace reads a trace: see device/hirace.cu.
func (c *Checked) trace(mem []byte, word uint64) Trace {
	const places = 1 << 30
	number := uint32(word) % places
	if number == 0 {
		return Trace{}
	}
	place, in := c.place(mem, number)
	e := event.Event{Place: place, Order: in.Order, Scope: in.Scope, Size: uint8(pieceBytes(in))}
	switch action := word >> 30 & 3; {
	case in.Class == isa.Load, action == actionRead:
		e.Kind = event.Load
	case in.Class == isa.Store, action == actionWrite:
		e.Kind = event.Store
	default:
		e.Kind = event.Atomic
	}
	return Trace{e, uint32(word >> 32)}
}

// place returns the place of a number, and the instruction at the place. The number is 1 plus a site, for which no
// calls are known, or nodes plus 1 plus a node.
func (c *Checked) place(mem []byte, number uint32) (uint32, *isa.Inst) {
	const nodes = 1 << 29
	if number < nodes {
		return c.at(0, number-1)
	}
	key := binary.LittleEndian.Uint64(mem[c.fields[stateNode]+uint64(number-nodes-1)*nodeBytes:])
	caller := uint32(0)
	if n := uint32(key >> 32); n != 0 {
		caller, _ = c.place(mem, nodes+n)
	}
	return c.at(caller, uint32(key)-1)
}

func (c *Checked) at(caller, site uint32) (uint32, *isa.Inst) {
	s := &c.l.Sites[site]
	return c.l.Enter(caller, s.Func) + uint32(s.Index), s.Inst()
}
