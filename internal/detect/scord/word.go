package scord

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/tally"
	"fencepost.dev/fencepost/internal/event"
)

// word is the metadata of a granule. Zero is that of one not accessed yet: the paper's three flags that say so are told
// by one that says the opposite.
type word uint64

// The bits of a word, from below: warp, filter, fence and barrier IDs, flags, tag.
const (
	warpBits     = 17
	filterShift  = warpBits
	blockShift   = filterShift + 16 // the block fence ID
	deviceShift  = blockShift + 6
	barrierShift = deviceShift + 6
	flagShift    = barrierShift + 8
	tagShift     = 60

	warpMask = word(1)<<warpBits - 1
)

// The flags.
const (
	accessed word = 1 << (flagShift + iota)
	modified
	blkShared
	devShared
	isAtom
	deviceScope
	strong
)

// cell is a word and, for messages, what made it.
type cell struct {
	word  word
	place uint32
	how   uint32 // lane | kind<<8 | order<<12 | scope<<16 | size<<20
}

// Lane implements shadow.Cell.
func (c cell) Lane(n int) cell {
	if c.word != 0 {
		c.how = c.how&^31 | (c.how+uint32(n))&31
	}
	return c
}

// access is what the warp brings along.
type access struct {
	word    word // as after the access, but for the flags that depend on the one before
	tag     word
	warp    uint32
	block   uint32
	barrier word
	filter  uint16
	writes  bool
	atomic  bool
	strong  bool
	how     uint32
	address uint64 // of lane from; those after it are a step on each
	from    int
	step    uint64
}

// arrival is the access of the warp of e.
func (d *Detector) arrival(e *event.Event) access {
	w := &d.warps[e.Warp]
	a := access{warp: e.Warp, block: e.Warp / d.perBlock, filter: w.filter,
		writes: e.Kind != event.Load, atomic: e.Kind == event.Atomic, strong: e.Kind == event.Atomic || e.Order != event.Weak}
	a.barrier = word(d.barriers[a.block]) << barrierShift
	a.how = uint32(e.Kind)<<8 | uint32(e.Order)<<12 | uint32(e.Scope)<<16 | uint32(e.Size)<<20
	a.word = accessed | word(e.Warp)&warpMask | word(w.filter)<<filterShift | word(w.blockFence)<<blockShift |
		word(w.deviceFence)<<deviceShift | a.barrier
	if a.atomic {
		a.word |= isAtom
		if e.Scope >= event.ScopeGPU {
			a.word |= deviceScope
		}
	}
	return a
}

// cell judges the access of a lane to a granule, and takes it down.
func (d *Detector) cell(c *cell, e *event.Event, now *access, lane int) (races bool) {
	md := c.word
	next := now.word | now.tag
	if md&accessed == 0 || md>>tagShift<<tagShift != now.tag {
		if now.writes {
			next |= modified
		}
		if now.strong {
			next |= strong
		}
		c.word, c.place, c.how = next, e.Place, now.how|uint32(lane)
		return false
	}
	sameWarp := md&warpMask == word(now.warp)&warpMask
	last := uint32(md&warpMask) | now.warp&^uint32(warpMask)
	if int(last) >= len(d.warps) {
		last = uint32(md & warpMask)
	}
	sameBlock := last/d.perBlock == now.block
	switch {
	case sameWarp && md&(blkShared|devShared) == 0: // table III, b
	case sameBlock && md>>barrierShift&0xff != now.barrier>>barrierShift && md&devShared == 0: // table III, c
	case !now.writes && md&modified == 0:
	default:
		if why := d.condition(md, now, last, sameWarp, sameBlock); why != passes {
			d.report(c, e, now, lane, last, sameBlock, why)
			races = true
		}
	}
	c.word, c.place, c.how = next|carried(md, now, sameWarp, sameBlock), e.Place, now.how|uint32(lane)
	return races
}

// carried gives the flags that depend on what was before (section IV-A, "Memory access instructions also update").
func carried(md word, now *access, sameWarp, sameBlock bool) (f word) {
	if now.strong {
		f = md & strong
	}
	if now.writes {
		f |= modified
	}
	f |= md & (modified | blkShared | devShared)
	switch {
	case !sameBlock:
		f |= devShared
	case !sameWarp:
		f |= blkShared
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
func (d *Detector) condition(md word, now *access, last uint32, sameWarp, sameBlock bool) verdict {
	if now.atomic && md&isAtom != 0 {
		if !sameBlock && md&deviceScope == 0 {
			return scopedAtomic
		}
		return passes
	}
	file := &d.warps[last]
	device := md>>deviceShift&0x3f == word(file.deviceFence)
	switch {
	case sameBlock && !sameWarp && device && md>>blockShift&0x3f == word(file.blockFence):
		return missingBlockFence
	case !sameBlock && device:
		return missingDeviceFence
	}
	if before := uint16(md >> filterShift); !now.atomic && before|now.filter != 0 && before&now.filter == 0 {
		if now.writes {
			return noCommonLockStore
		}
		return noCommonLockLoad
	}
	if !sameWarp && (md&strong == 0 || !now.strong) {
		return notStrong
	}
	return passes
}

// report tells a race. Its kind is the one nearest to the condition.
func (d *Detector) report(c *cell, e *event.Event, now *access, lane int, last uint32, sameBlock bool, why verdict) {
	r := tally.Race{Note: notes[why], Facts: detect.Facts{Category: detect.CrossBlock}}
	if sameBlock {
		r.Facts.Category = detect.SameBlock
	}
	switch why {
	case missingBlockFence:
		r.Kind = detect.MissingFence
	case missingDeviceFence:
		r.Kind = detect.MissingFence
		if c.word>>blockShift&0x3f != word(d.warps[last].blockFence) {
			r.Kind = detect.FenceScope
		}
	case scopedAtomic:
		r.Facts.Category = detect.ScopeRace
	case noCommonLockLoad, noCommonLockStore:
		r.Kind = detect.MissingLock
	}
	address := now.address + uint64(lane-now.from)*now.step
	r.Facts.Earlier = d.side(c.place, c.how, last, address)
	r.Facts.Later = d.side(e.Place, now.how|uint32(lane), now.warp, address)
	d.tally.Add(&r)
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
