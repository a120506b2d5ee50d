package verify

import (
	"context"
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// BenchmarkSearch explores programs whose number of executions is known, and reports that number beside the time: by one goroutine and by two.
func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		name, src string
		want      int
	}{
		{"LB-18", fmt.Sprintf(lb, 18), 1<<18 - 1},
		{"LB-22", fmt.Sprintf(lb, 22), 1<<22 - 1},
		{"SB-20", fmt.Sprintf(sb, 20), 1 << 20},
		{"caslock-8", fmt.Sprintf(casLock, 8, 1), factorial(8)},
		{"ticketlock-8", fmt.Sprintf(ticketLock, 8, 1), factorial(8)},
		{"ttaslock-6", fmt.Sprintf(ttasLock, 6, 1), factorial(6) * factorial(6)},
	} {
		test, err := litmus.Parse(c.name, c.src, litmus.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, jobs := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", c.name, jobs), func(b *testing.B) {
				for b.Loop() {
					r := Litmus(context.Background(), test, Options{Jobs: jobs})
					if r.Executions != c.want {
						b.Fatalf("%d executions, want %d", r.Executions, c.want)
					}
					b.ReportMetric(float64(r.Executions), "executions")
					b.ReportMetric(float64(r.Blocked), "blocked")
				}
			})
		}
	}
}

// BenchmarkKernel explores a lock of a kernel, by one goroutine and by two.
func BenchmarkKernel(b *testing.B) {
	l := launchOf(b, lockVariables, lockPTX, 8, 1)
	for _, jobs := range []int{1, 2} {
		b.Run(fmt.Sprintf("caslock-8/%d", jobs), func(b *testing.B) {
			for b.Loop() {
				r := verifyLaunch(b, l, Options{Jobs: jobs})
				if r.Executions != factorial(8) {
					b.Fatalf("%d executions, want %d", r.Executions, factorial(8))
				}
				b.ReportMetric(float64(r.Executions), "executions")
				b.ReportMetric(float64(r.Blocked), "blocked")
			}
		})
	}
}
