package verify

import (
	"context"
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// BenchmarkSearch explores programs whose number of executions is known, and reports that number beside the time.
func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		name, src string
		want      int
	}{
		{"LB-18", fmt.Sprintf(lb, 18), 1<<18 - 1},
		{"SB-20", fmt.Sprintf(sb, 20), 1 << 20},
		{"caslock-8", fmt.Sprintf(casLock, 8, 1), factorial(8)},
		{"ticketlock-8", fmt.Sprintf(ticketLock, 8, 1), factorial(8)},
		{"ttaslock-6", fmt.Sprintf(ttasLock, 6, 1), factorial(6) * factorial(6)},
	} {
		b.Run(c.name, func(b *testing.B) {
			test, err := litmus.Parse(c.name, c.src, litmus.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				r := explore.Explore(context.Background(), test, explore.Options{Races: true})
				if r.Executions != c.want {
					b.Fatalf("%d executions, want %d", r.Executions, c.want)
				}
				b.ReportMetric(float64(r.Executions), "executions")
				b.ReportMetric(float64(r.Blocked), "blocked")
			}
		})
	}
}
