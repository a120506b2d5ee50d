package bench

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// published describes the costs that the papers publish. It is shown next to the tables.
const published = `
This section runs every detector on the engine %s, on one core. The tables show the time of the launches with their events made and
judged, divided by the time of the bare engine. The papers measure other programs on other machines, so their ratios are goals rather than
comparisons:

- hirace: 7.5 times on the mean of 5105 runs of graph kernels, 1.08 on the median ("HiRace", section V)
- iguard: 30 on the same runs ("HiRace"), 3.6 on the programs of PreDataR ("Predictive Data Race Detection for GPUs", table 3)
- scord is hardware: 1.35 ("ScoRD: A Scoped Race Detector for GPUs", section V)
- curd: 2.9 ("Efficient Precise Dynamic Data Race Detection for CPU and GPU", a thesis, section 6.6)
- barracuda+ and gwcp: 5.2 and 7.1 over empty callbacks, 72 and 97 over the program alone (PreDataR, section 6.4)
- barracuda: up to 3700 (the thesis, section 5.6)

barracuda and curd run warps in lockstep; the bare engine that they are compared with does not.

The kernels are free of races. **metadata** is bytes for each byte of the kernel's buffers, by the detector's own count at the end of a
launch. **digest** is of the results; the results with each detector have the same digest.`

// detectorTables writes the costs of every detector.
func (r *Report) detectorTables(p *page, heading string) {
	d := r.Detectors
	if d == nil {
		return
	}
	p.title(heading, "Every detector")
	p.say(published, "`"+d.Engine+"`")
	p.say("\nTime divided by the bare time:")
	p.table(d.kernelTable([]string{"size", "bare ms"}, true, func(k *DetectorKernel) []string {
		return []string{strconv.Itoa(k.Size), number(k.Bare * 1e3)}
	}, func(c *Cost) float64 { return c.OverBare }))
	d.remarks(p)
	p.say("\nMetadata, bytes for each byte:")
	p.table(d.kernelTable([]string{"digest"}, false, func(k *DetectorKernel) []string { return []string{k.Digest} },
		func(c *Cost) float64 { return c.MetadataPerByte }))
	d.suiteTable(p)
	d.growthTables(p)
	d.compressionTable(p)
}

// kernelTable returns a table with a row for each kernel, and a column for each detector after the given columns. own
// returns a row's cells for these. If means is set, the means follow.
func (d *Detectors) kernelTable(columns []string, means bool, own func(k *DetectorKernel) []string, value func(c *Cost) float64) table {
	t := table{append(append([]string{"kernel"}, columns...), d.Names...)}
	for i := range d.Kernels {
		k := &d.Kernels[i]
		row := append([]string{k.Kernel}, own(k)...)
		for j := range k.Costs {
			row = append(row, k.Costs[j].cell(value))
		}
		t = append(t, row)
	}
	if !means {
		return t
	}
	for _, m := range []struct {
		name string
		in   func(k *DetectorKernel) bool
	}{
		{"mean of coalesced", func(k *DetectorKernel) bool { return k.Coalesced }},
		{"mean of scattered", func(k *DetectorKernel) bool { return !k.Coalesced }},
	} {
		row := append([]string{m.name}, make([]string, len(columns))...)
		for j := range d.Names {
			row = append(row, d.mean(j, m.in, value))
		}
		t = append(t, row)
	}
	return t
}

// mean returns the geometric mean of a detector over some kernels. It is empty if one of them has no number.
func (d *Detectors) mean(detector int, in func(k *DetectorKernel) bool, value func(c *Cost) float64) string {
	sum, n := 0.0, 0
	for i := range d.Kernels {
		if k := &d.Kernels[i]; in(k) {
			x := value(&k.Costs[detector])
			if x == 0 {
				return "-"
			}
			sum += math.Log(x)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return number(math.Exp(sum / float64(n)))
}

// cell formats a number, or a dash if there is none.
func (c *Cost) cell(value func(c *Cost) float64) string {
	switch {
	case c.Wrong != "":
		return "WRONG"
	case c.Why != "":
		return "-"
	case value(c) == 0:
		return "0"
	}
	return number(value(c))
}

// remarks writes why numbers are missing, and which detectors reported findings in kernels without races.
func (d *Detectors) remarks(p *page) {
	first := true
	say := func(format string, args ...any) {
		if first {
			p.say("")
			first = false
		}
		p.say("- "+format, args...)
	}
	for j, name := range d.Names {
		for i := range d.Kernels {
			k, c := &d.Kernels[i], &d.Kernels[i].Costs[j]
			switch {
			case c.Wrong != "":
				say("`%s` on %s: %s", name, k.Kernel, c.Wrong)
			case c.Why != "":
				say("`%s` on %s %s.", name, k.Kernel, c.Why)
			case c.Findings > 0:
				say("`%s` on %s: false findings, %d of them.", name, k.Kernel, c.Findings)
			}
		}
	}
}

func (d *Detectors) suiteTable(p *page) {
	if len(d.Suites) == 0 {
		return
	}
	p.say("\nThe programs of the corpus, each folder as a whole: *time* is that of judging, without making the events, divided by the bare time; *KiB* is" +
		"\nthe largest metadata of one program. Most of these launches have a few warps, so the fixed cost of a launch dominates.")
	t := table{append([]string{"folder", "programs", ""}, d.Names...)}
	for _, s := range d.Suites {
		times, bytes := []string{s.Suite, strconv.Itoa(s.Programs), "time"}, []string{"", "", "KiB"}
		for i := range d.Names {
			times, bytes = append(times, number(s.OverBare[i])), append(bytes, number(float64(s.Metadata[i])/1024))
		}
		t = append(t, times, bytes)
	}
	p.table(t)
}

func (d *Detectors) growthTables(p *page) {
	for _, g := range d.Growth {
		p.say("\nGrowth with blocks (as in PreDataR, figure 12): `%s`, microseconds of processor time for each block, and bytes of metadata for each byte.", g.Kernel)
		head := []string{"detector"}
		for _, s := range g.Steps {
			head = append(head, fmt.Sprintf("%d blocks", s.Blocks))
		}
		for _, s := range g.Steps {
			head = append(head, fmt.Sprintf("B/B at %d", s.Blocks))
		}
		t := table{head, g.row("none", func(s *GrowthStep) *Cost { return &s.Bare })}
		for j, name := range d.Names {
			t = append(t, g.row(name, func(s *GrowthStep) *Cost { return &s.Costs[j] }))
		}
		p.table(t)
		g.remarks(p, d.Names)
	}
}

// remarks writes why numbers are missing.
func (g *DetectorGrowth) remarks(p *page, names []string) {
	first := true
	for j, name := range names {
		for i := range g.Steps {
			why := g.Steps[i].Costs[j].Why
			if why == "" {
				continue
			}
			if first {
				p.say("")
				first = false
			}
			p.say("- `%s` on %d blocks %s.", name, g.Steps[i].Blocks, why)
			break // with more blocks the reason is the same
		}
	}
}

func (g *DetectorGrowth) row(name string, of func(s *GrowthStep) *Cost) []string {
	row := []string{name}
	for i := range g.Steps {
		s := &g.Steps[i]
		row = append(row, of(s).cell(func(c *Cost) float64 { return c.Seconds * 1e6 / float64(s.Blocks) }))
	}
	for i := range g.Steps {
		row = append(row, of(&g.Steps[i]).cell(func(c *Cost) float64 { return c.MetadataPerByte }))
	}
	return row
}

func (d *Detectors) compressionTable(p *page) {
	if len(d.Compressed) == 0 {
		return
	}
	p.say("\nCompression of clocks (PreDataR, section 5.2 and table 4), on sizes that are small enough without compression: time divided by the bare time, and metadata.")
	t := table{{"kernel", "size", "detector", "time on", "off", "off/on", "B/B on", "off", "off/on"}}
	for _, c := range d.Compressed {
		over, bytes := func(c *Cost) float64 { return c.OverBare }, func(c *Cost) float64 { return c.MetadataPerByte }
		t = append(t, []string{c.Kernel, strconv.Itoa(c.Size), c.On.Detector, c.On.cell(over), c.Off.cell(over), quotient(c.Off.OverBare, c.On.OverBare),
			c.On.cell(bytes), c.Off.cell(bytes), quotient(c.Off.MetadataPerByte, c.On.MetadataPerByte)})
	}
	p.table(t)
	for _, c := range d.Compressed {
		if c.Off.Why != "" {
			p.say("\n`%s` without compression on %s %s.", c.On.Detector, c.Kernel, c.Off.Why)
		}
	}
}

// quotient formats a/b, or a dash if a or b is missing.
func quotient(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return number(a / b)
}

// Wrong returns an error that lists the detectors under which kernels had other results.
func (d *Detectors) Wrong() error {
	if d == nil {
		return nil
	}
	var errs []error
	for i := range d.Kernels {
		for _, c := range d.Kernels[i].Costs {
			if c.Wrong != "" {
				errs = append(errs, fmt.Errorf("%s on %s with %s: %s", d.Kernels[i].Kernel, d.Engine, c.Detector, c.Wrong))
			}
		}
	}
	return errors.Join(errs...)
}
