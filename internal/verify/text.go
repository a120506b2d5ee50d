package verify

import (
	"fmt"
	"io"
	"strings"
)

// Rename changes the file names of sides.
func (r *Result) Rename(file func(string) string) {
	for i := range r.Findings {
		for k := range r.Findings[i].Sides {
			r.Findings[i].Sides[k].File = file(r.Findings[i].Sides[k].File)
		}
	}
	for i := range r.Refused {
		r.Refused[i].File = file(r.Refused[i].File)
	}
}

// Text writes the result as text. source returns a line of the file, and "" if there is none. paint colours a text by
// an SGR parameter.
func (r *Result) Text(w io.Writer, source func(file string, line int) string, paint func(sgr, s string) string) {
	for i := range r.Findings {
		r.Findings[i].text(w, source, paint)
	}
	if len(r.Outcomes) > 0 {
		fmt.Fprintln(w, "final states:")
		for _, o := range r.Outcomes {
			sign := " "
			if r.Condition != nil && o.Satisfies {
				sign = "*"
			}
			fmt.Fprintf(w, "%10d %s %s\n", o.Count, sign, o.State)
		}
	}
	if r.Filtered > 0 {
		fmt.Fprintf(w, "%s left out by the filter\n", count(r.Filtered, "final state"))
	}
	if c := r.Condition; c != nil && (r.judged() || !r.Stopped) {
		verdict := "holds"
		switch {
		case !r.Holds && !r.judged():
			verdict = "no execution that was explored satisfies it, and not all were explored"
		case !r.Holds:
			verdict = "does not hold"
		case !r.judged():
			verdict = "holds in the executions that were explored, which are not all"
		}
		fmt.Fprintf(w, "condition %s: %s\n", c.Quantifier, verdict)
	}
	if f := r.Counterexample; f != nil {
		fmt.Fprintf(w, "%s:\n", f.Title)
		f.files(func(label, text string) { fmt.Fprintf(w, "  = %s: %s\n", label, text) })
		fmt.Fprintln(w, f.Graph)
	}
	if r.Refusal != "" {
		fmt.Fprintf(w, "%s%s\n", paint(red, "not explored"), paint(bold, ": "+r.Refusal))
		writeSides(w, r.Refused, source, paint)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	fmt.Fprintf(w, "fencepost: %s\n", r.Summary())
}

// Summary is the last line of the report.
func (r *Result) Summary() string {
	given := ""
	if r.Blocked > 0 {
		given = fmt.Sprintf(" (and %d given up while a thread waited)", r.Blocked)
	}
	in := "in " + r.executions(r.Executions) + given
	bound := "no bound was hit"
	if r.Cut > 0 {
		bound = fmt.Sprintf("a loop reached its bound in %s: raise it with --unroll", r.executions(r.Cut))
	}
	errors := count(r.errors(), "error")
	if n := len(r.Findings) - r.errors(); n > 0 {
		in += ", but " + count(n, "warning") + ","
		errors += " and " + count(n, "warning")
	}
	switch {
	case r.Refusal != "" && len(r.Findings) > 0:
		return errors + ", found before the search came to what is not explored"
	case r.Refusal != "":
		return fmt.Sprintf("this launch cannot be explored as it stands; no error in the %s before", r.executions(r.Executions))
	case r.errors() > 0 && r.Stopped:
		return fmt.Sprintf("%s, the first found after %s", errors, r.executions(r.Executions))
	case r.errors() > 0:
		return fmt.Sprintf("%s in %s; %s", errors, r.executions(r.Executions)+given, bound)
	case r.Stopped && r.Counterexample != nil:
		return fmt.Sprintf("the condition does not hold; the search stopped after %s", r.executions(r.Executions))
	case r.Stopped:
		return fmt.Sprintf("stopped after %s; no error so far", r.executions(r.Executions))
	case !r.Holds && r.judged():
		return fmt.Sprintf("the condition does not hold %s; %s", in, bound)
	case r.Cut == 0 && r.vacuous():
		return fmt.Sprintf("no execution is complete%s: nothing is known of this program", given)
	}
	return fmt.Sprintf("No error %s at this size, for these arguments and inputs; %s", in, bound)
}

// executions describes a number of executions, or of classes of executions.
func (r *Result) executions(n int) string {
	switch {
	case r.Equivalence != ReadsFrom:
		return count(n, "execution")
	case n == 1:
		return "1 reads-from class"
	}
	return fmt.Sprintf("%d reads-from classes", n)
}

// Colours, as parameters of SGR.
const red, yellow, blue, bold = "1;31", "1;33", "1;34", "1"

// writeSides shows the source lines of sides, and returns the indentation for the text that follows.
func writeSides(w io.Writer, sides []Side, source func(file string, line int) string, paint func(sgr, s string) string) (pad string) {
	gutter := 1
	for _, s := range sides {
		gutter = max(gutter, len(fmt.Sprint(s.Line)))
	}
	pad = strings.Repeat(" ", gutter)
	for _, s := range sides {
		at := fmt.Sprintf("%s:%d", s.File, s.Line)
		if s.Col > 0 {
			at += fmt.Sprintf(":%d", s.Col)
		}
		fmt.Fprintf(w, "%s%s %s\n", pad, paint(blue, "-->"), at)
		line := source(s.File, s.Line)
		fmt.Fprintf(w, "%s %s %s\n", paint(blue, fmt.Sprintf("%*d", gutter, s.Line)), paint(blue, "|"), strings.ReplaceAll(line, "\t", " "))
		what := s.What
		if s.Thread != "" {
			what += fmt.Sprintf(", by thread %s of %s", s.Thread, s.Of)
		}
		fmt.Fprintf(w, "%s %s %s%s\n", pad, paint(blue, "|"), strings.Repeat(" ", max(s.Col-1, 0)), paint(red, "^ "+what))
	}
	return pad
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// files records the files of a finding.
func (f *Finding) files(note func(label, text string)) {
	switch {
	case f.ScheduleFile != "":
		note("schedule", f.ScheduleFile+" has it as an interleaving")
	case f.scheduled && f.Schedule == nil:
		note("schedule", "none: no interleaving of the threads has it, only what the memory model reorders")
	}
	if f.DrawingFile != "" {
		note("drawing", f.DrawingFile)
	}
}

func (f *Finding) text(w io.Writer, source func(file string, line int) string, paint func(sgr, s string) string) {
	severity := paint(red, "error")
	if f.Warning {
		severity = paint(yellow, "warning")
	}
	title := f.Title
	if f.Cause != "" {
		title += ": " + f.Cause
	}
	fmt.Fprintf(w, "%s%s\n", severity, paint(bold, fmt.Sprintf(": %s [%s]", title, f.Kind)))
	pad := writeSides(w, f.Sides, source, paint)
	note := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s %s %s: %s\n", pad, paint(blue, "="), paint(bold, label), text)
		}
	}
	note("why", f.Why)
	note("fix", f.Fix)
	f.files(note)
	if f.Graph != "" { // nothing precedes the first step of a thread
		note("execution", fmt.Sprintf("found after %s:", count(f.Executions, "complete execution")))
	}
	fmt.Fprintln(w, f.Graph)
}
