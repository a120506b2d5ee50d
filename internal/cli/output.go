package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
)

// exitCodes are the exit codes of the verdicts.
var exitCodes = map[report.Verdict]int{report.Clean: exitClean, report.Found: exitFindings,
	report.NotChecked: exitNotChecked, report.ProgramFailed: exitProgram}

// tell prints a report to w, writes the requested JSON, and returns the exit code.
func tell(e *env, w io.Writer, o *options, r *report.Report, source func(string) []string) (int, error) {
	o.triage(r, source)
	if o.json != "" && o.limited && o.limit > 0 && len(r.Findings) > o.limit {
		r.Notes = append(r.Notes, fmt.Sprintf("The JSON lists %d of %d findings (--limit).", o.limit, len(r.Findings)))
	}
	o.annotate(w, r, source)
	writeText(w, o, r, source)
	return exitCodes[r.Verdict], writeReports(e, o, r, source)
}

// reportWriter is the destination of text that would go to w, which must not be the destination of the JSON.
func (o *options) reportWriter(e *env, w io.Writer) io.Writer {
	if o.json == "-" {
		return e.stderr
	}
	return w
}

func newText(w io.Writer, source func(string) []string) *report.Text {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // names are shown unchanged
	}
	return &report.Text{Color: color(w), Dir: dir, Source: report.CachedSource(source)}
}

func writeText(w io.Writer, o *options, r *report.Report, source func(string) []string) {
	text := newText(w, source)
	text.Limit = o.limit
	shown := report.Counted(r.Findings)
	remarks := slices.IndexFunc(shown, func(f report.Finding) bool { return f.Severity == detect.Info })
	if remarks >= 0 && o.session.FailOn != detect.Info {
		shown = shown[:remarks] // they come last
	} else {
		remarks = len(shown)
	}
	groups := report.Groups(shown)
	if o.limit > 0 && len(groups) > o.limit {
		groups = groups[:o.limit]
	}
	told := 0
	for _, g := range groups {
		text.Group(w, g)
		told += len(g)
	}
	if n := remarks - told; n > 0 {
		fmt.Fprintf(w, "... and %s (--limit 0 lists all)\n\n", count(n, "more finding"))
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "not checked: %s: %s\n", s.What, s.Reason)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	if n := len(report.Counted(r.Findings)) - remarks; n > 0 {
		fmt.Fprintf(w, "note: %s on what a compiler or the CUDA toolkit does, listed with --fail-on info.\n", count(n, "remark"))
	}
	fmt.Fprintf(w, "fencepost: %s\n", summary(o, r))
}

// summary is the last line of a report.
func summary(o *options, r *report.Report) string {
	counted := report.Counted(r.Findings)
	s := findingCounts(counted)
	none := s == ""
	if n := len(report.Groups(counted)); n < len(counted) {
		s += fmt.Sprintf(" (%s)", count(n, "cause"))
	}
	if r.More > 0 {
		s += fmt.Sprintf(" and %s that are not kept", count(r.More, "more racing pair"))
	}
	switch {
	case none && o.session.Bare:
		s = "races were not looked for; no other findings"
	case none && r.Baseline:
		s = "no new findings"
	case none && len(r.Findings) > 0:
		s = "no findings but those that are suppressed"
	case none:
		s = "no findings"
	}
	if r.Verify != nil {
		s += " in " + count(r.Verify.Executions, "execution")
		if len(r.Skipped) > 0 {
			s += "; not everything was explored"
		}
		return s
	}
	if r.Trace != nil {
		s += fmt.Sprintf(" in %s of %s", count(r.Trace.Events, "event"), count(r.Trace.Threads, "thread"))
		if len(r.Skipped) > 0 {
			s += "; not everything was checked"
		}
		return s + programEnd(r.Program)
	}
	launches, kernels := 0, map[string]bool{}
	for _, k := range r.Kernels {
		launches += k.Launches
		kernels[k.Name] = true
	}
	nothing := "no kernel ran"
	if o.recorded {
		nothing = "there is no launch in what could be read"
	}
	switch {
	case launches == 0 && r.Operators == 0 && none:
		s = "nothing was checked: " + nothing
	case launches == 0 && r.Operators == 0:
		s += "; " + nothing
	case launches == 0:
		s += fmt.Sprintf(" in %s computed on the host", count(r.Operators, "operator"))
	default:
		s += fmt.Sprintf(" in %s of %s", countPlural(launches, "launch", "launches"), count(len(kernels), "kernel"))
		if r.Operators > 0 {
			s += " and " + count(r.Operators, "operator")
		}
	}
	if o.session.Seeds > 1 {
		s += fmt.Sprintf(", %d seeds", o.session.Seeds)
	}
	if len(r.Skipped) > 0 && launches+r.Operators > 0 {
		s += "; not everything was checked"
	}
	return s + programEnd(r.Program)
}

// programEnd describes the failure of a program, and is "" if it did not fail.
func programEnd(p *report.Program) string {
	switch {
	case p != nil && p.Signal != "":
		return "; the program was ended by a signal: " + p.Signal
	case p != nil && p.Exit != 0:
		return fmt.Sprintf("; the program itself failed with exit code %d", p.Exit)
	}
	return ""
}

// findingCounts is "2 errors, 1 warning", "" for none.
func findingCounts(fs []report.Finding) string {
	var parts []string
	for _, sev := range []detect.Severity{detect.Error, detect.Warning, detect.Info} {
		n := 0
		for i := range fs {
			if fs[i].Severity == sev {
				n++
			}
		}
		if n > 0 {
			noun := sev.String()
			if sev == detect.Info {
				noun = "remark"
			}
			parts = append(parts, count(n, noun))
		}
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string { return countPlural(n, noun, noun+"s") }

func countPlural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// writeJSON writes the report to the file of --json.
func writeJSON(e *env, o *options, r *report.Report) error {
	if o.json == "" {
		return nil
	}
	cut := *r
	if o.limited && o.limit > 0 && len(cut.Findings) > o.limit {
		cut.Findings = cut.Findings[:o.limit]
	}
	var b bytes.Buffer
	if err := report.JSON(&b, &cut, o.times); err != nil {
		return &unwrittenError{fmt.Errorf("--json: %w", err)}
	}
	return writeJSONBytes(e, o, b.Bytes())
}

// writeJSONValue writes a value as JSON to the file of --json.
func writeJSONValue(e *env, o *options, value any) error {
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeJSONBytes(e, o, append(text, '\n'))
}

// writeJSONBytes writes JSON to the file of --json.
func writeJSONBytes(e *env, o *options, text []byte) error {
	if o.json == "-" {
		_, _ = e.stdout.Write(text) // the stream keeps the error
		return nil
	}
	if err := os.WriteFile(o.json, text, 0o666); err != nil {
		return &unwrittenError{fmt.Errorf("--json: %w", err)}
	}
	return nil
}

// failReport is the report of a run that did not take place.
func failReport(err error) *report.Report {
	return &report.Report{Verdict: report.NotChecked,
		Skipped: []report.Skipped{{What: "the run", Reason: strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")}}}
}

// The control sequences around the progress text on a terminal.
const (
	saveCursor    = "\x1b7"
	restoreCursor = "\x1b8"
	eraseBelow    = "\x1b[J" // from the cursor to the end of the screen
)

// progressAfter is the time after which progress is shown.
const progressAfter = time.Second

// showProgress shows the progress of a session, on a terminal and after a second. The function that it returns ends
// this and clears the text. The text follows the cursor, which does not move: the program may have written the
// beginning of the line.
func showProgress(e *env, o *session.Options) (stop func()) {
	if !terminal(e.stderr) {
		return func() {}
	}
	var mu sync.Mutex
	begin, last := time.Now(), time.Time{}
	shown := false
	erase := func() {
		if shown {
			fmt.Fprint(e.stderr, eraseBelow)
		}
		shown = false
	}
	o.Progress = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		switch {
		case text == "":
			erase()
		case now.Sub(begin) >= progressAfter && now.Sub(last) >= 200*time.Millisecond:
			last, shown = now, true
			fmt.Fprintf(e.stderr, saveCursor+eraseBelow+" %s (%s)"+restoreCursor, text, now.Sub(begin).Round(time.Second))
		}
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		erase()
		o.Progress = nil
	}
}
