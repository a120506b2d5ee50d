package isa

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Arms gives, for each instruction, the arms of branches on which it lies: control reaches it from a branch of f before the
// branch's immediate post-dominator, where the lanes of a warp reconverge. Event.Arm.Branch is the index of the branch.
// Branches with accesses to memory on one arm at most are left out.
func (f *Func) Arms() [][]event.Arm {
	out := make([][]event.Arm, len(f.Insts)+1) // falling off the end is a place too
	if len(f.Insts) == 0 {
		return out
	}
	g := blocksOf(f)
	ofBlock := make([][]event.Arm, g.blocks())
	accesses, ends := make([]bool, g.blocks()), make([]bool, g.blocks())
	for b := range g.blocks() {
		for i := g.start[b]; i < g.start[b+1]; i++ {
			in := &f.Insts[i]
			accesses[b] = accesses[b] || in.accesses()
			ends[b] = in.Class == Call && in.Callee != nil && in.Callee.NoReturn
		}
	}
	taken := make([]uint32, g.blocks())
	var work, reached []int32
	for b := range g.blocks() {
		last := g.start[b+1] - 1
		if f.Insts[last].Class != Branch || len(g.succ[b]) < 2 {
			continue
		}
		reached = reached[:0]
		used := uint32(0) // arms with accesses
		for k, s := range g.succ[b] {
			bit := event.ArmBit(k)
			for work = append(work[:0], s); len(work) > 0; {
				x := work[len(work)-1]
				work = work[:len(work)-1]
				if g.start[x] == f.IPDom[last] || taken[x]&bit == bit {
					continue
				}
				if taken[x] == 0 {
					reached = append(reached, x)
				}
				taken[x] |= bit
				if accesses[x] {
					used |= bit
				}
				if !ends[x] {
					work = append(work, g.succ[x]...)
				}
			}
		}
		for _, x := range reached {
			if bits.OnesCount32(used) > 1 {
				ofBlock[x] = append(ofBlock[x], event.Arm{Branch: uint32(last), Taken: taken[x]})
			}
			taken[x] = 0
		}
	}
	for b, arms := range ofBlock {
		for i := g.start[b]; i < g.start[b+1]; i++ {
			out[i] = arms
		}
	}
	return out
}

// accesses says that an instruction may access memory that threads share, itself or in what it calls.
func (in *Inst) accesses() bool {
	switch in.Class {
	case Load, Store, Atomic:
		return in.Space != event.Local && in.Space != event.Param
	case Matrix:
		return true
	case Call:
		return in.Callee == nil || in.Callee.Builtin == ""
	}
	return false
}
