package programs

import (
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// TestPrograms checks that each program is free of races, has the requested length, and gives work to every thread.
func TestPrograms(t *testing.T) {
	for _, p := range List() {
		for _, threads := range []int{1, 2, 4, 16} {
			const want = 400_000
			n, work := 0, make([]int, threads)
			d := fasttrack.Spec.New(func(r cpu.Race) { t.Fatalf("%s, %d threads: %+v", p.Name, threads, r) })
			p.Events(threads, want, func(events []cpu.Event) {
				n += len(events)
				for _, e := range events {
					work[e.Thread]++
				}
				d.Events(events)
			})
			if n < want/3 || n > want*3 {
				t.Errorf("%s, %d threads: %d events, and %d are wanted", p.Name, threads, n, want)
			}
			for id, k := range work {
				if k < n/threads/4 {
					t.Errorf("%s, %d threads: thread %d has %d events of %d", p.Name, threads, id, k, n)
				}
			}
		}
	}
}
