package hirace

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrent updates the same words by threads of several blocks from separate goroutines. The result must be that
// of the machine for some order of the updates.
func TestConcurrent(t *testing.T) {
	const goroutines, rounds = 4, 2000
	m := derive()
	for _, c := range []struct {
		name   string
		act    func(g, i int) action
		blocks bool // each goroutine is a block
		want   string
		races  int64
	}{
		{"reads of blocks", func(int, int) action { return read }, true, "GREAD", 0},
		{"reads of a block", func(int, int) action { return read }, false, "BREAD", 0},
		{"device atomics", func(int, int) action { return deviceAtomic }, true, "GATOM_G", 0},
		{"block atomics", func(int, int) action { return blockAtomic }, false, "BATOM_B", 0},
		{"one scope too small", func(g, _ int) action { return deviceAtomic - action(g&1) }, true, "RACE", 1},
		{"writes", func(int, int) action { return write }, true, "RACE", 1},
		{"a late write", func(g, i int) action {
			if g == 0 && i == rounds-1 {
				return write
			}
			return read
		}, true, "RACE", 1},
	} {
		var word uint64
		var races atomic.Int64
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				a := accessor{word: uint64(g*32) << threadShift, perBlock: goroutines}
				if c.blocks {
					a.firstWarp, a.perBlock = uint32(g), 1
				}
				for i := range rounds {
					old, made := m.update(&word, c.act(g, i), &a)
					if made.state() == raced && state(old&stateBits) != raced {
						races.Add(1)
					}
				}
			})
		}
		all.Wait()
		if got := meanings()[word&stateBits].name; got != c.want || races.Load() != c.races {
			t.Errorf("%s: state %s and %d races, want %s and %d", c.name, got, races.Load(), c.want, c.races)
		}
	}
}

// BenchmarkUpdate is 32 lock-free updates.
func BenchmarkUpdate(b *testing.B) {
	m := derive()
	var words [32]uint64
	a := accessor{perBlock: 1}
	for i := uint64(1); b.Loop(); i++ {
		for l := range words {
			a.word = i<<clockShift | uint64(l)<<threadShift
			m.update(&words[l], write, &a)
		}
	}
}
