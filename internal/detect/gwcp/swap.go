package gwcp

import (
	"cmp"
	"maps"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/lock"
)

// swapped finds two critical sections of one lock whose observed order is the only reason why an access by thread was,
// at an epoch, came before that of the actor's lane. The first section ends after the earlier access, the second begins
// before the later access, and GWCP does not order them, nor therefore the two accesses. If there are several such
// pairs, it gives the one that came first, with a section of the actor's own thread if possible. It gives none if the
// sections have been merged.
func (d *Detector) swapped(was thread, epoch uint32, lane int) []detect.Section {
	me := thread{d.act.e.Warp, uint32(lane)}
	var id lock.ID
	var first, second visit
	for i, st := range d.lockStates { // any order will do: the smallest number identifies one section
		visits := st.visits()
		for _, e := range st.queued() {
			if e.merged || e.by == me || first.number != 0 && first.number <= e.number || !d.knows(e.h, was, epoch) {
				continue
			}
			if v := d.next(visits, &e.visit, me); v != nil {
				id, first, second = i, e.visit, *v
			}
		}
	}
	if first.number == 0 {
		return nil
	}
	sections := []detect.Section{d.section(id, &first), d.section(id, &second)}
	if x := d.lockStates[id].holder; x != nil && x.number == second.number {
		x.told = append(x.told, &sections[1])
	}
	return sections
}

// queued returns the ended sections of a lock.
func (st *lockState) queued() []*entry {
	var out []*entry
	add := func(x *instance) {
		for i := range x.queue {
			out = append(out, &x.queue[i])
		}
	}
	add(&st.device)
	for _, b := range slices.Sorted(maps.Keys(st.blocks)) {
		add(st.blocks[b])
	}
	return out
}

// visits returns the sections of a lock, including those that have not ended, in the order of their acquires.
func (st *lockState) visits() []*visit {
	var out []*visit
	for _, e := range st.queued() {
		out = append(out, &e.visit)
	}
	if st.holder != nil {
		out = append(out, &st.holder.visit)
	}
	slices.SortFunc(out, func(a, b *visit) int { return cmp.Compare(a.number, b.number) })
	return out
}

// next returns the section in visits that acquires from v, with overlapping scopes, and begins before the actor's
// access as thread me: one of me, or else the next one of another thread.
func (d *Detector) next(visits []*visit, v *visit, me thread) *visit {
	a := &d.act
	var out *visit
	for _, n := range visits {
		switch {
		case n.number <= v.number || n.by == v.by || !n.device && !v.wide && n.block != v.block:
		case n.by == me:
			return n
		case out == nil && d.run.unknown(&a.view.h, a.blk, n.by.warp, 1<<n.by.lane, n.epoch) == 0:
			out = n
		}
	}
	return out
}

// section converts a section for a finding.
func (d *Detector) section(id lock.ID, v *visit) detect.Section {
	return detect.Section{Lock: id.Addr, Shared: id.Shared, From: v.from, To: v.to, Launch: d.run.info, Warp: v.by.warp, Lane: int(v.by.lane)}
}
