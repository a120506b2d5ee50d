package gwcp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// values is what the launch has written to memory. It is kept only while events do not tell what they overwrite
// (event.FlagOld): those of traces.
type values map[granule]*word

// word is four aligned bytes.
type word struct {
	bytes [4]byte
	known uint8 // a bit for each byte: whether its value is known
}

// granuleOf is the granule of an address that e accesses.
func (d *Detector) granuleOf(e *event.Event, addr uint64) granule {
	at := granule{word: addr >> 2}
	if e.Space == event.Shared {
		at.block = 1 + e.Warp/d.run.wpb
	}
	return at
}

// overwritten gives the byte that was at an address before lane of e wrote there; false if it is not known.
func (d *Detector) overwritten(b *event.Batch, e *event.Event, lane int, addr uint64) (byte, bool) {
	if old := b.OldOf(e, lane); old != nil {
		first := b.AddrOf(e, lane)
		if e.Size < 4 {
			first &^= 3
		}
		return byteOf(old, addr-first), true
	}
	w := d.values[d.granuleOf(e, addr)]
	if w == nil || w.known>>(addr%4)&1 == 0 {
		return 0, false
	}
	return w.bytes[addr%4], true
}

// wrote keeps what e has written, if events do not tell it.
func (d *Detector) wrote(e *event.Event) {
	if e.Flags&event.FlagWrite == 0 || e.Flags&event.FlagOld != 0 {
		return
	}
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr, value := d.batch.AddrOf(e, lane), d.batch.ValueOf(e, lane)
		if value == nil {
			d.unknown(e, addr, uint64(e.Size))
			continue
		}
		for i := range uint64(e.Size) {
			at := addr + i
			k := d.granuleOf(e, at)
			w := d.values[k]
			if w == nil {
				w = &word{}
				d.values[k] = w
			}
			w.bytes[at%4], w.known = byteOf(value, i), w.known|1<<(at%4)
		}
	}
}

// unknown forgets what e, which does not tell values, writes over: n bytes.
func (d *Detector) unknown(e *event.Event, addr, n uint64) {
	for at := addr &^ 3; len(d.values) > 0 && at < addr+n; at += 4 {
		delete(d.values, d.granuleOf(e, at))
	}
}

func (v values) memory() uint64 {
	return uint64(len(v)) * (mapEntry + size(granule{}) + size(word{}) + 8)
}
