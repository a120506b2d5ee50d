package explain

import (
	"math/rand/v2"
	"testing"
)

// TestAddressRanges compares AddressSet with a simple set, for bytes that include ranges of many chunks.
func TestAddressRanges(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var s AddressSet
		plain := map[[2]uint64]bool{} // pieces of 64 bytes
		for range 1 + rng.IntN(12) {
			space, lo := uint64(rng.IntN(2)), uint64(rng.IntN(1<<16))*64
			n := uint64(1+rng.IntN(100)) * 64
			if rng.IntN(3) == 0 {
				n += rangeBytes + uint64(rng.IntN(4))*chunkBytes
			}
			s.Add(space, lo, lo+n)
			for at := lo; at < lo+n; at += 64 {
				plain[[2]uint64{space, at}] = true
			}
			if s.Len() != 64*len(plain) {
				t.Fatalf("seed %d: %d bytes, not %d", seed, s.Len(), 64*len(plain))
			}
		}
	}
}
