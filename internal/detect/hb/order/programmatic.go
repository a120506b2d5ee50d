package order

import (
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// This file is about programmatic dependent launch. A launch that may begin early (event.Launch.Early) starts with the
// knowledge that the previous launch of its agent started with, and with what the agent has waited for since. Nothing
// of the previous launch happens before what its threads do until they execute griddepcontrol.wait. This applies as
// soon as one thread of the previous launch has executed griddepcontrol.launch_dependents. According to the manual, the
// dependents begin when all CTAs have executed it or have completed; the writes of a completed CTA are visible only to
// threads that wait.

// start returns the knowledge that a launch of the agent starts with.
func (a *Agent) start(info event.Launch) *clock.Foreign {
	if info.Early && a.last != nil && a.last.dependents {
		return a.last.start.Join(a.waited)
	}
	return a.View.beyond
}

// waitGrids makes lanes learn all that the agent had done before their launch.
func (b *Block) waitGrids(wi uint32, e *event.Event) {
	w := &b.warps[wi]
	for v, having := range w.of(e.Mask) {
		k := v.knowledge
		k.beyond = k.beyond.Join(b.before)
		w.learned(having, v, k)
	}
	b.next(wi, e.Mask, e)
}
