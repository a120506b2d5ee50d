package barracuda

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// logged is an access that has been judged, for the pruning of section 5.5.1: an access is not logged if its address is
// in a register that has not changed since the last logged access of the same basic block. Events contain no registers
// and no basic blocks. As a substitute, an access is left out if it has the same addresses in lane order, by the same
// lanes, with no synchronisation and no divergence of the warp between, and with increasing places. A write is left out
// only after a write.
type logged struct {
	addr   uint64
	stride int64
	mask   uint32
	space  event.Space
	size   uint8
	write  bool
}

// logged reports whether the access of lanes repeats one that has been judged. If not, it records the access.
func (d *Detector) logged(w *warp, e *event.Event, lanes uint32) bool {
	if !d.pruned {
		return false
	}
	if e.Place <= w.place {
		w.logs = 0
	}
	w.place = e.Place
	if lanes != e.Mask || !prunable(e) {
		return false
	}
	for i := 0; i < w.logs; i++ {
		l := &w.logged[i]
		if l.addr == e.Addr && l.stride == e.Stride && l.mask == e.Mask && l.space == e.Space && l.size == e.Size &&
			(l.write || e.Kind == event.Load) {
			return true
		}
	}
	w.log(e)
	return false
}

// prunable reports whether e can represent other accesses or be left out: it is not an atomic operation, and no two
// lanes access one location.
func prunable(e *event.Event) bool {
	size := int64(e.Size)
	return e.Kind != event.Atomic && e.Affine() &&
		(e.Kind == event.Load || e.Stride >= size || e.Stride <= -size || bits.OnesCount32(e.Mask) == 1)
}

// stretch begins a new stretch of code.
func (w *warp) stretch() {
	w.logs = 0
	w.stretches++
}

// log records an access that is judged.
func (w *warp) log(e *event.Event) {
	if w.logs == len(w.logged) {
		w.logged[0] = w.logged[1]
		w.logs--
	}
	w.logged[w.logs] = logged{e.Addr, e.Stride, e.Mask, e.Space, e.Size, e.Kind != event.Load}
	w.logs++
}
