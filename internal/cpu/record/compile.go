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

// Compiler is a compiler of C, C++ or Fortran. It compiles programs so that they are recorded.
type Compiler struct {
	Path    string
	Clang   bool
	Fortran bool // gfortran
	// Recorder returns the folder of the recorder, which is built on first use.
	Recorder func() (string, error)
}

// UsageError is the reason why the arguments cannot make a recorded program.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

// IsClang reports whether a compiler is clang, by its version output.
func IsClang(ctx context.Context, path string) bool {
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	return strings.Contains(string(out), "clang")
}

// gccFlags are for GCC, which instruments late. Earlier optimisations would move accesses out of loops, merge them,
// give them other lines, or read two fields where the program reads one. A later optimisation would merge calls.
// -Wno-tsan suppresses a warning that fences are not supported, which is untrue for the recorder.
var gccFlags = []string{"-Wno-tsan", "-fno-tree-loop-im", "-fno-tree-pre", "-fno-code-hoisting", "-fno-store-merging", "-fno-tree-vectorize",
	"-fno-tree-loop-distribute-patterns", "-fno-tree-sink", "-fno-crossjumping", "-fno-hoist-adjacent-loads"}

// gccCalls keep GCC from expanding functions that are recorded. GCC's Fortran compiler does not accept these flags, and
// expands copies of small arrays.
var gccCalls = []string{"-fno-builtin-memcpy", "-fno-builtin-mempcpy", "-fno-builtin-memmove", "-fno-builtin-memset", "-fno-builtin-memcmp", "-fno-builtin-memchr", "-fno-builtin-bcmp", "-fno-builtin-bcopy", "-fno-builtin-bzero",
	"-fno-builtin-strlen", "-fno-builtin-strnlen", "-fno-builtin-strcpy", "-fno-builtin-strncpy", "-fno-builtin-stpcpy", "-fno-builtin-strcat", "-fno-builtin-strncat",
	"-fno-builtin-strcmp", "-fno-builtin-strncmp", "-fno-builtin-strcasecmp", "-fno-builtin-strncasecmp", "-fno-builtin-strchr", "-fno-builtin-strrchr",
	"-fno-builtin-strstr", "-fno-builtin-strpbrk", "-fno-builtin-strspn", "-fno-builtin-strcspn", "-fno-builtin-strdup", "-fno-builtin-strndup", "-fno-builtin-sprintf", "-fno-builtin-snprintf", "-fno-builtin-fputs"}

// clangFlags keep clang from optimisations that hide accesses or their places:
//
//   - moving stores out of loops;
//   - merging accesses of several places, which then have no place;
//   - using vectors of more than 16 bytes, which clang does not instrument. A loop that requests a vector length, as
//     simd loops of OpenMP do, uses the processor's length if the forced length counts as one of scalable vectors. For
//     AVX the shortest form is requested;
//   - compiling "c ? x : y" to a read of both variables. Functions compiled for a fuzzer keep such branches, so all are
//     compiled as such. The fuzzer's counters are not needed here;
//   - assuming, before version 21, that elements of a local array are private to the thread although another thread has
//     the address of the first one. A limit of 0 makes their escape analysis give up.
var clangFlags = []string{"-mllvm", "-disable-licm-promotion", "-mllvm", "-sink-common-insts=false", "-mllvm", "-simplifycfg-hoist-common=false",
	"-mllvm", "-simplifycfg-merge-cond-stores=false", "-mllvm", "-enable-tail-merge=false", "-mllvm", "-force-vector-width=1", "-mllvm", "-force-vector-interleave=1", "-mllvm", "-vectorize-slp=false", "-mllvm", "-scalable-vectorization=on", "-mllvm", "-capture-tracking-max-uses-to-explore=0",
	"-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table,stack-depth"}

// Arguments returns the arguments for the compiler.
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
		if compilesSource(args) { // clang warns of such flags if it compiles nothing
			out = append(out, clangFlags...)
			if runtime.GOARCH == "amd64" {
				out = append(out, "-mprefer-vector-width=128")
			}
		}
	} else {
		out = append(out, gccFlags...)
		if !c.Fortran {
			out = append(append(out, gccCalls...), "-isystem", filepath.Join(dir, "src", "gcc"), "-include", builtinFile) // a system header, which -MM omits
		} else if runtime.GOARCH == "amd64" {
			out = append(out, "-mstringop-strategy=libcall")
		}
	}
	out = append(out, args...)
	if !c.Clang || compilesSource(args) {
		out = append(out, "-U_FORTIFY_SOURCE") // fortification turns copies into builtins, which are expanded without a record, and other calls into checked ones
	}
	if what == compiles {
		return out, nil
	}
	for _, a := range args {
		if a == "-static" || a == "-static-pie" || a == "--static" {
			return nil, &UsageError{a + ": the recorder replaces functions of the C library, which is not possible in a static program; leave the flag out"}
		}
	}
	// The recorder replaces functions of libstdc++ too. With a static copy of the library, the program's own functions
	// would take precedence, or be missing.
	out = slices.DeleteFunc(out, func(a string) bool { return a == "-static-libstdc++" })
	if c.Clang {
		out = append(out, "-fno-sanitize-link-runtime")
	} else {
		gcc := filepath.Join(dir, gccFolder)
		out = append([]string{"-B" + gcc, "-L" + gcc}, out...)
	}
	if what == linksLibrary {
		return out, nil // the program that loads the library has the recorder
	}
	// Otherwise -x, if it was given, would also apply to the object.
	return append(out, "-x", "none", filepath.Join(dir, objectFile), "-Wl,--dynamic-list="+filepath.Join(dir, listFile), "-lpthread", "-ldl"), nil
}

// The kinds of calls of a compiler.
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
				what = compiles // a precompiled header
			}
		case !strings.HasPrefix(a, "-") || a == "-" || strings.HasPrefix(a, "-l"):
			files = true // a response file may name files
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

// headerEndings are those of files that are precompiled if nothing else is named.
var headerEndings = []string{".h", ".hh", ".hpp", ".hxx", ".h++", ".H"}

// sourceEndings are those of files that a compiler translates.
var sourceEndings = []string{".c", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".C", ".CC", ".CPP", ".i", ".ii", ".m", ".mm"}

// compilesSource reports whether one of the arguments is a file to translate, as opposed to objects to link.
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
