package engine

import "testing"

// TestRNG checks the first numbers of splitmix64 from state 0, and the results of below and spread for them.
func TestRNG(t *testing.T) {
	g := newRNG(0)
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec} {
		if got := g.next(); got != want {
			t.Errorf("number %d is %#x, want %#x", i, got, want)
		}
	}
	// Each seed begins far into the sequence, so that adjacent seeds have no numbers in common.
	a, b := newRNG(1), newRNG(0)
	b.next()
	if a.next() != b.next() {
		t.Error("seed 1 does not begin with the second number of seed 0")
	}
	g = newRNG(7)
	var in [6]int
	for range 6000 {
		in[g.below(6)]++
	}
	for i, n := range in {
		if n < 850 || n > 1150 {
			t.Errorf("%d came %d times of 6000", i, n)
		}
	}
	var powers [10]int
	least, most := 1<<10, 0
	for range 10000 {
		n := g.spread(10)
		least, most = min(least, n), max(most, n)
		for k := range powers {
			if n>>k == 1 {
				powers[k]++
			}
		}
	}
	if least != 1 || most < 1000 || most > 1023 {
		t.Errorf("from %d to %d", least, most)
	}
	for k, n := range powers {
		if n < 850 || n > 1150 {
			t.Errorf("%d of 10000 numbers have %d bits", n, k+1)
		}
	}
}
