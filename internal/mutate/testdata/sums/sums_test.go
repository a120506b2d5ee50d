package sums

import "testing"

func TestBelow(t *testing.T) {
	if n := Below([]int{1, 2, 3, 4, 5}, 3); n != 2 {
		t.Error(n)
	}
}

func TestHalve(t *testing.T) {
	if n := Halve(12); n != 3 {
		t.Error(n)
	}
}

func TestLargest(t *testing.T) {
	if Largest(1, 2) != 2 || Largest(2, 1) != 2 {
		t.Error("not the largest")
	}
}
