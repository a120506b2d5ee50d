// Package example is a detector to begin with: words of shared memory that one warp writes and another reads, with no barrier
// of the block between. It is not in the list. Blind spots: all that is not this, and named barriers, which it takes for whole ones.
package example

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// Spec is the detector.
var Spec = detect.Spec{
	Name:   "example",
	Doc:    "Words of shared memory that one warp writes and another reads with no barrier between.",
	Source: "docs/detectors.md",
	Needs:  event.NeedShared | event.NeedSync | event.NeedLaunch, // nothing else is made for it
	New: func(c detect.Config) detect.Detector {
		return &detector{Set: findings.New("example", c), memory: shadow.New[cell](4)}
	},
}

// cell is what is kept for each word: its last write.
type cell struct {
	write   detect.Access
	barrier int // barriers of the block before it, plus one; 0: no write
}

type detector struct {
	*findings.Set                       // Findings: one for each pair of source places; and More
	memory        *shadow.Memory[cell]  // a cell for each word, zero at first
	launch        event.Launch          // launches run one after another
	barriers      map[shadow.Window]int // that each block has passed
}

// Events takes the next events of the execution. What a launch began with says how many warps a block has.
func (d *detector) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		switch block := (shadow.Window{Launch: e.Launch, Block: e.Warp / max(d.launch.WarpsPerBlock(), 1)}); {
		case e.Kind == event.KernelBegin:
			d.launch, d.barriers = b.Launches[e.Side], map[shadow.Window]int{}
			d.memory.Clear()
		case e.Kind == event.BarrierDone:
			d.barriers[block]++
		case e.Space == event.Shared:
			for m := e.Mask; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				for at := b.AddrOf(e, lane) &^ 3; at < b.AddrOf(e, lane)+uint64(e.Size); at += 4 {
					d.word(d.memory.Shared(block, at), e, detect.Access{Op: detect.Read, Space: e.Space, Place: e.Place,
						Launch: d.launch, Warp: e.Warp, Lane: lane, Address: at, Size: 4}, d.barriers[block]+1)
				}
			}
		}
	}
}

// word judges an access to a word and takes it down.
func (d *detector) word(c *cell, e *event.Event, now detect.Access, barrier int) {
	if e.Kind == event.Load && c.barrier == barrier && c.write.Warp != now.Warp {
		d.Add(&findings.Race{Facts: detect.Facts{Category: detect.SameBlock, Earlier: c.write, Later: now}})
	}
	if e.Kind == event.Store {
		now.Op = detect.Write
		c.write, c.barrier = now, barrier
	}
}
