package order

import (
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// A launch that may begin early (event.Launch.Early) begins with what the launch before it began with, and with what the agent has waited for
// since: nothing of that launch happens before what it does until its threads wait. That is so once a thread of the launch before has
// executed griddepcontrol.launch_dependents. The manual lets the dependents begin when all CTAs have done so or have completed; what a
// completed one has written is visible only to who waits.

// start gives what a launch of the agent begins with.
func (a *Agent) start(info event.Launch) *clock.Foreign {
	if info.Early && a.last != nil && a.last.dependents {
		return a.last.start.Join(a.waited)
	}
	return a.View.beyond
}

// waitGrids lets lanes know all that the agent had done before their launch.
func (b *Block) waitGrids(wi uint32, e *event.Event) {
	w := &b.warps[wi]
	for v, having := range w.of(e.Mask) {
		k := v.knowledge
		k.beyond = k.beyond.Join(b.before)
		w.learned(having, v, k)
	}
	b.next(wi, e.Mask, e)
}
