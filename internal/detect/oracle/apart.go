package oracle

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Apart returns the same stream with the addresses of every access listed lane by lane. A detector that treats lanes in
// lane order together must find the same in both.
func Apart(b *event.Batch) *event.Batch {
	out := *b
	out.Events, out.Addrs = nil, nil
	for i := range b.Events {
		e := b.Events[i]
		if e.Kind >= event.Load && e.Kind <= event.Atomic {
			at := uint32(len(out.Addrs))
			for m := e.Mask; m != 0; m &= m - 1 {
				out.Addrs = append(out.Addrs, b.AddrOf(&e, bits.TrailingZeros32(m)))
			}
			e.Flags = e.Flags&^event.FlagRows | event.FlagScattered
			e.Addr, e.Stride, e.Side, e.RowShift = 0, 0, at, 0
		}
		out.Events = append(out.Events, e)
	}
	return &out
}
