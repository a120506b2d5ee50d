package isa

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// Arms returns, for each instruction, the arms of branches that contain it: control reaches it from a branch of f
// before the branch's immediate post-dominator, where the lanes of a warp reconverge. Event.Arm.Branch is the index of
// the branch. It leaves out branches without accesses on two arms, one of them possibly a write. again reports whether
// control may return from the reconvergence point to the branch.
func (f *Func) Arms() (arms [][]event.Arm, again bool) {
	arms = make([][]event.Arm, len(f.Insts)+1) // falling off the end is a place too
	if len(f.Insts) == 0 {
		return arms, false
	}
	g := blocksOf(f)
	ofBlock := make([][]event.Arm, g.blocks())
	accesses, writes, ends := make([]bool, g.blocks()), make([]bool, g.blocks()), make([]bool, g.blocks())
	for b := range g.blocks() {
		for i := g.start[b]; i < g.start[b+1]; i++ {
			in := &f.Insts[i]
			if in.accesses() {
				accesses[b], writes[b] = true, writes[b] || in.Class != Load && in.Class != Matrix && (in.Class != Tile || in.Tiles.Store)
			}
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
		used, written := uint32(0), false // arms with accesses, and whether one access is a write
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
					written = written || writes[x]
				}
				if !ends[x] {
					work = append(work, g.succ[x]...)
				}
			}
		}
		parts := bits.OnesCount32(used) > 1 && written
		for _, x := range reached {
			if parts {
				ofBlock[x] = append(ofBlock[x], event.Arm{Branch: uint32(last), Taken: taken[x]})
			}
			taken[x] = 0
		}
		again = again || parts && g.leads(f.IPDom[last], int32(b))
	}
	for b, list := range ofBlock {
		for i := g.start[b]; i < g.start[b+1]; i++ {
			arms[i] = list
		}
	}
	return arms, again
}

// leads reports whether control may come from an instruction, -1 for none, to a block.
func (g *graph) leads(from, to int32) bool {
	seen := make([]bool, g.blocks())
	b, ok := slices.BinarySearch(g.start, from)
	if !ok {
		return false
	}
	for work := []int32{int32(b)}; len(work) > 0; {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		if x == to {
			return true
		}
		if !seen[x] {
			seen[x] = true
			work = append(work, g.succ[x]...)
		}
	}
	return false
}

// accesses reports whether an instruction, or a function that it calls, may access memory that threads share.
func (in *Inst) accesses() bool {
	switch in.Class {
	case Load, Store, Atomic:
		return in.Space != event.Local && in.Space != event.Param
	case Matrix, Tile, Warpgroup, Copy, Mbarrier, Texture:
		return true
	case Call:
		return in.Callee == nil || in.Callee.Builtin == ""
	}
	return false
}

// Passed is about control at instruction at that does not reach instruction b any more. acts reports whether both
// instructions lead to an instruction of f that other threads can notice, and returns whether both can return from f.
func (f *Func) Passed(at, b uint32) (acts, returns bool) {
	g := blocksOf(f)
	past, through := g.reach(f, at), g.reach(f, b+1)
	if past[b] {
		return false, false
	}
	for i := range past {
		past[i] = past[i] && through[i]
	}
	return f.acting(past)
}

// Acts reports whether control at an instruction reaches one that other threads can notice, and whether it can return
// from f.
func (f *Func) Acts(at uint32) (acts, returns bool) { return f.acting(blocksOf(f).reach(f, at)) }

// acting is Acts for a set of instructions.
func (f *Func) acting(set []bool) (acts, returns bool) {
	for i, there := range set {
		acts = acts || there && f.Insts[i].acts()
		returns = returns || there && f.Insts[i].Class == Ret
	}
	return acts, returns
}

// reach returns the instructions that control can reach from one, including that one.
func (g *graph) reach(f *Func, from uint32) []bool {
	there := make([]bool, len(f.Insts))
	if int(from) >= len(f.Insts) {
		return there
	}
	first, ok := slices.BinarySearch(g.start, int32(from))
	if !ok {
		first--
	}
	seen := make([]bool, g.blocks())
	for work, at := []int32{int32(first)}, int32(from); len(work) > 0; {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		for i := max(at, g.start[x]); i < g.start[x+1]; i++ {
			there[i] = true
		}
		at = 0
		for _, s := range g.succ[x] {
			if !seen[s] {
				seen[s] = true
				work = append(work, s)
			}
		}
	}
	return there
}

// acts reports whether other threads can notice that an instruction is executed.
func (in *Inst) acts() bool {
	switch in.Class {
	case Barrier, Warp, WarpBarrier, Fence:
		return true
	}
	return in.accesses()
}
