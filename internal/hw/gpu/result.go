package gpu

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Result is the costs of a program without race detection and with the designs.
type Result struct {
	Program string         `json:"program"`
	Base    Counts         `json:"base"`
	Designs []DesignResult `json:"designs"`
}

// DesignResult is the costs of a program with a design.
type DesignResult struct {
	Design string `json:"design"`
	Races  int    `json:"races"` // found by the detector of the design
	Counts Counts `json:"counts"`
	// The cycles with one of the costs switched off.
	WithoutLHD uint64 `json:"cycles_without_lhd"`
	WithoutNOC uint64 `json:"cycles_without_noc"`
	WithoutMD  uint64 `json:"cycles_without_md"`
	// Resources is set if it was requested.
	Resources *Resources `json:"resources,omitempty"`
}

// Resources are slowdowns with half and with twice the L2 cache and the bandwidth of DRAM.
type Resources struct {
	Half  float64 `json:"half"`
	Twice float64 `json:"twice"`
}

// Runner runs a program on a GPU. It returns the number of races that the detector named judge finds; if judge is
// empty, no detector runs.
type Runner func(g *Engine, judge string) (races int, err error)

// Run measures a program with each design.
func Run(name string, c Config, designs []Detector, resources bool, run Runner) (*Result, error) {
	cycles := func(c Config, d *Detector, on Costs) (Counts, error) {
		g := &Engine{Config: c, Detector: d, Costs: on}
		_, err := run(g, "")
		return g.Counts, err
	}
	out := &Result{Program: name}
	var err error
	if out.Base, err = cycles(c, nil, Costs{}); err != nil {
		return nil, err
	}
	slowdown := func(c Config, d *Detector) (float64, error) {
		base, err := cycles(c, nil, Costs{})
		if err != nil {
			return 0, err
		}
		with, err := cycles(c, d, All())
		return over(with.Cycles, base.Cycles), err
	}
	for i := range designs {
		d := &designs[i]
		r := DesignResult{Design: d.Name}
		g := &Engine{Config: c, Detector: d, Costs: All()}
		if r.Races, err = run(g, d.Judge); err != nil {
			return nil, err
		}
		r.Counts = g.Counts
		for _, w := range []struct {
			on Costs
			to *uint64
		}{{Costs{false, true, true}, &r.WithoutLHD}, {Costs{true, false, true}, &r.WithoutNOC}, {Costs{true, true, false}, &r.WithoutMD}} {
			counts, err := cycles(c, d, w.on)
			if err != nil {
				return nil, err
			}
			*w.to = counts.Cycles
		}
		if resources {
			half, twice := c, c
			half.L2Bytes, half.DRAMWidth = c.L2Bytes/2, max(c.DRAMWidth/2, 1)
			twice.L2Bytes, twice.DRAMWidth = c.L2Bytes*2, c.DRAMWidth*2
			r.Resources = &Resources{}
			if r.Resources.Half, err = slowdown(half, d); err != nil {
				return nil, err
			}
			if r.Resources.Twice, err = slowdown(twice, d); err != nil {
				return nil, err
			}
		}
		out.Designs = append(out.Designs, r)
	}
	return out, nil
}

func over(a, b uint64) float64 { return float64(a) / float64(max(b, 1)) }

// Write writes figures 8 to 11 and the races of table VI as tables.
func Write(w io.Writer, results []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	table := func(title string, head []string, rows [][]string) {
		fmt.Fprintln(t, title)
		for _, row := range append([][]string{head}, rows...) {
			fmt.Fprintf(t, "%-28s\t%s\t\n", row[0], strings.Join(row[1:], "\t"))
		}
		fmt.Fprintln(t)
	}
	designs := results[0].Designs
	head := []string{""}
	for i := range designs {
		head = append(head, designs[i].Design)
	}
	// byDesign writes a table with a column for each design, and the means.
	byDesign := func(title string, value func(r *Result, d *DesignResult) float64) {
		logs := make([]float64, len(designs))
		var rows [][]string
		for _, r := range results {
			row := []string{r.Program}
			for i := range r.Designs {
				x := value(r, &r.Designs[i])
				logs[i] += math.Log(max(x, 1e-9))
				row = append(row, fmt.Sprintf("%.2f", x))
			}
			rows = append(rows, row)
		}
		last := []string{"geometric mean"}
		for _, l := range logs {
			last = append(last, fmt.Sprintf("%.2f", math.Exp(l/float64(len(results)))))
		}
		table(title, head, append(rows, last))
	}
	byDesign("Cycles, of those without race detection (figure 8)", func(r *Result, d *DesignResult) float64 { return over(d.Counts.Cycles, r.Base.Cycles) })
	byDesign("DRAM accesses, of those without race detection (figure 9)",
		func(r *Result, d *DesignResult) float64 {
			return over(d.Counts.DRAMData+d.Counts.DRAMMeta, r.Base.DRAMData+r.Base.DRAMMeta)
		})
	for i := range designs {
		var rows, rates, sizes [][]string
		var sum [3]float64
		counted := 0
		for _, r := range results {
			d := &r.Designs[i]
			c := &d.Counts
			parts, all := d.Breakdown()
			row := []string{r.Program}
			for k, p := range parts {
				if all {
					sum[k] += p
					row = append(row, fmt.Sprintf("%.1f", p))
				} else {
					row = append(row, "-")
				}
			}
			if all {
				counted++
			}
			rows = append(rows, row)
			rates = append(rates, []string{r.Program, fmt.Sprint(c.Instructions), fmt.Sprint(r.Base.Cycles), fmt.Sprint(c.Cycles),
				fmt.Sprint(c.DRAMData), fmt.Sprint(c.DRAMMeta), rate(c.L1Hits, c.L1Misses), rate(c.L2Hits, c.L2Misses),
				rate(c.MetaHits, c.MetaMisses), fmt.Sprint(c.Stalls), fmt.Sprint(d.Races)})
			if d.Resources != nil {
				sizes = append(sizes, []string{r.Program, fmt.Sprintf("%.2f", d.Resources.Half), fmt.Sprintf("%.2f", over(c.Cycles, r.Base.Cycles)),
					fmt.Sprintf("%.2f", d.Resources.Twice)})
			}
		}
		last := []string{"mean"}
		for _, s := range sum {
			last = append(last, fmt.Sprintf("%.1f", s/float64(max(counted, 1))))
		}
		table("Where the overhead of "+designs[i].Design+" is, % (figure 10)", []string{"", "LHD", "NOC", "MD"}, append(rows, last))
		if len(sizes) > 0 {
			table("Cycles of "+designs[i].Design+" with half, all and twice the L2 and bandwidth (figure 11)", []string{"", "half", "default", "twice"}, sizes)
		}
		table("Counts with "+designs[i].Design+" (hits in %)", []string{"", "instructions", "cycles without", "cycles", "DRAM data", "metadata", "L1 hits", "L2 hits",
			"metadata hits", "stalls", "races"}, rates)
	}
	return t.Flush()
}

func rate(hits, misses uint64) string {
	if hits+misses == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*float64(hits)/float64(hits+misses))
}

// Breakdown returns the shares of LHD, NOC and MD in the overhead, in percent of their sum. The share of a cost is what
// switching it off saves. ok is false if no cost takes time.
func (d *DesignResult) Breakdown() (shares [3]float64, ok bool) {
	var saved [3]float64
	all := 0.0
	for i, without := range []uint64{d.WithoutLHD, d.WithoutNOC, d.WithoutMD} {
		saved[i] = max(float64(d.Counts.Cycles)-float64(without), 0)
		all += saved[i]
	}
	if all == 0 {
		return shares, false
	}
	for i := range saved {
		shares[i] = 100 * saved[i] / all
	}
	return shares, true
}
