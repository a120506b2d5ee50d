package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stacks is the environment variable that names a Python interpreter with PyTorch, Triton, numba-cuda, cuda.core, cuda-python,
// pytest and nbconvert.
const stacks = "FENCEPOST_PYTHON_STACKS"

// TestPythonStacks runs programs that need these packages.
func TestPythonStacks(t *testing.T) {
	python := os.Getenv(stacks)
	if python == "" {
		t.Skip(stacks + " names no Python interpreter with GPU packages")
	}
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	cache := cacheWithLibraries(t)
	t.Run("examples", func(t *testing.T) { testPythonExamples(t, python, cache) })
	t.Run("operators", func(t *testing.T) {
		code, findings, output := runPython(t, cache, python, "testdata/python/operators.py")
		if code != exitClean || len(findings) > 0 || !strings.Contains(string(output), " operators computed on the host") {
			t.Errorf("exit %d, %v\n%s", code, findings, output)
		}
	})
	t.Run("torch", func(t *testing.T) {
		code, _, output := runPython(t, cache, python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "../../python/tests/test_torch.py")
		if code != exitClean || !strings.Contains(string(output), " passed") {
			t.Errorf("exit %d\n%s", code, output)
		}
	})
	for _, stack := range []string{"numba", "nvrtc", "pointers"} {
		t.Run("names "+stack, func(t *testing.T) { testNames(t, python, cache, "testdata/python/names_"+stack+".py") })
	}
	t.Run("lost", func(t *testing.T) {
		code, findings, output := runPython(t, cache, python, "testdata/python/lost.py")
		if code != exitFindings || len(findings) != 1 || findings[0].Kind != "out-of-bounds" || !strings.Contains(string(output), "caught True\nalive\n") {
			t.Errorf("exit %d, %v\n%s", code, findings, output)
		}
	})
	t.Run("pinned", func(t *testing.T) {
		if code, findings, output := runPython(t, cache, python, "testdata/python/pinned.py"); code != exitClean || len(findings) > 0 {
			t.Errorf("exit %d, %v\n%s", code, findings, output)
		}
	})
	t.Run("pytest", func(t *testing.T) { testPytest(t, python, cache) })
	t.Run("pytest of the unsupported", func(t *testing.T) { testPytestUnsupported(t, python, cache) })
	t.Run("plugin alone", func(t *testing.T) { testPluginAlone(t, python) })
	t.Run("same kernel", func(t *testing.T) { testSameKernelInTwoFiles(t, python, cache) })
	t.Run("notebook", func(t *testing.T) { testNotebook(t, python, cache) })
}

// pythonFinding is the part of a finding of the JSON report that the tests use.
type pythonFinding struct {
	Kind, Severity string
	Accesses       []struct {
		File string
		Line int
	}
}

// testPythonExamples runs each script of examples/python. Its first line says how it ends and what is found:
//
//	# expect: exit 1, unordered, warning warp-synchronous
//
// The second may name the device that it is for: "# arch: sm_90". The lines that race, and no others, have "race" in a comment at their end.
func testPythonExamples(t *testing.T, python, cache string) {
	scripts, err := filepath.Glob("../../examples/python/*.py")
	if err != nil || len(scripts) < 16 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".py")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(source), "\n")
			want, ok := strings.CutPrefix(lines[0], "# expect: ")
			if !ok {
				t.Fatalf("the first line is no expectation: %s", lines[0])
			}
			var flags []string
			if arch, ok := strings.CutPrefix(lines[1], "# arch: "); ok {
				flags = []string{"--arch", arch}
			}
			code, findings, output := runPythonFor(t, cache, flags, python, script)
			found := []string{fmt.Sprintf("exit %d", code)}
			var raced []int
			for _, f := range findings {
				kind := f.Kind
				if f.Severity != "error" {
					kind = f.Severity + " " + kind
				}
				if f.Severity == "info" {
					continue
				}
				found = append(found, kind)
				for _, a := range f.Accesses {
					raced = append(raced, scriptLine(t, lines, script, a.File, a.Line))
				}
			}
			slices.Sort(found[1:])
			if got := strings.Join(slices.Compact(found), ", "); got != want {
				t.Errorf("got %s, want %s\n%s", got, want, output)
			}
			slices.Sort(raced)
			if got, want := slices.Compact(raced), marked(lines); !slices.Equal(got, want) {
				t.Errorf("lines %d race, want %d\n%s", got, want, output)
			}
		})
	}
}

// testNames runs a script with races. Its lines "# named: " have the objects named in a headline and an address, in the
// order of the findings.
func testNames(t *testing.T, python, cache, script string) {
	source, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for l := range strings.Lines(string(source)) {
		if name, ok := strings.CutPrefix(l, "# named: "); ok {
			want = append(want, strings.TrimSpace(name))
		}
	}
	_, _, output := runPython(t, cache, python, script)
	var got []string
	finding := regexp.MustCompile(`(?s)data race on ([^\n]*) \(global\).*?= address: ([^\n]*) \(0x`)
	for _, m := range finding.FindAllStringSubmatch(string(output), -1) {
		got = append(got, m[1]+"; "+m[2])
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q\n%s", got, want, output)
	}
}

// runPython runs a script under the checker.
func runPython(t *testing.T, cache, python string, args ...string) (code int, findings []pythonFinding, output []byte) {
	t.Helper()
	return runPythonFor(t, cache, nil, python, args...)
}

// runPythonFor runs a script under the checker with flags.
func runPythonFor(t *testing.T, cache string, flags []string, python string, args ...string) (code int, findings []pythonFinding, output []byte) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	c := exec.Command("fencepost", slices.Concat([]string{"run", "--json", report}, flags, []string{python}, args)...)
	c.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "NO_COLOR=1")
	output, err := c.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var all struct{ Findings []pythonFinding }
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return code, all.Findings, output
}

// scriptLine returns the line of the script of an access. CUDA C++ is a text in the script, which begins after the
// first three quotes of an assignment.
func scriptLine(t *testing.T, lines []string, script, file string, line int) int {
	t.Helper()
	if filepath.Ext(file) == ".cu" {
		return slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "SOURCE = ") }) + line
	}
	if filepath.Base(file) != filepath.Base(script) {
		t.Errorf("an access is in %s", file)
	}
	return line
}

// marked returns the numbers of the lines that should race.
func marked(lines []string) (numbers []int) {
	for i, l := range lines {
		if strings.HasSuffix(l, "# race") || strings.HasSuffix(l, "// race") {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}
