package scord

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/event"
)

// word is the metadata of a granule. Modified, BlkShared and DevShared are stored inverted: in a granule that is not
// initialised all three flags are set, so its word is zero.
type word uint64

// The bits of a word, from low to high: warp, filter, fence and barrier IDs, flags, tag.
const (
	warpBits     = 17
	filterShift  = warpBits
	blockShift   = filterShift + 16 // the block fence ID
	deviceShift  = blockShift + 6
	barrierShift = deviceShift + 6
	flagShift    = barrierShift + 8
	tagShift     = 60

	warpMask  = word(1)<<warpBits - 1
	fenceMask = word(1)<<barrierShift - word(1)<<blockShift // both fence IDs
)

// The flags.
const (
	unmodified  word = 1 << (flagShift + iota)
	blkUnshared      // not accessed by two warps of one block
	devUnshared      // not accessed by two blocks
	isAtom
	deviceScope
	strong

	unshared = blkUnshared | devUnshared
	initial  = unmodified | unshared // none of these bits: table III, a
)

// cell is a word and, for messages, the access that made it.
type cell struct {
	word  word
	place uint32
	how   uint32 // lane | kind<<8 | order<<12 | scope<<16 | size<<20
}

// Turn implements shadow.Cell.
func (c *cell) Turn(n int) {
	if c.how != 0 {
		c.how = c.how&^31 | (c.how+uint32(n))&31
	}
}

// access is an access of a warp, with the state of the warp.
type access struct {
	word    word // the word after the access, if it is the first
	tag     word
	warp    uint32
	block   uint32
	barrier word
	filter  uint16
	writes  bool
	atomic  bool
	strong  bool
	how     uint32
	address uint64 // of lane from; each later lane is one step further
	from    int
	step    uint64
}

// arrival returns the access of an event.
func (d *Detector) arrival(e *event.Event) access {
	w := &d.warps[e.Warp]
	a := access{warp: e.Warp, block: e.Warp / d.perBlock, filter: w.filter,
		writes: e.Kind != event.Load, atomic: e.Kind == event.Atomic, strong: e.Kind == event.Atomic || e.Order != event.Weak}
	a.barrier = word(d.barriers[a.block]) << barrierShift
	a.how = uint32(e.Kind)<<8 | uint32(e.Order)<<12 | uint32(e.Scope)<<16 | uint32(e.Size)<<20
	a.word = unshared | word(e.Warp)&warpMask | word(w.filter)<<filterShift | word(w.blockFence)<<blockShift |
		word(w.deviceFence)<<deviceShift | a.barrier
	if a.atomic {
		a.word |= isAtom
		if e.Scope >= event.ScopeGPU {
			a.word |= deviceScope
		}
	}
	if !a.writes {
		a.word |= unmodified
	}
	if a.strong {
		a.word |= strong
	}
	return a
}

// cell judges the access of a lane to a granule, and records it.
func (d *Detector) cell(c *cell, e *event.Event, now *access, lane int) (races bool) {
	next := now.word
	if md := c.word; md&initial != 0 && md>>tagShift<<tagShift == now.tag {
		last := uint32(md&warpMask) | now.warp&^uint32(warpMask)
		if int(last) >= len(d.warps) {
			last = uint32(md & warpMask)
		}
		m := pair{md: md, last: last, sameWarp: md&warpMask == word(now.warp)&warpMask, sameBlock: last/d.perBlock == now.block}
		m.programOrder = m.sameWarp && md&unshared == unshared
		m.barrier = m.sameBlock && md>>barrierShift&0xff != now.barrier>>barrierShift && md&devUnshared != 0
		if !m.programOrder && !m.barrier && (now.writes || md&unmodified == 0) {
			if why := d.condition(&m, now); why != passes {
				d.report(c, e, now, lane, &m, why)
				races = true
			}
		}
		next &^= flags
		if d.reset {
			next |= m.released(now, races)
		} else {
			next |= m.letter(now)
		}
	}
	c.word, c.place, c.how = next|now.tag, e.Place, now.how|uint32(lane)
	return races
}

// pair is an access, and the metadata of the previous access.
type pair struct {
	md                    word
	last                  uint32 // the warp of the previous access
	sameWarp, sameBlock   bool
	programOrder, barrier bool // table III, b and c
}

// flags are the flags that also depend on previous accesses.
const flags = initial | strong

// letter returns the flags after an access according to section IV-A ("Memory access instructions also update"): they
// are set, and never reset. When Modified, BlkShared and DevShared are all set, the next access counts as the first.
func (m *pair) letter(now *access) word {
	f := m.md&initial | m.md&now.word&strong
	if now.writes {
		f &^= unmodified
	}
	switch {
	case !m.sameBlock:
		f &^= devUnshared
	case !m.sameWarp:
		f &^= blkUnshared
	}
	return f
}

// released returns the flags after an access as in the simulator that the authors released. An access that a barrier
// separates from all previous ones begins anew, and so does one that has raced. A load after a fence resets Modified,
// and a store that passes resets the shared flags, unless locks are held. Only one of the two shared flags is set at a
// time.
func (m *pair) released(now *access, raced bool) word {
	first := now.word & flags
	strongs := m.md & now.word & strong
	switch locked := uint16(m.md>>filterShift) != 0 || now.filter != 0; {
	case m.barrier, raced, m.programOrder && now.writes:
		return first
	case m.programOrder:
		if (m.md^now.word)&fenceMask != 0 {
			return first
		}
		return first&^unmodified | m.md&unmodified
	case !locked && now.writes && !(now.atomic && m.md&isAtom != 0):
		return first&^strong | strongs
	case !locked && !now.writes && m.md&unmodified == 0:
		f := unshared | strongs
		if !m.sameWarp {
			f |= unmodified
		}
		return f
	}
	f := m.md&initial | strongs
	if now.writes {
		f &^= unmodified
	}
	switch {
	case !m.sameBlock:
		f = f&^devUnshared | blkUnshared
	case !m.sameWarp && m.md&devUnshared != 0:
		f &^= blkUnshared
	}
	return f
}

// verdict is a row of table IV.
type verdict uint8

const (
	passes verdict = iota
	missingBlockFence
	missingDeviceFence
	notStrong
	scopedAtomic
	noCommonLockLoad
	noCommonLockStore
)

var notes = [...]string{"", "missing block fence", "missing device fence", "not strong access", "scoped atomic",
	"missing common lock on load", "missing common lock on store"}

// condition applies table IV.
func (d *Detector) condition(m *pair, now *access) verdict {
	switch {
	case m.md&isAtom != 0 && m.md&deviceScope == 0 && !m.sameBlock:
		return scopedAtomic
	case m.md&isAtom != 0 && now.atomic:
		return passes
	}
	file := &d.warps[m.last]
	device := m.md>>deviceShift&0x3f == word(file.deviceFence)
	switch {
	case m.sameBlock && !m.sameWarp && device && m.md>>blockShift&0x3f == word(file.blockFence):
		return missingBlockFence
	case !m.sameBlock && device:
		return missingDeviceFence
	}
	if before := uint16(m.md >> filterShift); !now.atomic && before|now.filter != 0 && before&now.filter == 0 {
		if now.writes {
			return noCommonLockStore
		}
		return noCommonLockLoad
	}
	if !m.sameWarp && m.md&now.word&strong == 0 {
		return notStrong
	}
	return passes
}

// report reports a race. Its kind is the one closest to the condition.
func (d *Detector) report(c *cell, e *event.Event, now *access, lane int, m *pair, why verdict) {
	r := findings.Race{Note: notes[why], Facts: detect.Facts{Category: detect.CrossBlock}}
	if m.sameBlock {
		r.Facts.Category = detect.SameBlock
	}
	switch why {
	case missingBlockFence:
		r.Kind = detect.MissingFence
	case missingDeviceFence:
		r.Kind = detect.MissingFence
		if c.word>>blockShift&0x3f != word(d.warps[m.last].blockFence) {
			r.Kind = detect.FenceScope
		}
	case scopedAtomic:
		r.Facts.Category = detect.ScopeRace
	case noCommonLockLoad, noCommonLockStore:
		r.Kind = detect.MissingLock
	}
	address := now.address + uint64(lane-now.from)*now.step
	r.Facts.Earlier = d.side(c.place, c.how, m.last, address)
	r.Facts.Later = d.side(e.Place, now.how|uint32(lane), now.warp, address)
	d.Add(&r)
}

func (d *Detector) side(place, how, warp uint32, address uint64) detect.Access {
	a := detect.Access{Op: detect.Read, Order: event.Order(how >> 12 & 0xf), Scope: event.Scope(how >> 16 & 0xf), Space: event.Global,
		Place: place, Launch: d.launch, Warp: warp, Lane: int(how & 31), Address: address, Size: int(how >> 20)}
	switch event.Kind(how >> 8 & 0xf) {
	case event.Store:
		a.Op = detect.Write
	case event.Atomic:
		a.Op = detect.AtomicOp
	}
	return a
}
