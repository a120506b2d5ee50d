package simt

import "fencepost.dev/fencepost/internal/simt/vcode"

// Where lanes meet that parted at an instruction at which they may wait: right behind it (split.meet). Other numbers are those
// of an OpMeet, and -1 is where lanes exit.
func behind(pc int32) int32 { return -2 - pc }

// partsAt notes where lanes meet that part at effect i; fall is where those go on that fall through.
func (x *vecMachine) partsAt(w *warp, i, meet, fall int32) {
	w.at = split{place: x.places[i], meet: meet, behind: fall}
}

// forkPath parts the running group at a branch: the lanes of taken go over edge a, the others over b.
func (x *vecMachine) forkPath(w *warp, in *vcode.Instr, taken uint32) {
	v, t := vecOf(w), x.t
	k := x.part(v, v.cur, v.groups[v.cur].mask&^taken)
	x.follow(v, &v.groups[v.cur], &t.Edges[in.A])
	x.follow(v, &v.groups[k], &t.Edges[in.B])
	fall := [2]int32{in.A, in.B}[in.Fn]
	x.partsAt(w, in.D, t.Effects[in.D].Meet, t.Edges[fall].To)
	w.regroup = true
}

// switchPath notes where lanes meet that part at an indexed branch.
func (x *vecMachine) switchPath(w *warp, i int32) {
	e, fall := &x.t.Effects[i], int32(-1)
	if e.Fall >= 0 {
		fall = x.t.Edges[e.Succs[e.Fall]].To
	}
	x.partsAt(w, i, e.Meet, fall)
}

// met implements machine. Lanes have come to an OpMeet when they are at it or behind it.
func (x *vecMachine) met(w *warp, s *split, mask uint32) uint32 {
	met, code := uint32(0), x.t.Code
	v := vecOf(w)
	for i := range v.groups {
		g := &v.groups[i]
		if g.mask&mask == 0 {
			continue
		}
		if in := &code[g.pc]; in.Op == vcode.OpMeet && in.A == s.meet {
			g.pc++
		}
		if s.meet <= behind(0) && g.pc == behind(s.meet) || g.pc > 0 && code[g.pc-1].Op == vcode.OpMeet && code[g.pc-1].A == s.meet {
			met |= g.mask
		}
	}
	return met & mask
}

// beside implements machine.
func (x *vecMachine) beside(w *warp, mask uint32, lane int) uint32 {
	beside, pc := uint32(0), vecOf(w).groupOf(lane).pc
	v := vecOf(w)
	for i := range v.groups {
		if g := &v.groups[i]; g.pc == pc {
			beside |= g.mask
		}
	}
	return beside & mask
}

// fallen implements machine.
func (x *vecMachine) fallen(w *warp, mask uint32) uint32 {
	fallen := uint32(0)
	v := vecOf(w)
	for i := range v.groups {
		if g := &v.groups[i]; g.pc == w.at.behind {
			fallen |= g.mask
		}
	}
	return fallen & mask
}

// choosePath makes one group of the lanes that run next and lets it run.
func (x *vecMachine) choosePath(w *warp) {
	v := vecOf(w)
	v.cur = 0 // the others have moved up
	path := x.r.choosePath(w)
	if path == 0 || w.stalled {
		return
	}
	v.cur = -1
	for i := 0; i < len(v.groups); i++ {
		g := &v.groups[i]
		switch {
		case g.mask&path == 0:
			continue
		case g.mask&^path != 0:
			panic("BUG: a group of two paths")
		case v.cur < 0:
			v.cur = i
			continue
		}
		cur := &v.groups[v.cur]
		if m := x.t.Meet[g.pc]; m < 0 || !x.agree(v, x.t, cur, g) {
			panic("BUG: lanes in lockstep meet with scalars that differ")
		}
		cur.mask |= g.mask
		v.slots &^= 1 << g.slot
		v.groups = append(v.groups[:i], v.groups[i+1:]...)
		i--
	}
}
