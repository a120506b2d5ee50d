package racecheck

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// block is the state of a running block.
type block struct {
	warps   []warp
	bars    [16]arrivals
	threads int    // of the block
	live    int    // threads that have not exited
	floor   uint32 // accesses up to this epoch are ordered before all later ones
}

// warp is the lanes of a warp. Lanes that synchronised alike form a part.
type warp struct {
	parts  []part
	absent uint32 // lanes that do not exist
}

// part is lanes that know the same: their accesses have one epoch, and are ordered after those that clock knows.
type part struct {
	mask  uint32
	epoch uint32
	clock *clock.Block
}

// arrivals is the threads that have arrived at a barrier since its last completion.
type arrivals struct {
	waiting []uint32     // by warp: lanes that wait; nil: none
	threads int          // number of threads that wait
	left    *clock.Block // what threads knew that arrived without waiting
}

func newBlock(l *event.Launch) *block {
	n := int(l.WarpsPerBlock())
	c := &block{warps: make([]warp, n), threads: int(l.Block.Count())}
	c.live = c.threads
	for i := range c.warps {
		c.warps[i].parts = []part{{mask: ^uint32(0), epoch: 1}}
	}
	if rest := c.threads % 32; rest != 0 {
		c.warps[n-1].absent = ^uint32(0) << rest
	}
	return c
}

// split divides the parts of a warp so that each lies inside or outside of mask.
func (w *warp) split(mask uint32) {
	for i := range w.parts {
		p := &w.parts[i]
		if in := p.mask & mask; in != 0 && in != p.mask {
			other := *p
			other.mask &^= mask
			p.mask = in
			w.parts = append(w.parts, other)
		}
	}
}

// part returns the part of a lane.
func (w *warp) part(lane uint32) *part {
	i := 0
	for w.parts[i].mask&lane == 0 {
		i++
	}
	return &w.parts[i]
}

// arrive records that lanes of warp w arrived at a barrier.
func (c *block) arrive(w, mask uint32, m *arrivals, waits bool) {
	if waits {
		if m.waiting == nil {
			m.waiting = make([]uint32, len(c.warps))
		}
		m.threads += bits.OnesCount32(mask)
		m.waiting[w] |= mask
		return
	}
	c.warps[w].split(mask)
	for i := range c.warps[w].parts {
		if p := &c.warps[w].parts[i]; p.mask&mask != 0 {
			m.left = m.left.Join(p.clock.With(len(c.warps), w, p.mask, p.epoch))
			p.epoch++
		}
	}
}

// done orders all arrivals before all threads that wait.
func (c *block) done(m *arrivals) {
	if m.left == nil && m.threads == c.threads && c.live == c.threads {
		c.whole()
	} else if m.threads > 0 {
		c.join(m.waiting, m.left)
	}
	clear(m.waiting)
	m.threads, m.left = 0, nil
}

// whole completes a barrier at which all threads of the block wait.
func (c *block) whole() {
	top := uint32(0)
	for i := range c.warps {
		for _, p := range c.warps[i].parts {
			top = max(top, p.epoch)
		}
	}
	all := clock.Uniform(top)
	c.floor = top
	for i := range c.warps {
		c.warps[i].parts = append(c.warps[i].parts[:0], part{^uint32(0), top + 1, all})
	}
}

// join makes lanes of warps know what each of them knew, and left. They continue in one epoch.
func (c *block) join(lanes []uint32, left *clock.Block) {
	top := uint32(0)
	all := left
	for i, mask := range lanes {
		if mask == 0 {
			continue
		}
		w := &c.warps[i]
		if mask|w.absent == ^uint32(0) {
			mask = ^uint32(0) // keeps clocks small
			lanes[i] = mask
		}
		w.split(mask)
		for _, p := range w.parts {
			if p.mask&mask != 0 {
				top = max(top, p.epoch)
				all = all.Join(p.clock)
			}
		}
	}
	all = all.WithWarps(lanes, top)
	for i, mask := range lanes {
		if mask == 0 {
			continue
		}
		w := &c.warps[i]
		w.parts = slices.DeleteFunc(w.parts, func(p part) bool { return p.mask&mask != 0 })
		w.parts = append(w.parts, part{mask, top + 1, all})
	}
}
