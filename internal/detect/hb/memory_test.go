package hb

import (
	"runtime"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
)

// TestMemoryBytes holds what the detector says it takes to what the heap says, which rounds sizes up.
func TestMemoryBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	for name, f := range benchStreams {
		s := f()
		running := s.Batch
		running.Events = running.Events[:len(running.Events)-1] // before the launch's end
		before := heap()
		d := New(detect.Config{})
		d.Events(&running)
		took, told := heap()-before, int64(d.MemoryBytes())
		if told < took*8/10 || told > took*21/20 {
			t.Errorf("%s: the heap grew by %d bytes, told are %d", name, took, told)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(d)
	}
}
