package record

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/judge"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
	"fencepost.dev/fencepost/internal/report"
)

// compilers gives the compilers of C and C++ of this machine, by name; the test is skipped if there are none.
func compilers(t *testing.T) map[string]func(source string) *Compiler {
	t.Helper()
	out := map[string]func(string) *Compiler{}
	for c, cxx := range map[string]string{"gcc": "g++", "clang": "clang++"} {
		cc, err1 := exec.LookPath(c)
		cpp, err2 := exec.LookPath(cxx)
		if err1 != nil || err2 != nil {
			continue
		}
		cache := t.TempDir()
		out[c] = func(source string) *Compiler {
			path := cc
			if filepath.Ext(source) != ".c" {
				path = cpp
			}
			return &Compiler{Path: path, Clang: c == "clang", Recorder: func() (string, error) { return Build(context.Background(), cc, cache) }}
		}
	}
	if len(out) == 0 {
		t.Skip("there is neither gcc nor clang")
	}
	return out
}

// compileProgram builds a program; OpenMP may be missing.
func compileProgram(t *testing.T, c *Compiler, source string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args := slices.Concat([]string{"-O1", "-w", source, "-o", program}, flags)
	switch filepath.Ext(source) {
	case ".c":
		args = append(args, "-std=gnu11")
	default:
		args = append(args, "-std=c++17")
	}
	openMP := strings.HasPrefix(filepath.Base(source), "omp_")
	if openMP {
		args = append(args, "-fopenmp")
	}
	var out bytes.Buffer
	code, err := c.Run(context.Background(), args, nil, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	if code != 0 && openMP && c.Clang {
		t.Skip("clang has no OpenMP here")
	}
	if code != 0 {
		t.Fatalf("%s: %s", source, &out)
	}
	return program
}

// judged runs a program under a detector.
func judged(t *testing.T, spec cpu.Spec, program string, args ...string) (*report.Report, Result, string) {
	t.Helper()
	var lives []*judge.Live
	var out bytes.Buffer
	r, err := Run(context.Background(), Options{Path: program, Args: args, Stdout: &out, Stderr: &out, Process: func(n *Names) func([]cpu.Event) {
		lives = append(lives, judge.NewLive(judge.Options{Detectors: []cpu.Spec{spec}}, n))
		return lives[len(lives)-1].Events
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(lives) == 0 {
		t.Fatalf("%s recorded nothing: %s", program, &out)
	}
	rep := &report.Report{}
	for i, p := range r.Processes {
		if len(p.Problems) > 0 {
			t.Errorf("%s: %q", program, p.Problems)
		}
		rep.Findings = append(rep.Findings, lives[i].Report(report.Trace{}, nil).Findings...)
	}
	return rep, r, out.String()
}

const wanted = "// want race"

// TestCorpus judges the programs of corpus/cpu: each finding has an access on a line that wants a race, and each such line is one of
// a finding.
func TestCorpus(t *testing.T) {
	for name, c := range compilers(t) {
		for _, folder := range []string{"race", "norace"} {
			sources, _ := filepath.Glob(filepath.Join("..", "..", "..", "corpus", "cpu", folder, "*.c*"))
			if len(sources) < 20 {
				t.Fatalf("corpus/cpu/%s has %d programs", folder, len(sources))
			}
			for i, source := range sources {
				if testing.Short() && i%8 != 0 {
					continue
				}
				t.Run(name+"/"+filepath.Base(source), func(t *testing.T) {
					program := compileProgram(t, c(source), source)
					for _, spec := range []cpu.Spec{fasttrack.Spec, slimfast.Spec} {
						rep, r, out := judged(t, spec, program)
						if r.Exit != 0 {
							t.Fatalf("exit code %d: %s", r.Exit, out)
						}
						compareLines(t, source, rep)
					}
				})
			}
		}
	}
}

func compareLines(t *testing.T, source string, rep *report.Report) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, wanted) {
			want[i+1] = true
		}
	}
	have := map[int]bool{}
	for _, f := range rep.Findings {
		expected := false
		for _, a := range f.Accesses {
			for _, frame := range a.Frames {
				if filepath.Base(frame.File) == filepath.Base(source) && want[frame.Line] {
					have[frame.Line], expected = true, true
				}
			}
		}
		if !expected {
			t.Errorf("unexpected: %s", describe(f))
		}
	}
	if !maps.Equal(want, have) {
		t.Errorf("races are at lines %v, found at %v", slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)))
	}
}

func describe(f report.Finding) string {
	s := fmt.Sprintf("%s (%s)", f.Message, f.Accesses[0].Object.Name)
	for _, a := range f.Accesses {
		s += fmt.Sprintf("\n  %s %s %v", a.Actor, a.Op, a.Frames)
	}
	return s
}
