package engine

import (
	"fmt"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// For Threads an mbarrier is a word of 64 bits in shared memory. Its init and inval store it, an arrival is an atomic
// operation that returns the previous state, and a test is a load. There are no transactions; their bits hold the
// number of the current phase, so that the word determines the result of a test.

// phase returns the number of the current phase in the word of Threads.
func (b mbarrier) phase() uint64 { return uint64(b) >> (1 + 2*mbarrierCount) & maxPhase }

func phasedMbarrier(phase, expected, pending uint64) mbarrier {
	return newMbarrier(phase&1, expected, pending, int64(phase&maxPhase))
}

// mbarrier describes an operation on an mbarrier; false if it affects the lane alone, or fails.
func (t *Threads) mbarrier(w *Warp, i int, in *loader.Instr) (Request, bool) {
	r := t.r
	if in.Op == isa.OpPending {
		return Request{}, false
	}
	unsupported := func(why string) (Request, bool) {
		return Request{Kind: RequestUnsupported, Message: fmt.Sprintf("%s%s: %s", in.Source.Op, in.Source.Mods, why)}, true
	}
	switch in.Op {
	case isa.OpInit, isa.OpInval, isa.OpArrive, isa.OpDrop, isa.OpTest:
	default:
		return unsupported("asynchronous operations are not explored")
	}
	if in.Has("expect_tx") {
		return unsupported("asynchronous operations are not explored, and so no transactions of an mbarrier")
	}
	addr := r.value(w, i, &in.Operands[0]) + uint64(in.Off)
	if in.Space == event.Generic {
		space, at := SplitGeneric(addr)
		if space != event.Shared {
			return Request{}, false
		}
		addr = at
	}
	if _, kind := window(w.CTA.Shared, addr, 8); kind != "" {
		return Request{}, false
	}
	q := Request{Space: event.Shared, Addr: addr, Size: 8, Pieces: 1, Value: 1}
	if len(in.Operands) > 1 {
		q.Value = r.value(w, i, &in.Operands[1])
		q.Value &= 1<<32 - 1
	}
	q.Order, q.Scope = in.Order, in.Scope
	if q.Scope == event.NoScope {
		q.Scope = event.ScopeCTA
	}
	order := func(otherwise event.Order) {
		if q.Order == event.Weak {
			q.Order = otherwise
		}
	}
	switch in.Op {
	case isa.OpInit:
		if q.Value == 0 || q.Value > maxArrivals {
			return Request{Kind: RequestFault, Fault: MbarrierMisuse,
				Message: fmt.Sprintf("an mbarrier is given a count of %d: it must be between 1 and %d", q.Value, maxArrivals)}, true
		}
		q.Kind, q.Order, q.Scope = RequestStore, event.Weak, event.NoScope
		q.Value = uint64(phasedMbarrier(0, q.Value, q.Value))
	case isa.OpInval:
		q.Kind, q.Order, q.Scope, q.Value = RequestStore, event.Weak, event.NoScope, 0
	case isa.OpTest:
		q.Kind = RequestLoad
		order(event.Acquire)
	default:
		if q.Value == 0 || q.Value > maxArrivals {
			return Request{Kind: RequestFault, Fault: MbarrierMisuse,
				Message: fmt.Sprintf("%d arrivals at once at an mbarrier: it must be between 1 and %d", q.Value, maxArrivals)}, true
		}
		q.Kind = RequestAtomic
		order(event.Release)
	}
	return q, true
}

// Mbarrier reports whether the request is an operation on an mbarrier.
func (q *Request) Mbarrier() bool { return q.inst != nil && q.inst.Class == isa.Mbarrier }

// MbarrierText describes the mbarrier in a word of Threads.
func MbarrierText(word uint64) string {
	b := mbarrier(word)
	if !b.live() {
		return "none"
	}
	return fmt.Sprintf("{phase %d, %d of %d to come}", b.phase(), b.pending(), b.expected())
}

// arrived returns the mbarrier after an arrival. ok is false if there is none, or if the phase does not expect the
// arrival.
func (q *Request) arrived(old uint64) (uint64, bool) {
	b := mbarrier(old)
	if !b.live() || q.Value > b.pending() {
		return old, false
	}
	expected, pending := b.expected(), b.pending()-q.Value
	if q.inst.Op == isa.OpDrop {
		expected -= min(q.Value, expected)
	}
	if pending > 0 {
		return uint64(phasedMbarrier(b.phase(), expected, pending)), true
	}
	return uint64(phasedMbarrier(b.phase()+1, expected, expected)), true
}

// completeMbarrier returns the result of an operation on an mbarrier that has read value, or the fault.
func (t *Threads) completeMbarrier(w *Warp, i int, in *loader.Instr, value uint64) (result uint64, fault *Request) {
	b := mbarrier(value)
	wrong := func(kind FaultKind, format string, args ...any) (uint64, *Request) {
		return 0, &Request{Kind: RequestFault, Fault: kind, Message: fmt.Sprintf(format, args...), inst: in}
	}
	if in.Op == isa.OpInit || in.Op == isa.OpInval {
		return 0, nil
	}
	if !b.live() {
		return wrong(MbarrierEarly, "%s of an object that was not initialised, or has been invalidated", in.Mnemonic())
	}
	operand := uint64(1)
	if len(in.Operands) > 1 {
		operand = t.r.value(w, i, &in.Operands[1])
	}
	if in.Op != isa.OpTest {
		n := operand & (1<<32 - 1)
		if n > b.pending() {
			return wrong(MbarrierMisuse, "%d more arrivals than the phase of the mbarrier expects", n-b.pending())
		}
		if in.Has("noComplete") && n == b.pending() {
			return wrong(MbarrierMisuse, "an arrival with .noComplete completes the phase of the mbarrier")
		}
		return b.state(b.phase()), nil
	}
	if in.Has("parity") {
		return (b.phase() ^ operand) & 1, nil
	}
	behind := (b.phase() - operand) & maxPhase
	if behind > 1 || !mbarrier(operand).live() {
		return wrong(MbarrierMisuse, "the state that %s is given is neither of the current phase of the mbarrier nor of the one before", in.Mnemonic())
	}
	return behind, nil
}
