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
	"fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/testsize"
)

// recorder builds the recorder with a compiler, unless it is built already. Its folder outlives the tests, so one build
// suffices for all.
func recorder(cc string) func() (string, error) {
	return func() (string, error) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		return Build(context.Background(), cc, filepath.Join(cache, "fencepost-test"))
	}
}

// compilers returns this machine's compilers of C and C++ by name. It skips the test if there are none.
func compilers(t *testing.T) map[string]func(source string) *Compiler {
	t.Helper()
	out := map[string]func(string) *Compiler{}
	for c, cxx := range map[string]string{"gcc": "g++", "clang": "clang++"} {
		cc, err1 := exec.LookPath(c)
		cpp, err2 := exec.LookPath(cxx)
		if err1 != nil || err2 != nil {
			continue
		}
		out[c] = func(source string) *Compiler {
			path := cc
			if filepath.Ext(source) != ".c" {
				path = cpp
			}
			return &Compiler{Path: path, Clang: c == "clang", Recorder: recorder(cc)}
		}
	}
	if len(out) == 0 {
		t.Skip("there is neither gcc nor clang")
	}
	return out
}

// compileProgram builds a program. It skips the test if the program needs OpenMP and clang has none.
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

// judged runs a program under a detector, and checks that its events form a valid trace.
func judged(t *testing.T, spec cpu.Spec, program string, args ...string) (*report.Report, Result, string) {
	t.Helper()
	var lives []*judge.Live
	var out bytes.Buffer
	var traces []*written
	r, err := Run(context.Background(), Options{Path: program, Args: args, Stdout: &out, Stderr: &out, Process: func(n *Names) func([]cpu.Event) {
		l, w := judge.NewLive(judge.Options{Detectors: []cpu.Spec{spec}}, n), newWritten()
		lives, traces = append(lives, l), append(traces, w)
		return func(events []cpu.Event) {
			l.Events(events)
			w.add(events)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(lives) == 0 {
		t.Fatalf("%s recorded nothing: %s", program, &out)
	}
	rep := &report.Report{}
	for i, p := range r.Processes {
		traces[i].check(t)
		if len(p.Problems) > 0 {
			t.Errorf("%s: %q", program, p.Problems)
		}
		rep.Findings = append(rep.Findings, lives[i].Report(report.Trace{}, nil).Findings...)
	}
	return rep, r, out.String()
}

// written is a trace that is being written. It has only the first events of the program, which suffice.
type written struct {
	to     bytes.Buffer
	trace  *trace.Writer
	events []cpu.Event
}

func newWritten() *written {
	w := &written{}
	w.trace = trace.NewWriter(&w.to)
	return w
}

func (w *written) add(events []cpu.Event) {
	events = events[:min(len(events), max(0, 1<<17-len(w.events)))]
	w.trace.Events(events)
	w.events = append(w.events, events...)
}

// check reads the trace back.
func (w *written) check(t *testing.T) {
	t.Helper()
	if err := w.trace.Close(&trace.Names{}); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(&w.to)
	if err != nil {
		t.Fatal(err)
	}
	got, n := make([]cpu.Event, len(w.events)), 0
	for n < len(got) && err == nil {
		var k int
		k, err = r.Next(got[n:])
		n += k
	}
	if err != nil {
		t.Fatalf("after %d events: %v", n, err)
	}
	if !slices.Equal(got, w.events) {
		t.Error("a trace has other events")
	}
}

const wanted = "// want race"

// taken reports whether a test uses program i with a compiler. In long mode it uses all. Otherwise it uses one of four
// with gcc and one of ten with clang, and in short mode one of short with both.
func taken(compiler string, i, short int) bool {
	plain := 4
	if compiler == "clang" {
		plain = 10
	}
	return i%testsize.Of(short, plain, 1) == 0
}

// TestCorpus judges the programs of corpus/cpu. Each finding must have an access on a line with "want race", and each
// such line must be in a finding.
func TestCorpus(t *testing.T) {
	for name, c := range compilers(t) {
		for _, folder := range []string{"race", "norace"} {
			sources, _ := filepath.Glob(filepath.Join("..", "..", "..", "corpus", "cpu", folder, "*.c*"))
			if len(sources) < 20 {
				t.Fatalf("corpus/cpu/%s has %d programs", folder, len(sources))
			}
			for i, source := range sources {
				if !taken(name, i, 12) {
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
				if frame.Line == 0 {
					t.Errorf("unknown place in %s: %s", frame.Function, describe(f))
				}
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

// TestKernels runs the programs of corpus/cpu/kernels. They have no races, and must print the same as without the
// recorder.
func TestKernels(t *testing.T) {
	sources, _ := filepath.Glob(filepath.Join("..", "..", "..", "corpus", "cpu", "kernels", "*.c"))
	if len(sources) < 12 {
		t.Fatalf("there are %d programs", len(sources))
	}
	for name, c := range compilers(t) {
		for i, source := range sources {
			if !taken(name, i, 6) {
				continue
			}
			t.Run(name+"/"+filepath.Base(source), func(t *testing.T) {
				program := compileProgram(t, c(source), source, "-lm")
				for _, threads := range []string{"4", "16"} {
					plain, err := exec.Command(program, threads).Output()
					if err != nil {
						t.Fatal(err)
					}
					rep, r, out := judged(t, fasttrack.Spec, program, threads)
					if len(rep.Findings) > 0 {
						t.Errorf("unexpected: %s", describe(rep.Findings[0]))
					}
					if r.Processes[0].Threads < 5 {
						t.Errorf("%d threads", r.Processes[0].Threads)
					}
					if !closeTo(out, string(plain)) {
						t.Errorf("%s threads: prints %q, without the recorder %q", threads, out, plain)
					}
				}
			})
		}
	}
}

// closeTo compares numbers that may be sums in different orders.
func closeTo(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		var p, q float64
		if _, err := fmt.Sscan(x[i]+" "+y[i], &p, &q); err != nil || max(p, q)-min(p, q) > 1e-4*max(1, p) {
			return false
		}
	}
	return true
}

// TestProcesses judges programs that fork, that start others, and that are killed.
func TestProcesses(t *testing.T) {
	const source = `
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int parents, children, started;
static void *add(void *to) { ++*(int *)to; return NULL; }
static void both(int *x) {
	pthread_t t[2];
	pthread_create(&t[0], NULL, add, x);
	pthread_create(&t[1], NULL, add, x);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
}
int main(int argc, char **argv) {
	if (argc > 1) {
		both(&started);
		kill(getpid(), 9);
	}
	both(&parents);
	pid_t pid = fork();
	if (pid == 0) {
		both(&children);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	if (fork() == 0)
		execl(argv[0], argv[0], "again", (char *)0);
	wait(NULL);
	for (int i = 0; i < 300; i++) {
		pthread_t t;
		pthread_create(&t, NULL, add, &parents);
		pthread_join(t, NULL);
	}
	return 0;
}
`
	for name, c := range compilers(t) {
		file := filepath.Join(t.TempDir(), "processes.c")
		if err := os.WriteFile(file, []byte("#define _GNU_SOURCE\n#include <signal.h>"+source), 0o644); err != nil {
			t.Fatal(err)
		}
		rep, r, out := judged(t, fasttrack.Spec, compileProgram(t, c(file), file))
		if r.Exit != 0 {
			t.Fatalf("%s: exit code %d: %s", name, r.Exit, out)
		}
		got := map[string]bool{}
		for _, f := range rep.Findings {
			got[f.Accesses[0].Object.Name] = true
		}
		if !maps.Equal(got, map[string]bool{"parents": true, "children": true, "started": true}) {
			t.Errorf("%s: races on %v", name, got)
		}
		if n := r.Processes[0].Threads; n > 10 {
			t.Errorf("%s: %d threads, of which 3 live at a time", name, n)
		}
	}
}
