package hb

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBlockLogs compares logs of blocks that end nearly in order with a map of them.
func TestBlockLogs(t *testing.T) {
	logs := []*syncLog{{}, {}, {}}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		blocks := make([]uint32, 1+rng.IntN(60))
		for i := range blocks {
			blocks[i] = uint32(i)
		}
		for n := rng.IntN(40); n > 0; n-- {
			i := rng.IntN(len(blocks))
			j := min(i+rng.IntN(6), len(blocks)-1)
			blocks[i], blocks[j] = blocks[j], blocks[i]
		}
		kinds := 1 + rng.IntN(len(logs))
		want := map[uint32]*syncLog{}
		l := &launch{}
		for n, b := range blocks {
			if rng.IntN(8) > 0 {
				want[b] = logs[rng.IntN(kinds)]
				l.logs.add(b, want[b])
			}
			for _, o := range blocks {
				if got := l.logOf(o); got != want[o] {
					t.Fatalf("seed %d: after %v, block %d has log %d, want %d", seed, blocks[:n+1], o, slices.Index(logs, got), slices.Index(logs, want[o]))
				}
			}
		}
		for i := 1; i < len(l.logs); i++ {
			if x, y := l.logs[i-1], l.logs[i]; x.last >= y.first || x.last+1 == y.first && x.log == y.log {
				t.Fatalf("seed %d: runs %+v and %+v", seed, x, y)
			}
		}
	}
}
