package hb

import "slices"

// deed is what lanes of one warp did together: an access of a class, in one epoch.
type deed struct{ class, warp, clock, exec uint32 }

// deeds are those that notes refer to, numbered from 1, in blocks of one class each.
type deeds struct {
	blocks  [][]warpDeed
	of      []blockOf
	free    []uint32     // blocks
	classes []classDeeds // by class
}

// warpDeed is a deed but for its class.
type warpDeed struct{ warp, clock, exec uint32 }

// blockOf is whose deeds a block has.
type blockOf struct{ class, launch uint32 }

// classDeeds are the deeds of a class that are free.
type classDeeds struct {
	next uint32 // begins those in the last block, none where it is one's end
	free []uint32
}

// launchDeeds are the deeds of a launch.
type launchDeeds struct {
	blocks []uint32
	n      int // in use
	many   int // see Detector.deedOf
}

const deedBlock = 64

// manyDeeds is how many deeds a launch may have before those without notes are looked for.
const manyDeeds = 1 << 16

func (s *deeds) at(id uint32) deed {
	x := &s.blocks[id/deedBlock][id%deedBlock]
	return deed{s.of[id/deedBlock].class, x.warp, x.clock, x.exec}
}

// warp, class and launch give those of a deed.
func (s *deeds) warp(id uint32) uint32   { return s.blocks[id/deedBlock][id%deedBlock].warp }
func (s *deeds) class(id uint32) uint32  { return s.of[id/deedBlock].class }
func (s *deeds) launch(id uint32) uint32 { return s.of[id/deedBlock].launch }

// add gives x, of a launch, a number.
func (s *deeds) add(l *launch, x deed) (id uint32) {
	for int(x.class) >= len(s.classes) {
		s.classes = append(s.classes, classDeeds{})
	}
	l.deeds.n++
	k := &s.classes[x.class]
	if n := len(k.free); n > 0 {
		id = k.free[n-1]
		k.free = k.free[:n-1]
	} else {
		if k.next%deedBlock == 0 {
			b := s.block(blockOf{x.class, l.info.ID})
			l.deeds.blocks = append(l.deeds.blocks, b)
			k.next = max(b*deedBlock, 1) // no deed is number 0
		}
		id = k.next
		k.next++
	}
	s.blocks[id/deedBlock][id%deedBlock] = warpDeed{x.warp, x.clock, x.exec}
	return id
}

// block gives a class a block.
func (s *deeds) block(of blockOf) uint32 {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		s.of[b] = of
		return b
	}
	s.blocks, s.of = append(s.blocks, make([]warpDeed, deedBlock)), append(s.of, of)
	return uint32(len(s.blocks) - 1)
}

// forget ends the deeds of a launch that has no notes left.
func (s *deeds) forget(l *launch) {
	for _, b := range l.deeds.blocks {
		s.classes[s.of[b].class] = classDeeds{}
		s.of[b] = blockOf{}
		clear(s.blocks[b]) // not to be found by notebook.recent
	}
	s.free = append(s.free, l.deeds.blocks...)
	l.deeds = launchDeeds{}
}

// sweep ends the deeds of a launch that are not used.
func (s *deeds) sweep(l *launch, used []uint64) {
	l.deeds.n = 0
	for _, b := range l.deeds.blocks {
		k := &s.classes[s.of[b].class]
		k.free = slices.DeleteFunc(k.free, func(id uint32) bool { return id/deedBlock == b })
		end := (b + 1) * deedBlock
		if k.next > b*deedBlock && k.next < end {
			end = k.next
		}
		for id := max(b*deedBlock, 1); id < end; id++ {
			if used[id/64]>>(id%64)&1 != 0 {
				l.deeds.n++
			} else {
				s.blocks[b][id%deedBlock] = warpDeed{}
				k.free = append(k.free, id)
			}
		}
	}
	l.deeds.many = max(manyDeeds, 2*l.deeds.n)
}

// sweep ends the deeds of a launch that no note refers to.
func (d *Detector) sweep(l *launch) {
	t := &d.mem.notebook
	used := make([]uint64, (len(t.deeds.blocks)*deedBlock+63)/64)
	mark := func(p *page) {
		if p == nil {
			return
		}
		for _, id := range p.notes {
			if id == 0 || id&rollBit != 0 {
				continue
			}
			if id&tallyBit != 0 {
				x := t.tallies.at(id &^ tallyBit)
				for _, deed := range x.deeds[:x.n] {
					used[deed>>deedShift/64] |= 1 << (deed >> deedShift % 64)
				}
				continue
			}
			n := t.lines.at(id)
			var room [1 << maxOnes]note
			for _, c := range n {
				for _, x := range t.of(c, &room) {
					used[x.deed>>deedShift/64] |= 1 << (x.deed >> deedShift % 64)
				}
			}
		}
	}
	for _, p := range l.pages {
		mark(p)
	}
	for _, b := range l.running() {
		for _, p := range b.shared.pages {
			mark(p)
		}
	}
	t.deeds.sweep(l, used)
}
