package order

import "fencepost.dev/fencepost/internal/event"

// deviceOp publishes what a thread knows when it puts an operation into a stream of the device. What the thread knows,
// and what it has done itself, happens before the operation (CUDA programming guide, "Memory Coherence and Consistency"
// of "CUDA Dynamic Parallelism"). Nothing else of its launch does.
func (b *Block) deviceOp(wi uint32, e *event.Event) {
	b.published = true
	token, o := event.DeviceToken(b.Info.ID, e.Aux), b.order
	for v, lanes := range b.warps[wi].of(e.Mask) {
		o.tokens[token] = v.beyond.Before(FirstOperation).WithPart(b.Info.ID, b.gridOf(v, wi, lanes))
		if o.assumed != nil {
			o.assumed.tokens[token] = b.assumed.Join(v.beyond.Before(FirstOperation).Agents())
		}
	}
	b.next(wi, e.Mask, e)
}
