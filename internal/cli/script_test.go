package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fencepost.dev/fencepost/internal/cuda/standin"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/toolchain"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"fencepost": func() { os.Exit(Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script. The conditions [nvcc], [clang] and [cc] mean that a compiler was found: nvcc as
// FENCEPOST_TEST_NVCC names it, or where the tool itself would look. [pytest] means that the package was found. A
// script that needs one is skipped without it. [long] means long mode.
func TestScripts(t *testing.T) {
	cache := cacheWithLibraries(t) // one for all scripts
	finder := toolchain.Finder{NVCC: os.Getenv("FENCEPOST_TEST_NVCC")}
	nvcc, nvccErr := finder.FindNVCC(context.Background())
	_, ccErr := finder.FindCC(context.Background())
	_, clangErr := finder.FindClang(context.Background())
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_CACHE_HOME", cache)
			e.Setenv("NO_COLOR", "1")
			if source, err := filepath.Abs("../cuda/testdata/process/process.c"); err == nil {
				e.Setenv("PROCESS_C", source)
			}
			if source, err := filepath.Abs("../../python"); err == nil {
				e.Setenv("PYTHON_PACKAGE", source)
			}
			if nvccErr == nil {
				e.Setenv("FENCEPOST_NVCC", nvcc.Path)
				e.Setenv("CUDART", sharedRuntime(nvcc.Path))
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "long":
				return testsize.Long(), nil
			case "nvcc":
				return nvccErr == nil && ccErr == nil, nil
			case "cc":
				return ccErr == nil, nil
			case "clang":
				return clangErr == nil, nil
			case "pytest":
				return exec.Command("python3", "-c", "import pytest").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "differ": differ, "cut": cut, "head": head, "recipe": recipe},
	})
}

// cacheWithLibraries returns a cache folder with the stand-in libraries, if there is a C compiler. It is a copy of a
// folder that is built once and outlives the tests. In long mode it is empty, and the command builds the libraries.
func cacheWithLibraries(t *testing.T) string {
	t.Helper()
	cache := t.TempDir()
	cc, err := (&toolchain.Finder{}).FindCC(context.Background())
	if err != nil || testsize.Long() {
		return cache
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	built, err := standin.Build(context.Background(), cc.Path, filepath.Join(user, "fencepost-test"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(cache, "fencepost", filepath.Base(built)), os.DirFS(built)); err != nil {
		t.Fatal(err)
	}
	return cache
}

// sharedRuntime finds NVIDIA's shared runtime next to nvcc. As installed by pip, it lacks the name that the linker
// uses.
func sharedRuntime(nvcc string) string {
	for _, lib := range []string{"lib64", "lib"} {
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(nvcc)), lib, "libcudart.so*"))
		if len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// exits runs a command and compares its exit code: exits 3 fencepost check none.ptx
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// differ fails when two files are equal.
func differ(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: differ FILE FILE")
	}
	if ts.ReadFile(args[0]) == ts.ReadFile(args[1]) {
		ts.Fatalf("%s and %s are equal", args[0], args[1])
	}
}

// head writes the first bytes of a file: head FILE SHORT 30
func head(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head FILE SHORT BYTES")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(ts.ReadFile(args[0])[:n]), 0o644))
}

// recipe writes the commands of Fencepost in a recipe of docs/ci.md as a script: recipe "GitLab" FILE
func recipe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: recipe SECTION FILE")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "ci.md"))
	ts.Check(err)
	_, section, ok := strings.Cut(string(page), "\n## "+args[0]+"\n")
	if !ok {
		ts.Fatalf("docs/ci.md has no section %q", args[0])
	}
	section, _, _ = strings.Cut(section, "\n## ")
	commands := regexp.MustCompile(`(?m)^\s*-(?: run:)? (fencepost .*)$`).FindAllStringSubmatch(section, -1)
	if len(commands) == 0 {
		ts.Fatalf("%s has no command", args[0])
	}
	script := "set -e\n"
	for _, c := range commands {
		script += c[1] + "\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(script), 0o644))
}

// cut writes all of a file but its last bytes: cut FILE SHORT
func cut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut FILE SHORT")
	}
	text := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text[:len(text)-8]), 0o644))
}
