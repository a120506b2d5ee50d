package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/toolchain"
)

// TestPython runs scripts that need no package, with any Python.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	if _, err := (&toolchain.Finder{}).FindCC(context.Background()); err != nil {
		t.Skip(err)
	}
	cache := cacheWithLibraries(t)
	t.Run("check", func(t *testing.T) { testPythonCheck(t, python, cache) })
	t.Run("asking", func(t *testing.T) { testAskingChangesNothing(t, python, cache) })
	t.Run("without device", func(t *testing.T) { testWithoutDevice(t, python, cache) })
	t.Run("blind", func(t *testing.T) { testBlind(t, python, cache) })
	t.Run("ways", func(t *testing.T) { testPythonWays(t, python, cache) })
}

// testPythonCheck runs a script that asserts the results of fencepost.check(). Without the checker, check() tells how
// to get it.
func testPythonCheck(t *testing.T, python, cache string) {
	code, _, output := runPython(t, cache, python, "testdata/python/check.py")
	if code != 1 || strings.Contains(string(output), "Traceback") {
		t.Errorf("exit %d\n%s", code, output)
	}
	alone := exec.Command(python, "-c", "import fencepost\nwith fencepost.check(): pass")
	alone.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "..", "python"))
	output, err := alone.CombinedOutput()
	if want := `start the script with "fencepost run python3 SCRIPT"`; err == nil || !strings.Contains(string(output), want) {
		t.Errorf("%v, without %q\n%s", err, want, output)
	}
}

// testAskingChangesNothing runs a script with and without queries for findings. The reports are the same.
func testAskingChangesNothing(t *testing.T, python, cache string) {
	_, plain, output := runPython(t, cache, python, "testdata/python/asking.py")
	_, asked, _ := runPython(t, cache, python, "testdata/python/asking.py", "ask")
	if len(plain) < 3 || !reflect.DeepEqual(plain, asked) {
		t.Errorf("%+v\n%+v\n%s", plain, asked, output)
	}
}

// testPythonWays runs processes that are started in several ways.
func testPythonWays(t *testing.T, python, cache string) {
	script, err := filepath.Abs("testdata/python/ways.py")
	if err != nil {
		t.Fatal(err)
	}
	console := filepath.Join(t.TempDir(), "tool")
	text := fmt.Sprintf("#!%s\nimport runpy, sys\nsys.path.insert(0, %q)\nrunpy.run_path(%q, run_name='__main__')\n", python, filepath.Dir(script), script)
	if err := os.WriteFile(console, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"itself", "thread", "fork", "spawn", "forkserver", "subprocess", "emptied", "own", "cleared", "console"} {
		program := []string{python, script, way}
		if way == "console" {
			program = []string{console, way}
		}
		code, findings, output := runPython(t, cache, program[0], program[1:]...)
		if code != exitFindings || len(findings) != 1 || findings[0].Kind != "unordered" {
			t.Errorf("%s: exit %d, %v\n%s", way, code, findings, output)
		}
	}
}

// testBlind runs interpreters that ignore the environment: directly, named by a script, and as a child.
func testBlind(t *testing.T, python, cache string) {
	script, err := filepath.Abs("testdata/python/ways.py")
	if err != nil {
		t.Fatal(err)
	}
	console := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(console, []byte("#!/usr/bin/env -S python3 -bI\nprint()\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		told    bool
		program []string
	}{
		{true, []string{python, "-I", script, "itself"}},
		{true, []string{python, "-W", "ignore", "-bE", script, "itself"}},
		{true, []string{python, "-S", script, "itself"}},
		{true, []string{console}},
		{true, []string{python, script, "blind"}},
		{false, []string{python, "-s", "-Wignore::ImportWarning", script, "itself", "-I"}},
		{false, []string{python, "-c", "import sys; sys.exit(sys.argv[1] != '-I')", "-I"}},
	} {
		_, _, output := runPython(t, cache, c.program[0], c.program[1:]...)
		if got := strings.Contains(string(output), "\n  remedy: leave -"); got != c.told {
			t.Errorf("%v: told is %v\n%s", c.program, got, output)
		}
	}
}

// testWithoutDevice imports packages that find no device; their names suffice here. They must be reported with a
// remedy.
func testWithoutDevice(t *testing.T, python, cache string) {
	dir := t.TempDir()
	for _, name := range []string{"cupy", "warp", "jax_plugins/xla_cuda13"} {
		folder := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "__init__.py"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("import sys; sys.path.insert(0, %q); import %s", dir, strings.ReplaceAll(name, "/", "."))
		_, _, output := runPython(t, cache, python, "-c", script)
		if n := strings.Count(string(output), " will find no device: "); n != 1 || !strings.Contains(string(output), "\n  remedy: ") {
			t.Errorf("%s: told %d times\n%s", name, n, output)
		}
	}
}

// testNotebook executes a notebook. Its launches must be reported by cell.
func testNotebook(t *testing.T, python, cache string) {
	dir, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for i, source := range []string{
		fmt.Sprintf("import sys\nsys.path.insert(0, %q)\nfrom kernels import launch", dir),
		"launch('adds')\n\nlaunch('stores')",
		"import numpy\nfrom numba import cuda\n@cuda.jit\ndef count(counts):\n    counts[0] += 1\n\ncount[2, 1](cuda.to_device(numpy.zeros(1)))",
	} {
		const cell = `{"cell_type": "code", "id": "c%d", "metadata": {}, "execution_count": null, "outputs": [], "source": %q}`
		cells = append(cells, fmt.Sprintf(cell, i, source))
	}
	text := fmt.Sprintf(`{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [%s]}`, strings.Join(cells, ", "))
	notebook := filepath.Join(t.TempDir(), "notebook.ipynb")
	if err := os.WriteFile(notebook, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	code, findings, output := runPython(t, cache, python, "-m", "nbconvert", "--execute", "--to", "notebook", "--inplace", notebook)
	if code != exitFindings || len(findings) != 2 {
		t.Errorf("exit %d, %v\n%s", code, findings, output)
	}
	for _, want := range []string{
		"called from In [2]:3 in <module>",
		" --> In [3]:5:1 in count\n  |\n5 |     counts[0] += 1\n",
		"launched at In [3]:7 in <module>",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
}

// testPytest runs pytest with the plugin, which is not installed.
func testPytest(t *testing.T, python, cache string) {
	outcomes := regexp.MustCompile(`(?m)^(PASSED|FAILED|ERROR|XFAIL)\S* testdata/python/tests.py::test_(\w+)`)
	for _, c := range []struct {
		args []string
		only string // of the tests that do not pass
	}{{[]string{"--fencepost"}, ""}, {nil, "fails_itself fails_marked fails_marked_warning"}} {
		args := append([]string{"-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "testdata/python/tests.py"}, c.args...)
		code, _, output := runPython(t, cache, python, args...)
		got := map[string]string{}
		for _, m := range outcomes.FindAllStringSubmatch(string(output), -1) {
			got[m[2]] = m[1]
		}
		if code != exitProgram || len(got) < 9 {
			t.Fatalf("%d: exit %d, %d tests\n%s", len(c.args), code, len(got), output)
		}
		for name, outcome := range got {
			want := map[string]string{"passes": "PASSED", "fails": "FAILED", "errors": "ERROR", "xfails": "XFAIL"}[strings.SplitN(name, "_", 2)[0]]
			if c.only != "" && want != "PASSED" && !slices.Contains(strings.Fields(c.only), name) {
				want = "PASSED"
				if strings.HasPrefix(name, "xfails") {
					want = "FAILED" // strictly
				}
			}
			if outcome != want {
				t.Errorf("%v: %s is %s, want %s\n%s", c.args, name, outcome, want, output)
			}
		}
		if !strings.Contains(string(output), "error: data race on cuMemAlloc") && !strings.Contains(string(output), "error: data race on cudaMalloc") {
			t.Errorf("%v: no finding in\n%s", c.args, output)
		}
	}
}

// testPytestUnsupported checks that a failure caused by an unsupported call is shown together with the name of the
// call.
func testPytestUnsupported(t *testing.T, python, cache string) {
	code, _, output := runPython(t, cache, python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--fencepost", "testdata/python/unsupported.py")
	if code != exitNotChecked || !regexp.MustCompile(`Captured fencepost call -+\nnot checked: kernel copies`).Match(output) {
		t.Errorf("exit %d\n%s", code, output)
	}
}

// testPluginAlone runs pytest without the checker. The plugin must report this once.
func testPluginAlone(t *testing.T, python string) {
	c := exec.Command(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--fencepost", "-k", "nothing", "testdata/python/tests.py")
	c.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "..", "python"))
	output, _ := c.CombinedOutput() // fails: the tests cannot be read without a driver
	if n := strings.Count(string(output), "fencepost: nothing was checked"); n != 1 {
		t.Errorf("told %d times\n%s", n, output)
	}
}

// testSameKernelInTwoFiles runs a Triton kernel from two files with the same text. Triton's cache of the first names
// the first file.
func testSameKernelInTwoFiles(t *testing.T, python, cache string) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../examples/python/triton_accumulate_racy.py")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		script := filepath.Join(dir, fmt.Sprintf("script%d.py", i))
		if err := os.WriteFile(script, text, 0o666); err != nil {
			t.Fatal(err)
		}
		_, findings, output := runPython(t, cache, python, script)
		if len(findings) == 0 || findings[0].Accesses[0].File != script {
			t.Errorf("%s: %+v\n%s", script, findings, output)
		}
	}
}
