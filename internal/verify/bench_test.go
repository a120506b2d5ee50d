package verify

import (
	"context"
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// BenchmarkSearch explores programs with a known number of executions, and reports that number and the time, with one
// goroutine and with two.
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

// publish has each of n threads write one location. The last of them to announce it reads the location.
const publish = `C publish
int done, x; grid %d, 1;
kernel {
  store(x, tid, rlx, gpu);
  if (fetch_add(done, 1, acqrel, gpu) == gridDim - 1) int a = load(x, rlx, gpu);
}`

// relaxation is a step of a graph algorithm: a thread that finds the vertex unvisited sets its distance, and sets a
// flag that something changed.
const relaxation = `C relaxation
int changed, distance; grid %d, 1;
kernel {
  if (load(distance, rlx, gpu) == 0) {
    store(distance, tid + 1, rlx, gpu);
    store(changed, 1, rlx, gpu);
  }
  int c = load(changed, rlx, gpu);
}`

// BenchmarkReadsFrom explores programs by reads-from classes and by executions, with one goroutine, and reports their
// numbers.
func BenchmarkReadsFrom(b *testing.B) {
	for _, c := range []struct {
		name, src           string
		classes, executions int
	}{
		{"writers-9", writers(9), 1, factorial(9)},
		{"publish-6", fmt.Sprintf(publish, 6), factorial(6) * 6, factorial(6) * factorial(6)},
		{"relaxation-5", fmt.Sprintf(relaxation, 5), 43396, 3438800},
		{"LB-18", fmt.Sprintf(lb, 18), 1<<18 - 1, 1<<18 - 1},
		{"SB-18", fmt.Sprintf(sb, 18), 1 << 18, 1 << 18},
		{"caslock-8", fmt.Sprintf(casLock, 8, 1), factorial(8), factorial(8)},
		{"ttaslock-6", fmt.Sprintf(ttasLock, 6, 1), factorial(6) * factorial(6), factorial(6) * factorial(6)},
	} {
		test, err := litmus.Parse(c.name, c.src, litmus.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, readsFrom := range []bool{false, true} {
			name, want := EachExecution, c.executions
			if readsFrom {
				name, want = ReadsFrom, c.classes
			}
			b.Run(c.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					if r := Litmus(context.Background(), test, Options{ReadsFrom: readsFrom}); r.Executions != want {
						b.Fatalf("%d, want %d", r.Executions, want)
					}
				}
				b.ReportMetric(float64(want), "explored")
			})
		}
	}
}

// BenchmarkKernel explores a lock of a kernel, with one goroutine and with two.
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
