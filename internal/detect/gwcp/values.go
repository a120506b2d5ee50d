package gwcp

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// word is what the launch has written to four aligned bytes. Words are kept only for events that do not carry the
// overwritten values (event.FlagOld): events read from traces.
type word struct {
	bytes [4]byte // a bit for each byte: its value is known
	known uint8   // a bit for each byte: whether its value is known
}

// word returns the word at an address that e, by a thread of blk, accesses; nil if there is no such memory.
func (d *Detector) word(blk *block, e *event.Event, addr uint64) *word {
	switch {
	case e.Space != event.Shared:
		return d.values.Global(addr)
	case addr < maxWindow:
		return d.values.Shared(d.run.window(blk), addr)
	}
	return nil
}

// overwritten returns the byte at an address before a lane of the actor wrote it; false if it is not known.
func (d *Detector) overwritten(lane int, addr uint64) (byte, bool) {
	a := &d.act
	if old := a.b.OldOf(a.e, lane); old != nil {
		first := a.b.AddrOf(a.e, lane)
		if a.e.Size < 4 {
			first &^= 3
		}
		return byteOf(old, addr-first), true
	}
	w := d.word(a.blk, a.e, addr)
	if w == nil || w.known>>(addr%4)&1 == 0 {
		return 0, false
	}
	return w.bytes[addr%4], true
}

// wrote records what e has written, if events do not carry old values.
func (d *Detector) wrote(blk *block, e *event.Event) {
	if e.Flags&event.FlagWrite == 0 || e.Flags&event.FlagOld != 0 {
		return
	}
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr, value := d.batch.AddrOf(e, lane), d.batch.ValueOf(e, lane)
		if value == nil {
			d.unknown(blk, e, addr, uint64(e.Size))
			continue
		}
		for i := range uint64(e.Size) {
			if w := d.word(blk, e, addr+i); w != nil {
				at := (addr + i) % 4
				w.bytes[at], w.known = byteOf(value, i), w.known|1<<at
			}
		}
	}
}

// unknown marks the words as unknown that e, which carries no values, overwrites: n bytes.
func (d *Detector) unknown(blk *block, e *event.Event, addr, n uint64) {
	for at := addr &^ 3; d.values.Bytes() > 0 && at < addr+n; at += 4 {
		if w := d.word(blk, e, at); w != nil {
			w.known = 0
		}
	}
}
