package hb

import (
	"math/bits"
	"slices"
)

// mark says what is kept of a packed line: nothing (zero), packs of its own, or a form.
type mark struct {
	form uint32 // number of the form, or with markList that of the first of the line's own packs
	// What the warps and clocks of the form are relative to.
	warp, clock uint32
}

const markList uint32 = 1 << 31

// forms are lists of packs that lines share. A line whose packs refer to nothing is its form, a warp and an epoch: what the
// warps of a kernel do, each with lines of its own, after one barrier as after the other, makes few forms. A form is never
// changed, and says nothing of the current values of things: the same access to two lines of a form makes them two lines of another,
// see step.
type forms struct {
	list  [][]pack          // from 1; nil: free
	byKey map[uint64]uint32 // by hash
	free  []uint32          // numbers
	many  int               // forms at which those of no line are looked for, at least
	few   int               // the same when there are few pages: minForms, or less to test that
	steps []step            // a power of two, by hash
	over  int               // steps made in place of others since there are so many, or since forms were last looked through
	used  bool              // there may be a step
	lines int               // marks that name a form
}

// Forms that there are at least before those of no line are looked for, and at most. Lines that would make more keep packs
// of their own.
const (
	minForms = 1 << 6
	maxForms = 1 << 14
)

// Steps that are remembered at first, and at most.
const (
	minSteps = 1 << 7
	maxSteps = 1 << 9
)

// step remembers what an access made of a line: of one of form from, one of form to.
type step struct {
	stepKey
	to uint32
	// What is added to the mark's warp and epoch.
	warp, clock uint32
	check       uint32 // packs of the form, as bits, that must happen before the access
}

// stepKey is an access as far as it decides about the form that comes out, in whole words, which are quick to compare.
type stepKey struct {
	what  uint64 // from<<32 | whole.head
	where uint64 // shape<<32 | lanes
	when  uint64 // exec<<32 | epoch less the mark's
	who   uint64 // warp less the mark's
}

func (q *whole) step(from mark) stepKey {
	return stepKey{uint64(from.form)<<32 | uint64(q.head), uint64(q.shape)<<32 | uint64(q.lanes),
		uint64(q.exec)<<32 | uint64(q.clock-from.clock), uint64(q.e.Warp - from.warp)}
}

// slot gives where a step is remembered.
func (f *forms) slot(k *stepKey) uint32 {
	h := k.what*0x9e3779b97f4a7c15 ^ k.where*0xd6e8feb86659fd93 ^ (k.when^k.who<<40)*0xff51afd7ed558ccd
	return uint32(h >> 40 & uint64(len(f.steps)-1))
}

// remember keeps a step, in more room when many were in place of others.
func (f *forms) remember(x step) {
	f.used = true
	t := &f.steps[f.slot(&x.stepKey)]
	if t.to != 0 {
		f.over++
	}
	if f.over > len(f.steps) && len(f.steps) < maxSteps {
		old := f.steps
		f.steps, f.over = make([]step, 2*len(old)), 0
		for i := range old {
			if old[i].to != 0 {
				f.steps[f.slot(&old[i].stepKey)] = old[i]
			}
		}
		t = &f.steps[f.slot(&x.stepKey)]
	}
	*t = x
}

// forget is told that classes, whose numbers packs hold, have ended.
func (f *forms) forget() {
	if f.used {
		f.used = false
		clear(f.steps)
	}
	if f.lines == 0 && f.list != nil {
		f.list, f.byKey, f.free, f.many = nil, nil, nil, 0
	}
}

// full says that it is time to look for forms of no line.
func (f *forms) full() bool { return len(f.list)-len(f.free) > max(f.many, f.few) }

// sweepForms ends the forms that no line has, and the steps from and to them. Of what most kernels do on the way to
// the forms that remain only few steps are made again.
func (d *Detector) sweepForms() {
	f := &d.mem.forms
	used := make([]bool, len(f.list))
	pages := 0
	look := func(list []*page) {
		for _, p := range list {
			if p == nil {
				continue
			}
			pages++
			for _, m := range p.marks {
				if m.form&markList == 0 {
					used[m.form] = true
				}
			}
		}
	}
	for _, dir := range d.mem.dirs {
		look(dir.pages)
	}
	for _, l := range d.launches {
		for _, b := range l.running() {
			look(b.shared.pages)
		}
	}
	used[0] = true
	clear(f.byKey)
	for id := 1; id < len(f.list); id++ {
		switch {
		case used[id]:
			h := hashOf(f.list[id])
			for f.byKey[h] != 0 {
				h++
			}
			f.byKey[h] = uint32(id)
		case f.list[id] != nil:
			f.list[id] = nil
			f.free = append(f.free, uint32(id))
		}
	}
	for i := range f.steps {
		if x := &f.steps[i]; !used[x.what>>32] || !used[x.to] {
			*x = step{}
		}
	}
	f.over = 0                                         // steps that end with their forms need no room
	f.many = max(2*(len(f.list)-len(f.free)), pages/4) // so that looking costs little beside what made them
}

// hashOf is what a form is found by.
func hashOf(packs []pack) uint64 {
	h := uint64(len(packs))
	for i := range packs {
		x := &packs[i]
		h = (h ^ (uint64(x.head)<<32 | uint64(x.warp))) * 0x9e3779b97f4a7c15
		h = (h ^ (uint64(x.lanes)<<32 | uint64(x.shape))) * 0xd6e8feb86659fd93
		h = (h ^ h>>32 ^ (uint64(x.exec)<<32 | uint64(x.clock))) * 0xff51afd7ed558ccd
		h = (h ^ h>>32 ^ (uint64(x.ref)<<32 | uint64(x.far))) * 0x9e3779b97f4a7c15
	}
	return h
}

// number gives the number of a form, 0 when there are too many.
func (f *forms) number(packs []pack) uint32 {
	h := hashOf(packs)
	for ; ; h++ {
		id, ok := f.byKey[h]
		if !ok {
			break
		}
		if slices.Equal(f.list[id], packs) {
			return id
		}
	}
	if len(f.list)-len(f.free) > maxForms {
		return 0
	}
	if f.list == nil {
		f.list, f.byKey = make([][]pack, 1), map[uint64]uint32{}
	}
	id := uint32(len(f.list))
	if n := len(f.free); n > 0 {
		id, f.free = f.free[n-1], f.free[:n-1]
	} else {
		f.list = append(f.list, nil)
	}
	f.list[id] = slices.Clone(packs)
	f.byKey[h] = id
	return id
}

// packed judges and records the part in line i of p, as pack does: by a step that was made before, when there is one.
func (d *Detector) packed(q *whole, p *page, i uint64) bool {
	m := &p.marks[i]
	if m.form&markList != 0 {
		return d.pack(q, p, i)
	}
	from := *m
	if from.form == 0 {
		from.warp, from.clock = q.e.Warp, q.clock
	}
	f := &d.mem.forms
	k := q.step(from)
	t := &f.steps[f.slot(&k)]
	if t.what == k.what && t.where == k.where && t.when == k.when && t.who == k.who && (t.check == 0 || d.checked(q, from, t.check)) {
		if from.form == 0 {
			f.lines++
		}
		*m = mark{t.to, from.warp + t.warp, from.clock + t.clock}
		return true
	}
	d.mem.thaw(p, i)
	q.fixed, q.check = true, 0
	ok := d.pack(q, p, i)
	d.mem.freeze(p, i)
	if ok && q.fixed && m.form&markList == 0 {
		f.remember(step{k, m.form, m.warp - from.warp, m.clock - from.clock, q.check})
	}
	if f.full() {
		d.sweepForms()
	}
	return ok
}

// checked says that those packs of a form happen before the part.
func (d *Detector) checked(q *whole, m mark, packs uint32) bool {
	list := d.mem.forms.list[m.form]
	for ; packs != 0; packs &= packs - 1 {
		x := list[bits.TrailingZeros32(packs)&31]
		x.move(m)
		if !d.ordered(q, &x) {
			return false
		}
	}
	return true
}

// move gives a pack of a form the warps and epochs of a line.
func (x *pack) move(m mark) {
	x.warp += m.warp
	x.clock += m.clock
}

// thaw gives a line packs of its own in place of its form.
func (s *shadow) thaw(p *page, i uint64) {
	m := p.marks[i]
	if m.form == 0 || m.form&markList != 0 {
		return
	}
	s.forms.lines--
	p.marks[i] = mark{}
	to := &p.marks[i].form
	flag := markList
	for _, x := range s.forms.list[m.form] {
		id := s.packs.add()
		x.move(m)
		*to = id | flag
		at := s.packs.at(id)
		*at = x
		to, flag = &at.next, 0
	}
}

// freeze gives a line a form in place of packs of its own, if they refer to nothing.
func (s *shadow) freeze(p *page, i uint64) {
	var buf [maxPacks + 2]pack
	packs := buf[:0]
	m := &p.marks[i]
	for id := m.first(); id != 0; {
		x := s.packs.at(id)
		if kind := x.head & refKind; kind != 0 && kind != refMemory && kind != refWarps || len(packs) == len(buf) {
			return
		}
		packs = append(packs, *x)
		packs[len(packs)-1].next = 0
		id = x.next
	}
	if len(packs) == 0 {
		return
	}
	to := mark{warp: packs[0].warp, clock: packs[0].clock}
	for j := range packs {
		packs[j].move(mark{warp: -to.warp, clock: -to.clock})
	}
	if to.form = s.forms.number(packs); to.form == 0 {
		return
	}
	for id := m.first(); id != 0; {
		x := s.packs.at(id)
		s.packs.drop(id)
		id = x.next
	}
	s.forms.lines++
	*m = to
}

// first gives the first of the line's own packs, 0 when it has none.
func (m mark) first() uint32 {
	if m.form&markList == 0 {
		return 0
	}
	return m.form &^ markList
}

// packsOf appends the packs of a line.
func (s *shadow) packsOf(m mark, to []pack) []pack {
	if m.form&markList == 0 {
		n := len(to)
		if m.form != 0 {
			to = append(to, s.forms.list[m.form]...)
		}
		for j := n; j < len(to); j++ {
			to[j].move(m)
		}
		return to
	}
	for id := m.first(); id != 0; {
		x := s.packs.at(id)
		to = append(to, *x)
		id = x.next
	}
	return to
}
