package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Synchronises reports whether the function, or one that it may call, contains an atomic operation, a fence, or a load
// or store that acquires or releases: something besides barriers that could order threads.
func (f *Func) Synchronises() bool {
	return f.Any(func(i *Inst) bool {
		return i.Class == Atomic || i.Class == Fence || i.Class == Mbarrier || i.Op == OpSurfaceRed || i.Op == OpClusterArrive || i.Order >= event.Acquire
	})
}

// ToolPrefix is the prefix of the names of functions and variables that instrumentation adds to a program
// (internal/instrument).
const ToolPrefix = "__fencepost_"

// Signals reports whether the instruction may be part of the synchronisation of a kernel with host code: it has system
// scope or is volatile, and belongs to the program itself.
func (in *Inst) Signals() bool {
	shared := in.Space == event.Shared || in.Space == event.Local
	return !shared && !in.Tool && (in.Scope == event.ScopeSys || in.Order == event.Volatile)
}

// Contends reports whether the instruction reads memory that other threads may change concurrently, so that the value
// depends on the order of threads.
func (in *Inst) Contends() bool {
	return in.Class == Atomic && in.Row.Op != "red" || in.Class == Load && in.Order != event.Weak
}

// Communicates reports whether the function, or one that it may call, intentionally reads memory that other blocks may
// change concurrently, by a strong load or by an atomic operation whose result is used. In other kernels, the behaviour
// of a block depends on the timing of others only if there is a race.
func (f *Func) Communicates() bool {
	for _, g := range f.Reachable() {
		uses := g.Discards()
		for i := range g.Insts {
			if in := &g.Insts[i]; in.Contends() && in.Space != event.Shared && uses[i] != Discarded {
				return true
			}
		}
	}
	return false
}

// Swaps reports whether the function, or one that it may call, contains a compare-and-swap, which is used to take
// locks.
func (f *Func) Swaps() bool { return f.Any(func(i *Inst) bool { return i.Op == OpCas }) }

// NonCoherent reports whether the instruction is ld.global.nc, whose memory must not be written while the kernel runs,
// or reads through the texture or the surface proxy, where the same kernel must not have written the memory before.
func (in *Inst) NonCoherent() bool {
	return in.Class == Load && in.Has("nc") || in.Class == Texture && (in.Op == OpFetch || in.Op == OpGather || in.Op == OpSurfaceLoad)
}

// Bulk reports whether the instruction is a bulk copy, or another one that accesses memory through the async proxy.
func (in *Inst) Bulk() bool {
	return in.Class == Copy && (in.Op == OpBulk || in.Op == OpTensor || in.Op == OpStoreAsync || in.Op == OpTryCancel) || in.Op == OpWgmma || in.Core != nil
}

// ReadsClocks reports whether the function, or one that it may call, reads a clock. The value then depends on timing.
func (f *Func) ReadsClocks() bool {
	return f.Any(func(i *Inst) bool {
		return slices.ContainsFunc(i.Src, func(o Operand) bool { return o.Kind == SpecialReg && o.Special >= Clock && o.Special <= GlobalTimerHi })
	})
}

// Any reports whether such holds for an instruction of the function, or of one that it may call.
func (f *Func) Any(such func(*Inst) bool) bool {
	for _, g := range f.Reachable() {
		for i := range g.Insts {
			if such(&g.Insts[i]) {
				return true
			}
		}
	}
	return false
}
