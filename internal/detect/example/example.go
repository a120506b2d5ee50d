// Package example is a detector to begin with. It finds words of shared memory that one warp writes and another reads
// without a barrier of the block between the two. It is not in the list. It finds no other races, and treats a named
// barrier like a barrier of the whole block.
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
	Needs:  event.NeedShared | event.NeedSync | event.NeedLaunch, // no other events are made for it
	New: func(c detect.Config) detect.Detector {
		return &detector{Set: findings.New("example", c), memory: shadow.New[cell](4)}
	},
}

// cell is the metadata of a word: its last write.
type cell struct {
	write   detect.Access
	barrier int // number of barriers of the block before it, plus one; 0 for no write
}

type detector struct {
	*findings.Set                       // Findings, one for each pair of source places, and More
	memory        *shadow.Memory[cell]  // a cell for each word, initially zero
	launch        event.Launch          // launches run one after another
	barriers      map[shadow.Window]int // by block: number of barriers passed
}

// Events judges the next events of the execution. The launch of a KernelBegin gives the number of warps in a block.
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

// word judges an access to a word and records it.
func (d *detector) word(c *cell, e *event.Event, now detect.Access, barrier int) {
	if e.Kind == event.Load && c.barrier == barrier && c.write.Warp != now.Warp {
		d.Add(&findings.Race{Facts: detect.Facts{Category: detect.SameBlock, Earlier: c.write, Later: now}})
	}
	if e.Kind == event.Store {
		now.Op = detect.Write
		c.write, c.barrier = now, barrier
	}
}
