// Package cli implements the command line: commands, flags, output, exit codes.
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
	"unicode"

	"golang.org/x/term"

	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/vcode/lanes"
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
	args  string // arguments after the flags
	doc   string // one line
	long  string // additional text of `help NAME`, including examples
	flags []*flag
	// refused are flags of other commands that have no meaning here, with the reason.
	refused map[string]string
	// anywhere says that flags may follow arguments too.
	anywhere bool
	// raw says that the command interprets all arguments itself, including flags such as -h.
	raw bool
	run func(ctx context.Context, e *env, o *options, args []string) (int, error)
}

// commands lists the commands in the order of the help page.
func commands() []*command {
	return []*command{demoCommand(), runCommand(), checkCommand(), compareCommand(), recordCommand(), analyzeCommand(), exportCommand(), verifyCommand(), simulateCommand(), configCommand(), suppressCommand(), explainCommand(), nvccCommand(), ccCommand(), cxxCommand(), fcCommand(), instrumentCommand(), isaCommand(), watchCommand(), doctorCommand(), completionCommand(), manCommand(), versionCommand(), helpCommand()}
}

// env is the environment of a command.
type env struct {
	stdin          io.Reader
	stdout, stderr *stream
}

// stream is an output for text. It keeps the first write error, so that Main can report it, whoever wrote.
type stream struct {
	to    io.Writer // also for programs that are started, which need a file instead of a pipe
	color string    // from --color: "always", "never", or "" for terminals only
	err   error
}

// Write implements io.Writer.
func (s *stream) Write(text []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.to.Write(text)
	s.err = err
	return n, err
}

// lost returns the error by which text was lost. It returns nil if there was none, or if the reader of a pipe has left
// because it wanted no more (fencepost ... | head).
func (s *stream) lost() error {
	if errors.Is(s.err, syscall.EPIPE) {
		return nil
	}
	return s.err
}

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	if s, ok := w.(*stream); ok {
		w = s.to
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// color reports whether w should get colours: --color says so, or it is a terminal and NO_COLOR (no-color.org) is not
// set.
func color(w io.Writer) bool {
	if s, ok := w.(*stream); ok && s.color != "" {
		return s.color == "always"
	}
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// usageError is a mistake in the command line.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// Main runs the tool with its arguments, the first of which is the name it was called by, and returns the exit code.
// Called as nvcc, it is the command nvcc.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer runtime.KeepAlive(session.Ballast())
	e := &env{stdin, &stream{to: stdout}, &stream{to: stderr}}
	defer func() {
		if r := recover(); r != nil {
			code = bug(e.stderr, r)
		}
		code = e.undelivered(code)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Without this a closed pipe would end the process before the report is written to the file of --json. A signal
	// that is caught, unlike one that is ignored, has its usual effect in programs that are started.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	return dispatch(ctx, e, args)
}

// undelivered returns the exit code of a run whose report may not have reached its reader. A clean verdict that nobody
// can read is worthless, but the code itself reports findings and a failure of the program.
func (e *env) undelivered(code int) int {
	err := e.stdout.lost()
	if err != nil {
		fmt.Fprintf(e.stderr, "fencepost: the output is incomplete: %v\n", err)
	} else if err = e.stderr.lost(); err == nil {
		return code
	}
	if code == exitClean {
		return exitNotChecked
	}
	return code
}

// dispatch runs the command that args name.
func dispatch(ctx context.Context, e *env, args []string) int {
	if filepath.Base(args[0]) == "nvcc" {
		args = append([]string{args[0], "nvcc"}, args[1:]...)
	}
	args = args[1:]
	if len(args) == 0 {
		writeHelp(e.stderr)
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
	return fail(e.stderr, usagef("%s", unknownCommand(name)))
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
	if strings.HasPrefix(name, "-") {
		return fmt.Sprintf("unknown command %q: flags come after the command, as in: fencepost demo --color never", name)
	}
	return fmt.Sprintf("unknown command %q%s", name, nearest.Hint(name, names))
}

func execute(ctx context.Context, e *env, c *command, args []string) int {
	o, rest, err := parseFlags(c, args)
	if err == nil {
		o.command = shellLine(append([]string{"fencepost", c.name}, args...))
	}
	if err == nil {
		e.stdout.color, e.stderr.color = o.color, o.color
	}
	if err == nil && o.help {
		writeCommandHelp(e.stdout, c)
		return exitClean
	}
	code := exitUsage
	if err == nil && c.name != "analyze" && c.name != "run" && c.name != "record" && c.name != "compare" {
		err = o.onlyTraces(c.name + " runs kernels")
	}
	if err == nil && !c.raw {
		if err = o.keepInput(c, rest); err != nil {
			o.json, o.reports = "", reports{} // not even to report this error
		}
	}
	if err == nil {
		err = o.reports.load(rest)
	}
	if err == nil {
		err = o.readSchedule()
	}
	if err == nil && c.name != "doctor" { // doctor reports this itself
		if wrong := lanes.TierError(); wrong != nil {
			err = usagef("%v", wrong)
		}
	}
	if err == nil {
		err = o.chooseGPU(ctx, e)
	}
	if err == nil {
		code, err = c.run(ctx, e, o, rest)
		if code == exitFindings && o.errorExit != nil {
			code = *o.errorExit
		}
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	var usage *usageError
	var unwritten *unwrittenError
	switch {
	case err == nil:
		return code
	case errors.As(err, &unwritten) && code != exitClean:
		fail(e.stderr, err)
		return code // the text has reported the findings
	case o != nil && !errors.As(err, &usage) && !errors.As(err, &unwritten):
		failed := failReport(err)
		o.annotate(e.stderr, failed, nil)
		if jerr := writeReports(e, o, failed, nil); jerr != nil && jerr.Error() != err.Error() {
			err = errors.Join(err, jerr)
		}
	}
	return fail(e.stderr, err)
}

// shellLine joins words with the quoting of a shell.
func shellLine(words []string) string {
	var out []string
	for _, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,+@%^", r)
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// unwrittenError says that a requested file could not be written after a successful run.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return e.err.Error() }
func (e *unwrittenError) Unwrap() error { return e.err }

// fail prints why nothing was run or checked, and returns the exit code.
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
