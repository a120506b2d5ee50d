package parsnip

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/hw/cache"
	"fencepost.dev/fencepost/internal/hw/history"
	"fencepost.dev/fencepost/internal/hw/machine"
)

// pending is an entry of an epoch store buffer (section 4.3.1).
type pending struct {
	x     uint32
	write bool
	epoch order.Epoch
}

// put adds an entry to the core's buffer. A full buffer is drained first.
func (d *Detector) put(p pending) {
	b := &d.buffers[d.core]
	if d.options.BufferEntries == 0 {
		d.apply(p)
		d.Counts.Drains++
		d.charge(BufferDrain, d.options.Machine.Software+d.Base.Caches.Access(d.core, machine.HistoryLine(p.x), true))
		return
	}
	if d.waiting[p.x]>>d.core&1 != 0 {
		if d.unbuffer(d.core, p.x, &p) {
			return
		}
	}
	if len(*b) == d.options.BufferEntries {
		d.drain()
	}
	*b = append(*b, p)
	d.waiting[p.x] |= 1 << d.core
}

// drain moves the entries of the core's buffer to software.
func (d *Detector) drain() {
	cycles := d.options.Machine.Software
	d.drained = append(d.drained[:0], d.buffers[d.core]...) // a copy, because an eviction handler may remove entries
	for _, p := range d.drained {
		cycles += d.Base.Caches.Access(d.core, machine.HistoryLine(p.x), true)
	}
	d.charge(BufferDrain, cycles)
	d.Counts.Drains++
	for _, p := range d.buffers[d.core] {
		d.apply(p)
		d.waiting[p.x] &^= 1 << d.core
	}
	d.buffers[d.core] = d.buffers[d.core][:0]
}

// unbuffer removes from a core's buffer the entries that by replaces, or all entries of variable x if by is nil. It
// reports whether by has been coalesced with an existing entry.
func (d *Detector) unbuffer(core int, x uint32, by *pending) (done bool) {
	all := d.buffers[core]
	at := 0
	for at < len(all) && all[at].x != x {
		at++
	}
	b := all[:at]
	left := false
	for _, p := range all[at:] {
		switch {
		case p.x != x:
		case by == nil, by.write && !p.write:
			continue // obsolete
		case p.write == by.write && (p.write || p.epoch.Thread() == by.epoch.Thread()):
			p.epoch = by.epoch
			done, left = true, true
		default:
			left = true
		}
		b = append(b, p)
	}
	d.buffers[core] = b
	if !left {
		d.waiting[x] &^= 1 << core
	}
	return done
}

// buffered returns the epoch of a reference's access in the core's buffer, or 0 if it is not there.
func (d *Detector) buffered(r ref) order.Epoch {
	if d.waiting[d.x]>>d.core&1 != 0 {
		for _, p := range d.buffers[d.core] {
			if p.x == d.x && p.write == r.write() && p.epoch.Thread() == r.thread() {
				return p.epoch
			}
		}
	}
	return 0
}

// apply adds a buffered access to the history in software.
func (d *Detector) apply(p pending) {
	if p.write {
		d.software.SetWrite(p.x, p.epoch)
	} else {
		d.software.AddRead(p.x, p.epoch)
	}
}

// collect applies all buffered accesses to a variable, and removes them from the buffers.
func (d *Detector) collect(x uint32) {
	for m := d.waiting[x]; m != 0; m &= m - 1 {
		core := bits.TrailingZeros32(m)
		all := d.buffers[core]
		left := 0
		for i := range all {
			if p := &all[i]; p.x == x {
				d.apply(*p)
			} else {
				if left < i {
					all[left] = *p
				}
				left++
			}
		}
		d.buffers[core] = all[:left]
	}
	d.waiting[x] = 0
}

// persist completes the history in software by the accesses in buffers and references. Software may keep an access that
// has been superseded: it is ordered before the one that superseded it, or a race of the two has been reported.
func (d *Detector) persist(x uint32) {
	d.collect(x)
	n, slot := x>>d.shift, int(x&(d.slots-1))
	r, s := none, none
	if l := d.content(primary, n); l != nil {
		r = l.get(slot)
	}
	if l := d.content(secondary, n); l != nil {
		s = l.get(slot)
	}
	h := &d.software
	if r == none {
		return
	}
	if r.known() && !r.next() {
		h.SetWrite(x, 0)
	}
	if r.next() && s.known() {
		alone := r.known() && !s.next()
		e := d.tables[s.thread()].clocks[s.index()]
		switch {
		case s.write() && alone:
			h.SetWrite(x, e)
		case s.write():
			h.Rewrite(x, e)
		default:
			if alone {
				h.SetWrite(x, 0)
			}
			h.AddRead(x, e)
		}
	}
	if r.known() {
		if e := d.tables[r.thread()].clocks[r.index()]; r.write() {
			h.SetWrite(x, e)
		} else {
			h.AddRead(x, e)
		}
	}
}

// handle is the software check handler (sections 4.2.7, 4.2.8).
func (d *Detector) handle(e *cpu.Event, cost Cost) {
	d.Counts.Checks++
	first, last := d.x, d.x
	if d.options.Predict {
		first, last = d.n*d.slots, (d.n+1)*d.slots-1
	}
	cycles := d.options.Machine.Software
	for l := machine.HistoryLine(first); l <= machine.HistoryLine(last); l++ {
		cycles += d.Base.Caches.Access(d.core, l, l == machine.HistoryLine(d.x))
	}
	d.charge(cost, cycles)
	d.persist(d.x)
	d.software.Races(d.x, d.clock, d.write, func(earlier order.Epoch, wrote bool) {
		d.Found(history.Race(d.events, e, earlier, wrote))
	})
	d.software.Record(d.x, d.clock, d.now, d.write)
	if d.write {
		d.setSecond(none, 0)
		d.store(primary, makeRef(d.thread, true, false, d.index(d.now)))
	} else {
		next := d.placeSecond()
		d.store(primary, makeRef(d.thread, false, next, d.index(d.now)))
	}
	if d.options.Predict {
		d.predict()
	}
}

// placeSecond sets the secondary reference of a variable that the access reads. It reports whether there is other
// history.
func (d *Detector) placeSecond() (next bool) {
	others := 0
	second := d.software.Written(d.x)
	write := second != 0
	d.software.Reads(d.x, func(e order.Epoch) bool {
		if e.Thread() != d.thread {
			others++
			if second == 0 {
				second = e
				others-- // this read is not in software alone
			}
		}
		return true
	})
	if second == 0 {
		d.setSecond(none, 0)
		return false
	}
	r := none
	if i := d.index(second); i != invalid {
		r = makeRef(second.Thread(), write, others > 0, i)
	}
	d.setSecond(r, 0)
	return true
}

// predict checks the same access for the other variables of the line. Variables that pass get the access's capability
// (section 4.3.2). It does not change references that have a clock.
func (d *Detector) predict() {
	l, second := d.content(primary, d.n), d.content(secondary, d.n)
	x, slot := d.x, d.slot
	defer func() { d.x, d.slot = x, slot }()
	for d.slot = range int(d.slots) {
		d.x = d.n*d.slots + uint32(d.slot)
		r := l.get(d.slot)
		if d.x == x || r.known() || r.thread() == d.thread && (r.write() || !d.write) || second != nil && second.get(d.slot) != none {
			continue
		}
		if d.waiting[d.x] != 0 {
			d.collect(d.x)
		}
		if d.software.Free(d.x, d.clock, d.write) {
			d.change(l, makeRef(d.thread, d.write, d.software.Any(d.x), invalid))
		}
	}
}

// leave handles a line that leaves caches.
func (d *Detector) leave(core int, l cache.Line, last bool) {
	space := int(l>>cache.SpaceShift) - 1
	if space != primary && space != secondary {
		return
	}
	if !last && !(d.policy.l1 && d.Base.Caches.Discard(core, l)) {
		return
	}
	if n := uint32(l) & (1<<cache.SpaceShift - 1); d.content(space, n) != nil {
		d.evict(space, n)
	}
}

// evict is the eviction handler (section 4.2.8).
func (d *Detector) evict(space int, n uint32) {
	l, second := d.content(space, n), d.content(secondary, n)
	told := false
	for slot := range d.slots {
		r := l.get(int(slot))
		if r == none {
			continue
		}
		told = told || r.known()
		d.persist(n*d.slots + slot)
		if space == primary && second != nil {
			told = told || second.get(int(slot)).known()
			d.replace(second, n, int(slot), none)
		}
	}
	if told {
		d.Counts.Evictions++
		d.charge(d.trigger, d.options.Machine.Software)
	}
	d.drop(space, n)
}
