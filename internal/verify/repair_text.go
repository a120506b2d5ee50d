package verify

import (
	"fmt"
	"io"

	"fencepost.dev/fencepost/internal/report"
)

// Text writes the repair as text: the changes, the diff, and the last line of the report on the changed source.
func (r *Repair) Text(w io.Writer) {
	if r.Reason != "" {
		fmt.Fprintf(w, "repair: %s\n", r.Reason)
		return
	}
	fmt.Fprintf(w, "repair, found after %s:\n", count(r.Tried, "changed program"))
	for _, c := range r.Changes {
		fmt.Fprintf(w, "  %s\n", c)
	}
	io.WriteString(w, r.Diff)
	if r.Proof != nil {
		is := "repaired"
		if !r.Proof.Repaired() { // the changed source behaves unlike the program that was explored with the changes
			is = "not repaired by that"
		} else if r.Proof.Verdict() == Error {
			is = "repaired, but no execution ends in a state that the condition names"
		}
		fmt.Fprintf(w, "%s: %s\n", is, r.Proof.Summary())
	}
}

// Report converts the repair to the form in which all commands report.
func (r *Repair) Report() *report.Repair {
	out := &report.Repair{Reason: r.Reason, Changes: append([]string{}, r.Changes...), Diff: r.Diff}
	if r.Proof != nil {
		if out.Verdict = r.Proof.Verdict(); r.Proof.Repaired() && out.Verdict == Error {
			out.Verdict = OK
		}
	}
	return out
}
