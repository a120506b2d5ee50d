package session

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// TestHostThreads runs programs with ordered and unordered host threads. If nothing observed orders them, but the calls
// came in a suitable order, this is a warning.
func TestHostThreads(t *testing.T) {
	object := filepath.Join(t.TempDir(), "hostthreads.o")
	compile := exec.Command("gcc", "-w", "-g1", "-std=c++17", "-c", "-o", object, "testdata/hostthreads.cpp", "-I"+standins(t))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	exe := hostProgram(t, object, "-lstdc++")
	const clean, warning, faulty, either = "", "warning", "error", "warning or error"
	for _, c := range []struct{ scenario, want string }{
		{"nothing", either}, {"atomic", warning}, {"join", clean}, {"before", clean}, {"beside", warning}, {"chain", clean},
		{"mutex", clean}, {"two mutexes", either}, {"one mutex", warning}, {"condition", clean}, {"timed", clean},
		{"semaphore", clean}, {"other semaphore", warning}, {"barrier", clean}, {"barriers", clean}, {"late barrier", warning},
		{"shared", clean}, {"readers", warning}, {"spin", clean}, {"once", clean}, {"async", clean},
		{"event", clean}, {"no event", faulty}, {"device", clean}, {"legacy", clean},
		{"per thread", faulty}, {"per thread waits", clean}, {"per thread and legacy", clean}, {"many", clean}, {"pool", clean},
		{"function", warning}, {"function of two streams", warning}, {"function in order", clean}, {"function waited for", clean},
		{"function and atomic", warning}, {"function and condition", clean}, {"function and other thread", clean}, {"function and held mutex", warning}, {"function and gate", clean},
	} {
		got := hostThreads(t, exe, c.scenario, standins(t))
		if !slices.Contains(strings.Split(c.want, " or "), got) {
			t.Errorf("%s: %q, want %q", c.scenario, got, c.want)
		}
	}
	if got := hostThreads(t, exe, "atomic", ""); got != clean {
		t.Errorf("%q where nothing is seen of what orders threads, which are one agent then", got)
	}
	openmp := hostProgram(t, object, "-lstdc++", "-Wl,--no-as-needed", "-lgomp")
	for scenario, want := range map[string]string{"atomic": clean, "no event": faulty} {
		if got := hostThreads(t, openmp, scenario, standins(t)); got != want {
			t.Errorf("%s with OpenMP, whose threads are one agent: %q, want %q", scenario, got, want)
		}
	}
}

// hostThreads returns the highest severity of races in a scenario.
func hostThreads(t *testing.T, exe, scenario, libraries string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Error}, &Program{Path: exe, Args: []string{scenario}, Stdout: &out, Libraries: libraries})
	if err != nil {
		t.Fatal(err)
	}
	refused := slices.DeleteFunc(slices.Clone(r.Skipped), func(s report.Skipped) bool { return s.What == "the program" }) // there is no kernel
	if gate := scenario == "function and gate"; out.String() != "right\n" || (len(refused) > 0) != gate || gate && !strings.Contains(refused[0].What, "host function that waits") {
		t.Errorf("%s: printed %q, not checked %+v", scenario, out.String(), r.Skipped)
	}
	worst, text := "", ""
	for _, f := range r.Findings {
		if f.Kind != detect.InterKernel {
			t.Errorf("%s: %s", scenario, f.Kind)
		}
		if s := fmt.Sprint(f.Severity); worst != "error" {
			worst = s
		}
		text += f.Message + "\n"
	}
	if threads := strings.Contains(text, "of POSIX threads"); threads != (worst == "warning") && worst != "error" {
		t.Errorf("%s: %s", scenario, text)
	}
	return worst
}
