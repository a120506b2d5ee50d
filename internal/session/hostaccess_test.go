package session

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// TestHostAccess checks that host code races at its line if it accesses memory of pending work, and does not if it has
// waited. Whatever the code does, including system calls and signal handlers, its results are those without a checker.
func TestHostAccess(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("host code is observed on x86-64 only")
	}
	exe := hostProgram(t, "testdata/hostaccess.c")
	source, err := os.ReadFile("testdata/hostaccess.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ scenario, at string }{ // at: text of the line that races
		{"read", `"read"))`}, {"write", `"write"))`}, {"update", `"update"))`}, {"source", "pinned[size - 1] = 4"}, {"printed", "return managed[7] == 1;"},
		{"read call", "managed + 5000, 100) == 100"}, {"write call", "write(fd, managed + 5000"},
		{"beside", ""}, {"synchronised", ""}, {"stream", ""}, {"event", ""},
		{"function reads", ""}, {"function writes", ""}, {"function beside", "// in a function"}, {"read after a function", "// orders nothing"},
		{"crash", ""}, {"fork", ""},
		{"other calls", "*"}, {"handler", "*"}, {"blocked", ""}, {"thread", "*"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		var out bytes.Buffer
		r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Error}, &Program{Path: exe, Args: []string{c.scenario}, Stdout: &out, Libraries: standins(t)})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if want := "right\n"; out.String() != want && c.scenario != "crash" {
			t.Errorf("%s: printed %q", c.scenario, out.String())
		}
		if crashed := r.Program != nil && strings.Contains(fmt.Sprint(*r.Program), "segmentation"); crashed != (c.scenario == "crash") {
			t.Errorf("%s: the program ended with %+v", c.scenario, r.Program)
		}
		obstacle := map[string]string{"handler": "has signal handlers", "blocked": "blocks SIGSEGV", "thread": "has several threads"}[c.scenario]
		unobserved := slices.DeleteFunc(slices.Clone(r.Skipped), func(s report.Skipped) bool { return !strings.HasPrefix(s.What, "what host code does") })
		if (len(unobserved) == 1 && strings.Contains(unobserved[0].Reason, obstacle)) != (obstacle != "") || len(unobserved) > 1 {
			t.Errorf("%s: not checked: %+v", c.scenario, r.Skipped)
		}
		races := 0
		for _, f := range r.Findings {
			for _, a := range f.Accesses {
				if a.Host == "host code" && len(a.Frames) > 0 && a.Frames[0].Line > 0 {
					races++
					line := strings.Split(string(source), "\n")[a.Frames[0].Line-1]
					if f.Kind != "inter-kernel" || !strings.Contains(line, c.at) && c.at != "*" {
						t.Errorf("%s: %s on line %q", c.scenario, f.Kind, line)
					}
				}
			}
		}
		if c.at != "*" && (races > 0) != (c.at != "") {
			t.Errorf("%s: %d findings of %d tell of host code", c.scenario, races, len(r.Findings))
		}
	}
}
