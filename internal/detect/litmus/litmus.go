// Package litmus parses short event streams written as lines of text, for the tests of detectors.
package litmus

import (
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/event"
)

// Base is the address of word 0 of global memory.
const Base = 0x2000_0000_0000

// Launch returns a batch that begins a launch of blocks of 64 threads. Warps 0 and 1 belong to block 0.
func Launch(blocks uint32) *event.Batch {
	return &event.Batch{
		Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: blocks, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}},
		Events:   []event.Event{{Kind: event.KernelBegin, Launch: 1}},
	}
}

// Add appends an event of the launch. If its place is 0, it is set to the number of the event.
func Add(b *event.Batch, e event.Event) {
	e.Launch = 1
	if e.Place == 0 {
		e.Place = uint32(len(b.Events))
	}
	b.Events = append(b.Events, e)
}

// Do appends the operations of a line, "WARP[.LANE] OPERATION [WORD]" each, separated by semicolons. It panics when the line
// is wrong.
//
//	ld st      weak accesses, ldv stv volatile ones; those of shared memory end in s: lds sts
//	add        an atomic addition of device scope, addb of block scope
//	cas exch   the read-modify-writes that locks are made of, casb exchb of block scope
//	fence      fence.sc of device scope, fenceb of block scope
//	bar sync   a barrier of the warp's block, and a __syncwarp of the warp, completed
func Do(b *event.Batch, line string) {
	for op := range strings.SplitSeq(line, ";") {
		var warp, what string
		at := uint64(0)
		if n, err := fmt.Sscan(op, &warp, &what, &at); n < 2 {
			panic(fmt.Sprintf("BUG: litmus operation %q: %v", op, err))
		}
		Add(b, operation(op, warp, what, at))
	}
}

func operation(op, thread, what string, at uint64) event.Event {
	var warp uint32
	lane := 0
	if n, err := fmt.Sscanf(thread, "%d.%d", &warp, &lane); n == 0 {
		panic(fmt.Sprintf("BUG: litmus operation %q: %v", op, err))
	}
	e := event.Event{Warp: warp, Mask: 1 << lane, Addr: Base + at*4, Size: 4, Space: event.Global, Scope: event.ScopeGPU}
	name, block := strings.CutSuffix(what, "b")
	if block {
		e.Scope = event.ScopeCTA
	}
	if n, shared := strings.CutSuffix(name, "s"); shared && name != "cas" {
		name, e.Space, e.Addr = n, event.Shared, at*4
	}
	switch name {
	case "ld", "ldv":
		e.Kind, e.Flags, e.Scope = event.Load, event.FlagRead, event.NoScope
	case "st", "stv":
		e.Kind, e.Flags, e.Scope = event.Store, event.FlagWrite, event.NoScope
	case "add", "cas", "exch":
		e.Kind, e.Order, e.Flags = event.Atomic, event.Relaxed, event.FlagRead|event.FlagWrite
		e.RMW = map[string]event.RMW{"cas": event.CompareAndSwap, "exch": event.Exchange}[name]
	case "fence":
		return event.Event{Kind: event.Fence, Warp: warp, Mask: e.Mask, Order: event.SC, Scope: e.Scope}
	case "bar":
		return event.Event{Kind: event.BarrierDone, Warp: warp, Mask: e.Mask}
	case "sync":
		return event.Event{Kind: event.WarpSync, Warp: warp, Mask: ^uint32(0)}
	default:
		panic(fmt.Sprintf("BUG: there is no litmus operation %q", op))
	}
	if strings.HasSuffix(name, "v") {
		e.Order = event.Volatile
	}
	return e
}
