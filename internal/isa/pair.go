package isa

import "fencepost.dev/fencepost/internal/event"

// Operations of two blocks (cta_group::2) arrive at an mbarrier of the first of the two. Programs compute its address
// in shared memory of the cluster by clearing bit 24 of an address of their own, which on devices is the lowest bit of
// the block's rank. In this package an address of a block's own shared memory has no rank. So an instruction that
// clears, of the bits from 24 on, only bit 24, returns the address in the block of the even rank.

// leaderRow is the row of such an instruction, which PTX spells and.b32.
var leaderRow = &Row{Op: "mapa", Doc: "the address in the first of two blocks", Class: Pure, Rank: true}

// leaders replaces such instructions in a function that has operations of two blocks.
func leaders(f *Func) {
	pairs := false
	for i := range f.Insts {
		pairs = pairs || f.Insts[i].Has("cta_group::2")
	}
	if !pairs {
		return
	}
	for i := range f.Insts {
		in := &f.Insts[i]
		if in.Row.Op != "and" || in.Type != B32 || len(in.Src) != 2 || in.Src[1].Kind != Imm || in.Src[1].Imm>>event.PeerShift&0xff != 0xfe {
			continue
		}
		in.Row, in.Class = leaderRow, Special
		in.Src = append(in.Src, Operand{Kind: SpecialReg, Special: ClusterCtarank})
		in.Eval = func(_ *Inst, a *Args) {
			rank := a.S[2]
			if tag := a.S[0] & 0xffff_ffff >> event.PeerShift; tag != 0 {
				rank = tag - 1
			}
			a.D[0] = (rank&^1+1)<<event.PeerShift | a.S[0]&a.S[1]&(1<<event.PeerShift-1)
		}
	}
}
