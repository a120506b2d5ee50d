package isa

import "fencepost.dev/fencepost/internal/event"

// mbarrierRows is the barriers in shared memory of the manual's "Parallel Synchronization and Communication Instructions".
var mbarrierRows = []*Row{
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.init", Class: Mbarrier, Event: event.Store, Bind: bindOp(OpInit), Forms: forms(
		".init{.space}.b64 [a], b:u32; space: shared shared::cta"), Note: noteMbarrier},
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.inval", Class: Mbarrier, Event: event.Store, Bind: bindOp(OpInval), Forms: forms(
		".inval{.space}.b64 [a]; space: shared shared::cta")},
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.expect_tx", Class: Mbarrier, Event: event.Atomic, Bind: bindOp(OpExpect), Forms: forms(
		".expect_tx{.sem}{.scope}{.space}.b64 [a], b:u32" + mbarrierSets)},
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.complete_tx", Class: Mbarrier, Event: event.Atomic, Bind: bindOp(OpComplete), Forms: forms(
		".complete_tx{.sem}{.scope}{.space}.b64 [a], b:u32" + mbarrierSets)},
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.arrive", Class: Mbarrier, Event: event.Atomic, Bind: bindOp(OpArrive), Forms: forms(
		".arrive{.sem}{.scope}{.space}.b64 d:b64, [a]{, b:u32}"+mbarrierSets,
		".arrive.noComplete{.sem}{.scope}{.space}.b64 d:b64, [a], b:u32"+mbarrierSets,
		".arrive.expect_tx{.sem}{.scope}{.space}.b64 d:b64, [a], b:u32"+mbarrierSets)},
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.arrive_drop", Class: Mbarrier, Event: event.Atomic, Bind: bindOp(OpDrop), Forms: forms(
		".arrive_drop{.sem}{.scope}{.space}.b64 d:b64, [a]{, b:u32}"+mbarrierSets,
		".arrive_drop.noComplete{.sem}{.scope}{.space}.b64 d:b64, [a], b:u32"+mbarrierSets,
		".arrive_drop.expect_tx{.sem}{.scope}{.space}.b64 d:b64, [a], b:u32"+mbarrierSets)},
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.test_wait, mbarrier.try_wait", Class: Mbarrier, Event: event.Load, Bind: bindOp(OpTest),
		Note: "try_wait returns at once.", Forms: forms(
			".how{.sem}{.scope}{.space}.b64 d:pred, [a], b:b64{, c:u32}; how: test_wait try_wait"+mbarrierWaits,
			".how.parity{.sem}{.scope}{.space}.b64 d:pred, [a], b:u32{, c:u32}; how: test_wait try_wait"+mbarrierWaits)},
	{Op: "mbarrier", Doc: "Parallel Synchronization: mbarrier.pending_count", Class: Mbarrier, Bind: bindOp(OpPending), Forms: forms(
		".pending_count.b64 d:u32, a:b64")},
}

const (
	mbarrierSets  = "; sem: release relaxed; scope: cta cluster; space: shared shared::cta shared::cluster"
	mbarrierWaits = "; sem: acquire relaxed; scope: cta cluster; space: shared shared::cta"
	noteMbarrier  = "Detectors see init as a plain store, and inval as two relaxed stores. An arrival is a releasing " +
		"read-modify-write of the first word of the barrier. The arrival that completes a phase passes everything that was released " +
		"to the first word on to the second word. A wait that finds the phase complete acquires the second word."
)

// MbarrierOrder is the order of an operation on an mbarrier, which is otherwise where the instruction names none (PTX ISA, "mbarrier").
func (in *Inst) MbarrierOrder(otherwise event.Order) event.Order {
	if in.Order == event.Weak {
		return otherwise
	}
	return in.Order
}

// Apart is what a thread does by which it completes a phase of an mbarrier: event.ApartTests and the like.
func (in *Inst) Apart() uint8 {
	switch in.Op {
	case OpTest:
		return event.ApartTests
	case OpArrive, OpDrop:
		if in.MbarrierOrder(event.Release) != event.Relaxed {
			return event.ApartReleases
		}
	}
	return event.ApartArrives
}
