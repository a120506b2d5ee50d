package isa

import (
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Synchronises says that the code of the function, or of one that it may call, has an atomic operation, a fence, or a load
// or store that acquires or releases: something besides barriers that could order threads.
func (f *Func) Synchronises() bool {
	return f.Any(func(i *Inst) bool {
		return i.Class == Atomic || i.Class == Fence || i.Class == Mbarrier || i.Op == OpSurfaceRed || i.Op == OpClusterArrive || i.Order >= event.Acquire
	})
}

// ToolPrefix begins the names of the functions and variables that instrumentation puts into a program (internal/instrument).
const ToolPrefix = "__fencepost_"

// Signals says that the instruction may be part of how a kernel and host code synchronise: it is of the scope of the system, or volatile,
// and of the program itself.
func (in *Inst) Signals() bool {
	shared := in.Space == event.Shared || in.Space == event.Local
	return !shared && !in.Tool && (in.Scope == event.ScopeSys || in.Order == event.Volatile)
}

// Contends says that the instruction reads what other threads may change at that time, so that what it reads depends on who was first.
func (in *Inst) Contends() bool {
	return in.Class == Atomic && in.Row.Op != "red" || in.Class == Load && in.Order != event.Weak
}

// Communicates says that the code of the function, or of one that it may call, reads on purpose what other blocks may change at that
// time, by a strong load or by an atomic operation whose result is used. What a block of other kernels does depends on when others run
// only where there is a race.
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

// Swaps says that the code of the function, or of one that it may call, has a compare-and-swap, which locks are taken with.
func (f *Func) Swaps() bool { return f.Any(func(i *Inst) bool { return i.Op == OpCas }) }

// NonCoherent says that the instruction is ld.global.nc: the memory must not be written while the kernel runs; or that it reads through
// the texture or the surface proxy: the memory must not have been written before by the same kernel.
func (in *Inst) NonCoherent() bool {
	return in.Class == Load && in.Has("nc") || in.Class == Texture && (in.Op == OpFetch || in.Op == OpGather || in.Op == OpSurfaceLoad)
}

// Bulk says that the instruction is a bulk copy, or another one that accesses memory through the async proxy.
func (in *Inst) Bulk() bool {
	return in.Class == Copy && (in.Op == OpBulk || in.Op == OpTensor || in.Op == OpStoreAsync || in.Op == OpTryCancel) || in.Op == OpWgmma || in.Core != nil
}

// ReadsClocks says that the code of the function, or of one that it may call, reads a clock: what it finds depends on when it looks.
func (f *Func) ReadsClocks() bool {
	return f.Any(func(i *Inst) bool {
		return slices.ContainsFunc(i.Src, func(o Operand) bool { return o.Kind == SpecialReg && o.Special >= Clock && o.Special <= GlobalTimerHi })
	})
}

// Any says that an instruction of the function, or of one that it may call, is such.
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
