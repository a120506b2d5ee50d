package cuda

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// expectation is what the head of a test program says about it, in lines "// key: value".
type expectation struct {
	args, flags           []string
	stdin, stdout, stderr string
	exit                  int
	signal                string
	alone                 bool   // run without the checker
	launches              string // "kernel kernel ..." in order; "*" is not checked
	errors                string // the errors of the launches that failed, one line each must hold it
	unsupported           string
	fails                 []string // "LINE KIND" of each line that ends with "// fails: KIND"
	ends                  string   // what stdout ends with; stdout is not compared then
}

func readExpectation(t *testing.T, path string) expectation {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var x expectation
	for i, line := range strings.Split(string(text), "\n") {
		if _, kind, ok := strings.Cut(line, "// fails: "); ok {
			x.fails = append(x.fails, fmt.Sprintf("%d %s", i+1, kind))
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		line, ok := strings.CutPrefix(line, "// ")
		if !ok {
			break
		}
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		switch key {
		case "args":
			x.args = strings.Fields(value)
		case "flags":
			x.flags = strings.Fields(value)
		case "stdin":
			x.stdin = value
		case "stdout":
			x.stdout += value + "\n"
		case "stderr":
			x.stderr += value + "\n"
		case "exit":
			x.exit, err = strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
		case "signal":
			x.signal, x.exit = value, -1
		case "alone":
			x.alone = true
		case "launches":
			x.launches = value
		case "errors":
			x.errors = value
		case "ends":
			x.ends = value + "\n"
		case "unsupported":
			x.unsupported = value
		}
	}
	return x
}

// TestPrograms runs the programs in testdata: C programs that call the API, and CUDA programs.
func TestPrograms(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.c*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no programs", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if testing.Short() && strings.HasSuffix(path, ".cu") {
				t.Skip("nvcc is slow")
			}
			x := readExpectation(t, path)
			source, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			exe := compile(t, source, x.flags)
			if x.alone {
				runAlone(t, exe, x)
				return
			}
			runProgram(t, exe, x)
		})
	}
}

func compile(t *testing.T, source string, flags []string) string {
	t.Helper()
	dir := libs(t)
	exe := filepath.Join(t.TempDir(), "prog")
	compiler, args := "gcc", []string{"-std=gnu11", "-w", "-g1", "-o", exe, source, "-L" + dir}
	if strings.HasSuffix(source, ".cu") {
		compiler = "nvcc"
		args = []string{"-lineinfo", "-Xcicc", "-O0", "-Xcompiler", "-g1", "-L" + dir, "-o", exe, source}
		if !slices.Contains(flags, "-gencode") {
			args = append(args, "-arch=compute_80")
		}
	} else if len(flags) == 0 {
		flags = []string{"-lcudart_static", "-lpthread"}
	}
	needTool(t, compiler)
	if out, err := exec.Command(compiler, append(args, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return exe
}

func runAlone(t *testing.T, exe string, x expectation) {
	t.Helper()
	out, err := exec.Command(exe).CombinedOutput()
	if err != nil || string(out) != x.stdout {
		t.Errorf("%v, output %q, want %q", err, out, x.stdout)
	}
}

func runProgram(t *testing.T, exe string, x expectation) {
	t.Helper()
	d, l := newTestDevice(t)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	st, err := Run(ctx, RunOptions{Path: exe, Args: x.args, Stdin: strings.NewReader(x.stdin), Stdout: &out, Stderr: &errs,
		Device: d, Libraries: libs(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range st.Faults {
		t.Errorf("protocol fault: %v", f)
	}
	signal := ""
	if st.Signal != 0 {
		signal = st.Signal.String()
	}
	if x.ends != "" && strings.HasSuffix(out.String(), x.ends) {
		x.stdout = out.String()
	}
	if st.Code != x.exit || signal != x.signal || out.String() != x.stdout || errs.String() != x.stderr {
		t.Errorf("exit %d, signal %q, want %d, %q\nstdout %q\n  want %q\nstderr %q\n  want %q",
			st.Code, signal, x.exit, x.signal, out.String(), x.stdout, errs.String(), x.stderr)
	}
	checkLaunches(t, l, x)
	if len(x.fails) > 0 {
		checkFailures(t, d, x)
	}
	if got := strings.Join(st.Unsupported, " "); x.unsupported != "" && got != x.unsupported {
		t.Errorf("unsupported calls %q, want %q", got, x.unsupported)
	}
}

// checkFailures compares what is told of failed calls, at the innermost frame of the program's file, with the marks in it.
func checkFailures(t *testing.T, d *Device, x expectation) {
	t.Helper()
	var got []string
	for _, f := range d.Failures() {
		line := 0
		for _, frame := range f.Frames {
			if strings.Contains(frame.File, "testdata") {
				line = frame.Line
				break
			}
		}
		text := fmt.Sprintf("%d %s", line, f.Kind)
		if f.Unseen > 0 {
			text += " unseen"
		}
		got = append(got, text)
	}
	for i, want := range x.fails {
		if !slices.Contains(got, want) {
			t.Errorf("no failure %q", x.fails[i])
		}
	}
	for _, g := range got {
		if !slices.Contains(x.fails, g) {
			t.Errorf("unexpected failure %q", g)
		}
	}
}

func checkLaunches(t *testing.T, l *log, x expectation) {
	t.Helper()
	var names, failed []string
	for _, r := range l.launches {
		names = append(names, cmp.Or(r.Kernel, "(module)"))
		if r.Err != nil {
			failed = append(failed, r.Err.Error())
		}
	}
	if got := strings.Join(names, " "); x.launches != "" && got != x.launches {
		t.Errorf("launches %q, want %q", got, x.launches)
	}
	if got := strings.Join(failed, "\n"); (got == "") != (x.errors == "") || !strings.Contains(got, x.errors) {
		t.Errorf("errors of launches %q, want %q in them", got, x.errors)
	}
}
