package verify

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// TestMemory checks that the memory of a search grows with the length of an execution, and not with the number of
// executions.
func TestMemory(t *testing.T) {
	const limit = 1 << 20 // bytes
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, c := range []struct {
		name, src  string
		executions int
		model      string
	}{
		{"LB-12", fmt.Sprintf(lb, 12), 1<<12 - 1, SRC11},
		{"LB-18", fmt.Sprintf(lb, 18), 1<<18 - 1, SRC11},
		{"LB-10 under ptx", fmt.Sprintf(lb, 10), 1 << 10, PTX},
		{"LB-14 under ptx", fmt.Sprintf(lb, 14), 1 << 14, PTX},
		{"caslock-6", fmt.Sprintf(casLock, 6, 1), factorial(6), SRC11},
		{"caslock-8", fmt.Sprintf(casLock, 8, 1), factorial(8), SRC11},
		{"ttaslock-4", fmt.Sprintf(ttasLock, 4, 1), factorial(4) * factorial(4), SRC11},
		{"ttaslock-6", fmt.Sprintf(ttasLock, 6, 1), factorial(6) * factorial(6), SRC11},
	} {
		if (c.executions > 1<<16 || c.model == PTX && c.executions > 1<<12) && !testsize.Long() {
			continue
		}
		test, err := litmus.Parse(c.name, c.src, litmus.Options{PTX: c.model == PTX})
		if err != nil {
			t.Fatal(err)
		}
		before, most, times := live(), uint64(0), 0
		// Parts are small, so that it is looked at some dozens of times.
		r := Litmus(context.Background(), test, Options{Model: c.model, Jobs: 1, graphs: 1<<10 + c.executions/16, Progress: func(string) {
			most, times = max(most, live()), times+1
		}})
		if r.Executions != c.executions || times == 0 {
			t.Fatalf("%s: %d executions, looked %d times", c.name, r.Executions, times)
		}
		if most > before+limit {
			t.Errorf("%s: the search keeps %d KiB, want at most %d", c.name, (most-before)>>10, limit>>10)
		}
		t.Logf("%s: %d executions, %d KiB at most, looked %d times", c.name, r.Executions, (most-min(most, before))>>10, times)
	}
}
