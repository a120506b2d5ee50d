package hirace

import (
	"sync"
	"testing"
)

func BenchmarkUpdate(b *testing.B) {
	m := derive()
	var words [32]uint64
	t := accessor{perBlock: 1}
	i := uint64(0)
	for b.Loop() {
		i++
		for l := range words {
			t.word = i<<32 | uint64(l)<<6
			m.update(&words[l], write, &t)
		}
	}
}

func TestX(t *testing.T) { var w sync.WaitGroup; w.Wait() }
