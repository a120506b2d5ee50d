// Package cli is the command line: commands, flags, what is printed where, exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/term"

	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/session"
)

// The exit codes.
const (
	exitClean      = 0 // nothing found at or above the --fail-on severity
	exitFindings   = 1
	exitUsage      = 2
	exitNotChecked = 3 // something could not be run or checked
	exitProgram    = 4 // the program under test failed by itself
)

// command is one command of the tool.
type command struct {
	name  string
	args  string // what follows the flags
	doc   string // one line
	long  string // what `help NAME` adds, examples included
	flags []*flag
	// anywhere says that flags may stand behind arguments too.
	anywhere bool
	// raw says that all arguments are the command's own, flags of the form -h included.
	raw bool
	run func(ctx context.Context, e *env, o *options, args []string) (int, error)
}

// commands lists the commands in the order of the help page.
func commands() []*command {
	return []*command{runCommand(), checkCommand(), compareCommand(), recordCommand(), analyzeCommand(), exportCommand(), nvccCommand(), isaCommand(), doctorCommand(), versionCommand(), helpCommand()}
}

// env is what a command may talk to.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// terminal says that w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// color says that w should get colours: it is a terminal and NO_COLOR (no-color.org) is not set.
func color(w io.Writer) bool {
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// usageError is a mistake in the command line.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// Main runs the tool with its arguments, the first of them the name it was called by, and gives the exit code. Called
// nvcc, it is the command nvcc.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer runtime.KeepAlive(session.Ballast())
	e := &env{stdin, stdout, stderr}
	defer func() {
		if r := recover(); r != nil {
			code = bug(stderr, r)
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if filepath.Base(args[0]) == "nvcc" {
		args = append([]string{args[0], "nvcc"}, args[1:]...)
	}
	args = args[1:]
	if len(args) == 0 {
		writeHelp(stderr)
		return exitUsage
	}
	name := args[0]
	if name == "-h" || name == "--help" || name == "-help" {
		name = "help"
	} else if name == "--version" || name == "-version" {
		name = "version"
	}
	for _, c := range commands() {
		if c.name == name {
			return execute(ctx, e, c, args[1:])
		}
	}
	return fail(stderr, usagef("%s", unknownCommand(name)))
}

func unknownCommand(name string) string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	if fi, err := os.Stat(name); err == nil && !fi.IsDir() {
		if strings.HasSuffix(name, ".ptx") {
			return fmt.Sprintf("%q is no command; did you mean \"fencepost check %s\"?", name, name)
		}
		return fmt.Sprintf("%q is no command; did you mean \"fencepost run %s\"?", name, name)
	}
	return fmt.Sprintf("unknown command %q%s", name, nearest.Hint(name, names))
}

func execute(ctx context.Context, e *env, c *command, args []string) int {
	o, rest, err := parseFlags(c, args)
	if err == nil && o.help {
		writeCommandHelp(e.stdout, c)
		return exitClean
	}
	code := exitUsage
	if err == nil {
		code, err = c.run(ctx, e, o, rest)
	}
	if err != nil {
		var usage *usageError
		if o != nil && !errors.As(err, &usage) {
			if jerr := writeJSON(e, o, failReport(err)); jerr != nil && jerr.Error() != err.Error() {
				err = errors.Join(err, jerr)
			}
		}
		return fail(e.stderr, err)
	}
	return code
}

// fail prints why nothing was run or checked, and gives the exit code.
func fail(w io.Writer, err error) int {
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(w, "fencepost: %s\nRun \"fencepost help\" for the commands and their flags.\n", usage.msg)
		return exitUsage
	}
	fmt.Fprintf(w, "fencepost: %s\n", strings.TrimSuffix(err.Error(), "\n"))
	return exitNotChecked
}

// bug reports a defect of Fencepost itself.
func bug(w io.Writer, r any) int {
	fmt.Fprintf(w, "fencepost: %v\n\nThis is a defect of Fencepost (%s), not of your program. Please report it with what follows.\n\n%s",
		r, versionString(), debug.Stack())
	return exitNotChecked
}
