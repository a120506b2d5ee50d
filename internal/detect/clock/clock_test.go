package clock

import "testing"

// TestBytes checks that parts shared by clocks count once.
func TestBytes(t *testing.T) {
	depth := Depth(1000)
	b := (*Block)(nil).With(4, 1, 3, 7).With(4, 2, 1, 9)
	var g *Grid
	for i := range uint32(maxHeld + 1) {
		g = g.With(depth, i*5, b)
	}
	h := g.With(depth, 900, b)
	seen := Seen{}
	one := g.Bytes(seen)
	if one < 3*256 || g.Bytes(seen) != 0 {
		t.Errorf("a clock of one block takes %d bytes, and %d more when it is counted again", one, g.Bytes(seen))
	}
	if more, alone := h.Bytes(seen), h.Bytes(Seen{}); more >= alone || more == 0 {
		t.Errorf("a clock takes %d bytes beside one it shares parts with, %d alone", more, alone)
	}
	few := (*Grid)(nil).With(depth, 3, b)
	if more, alone := few.Bytes(seen), few.Bytes(Seen{}); more >= alone || more == 0 {
		t.Errorf("a list takes %d bytes beside one it shares parts with, %d alone", more, alone)
	}
	if n := (*Grid)(nil).Bytes(seen); n != 0 {
		t.Errorf("no clock takes %d bytes", n)
	}
}

// TestOfWarp compares a Block made by OfWarp with one made step by step.
func TestOfWarp(t *testing.T) {
	lanes := [32]uint32{5: 9, 31: 4}
	b := OfWarp(3, 1, &lanes, 2)
	for w := range uint32(3) {
		for lane := range uint32(32) {
			want := uint32(2)
			if w == 1 {
				want = lanes[lane]
			}
			if b.Unknown(w, 1<<lane, want) != 0 || b.Unknown(w, 1<<lane, want+1) == 0 {
				t.Errorf("lane %d of warp %d is not known up to %d alone", lane, w, want)
			}
		}
	}
	if b.Min != 0 || b.Max != 9 {
		t.Errorf("bounds %d, %d", b.Min, b.Max)
	}
	if all := OfWarp(3, 1, new([32]uint32), 0); all.warps != nil {
		t.Error("a Block that is the same everywhere keeps its warps")
	}
}

// TestShapes checks that a Block that knows few lanes is a list, and that one that knows all threads alike consists of
// its bounds.
func TestShapes(t *testing.T) {
	b := (*Block)(nil).With(3, 1, 1<<5, 7)
	if b.warps != nil || len(b.parts) != 1 || b.Min != 0 || b.Max != 7 {
		t.Errorf("what is known of one lane: %+v", b)
	}
	b = nil
	for w := range uint32(3) {
		b = b.With(3, w, ^uint32(0), 4)
	}
	if b.warps != nil || len(b.parts) != 0 || b.Min != 4 || b.Max != 4 {
		t.Errorf("what is known of all threads alike: %+v", b)
	}
}
