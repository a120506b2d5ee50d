package verify

import (
	"fmt"
	"io"
	"strings"
)

// Text writes the result for people. source gives a line of the file, "" if there is none; paint colours a text by an SGR
// parameter.
func (r *Result) Text(w io.Writer, source func(line int) string, paint func(sgr, s string) string) {
	for i := range r.Findings {
		r.Findings[i].text(w, r.Test.File, source, paint)
	}
	if len(r.Outcomes) > 0 {
		fmt.Fprintln(w, "final states:")
		for _, o := range r.Outcomes {
			sign := " "
			if r.Test.Condition != nil && o.Satisfies {
				sign = "*"
			}
			fmt.Fprintf(w, "%10d %s %s\n", o.Count, sign, o.State)
		}
	}
	if r.Filtered > 0 {
		fmt.Fprintf(w, "%s left out by the filter\n", count(r.Filtered, "execution"))
	}
	if c := r.Test.Condition; c != nil && !r.Stopped {
		fmt.Fprintf(w, "condition %s: %s\n", c.Quantifier, map[bool]string{true: "holds", false: "does not hold"}[r.Holds])
	}
	fmt.Fprintf(w, "fencepost: %s\n", r.Summary())
}

// Summary is the last line of the report.
func (r *Result) Summary() string {
	in := "in " + count(r.Executions, "execution")
	if r.Blocked > 0 {
		in += fmt.Sprintf(" (and %d given up while a thread waited)", r.Blocked)
	}
	bound := "no bound was hit"
	if r.Cut > 0 {
		bound = fmt.Sprintf("a loop reached its bound in %s: raise it with --unroll", count(r.Cut, "execution"))
	}
	switch {
	case len(r.Findings) > 0 && r.Stopped:
		return fmt.Sprintf("%s, the first found after %s", count(len(r.Findings), "error"), count(r.Executions, "execution"))
	case len(r.Findings) > 0:
		return fmt.Sprintf("%s %s; %s", count(len(r.Findings), "error"), in, bound)
	case r.Stopped:
		return fmt.Sprintf("stopped after %s; no error so far", count(r.Executions, "execution"))
	case !r.Holds:
		return fmt.Sprintf("the condition does not hold %s; %s", in, bound)
	}
	return fmt.Sprintf("No error %s at this size, for these inputs; %s", in, bound)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (f *Finding) text(w io.Writer, file string, source func(line int) string, paint func(sgr, s string) string) {
	const red, blue, bold = "1;31", "1;34", "1"
	fmt.Fprintf(w, "%s%s\n", paint(red, "error"), paint(bold, fmt.Sprintf(": %s [%s]", f.Title, f.Kind)))
	gutter := 1
	for _, s := range f.Sides {
		gutter = max(gutter, len(fmt.Sprint(s.Line)))
	}
	pad := strings.Repeat(" ", gutter)
	for _, s := range f.Sides {
		fmt.Fprintf(w, "%s%s %s:%d:%d\n", pad, paint(blue, "-->"), file, s.Line, s.Col)
		line := source(s.Line)
		fmt.Fprintf(w, "%s %s %s\n", paint(blue, fmt.Sprintf("%*d", gutter, s.Line)), paint(blue, "|"), strings.ReplaceAll(line, "\t", " "))
		fmt.Fprintf(w, "%s %s %s%s\n", pad, paint(blue, "|"), strings.Repeat(" ", max(s.Col-1, 0)),
			paint(red, fmt.Sprintf("^ %s, by thread %s of cta %d", s.What, s.Thread, s.place.CTA&(1<<10-1))))
	}
	note := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s %s %s: %s\n", pad, paint(blue, "="), paint(bold, label), text)
		}
	}
	note("why", f.Why)
	note("fix", f.Fix)
	note("execution", fmt.Sprintf("found after %s:", count(f.Executions, "complete execution")))
	fmt.Fprintln(w, f.Graph)
}
