package warp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/opt"
)

// shadow executes the instructions that opt.Env.Uninit adds to a kernel. registers.written has the bits of local memory
// that were written. It is the complement of the shadow, so that clearing it makes a frame uninitialised.
func (x *machine) shadow(w *engine.Warp, i int32, mask uint32, s []uint64) {
	e, v := &x.t.Effects[i], regsOf(w)
	switch e.Shadow {
	case opt.Undefined:
		if on := v.pred(s, e.Pred) & mask; on != 0 && x.r.Out.Needs&event.NeedLocal != 0 {
			ev := x.r.Out.Next(event.Undefined, w, on, x.places[i])
			ev.Space, ev.Aux = event.Local, uint32(e.Why)
			if e.Origin >= 0 {
				ev.Side = x.places[len(x.t.Effects)+int(e.Origin)]
			}
			x.r.Out.Added()
		}
		return
	case opt.ShadowPass:
		for len(v.passed) < len(e.Operands) {
			v.passed = append(v.passed, v64{})
		}
		for k := range e.Operands {
			for on := mask; on != 0; on &= on - 1 {
				lane := bits.TrailingZeros32(on) & 31
				v.passed[k][lane] = x.Value(w, lane, &e.Operands[k])
			}
		}
		return
	case opt.ShadowTake:
		for _, d := range e.Results {
			for on := mask; on != 0; on &= on - 1 {
				lane := bits.TrailingZeros32(on) & 31
				sh := uint64(0)
				if int(d.At) < len(v.passed) {
					sh = v.passed[d.At][lane]
				}
				x.Put(w, lane, d, sh)
			}
		}
		return
	case opt.ShadowShuffle:
		x.shadowShuffle(w, i, mask)
		return
	}
	for on := v.active(e, s, mask); on != 0; on &= on - 1 {
		lane := bits.TrailingZeros32(on)
		addr := x.Value(w, lane, &e.Operands[0])
		switch {
		case e.Shadow == opt.ShadowFrame:
			if written := x.writtenAt(v, lane, addr, e.Offset); written != nil {
				clear(written)
			}
			continue
		case e.Space == event.Local:
			addr += e.Offset
		default:
			var space event.Space
			if space, addr = engine.SplitGeneric(addr + e.Offset); space != event.Local {
				for _, d := range e.Results {
					x.Put(w, lane, d, 0)
				}
				continue
			}
		}
		written := x.writtenAt(v, lane, addr, e.Width)
		if e.Shadow == opt.ShadowStore {
			for k := uint64(0); written != nil && k*e.Piece < e.Width; k++ {
				devmem.PutUint(written[k*e.Piece:][:e.Piece], ^x.Value(w, lane, &e.Operands[1+k]))
			}
			continue
		}
		for _, d := range e.Results {
			sh := uint64(0)
			if written != nil {
				sh = engine.LowBytes(^devmem.Uint(written[uint64(d.At)*e.Piece:], e.Piece), e.Piece)
			}
			if e.Type.Signed() {
				sh = e.Type.Extend(sh, e.Dst[d.At].Size)
			}
			x.Put(w, lane, d, sh)
		}
	}
}

// writtenAt returns the written bits of n bytes of a lane's local memory, and nil if the lane has no such bytes.
func (x *machine) writtenAt(v *registers, lane int, addr, n uint64) []byte {
	if addr > x.end || n > x.end-addr || v.written == nil {
		return nil
	}
	return v.written[uint64(lane)*x.own+addr:][:n]
}

// shadowShuffle exchanges shadows as the preceding shfl exchanged values. A lane whose source does not take part
// receives the shadow zero.
func (x *machine) shadowShuffle(w *engine.Warp, i int32, mask uint32) {
	e, a := &x.t.Effects[i], &x.r.WarpArgs
	a.Mask = mask
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		for k := range 3 {
			a.S[k][lane] = x.Value(w, lane, &e.Operands[k])
		}
	}
	e.Lanes(e.Inst, a)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		sh := a.D[0][lane]
		if a.Astray>>uint(lane)&1 != 0 {
			sh = 0
		}
		for _, d := range e.Results {
			x.Put(w, lane, d, sh)
		}
	}
}

// Wrote implements engine.Machine.
func (x *machine) Wrote(w *engine.Warp, lane int, at, n uint64) {
	written := x.writtenAt(regsOf(w), lane, at, n)
	for i := range written {
		written[i] = 0xff
	}
}
