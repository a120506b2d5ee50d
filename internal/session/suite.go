package session

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
)

// verdictCounts counts the programs of a suite by the verdict of a detector.
type verdictCounts struct {
	right, silent, alarmed int
}

// add counts a program with the given number of racy lines, and returns its entry in the table.
func (t *verdictCounts) add(races, misses, alarms int) string {
	verdict := ""
	if misses > 0 {
		verdict = fmt.Sprintf("-%d", misses)
		if misses == races {
			t.silent++
		}
	}
	if alarms > 0 {
		verdict += fmt.Sprintf("+%d", alarms)
		t.alarmed++
	}
	if verdict == "" {
		t.right++
	}
	return cmp.Or(verdict, ".")
}

// WriteSuite writes the verdict of each detector on each program of a suite, and the number of programs by verdict.
// Programs that failed are left out.
func WriteSuite(w io.Writer, results []CorpusResult) {
	fmt.Fprintln(w, "By program: lines that race, and by detector how many of them it misses (-), and how many races it names that are none (+).")
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var verdicts []verdictCounts
	for i := range results {
		r := &results[i]
		if r.Err != nil {
			continue
		}
		if verdicts == nil {
			fmt.Fprint(table, "program\tlines")
			for _, d := range r.Report.Detectors {
				fmt.Fprintf(table, "\t%s", d.Name)
			}
			fmt.Fprintln(table)
			verdicts = make([]verdictCounts, len(r.Report.Detectors))
		}
		races := len(raceLines(r.Program, true))
		fmt.Fprintf(table, "%s\t%d", r.Program.Name, races)
		for j, d := range r.Report.Detectors {
			fmt.Fprintf(table, "\t%s", verdicts[j].add(races, d.Misses, d.FalseAlarms))
		}
		fmt.Fprintln(table)
	}
	for _, row := range []struct {
		name string
		of   func(verdictCounts) int
	}{
		{"programs judged right", func(t verdictCounts) int { return t.right }},
		{"no race of theirs found", func(t verdictCounts) int { return t.silent }},
		{"with a false alarm", func(t verdictCounts) int { return t.alarmed }},
	} {
		fmt.Fprintf(table, "%s\t", row.name)
		for _, t := range verdicts {
			fmt.Fprintf(table, "\t%d", row.of(t))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}
