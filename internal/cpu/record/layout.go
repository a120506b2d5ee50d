// Package record records programs of the CPU while they run. "fencepost cc" links them with the recorder (src), in
// place of the runtime library of ThreadSanitizer, whose functions the compiler calls at each access. The recorder
// writes the operations of each thread into a ring in shared memory. This package reads the rings, puts synchronisation
// into the order in which it took effect, and makes cpu.Events.
package record

// The layout of the shared memory. A test compares it with src/layout.h.
const (
	version     = 4
	fileHead    = 4096
	processes   = 64
	slotCount   = 2048
	records     = 1 << 14
	moduleCount = 256
	moduleBytes = 512
	headBytes   = 4096
	slotBytes   = 128

	modulesAt   = headBytes
	slotsAt     = modulesAt + moduleCount*moduleBytes
	ringsAt     = slotsAt + slotCount*slotBytes
	ringBytes   = records * 16
	regionBytes = ringsAt + slotCount*ringBytes
	fileBytes   = fileHead + processes*regionBytes
)

// Offsets in the head of a region, and in a slot.
const (
	headPid     = 0
	headStop    = 4
	headModules = 8
	headLost    = 12
	headSignals = 16
	headTicket  = 64

	slotState = 0
	slotHead  = 64
	slotTail  = 72
)

// States of a slot.
const (
	slotFree = iota
	slotTaken
	slotEnded
)

// Kinds of records.
const (
	kindRead = iota + 1
	kindWrite
	kindReadRange
	kindWriteRange
	kindEnter
	kindExit
)

// Kinds of records that have a ticket.
const (
	kindLock = iota + 16
	kindUnlock
	kindLockShared
	kindUnlockRW
	kindAtomic
	kindFence
	kindFork
	kindJoin
	kindBegin
	kindEnd
	kindBarrierEnter
	kindBarrierLeave
	kindAllocate
	kindRelease
	kindPublish
	kindLearn
	kindThread
	kindTaskMade
	kindTask
	kindTasksEnded
	kindTaskJoined
	kindFresh
	kindLocal
)
