package warp

import (
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/vcode"
)

// behind returns the number, as in engine.Split.Meet, of the place right after pc, at which lanes reconverge that
// diverged at an instruction that can wait. Numbers of zero and above are those of an OpReconverge. The number -1 is the exit.
func behind(pc int32) int32 { return -2 - pc }

// partsAt records where the lanes that diverge at effect i reconverge. Fall is the place of the lanes that fall through.
func (x *machine) partsAt(w *engine.Warp, i, meet, fall int32) {
	w.At = engine.Split{Place: x.places[i], Meet: meet, Behind: fall}
}

// forkPath splits the running group at a branch: the lanes of taken take edge a, the others edge b.
func (x *machine) forkPath(w *engine.Warp, in *vcode.Instr, taken uint32) {
	v, t := regsOf(w), x.t
	k := x.part(v, v.cur, v.groups[v.cur].mask&^taken)
	x.follow(v, &v.groups[v.cur], &t.Edges[in.A])
	x.follow(v, &v.groups[k], &t.Edges[in.B])
	fall := [2]int32{in.A, in.B}[in.Fn]
	x.partsAt(w, in.D, t.Effects[in.D].Meet, t.Edges[fall].To)
	w.Regroup = true
}

// switchPath records where the lanes that diverge at an indexed branch reconverge.
func (x *machine) switchPath(w *engine.Warp, i int32) {
	e, fall := &x.t.Effects[i], int32(-1)
	if e.Fall >= 0 {
		fall = x.t.Edges[e.Succs[e.Fall]].To
	}
	x.partsAt(w, i, e.Meet, fall)
}

// Met implements engine.Machine. Lanes have reached an OpReconverge if they are at it or right after it.
func (x *machine) Met(w *engine.Warp, s *engine.Split, mask uint32) uint32 {
	met, code := uint32(0), x.t.Code
	v := regsOf(w)
	for i := range v.groups {
		g := &v.groups[i]
		if g.mask&mask == 0 {
			continue
		}
		if in := &code[g.pc]; in.Op == vcode.OpReconverge && in.A == s.Meet {
			g.pc++
		}
		if s.Meet <= behind(0) && g.pc == behind(s.Meet) || g.pc > 0 && code[g.pc-1].Op == vcode.OpReconverge && code[g.pc-1].A == s.Meet {
			met |= g.mask
		}
	}
	return met & mask
}

// Beside implements engine.Machine.
func (x *machine) Beside(w *engine.Warp, mask uint32, lane int) uint32 {
	beside, pc := uint32(0), regsOf(w).groupOf(lane).pc
	v := regsOf(w)
	for i := range v.groups {
		if g := &v.groups[i]; g.pc == pc {
			beside |= g.mask
		}
	}
	return beside & mask
}

// Fallen implements engine.Machine.
func (x *machine) Fallen(w *engine.Warp, mask uint32) uint32 {
	fallen := uint32(0)
	v := regsOf(w)
	for i := range v.groups {
		if g := &v.groups[i]; g.pc == w.At.Behind {
			fallen |= g.mask
		}
	}
	return fallen & mask
}

// choosePath makes the lanes that run next one group and makes it the current one.
func (x *machine) choosePath(w *engine.Warp) {
	v := regsOf(w)
	v.cur = 0 // choose has compacted the groups
	path := x.r.ChoosePath(w)
	if path == 0 || w.Stalled {
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
