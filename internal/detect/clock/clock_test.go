package clock

import "testing"

// TestBytes wants parts that clocks share to be counted once.
func TestBytes(t *testing.T) {
	depth := Depth(1000)
	b := (*Block)(nil).With(4, 1, 3, 7)
	g := (*Grid)(nil).With(depth, 5, b)
	h := g.With(depth, 900, b)
	seen := Seen{}
	one := g.Bytes(seen)
	if one < 2*256 || g.Bytes(seen) != 0 {
		t.Errorf("a clock of one block takes %d bytes, and %d more when it is counted again", one, g.Bytes(seen))
	}
	if more, alone := h.Bytes(seen), h.Bytes(Seen{}); more >= alone || more == 0 {
		t.Errorf("a clock takes %d bytes beside one it shares parts with, %d alone", more, alone)
	}
	if n := (*Grid)(nil).Bytes(seen); n != 0 {
		t.Errorf("no clock takes %d bytes", n)
	}
}
