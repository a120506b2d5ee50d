package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Compiler is a compiler of C, C++ or Fortran, called in a way that its programs record.
type Compiler struct {
	Path    string
	Clang   bool
	Fortran bool // of GCC
	// Recorder gives the folder of the recorder, which is built on first use.
	Recorder func() (string, error)
}

// UsageError says why the arguments make no program that can be recorded.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

// IsClang says whether a compiler is clang, by what it says of itself.
func IsClang(ctx context.Context, path string) bool {
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	return strings.Contains(string(out), "clang")
}

// gccFlags are for GCC, whose instrumentation comes late: optimisations before it would move accesses out of loops, merge them or
// give them other lines, or read two fields of which the program reads one, and one after it merges calls. It also warns of fences,
// which are recorded.
var gccFlags = []string{"-Wno-tsan", "-fno-tree-loop-im", "-fno-tree-pre", "-fno-code-hoisting", "-fno-store-merging", "-fno-tree-vectorize",
	"-fno-tree-loop-distribute-patterns", "-fno-tree-sink", "-fno-crossjumping", "-fno-hoist-adjacent-loads"}

// gccCalls keep GCC from expanding functions that are recorded. Its Fortran does not know these flags, and expands copies of small arrays.
var gccCalls = []string{"-fno-builtin-memcpy", "-fno-builtin-mempcpy", "-fno-builtin-memmove", "-fno-builtin-memset", "-fno-builtin-memcmp", "-fno-builtin-memchr", "-fno-builtin-bzero",
	"-fno-builtin-strlen", "-fno-builtin-strnlen", "-fno-builtin-strcpy", "-fno-builtin-strncpy", "-fno-builtin-stpcpy", "-fno-builtin-strcat", "-fno-builtin-strncat",
	"-fno-builtin-strcmp", "-fno-builtin-strncmp", "-fno-builtin-strcasecmp", "-fno-builtin-strncasecmp", "-fno-builtin-strchr", "-fno-builtin-strrchr",
	"-fno-builtin-strstr", "-fno-builtin-strpbrk", "-fno-builtin-strspn", "-fno-builtin-strcspn", "-fno-builtin-strdup", "-fno-builtin-strndup", "-fno-builtin-sprintf", "-fno-builtin-snprintf", "-fno-builtin-fputs"}

// clangFlags keep clang from moving stores behind loops, from merging accesses of several places, which then have none, and from
// vectors, of which it does not instrument those of more than 16 bytes: loops that ask for a length, as simd loops of OpenMP may, get what
// the processor has where the length is taken for that of vectors of no fixed size, and of AVX the processor is to have the shortest. It would also make "c ? x : y" of variables a read of both:
// functions that a fuzzer is to explore keep such branches, whose counters are not wanted here. Versions before 21 take elements of a local
// array for the thread's alone though another thread has the address of the first one, unless they give up to look where addresses go.
var clangFlags = []string{"-mllvm", "-disable-licm-promotion", "-mllvm", "-sink-common-insts=false", "-mllvm", "-simplifycfg-hoist-common=false",
	"-mllvm", "-simplifycfg-merge-cond-stores=false", "-mllvm", "-enable-tail-merge=false", "-mllvm", "-force-vector-width=1", "-mllvm", "-force-vector-interleave=1", "-mllvm", "-vectorize-slp=false", "-mllvm", "-scalable-vectorization=on", "-mllvm", "-capture-tracking-max-uses-to-explore=0",
	"-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table,stack-depth"}

// Arguments gives the arguments for the compiler.
func (c *Compiler) Arguments(args []string) ([]string, error) {
	what := classify(args)
	if what == asks {
		return args, nil
	}
	dir, err := c.Recorder()
	if err != nil {
		return nil, err
	}
	out := []string{"-g", "-fsanitize=thread"}
	if c.Clang {
		if compilesSource(args) { // it warns of such flags where they have no use
			out = append(out, clangFlags...)
			if runtime.GOARCH == "amd64" {
				out = append(out, "-mprefer-vector-width=128")
			}
		}
	} else {
		out = append(out, gccFlags...)
		if !c.Fortran {
			out = append(append(out, gccCalls...), "-isystem", filepath.Join(dir, "src", "gcc"), "-include", builtinFile) // as a header of the system, which -MM leaves out
		} else if runtime.GOARCH == "amd64" {
			out = append(out, "-mstringop-strategy=libcall")
		}
	}
	out = append(out, args...)
	if !c.Clang {
		out = append(out, "-U_FORTIFY_SOURCE") // it makes builtins of copies, which are expanded without a record
	}
	if what == compiles {
		return out, nil
	}
	for _, a := range args {
		if a == "-static" || a == "-static-pie" || a == "--static" {
			return nil, &UsageError{a + ": the recorder replaces functions of the C library, which is not possible in a static program; leave the flag out"}
		}
	}
	// The recorder replaces functions of this library, too: those of one in the program would come first, or be missing.
	out = slices.DeleteFunc(out, func(a string) bool { return a == "-static-libstdc++" })
	if c.Clang {
		out = append(out, "-fno-sanitize-link-runtime")
	} else {
		gcc := filepath.Join(dir, gccFolder)
		out = append([]string{"-B" + gcc, "-L" + gcc}, out...)
	}
	if what == linksLibrary {
		return out, nil // the program that loads it has the recorder
	}
	// The language of files before it would hold for the object, too.
	return append(out, "-x", "none", filepath.Join(dir, objectFile), "-Wl,--dynamic-list="+filepath.Join(dir, listFile), "-lpthread", "-ldl"), nil
}

// What arguments make.
const (
	asks = iota // nothing
	compiles
	linksLibrary
	linksProgram
)

// valued are options whose value is the next argument.
var valued = []string{"-o", "-I", "-L", "-D", "-U", "-l", "-x", "-include", "-isystem", "-idirafter", "-iquote", "-MF", "-MT", "-MQ", "-arch", "-target", "-Xlinker", "-Xclang", "-Xpreprocessor", "-Xassembler", "-T", "-u", "-z", "--param", "-mllvm", "-imacros", "-aux-info", "-B", "-e", "-rpath", "--sysroot", "-isysroot"}

func classify(args []string) int {
	what, files, headers := linksProgram, false, true
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-c" || a == "-S" || a == "-E" || a == "-fsyntax-only" || a == "-M" || a == "-MM":
			what = compiles
		case (a == "-shared" || a == "-r" || a == "--shared") && what == linksProgram:
			what = linksLibrary
		case slices.Contains(valued, a):
			files, headers = files || a == "-l", headers && a != "-l"
			if i++; a == "-x" && i < len(args) && strings.HasSuffix(args[i], "-header") {
				what = compiles // ahead, for others that include it
			}
		case !strings.HasPrefix(a, "-") || a == "-" || strings.HasPrefix(a, "-l"):
			files = true // response files among them
			headers = headers && slices.Contains(headerEndings, filepath.Ext(a))
		}
	}
	switch {
	case !files:
		return asks
	case headers:
		return compiles
	}
	return what
}

// headerEndings are those of files that are compiled ahead if nothing else is named.
var headerEndings = []string{".h", ".hh", ".hpp", ".hxx", ".h++", ".H"}

// sourceEndings are those of files that a compiler translates.
var sourceEndings = []string{".c", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".C", ".CC", ".CPP", ".i", ".ii", ".m", ".mm"}

// compilesSource says whether one of the arguments is a file to translate, as opposed to objects to link.
func compilesSource(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-x" || a == "-" || strings.HasPrefix(a, "-x"):
			return true
		case slices.Contains(valued, a):
			i++
		case !strings.HasPrefix(a, "-") && slices.Contains(sourceEndings, filepath.Ext(a)):
			return true
		}
	}
	return false
}

// Run calls the compiler. The code is its exit code.
func (c *Compiler) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, err error) {
	full, err := c.Arguments(args)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, c.Path, full...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = stdin, stdout, stderr, os.Environ()
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.Path, err)
	}
	return 0, nil
}
