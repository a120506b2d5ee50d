package simulate

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Write writes the tables and figures of runs as text. It always writes figure 4.7. It writes figure 4.8 if a program
// was run with several numbers of threads, figure 4.9 if there are variants of parsnip, and figures 4.1, 4.10, 4.11 and
// table 4.3 if there is parsnip.
func Write(w io.Writer, runs []*Result) error {
	t := &tables{tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight), nil}
	t.slowdowns(runs)
	t.scaling(runs)
	t.variants(runs)
	t.details(runs)
	return t.err
}

type tables struct {
	w   *tabwriter.Writer
	err error
}

// table writes a table with a title. The cells of a row are strings.
func (t *tables) table(title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(t.w, "%s\n", title)
	for _, row := range append([][]string{head}, rows...) {
		// A tabwriter has only one alignment, so this aligns the first column to the left.
		fmt.Fprintf(t.w, "%-16s\t%s\t\n", row[0], strings.Join(row[1:], "\t"))
	}
	fmt.Fprintln(t.w)
	if err := t.w.Flush(); t.err == nil {
		t.err = err
	}
}

// label returns the name of a run.
func label(r *Result) string { return fmt.Sprintf("%s/%d", r.Program, r.Threads) }

// design returns the result of a design, or nil if it was not run.
func (r *Result) design(name string) *DesignResult {
	for i := range r.Designs {
		if r.Designs[i].Design == name {
			return &r.Designs[i]
		}
	}
	return nil
}

// mean computes a geometric mean.
type mean struct {
	logs float64
	n    int
}

func (m *mean) add(x float64) { m.logs += math.Log(x); m.n++ }

func (m *mean) String() string { return ratio(math.Exp(m.logs / float64(max(m.n, 1)))) }

func ratio(x float64) string { return fmt.Sprintf("%.2f", x) }

func percent(part, of uint64) string {
	return fmt.Sprintf("%.1f", 100*float64(part)/float64(max(of, 1)))
}

func (t *tables) slowdowns(runs []*Result) {
	head := []string{"", "CPI without"}
	var rows [][]string
	var means []mean
	for i := range runs[0].Designs {
		head = append(head, runs[0].Designs[i].Design)
		means = append(means, mean{})
	}
	head = append(head, "racy variables")
	for _, r := range runs {
		row := []string{label(r), ratio(r.Base.CPI())}
		racy := 0
		for i := range r.Designs {
			row = append(row, ratio(r.Designs[i].Slowdown))
			means[i].add(r.Designs[i].Slowdown)
			racy = r.Designs[i].RacyVariables
		}
		rows = append(rows, append(row, fmt.Sprint(racy)))
	}
	last := []string{"geometric mean", ""}
	for i := range means {
		last = append(last, means[i].String())
	}
	t.table("Slowdown: cycles per instruction, of those without race detection (figure 4.7)", head, append(rows, append(last, "")))
}

// scaling writes figure 4.8.
func (t *tables) scaling(runs []*Result) {
	var programs, threads []string
	cells := map[[2]string]string{}
	for _, r := range runs {
		p := r.design("parsnip")
		if p == nil {
			return
		}
		n := fmt.Sprint(r.Threads)
		programs, threads = addOnce(programs, r.Program), addOnce(threads, n)
		cells[[2]string{r.Program, n}] = ratio(p.Slowdown)
	}
	if len(threads) < 2 {
		return
	}
	var rows [][]string
	for _, p := range programs {
		row := []string{p}
		for _, n := range threads {
			row = append(row, cells[[2]string{p, n}])
		}
		rows = append(rows, row)
	}
	t.table("Slowdown of parsnip by threads (figure 4.8)", append([]string{""}, threads...), rows)
}

func addOnce(list []string, s string) []string {
	for _, x := range list {
		if x == s {
			return list
		}
	}
	return append(list, s)
}

// variants writes figure 4.9.
func (t *tables) variants(runs []*Result) {
	head := []string{""}
	var rows [][]string
	var means []mean
	for _, r := range runs {
		whole := r.design("parsnip")
		if whole == nil {
			return
		}
		row, at := []string{label(r)}, 0
		for i := range r.Designs {
			d := &r.Designs[i]
			name, ok := strings.CutPrefix(d.Design, "parsnip-")
			if !ok {
				continue
			}
			if len(rows) == 0 {
				head, means = append(head, name), append(means, mean{})
			}
			x := d.Slowdown / whole.Slowdown
			row = append(row, ratio(x))
			means[at].add(x)
			at++
		}
		if at == 0 {
			return
		}
		rows = append(rows, row)
	}
	last := []string{"geometric mean"}
	for i := range means {
		last = append(last, means[i].String())
	}
	t.table("Cycles of variants, of those of parsnip (figure 4.9)", head, append(rows, last))
}

// details writes the tables of parsnip alone.
func (t *tables) details(runs []*Result) {
	var sources, costs, events, histories [][]string
	for _, r := range runs {
		d := r.design("parsnip")
		if d == nil {
			return
		}
		p := d.Parsnip
		s, o := p.Resolved, p.Overhead
		row := func(to *[][]string, of uint64, parts ...uint64) {
			cells := []string{label(r)}
			for _, x := range parts {
				cells = append(cells, percent(x, of))
			}
			*to = append(*to, cells)
		}
		row(&sources, d.Counts.Accesses, s.Capability, s.Local, s.Remote, s.Buffer, s.Software, s.Missing)
		row(&costs, o.LineAccess+o.MissingLine+o.LocalTable+o.RemoteTable+o.SoftwareCheck+o.BufferDrain,
			o.LineAccess, o.MissingLine, o.LocalTable, o.RemoteTable, o.SoftwareCheck, o.BufferDrain)
		thousand := []string{label(r)}
		for _, x := range []uint64{p.Drains, p.Evictions, p.Rejections, p.Checks} {
			thousand = append(thousand, ratio(1000*float64(x)/float64(max(d.Counts.Instructions, 1))))
		}
		events = append(events, thousand)
		var all uint64
		var groups [6]uint64
		for n, x := range p.Histories {
			all += x
			for g, most := range [...]int{1, 2, 4, 8, 16, len(p.Histories)} {
				if n <= most {
					groups[g] += x
					break
				}
			}
		}
		row(&histories, all, groups[:]...)
	}
	t.table("What resolves checks, % (figure 4.10)", []string{"", "capability", "own table", "other table", "buffer", "software", "not cached"}, sources)
	t.table("Where the overhead is, % of its cycles (figure 4.11)",
		[]string{"", "line access", "not cached", "own table", "other table", "software", "drains"}, costs)
	t.table("Events per 1000 instructions (table 4.3)", []string{"", "drains", "evictions", "rejections", "software checks"}, events)
	t.table("Distinct references in a line when it changes, % (figure 4.1)", []string{"", "1", "2", "3-4", "5-8", "9-16", "more"}, histories)
}
