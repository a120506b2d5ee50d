package session

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// IrregularTally is the result of a detector on several runs.
type IrregularTally struct {
	Detector     string `json:"name"`
	Found        int    `json:"found"`         // racy executions in which it reported a race
	Missed       int    `json:"missed"`        // racy executions in which it reported none
	Alarms       int    `json:"false_alarms"`  // other executions in which it reported a race
	MissedPlaces int    `json:"missed_places"` // pairs of source places that raced and that it did not report, over all executions
	FalsePlaces  int    `json:"false_places"`  // pairs that it reported and that did not race, over all executions
}

// add counts a verdict.
func (t *IrregularTally) add(v *Verdict) {
	switch {
	case v.Racy && v.Found:
		t.Found++
	case v.Racy:
		t.Missed++
	case v.Found:
		t.Alarms++
	}
	t.MissedPlaces += v.Missed
	t.FalsePlaces += v.False
}

// TallyIrregular adds up the verdicts of the detectors on runs, in the order of their verdicts.
func TallyIrregular(results []IrregularResult) []IrregularTally {
	var out []IrregularTally
	for i := range results {
		for j := range results[i].Judged {
			v := &results[i].Judged[j]
			n := slices.IndexFunc(out, func(t IrregularTally) bool { return t.Detector == v.Detector })
			if n < 0 {
				n = len(out)
				out = append(out, IrregularTally{Detector: v.Detector})
			}
			out[n].add(v)
		}
	}
	return out
}

// group is the results that have something in common.
type group struct {
	name    string
	results []IrregularResult
}

// groups partitions results by a name, in the order of the first occurrences of the names.
func groups(results []IrregularResult, name func(*IrregularResult) string) (out []group) {
	for i := range results {
		n := name(&results[i])
		at := slices.IndexFunc(out, func(g group) bool { return g.name == n })
		if at < 0 {
			at = len(out)
			out = append(out, group{name: n})
		}
		out[at].results = append(out[at].results, results[i])
	}
	return out
}

// WriteIrregular writes the verdicts of the detectors on runs in three tables: by graph, as in HiRace's table II; by
// the pairs of places; and by the planted bugs.
func WriteIrregular(w io.Writer, results []IrregularResult) {
	graphs := groups(results, func(r *IrregularResult) string { return r.Graph.Name })
	planted := groups(results, func(r *IrregularResult) string { return r.Kernel.Planted() })
	all := TallyIrregular(results)

	head := []string{"graph", "runs", "racy", "faults", "results differ"}
	for _, t := range all {
		head = append(head, t.Detector)
	}
	fmt.Fprintln(w, "Runs with a race that are found (-missed +false alarms)")
	writeRows(w, head, graphs, func(g *group) []string {
		racy, faults, differ := 0, 0, 0
		for i := range g.results {
			r := &g.results[i]
			racy, faults, differ = racy+one(r.Racy), faults+one(r.Faults), differ+one(r.Differs != "")
		}
		row := []string{fmt.Sprint(len(g.results)), fmt.Sprint(racy), fmt.Sprint(faults), fmt.Sprint(differ)}
		for _, t := range TallyIrregular(g.results) {
			row = append(row, signed(fmt.Sprint(t.Found), t.Missed, t.Alarms))
		}
		return row
	})

	fmt.Fprintln(w, "\nPairs of source places with a race that are missed (-) or named without a race (+)")
	writeRows(w, append(head[:1:1], head[5:]...), graphs, func(g *group) (row []string) {
		for _, t := range TallyIrregular(g.results) {
			row = append(row, signed("", t.MissedPlaces, t.FalsePlaces))
		}
		return row
	})

	fmt.Fprintln(w, "\nRuns by planted bugs")
	writeRows(w, append([]string{"bugs", "runs", "racy"}, head[5:]...), planted, func(g *group) []string {
		racy := 0
		for i := range g.results {
			racy += one(g.results[i].Racy)
		}
		row := []string{fmt.Sprint(len(g.results)), fmt.Sprint(racy)}
		for _, t := range TallyIrregular(g.results) {
			row = append(row, signed("", t.Missed, t.Alarms))
		}
		return row
	})
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// signed is "182 -3 +1", without zeros; "." if nothing is left.
func signed(count string, minus, plus int) string {
	parts := []string{}
	if count != "" {
		parts = append(parts, count)
	}
	if minus > 0 {
		parts = append(parts, fmt.Sprintf("-%d", minus))
	}
	if plus > 0 {
		parts = append(parts, fmt.Sprintf("+%d", plus))
	}
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, " ")
}

// writeRows writes a table with a row for each group, its name first.
func writeRows(w io.Writer, head []string, list []group, row func(*group) []string) {
	rows := [][]string{head}
	for i := range list {
		rows = append(rows, append([]string{list[i].name}, row(&list[i])...))
	}
	width := make([]int, len(head))
	for _, r := range rows {
		for i, s := range r {
			width[i] = max(width[i], len(s))
		}
	}
	for _, r := range rows {
		line := fmt.Sprintf("%-*s", width[0], r[0])
		for i, s := range r[1:] {
			line += fmt.Sprintf("  %*s", width[i+1], s)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// irregularSchema names the JSON format of WriteIrregularJSON; docs/json.md describes it.
const irregularSchema = "fencepost/irregular/1"

type irregularRunJSON struct {
	Kernel    string    `json:"kernel"`
	Graph     string    `json:"graph"`
	Error     string    `json:"error,omitempty"`
	Racy      bool      `json:"racy"`
	Faults    bool      `json:"faults"`
	Differs   string    `json:"differs"`
	Detectors []Verdict `json:"detectors"`
}

// WriteIrregularJSON writes every run and verdict, and the sums, as one JSON object.
func WriteIrregularJSON(w io.Writer, results []IrregularResult) error {
	out := struct {
		Schema    string             `json:"schema"`
		Runs      []irregularRunJSON `json:"runs"`
		Detectors []IrregularTally   `json:"detectors"`
	}{irregularSchema, []irregularRunJSON{}, append([]IrregularTally{}, TallyIrregular(results)...)}
	for i := range results {
		r := &results[i]
		run := irregularRunJSON{Kernel: r.Kernel.Name(), Graph: r.Graph.Name, Racy: r.Racy, Faults: r.Faults, Differs: r.Differs,
			Detectors: append([]Verdict{}, r.Judged...)}
		if r.Err != nil {
			run.Error = r.Err.Error()
		}
		out.Runs = append(out.Runs, run)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
