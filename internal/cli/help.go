package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/nearest"
)

const helpHead = `Fencepost finds data races and other concurrency errors in CUDA programs, on a machine without a GPU.

Usage: fencepost COMMAND [flags] [arguments]

`

const helpExamples = `Examples:
  fencepost run prog.cu                      compile a program, run it, report its races
  fencepost run a.cu b.cu -O2 -lz -- in.txt  with compiler flags, and arguments for the program
  fencepost run ./app in.txt                 a program built with "fencepost nvcc" or "nvcc -cudart shared"
  fencepost run python3 -m pytest --fencepost  a Python program, unchanged
  make NVCC="fencepost nvcc"                 build so that "fencepost run" can run the result
  fencepost check kernel.ptx --launch l.toml launch the kernels of a launch file
  fencepost demo                             find the defects of three built-in kernels
  fencepost compare prog.cu                  all detectors on one execution, side by side
`

const helpCodes = `
Exit codes:
  0  nothing found at or above --fail-on
  1  findings at or above --fail-on
  2  wrong usage
  3  something could not be run, checked or written: no compiler, no PTX, an unsupported instruction or call, no kernel ran
  4  the program itself failed; its own exit code is in the report
`

func writeHelp(w io.Writer) {
	fmt.Fprint(w, helpHead, helpExamples)
	fmt.Fprintln(w, "\nCommands (\"fencepost help COMMAND\" for more):")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.doc)
	}
	fmt.Fprintln(w, "\nFlags of run and check, before the program (\"fencepost help run\", \"fencepost help check\" for all):")
	// The page stays one page: what few need is named alone, and what serves scripts of another tool is left to "help run".
	named := [][]*flag{append(watchFlags()[1:], modeFlag(), pruneFlag()), exportFlags()}
	rare := map[string]string{}
	for _, f := range append(slices.Concat(named...), sanitizerFlags()...) {
		rare[f.name] = "listed by help run"
	}
	writeFlags(w, without(runFlags(), rare))
	for _, flags := range named {
		fmt.Fprint(w, "  and")
		for _, f := range flags {
			fmt.Fprintf(w, " --%s", f.name)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, helpCodes)
}

func writeFlags(w io.Writer, flags []*flag) {
	for _, f := range flags {
		fmt.Fprintf(w, "  %-20s %s\n", strings.TrimSpace("--"+f.name+" "+f.arg), f.doc)
	}
}

func writeCommandHelp(w io.Writer, c *command) {
	usage := c.name
	if len(c.flags) > 0 {
		usage += " [flags]"
	}
	fmt.Fprintf(w, "Usage: fencepost %s\n\n%s\n", strings.TrimSpace(usage+" "+c.args), upperFirst(c.doc)+".")
	if c.long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.Trim(c.long, "\n"))
	}
	if len(c.flags) > 0 {
		fmt.Fprintln(w, "\nFlags:")
		writeFlags(w, c.flags)
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func helpCommand() *command {
	return &command{name: "help", args: "[COMMAND | detectors]", doc: "print this page, or more about a command or the detectors",
		run: func(ctx context.Context, e *env, o *options, args []string) (int, error) {
			if len(args) == 0 {
				writeHelp(e.stdout)
				return exitClean, nil
			}
			var names []string
			if args[0] == "detectors" {
				fmt.Fprintln(e.stdout, detectorHelp())
				return exitClean, nil
			}
			for _, c := range commands() {
				if c.name == args[0] {
					writeCommandHelp(e.stdout, c)
					return exitClean, nil
				}
				names = append(names, c.name)
			}
			names = append(names, "detectors")
			return 0, usagef("there is no command %q%s", args[0], nearest.Hint(args[0], names))
		}}
}

func versionCommand() *command {
	return &command{name: "version", doc: "print the version",
		run: func(ctx context.Context, e *env, o *options, args []string) (int, error) {
			if len(args) > 0 {
				return 0, usagef("version takes no arguments")
			}
			fmt.Fprintf(e.stdout, "fencepost %s\n", versionString())
			return exitClean, nil
		}}
}

// version is set by the build of a release.
var version string

// versionString is the version of the release or of the module, or the commit the tool was built from.
func versionString() string {
	if version != "" {
		return fmt.Sprintf("%s %s/%s %s", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version += "-" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return fmt.Sprintf("%s %s/%s %s", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}
