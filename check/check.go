// Package check finds data races and other errors of CUDA kernels from Go. It launches kernels of PTX on an emulated
// device, as "fencepost check" does, and returns the findings as values. It needs no GPU and no compiler.
package check

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"fencepost.dev/fencepost/docs"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
)

// Module is PTX text. Several modules are linked.
type Module struct {
	Name string // of the file, for messages
	PTX  string
}

// Launch describes which kernels to launch, with which grids and arguments.
type Launch struct {
	Name string // of the file, for messages
	TOML []byte // as docs/launch.md describes
}

// Severity is the severity of a finding.
type Severity string

// The severities, the most severe first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info" // a remark on the behaviour of a compiler or the CUDA toolkit
)

// Options configure a check. The zero value is that of the command line without flags.
type Options struct {
	Detectors []string // by their names in docs/detectors.md, with options after colons; none: hb, and the predictions of gwcp
	Model     string   // interpretation of volatile accesses and fences: "cuda" (and ""), "ptx", "hrf"
	FailOn    Severity // the least severity that makes a report Failed; "" is Error
	Seed      uint64   // of the schedule of threads
	Seeds     int      // number of runs, with the seeds from Seed on, whose findings are merged; 0 is 1
	Timeout   time.Duration
	// Source returns the lines of a source that PTX names, nil for an unknown one. A nil Source reads files.
	Source func(file string) []string
	// Rename, if not nil, maps the names of sources in the PTX to those of the report.
	Rename func(file string) string
	Printf io.Writer // receives the output of kernels; nil drops it
}

// Verdict is the outcome in one word.
type Verdict string

// The verdicts.
const (
	Clean      Verdict = "clean"
	Failed     Verdict = "findings"    // with a severity of FailOn or more
	NotChecked Verdict = "not-checked" // something could not be run or checked, and there is no finding
)

// Report is the result of a check. Equal inputs give equal reports.
type Report struct {
	Verdict  Verdict
	Findings []Finding // the most severe first
	// Skipped lists what could not be run or checked, with the reason, in one sentence each.
	Skipped []string
	report  *report.Report
	source  func(string) []string
}

// Finding is one defect.
type Finding struct {
	ID       string // stable over schedules and machines
	Kind     string // as listed by "fencepost explain": "missing-barrier"
	Severity Severity
	Title    string // "data race on tile[32] (shared): missing barrier"
	Why, Fix string
	Patch    string  // a unified diff that corrects a source; "" if none is known
	Kernel   string  // demangled
	Count    int     // number of occurrences
	Places   []Place // two for a race
	finding  *report.Finding
}

// Place is one side of a finding.
type Place struct {
	File         string
	Line, Column int // from 1; 0 if not known
	Function     string
	What         string // "write of 4 bytes by thread (31,0,0) of block (0,0,0)"
}

// Kernels launches the kernels of modules and judges them. It returns an error if nothing could be run: invalid PTX, a
// missing kernel, arguments that do not fit, an unknown detector. Findings are not an error.
func Kernels(ctx context.Context, modules []Module, launch Launch, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	opts, err := o.session()
	if err != nil {
		return nil, err
	}
	l, err := session.ReadLaunchFile(launch.Name, launch.TOML)
	if err != nil {
		return nil, err
	}
	in := &session.Input{Launch: l, Rename: o.Rename}
	for _, m := range modules {
		in.Images = append(in.Images, cuda.Image{Name: m.Name, Text: m.PTX})
	}
	r, err := session.Check(ctx, opts, in)
	if err != nil {
		return nil, err
	}
	source := o.Source
	if source == nil {
		source = report.ReadSource
	}
	source = report.CachedSource(source)
	report.Fingerprint(r.Findings, source)
	report.Patches(r.Findings, source)
	return newReport(r, source), nil
}

// session converts the options to those of package session.
func (o *Options) session() (*session.Options, error) {
	s := &session.Options{Seed: o.Seed, Seeds: max(o.Seeds, 1), Timeout: o.Timeout, Printf: o.Printf, Jobs: runtime.NumCPU(), Rerun: true}
	for _, name := range o.Detectors {
		d, err := detect.Choose(all.Detectors(), name)
		if err != nil {
			return nil, err
		}
		s.Detectors = append(s.Detectors, d)
	}
	var ok bool
	if s.Model, ok = map[string]detect.Model{"": detect.ModelCUDA, "cuda": detect.ModelCUDA, "ptx": detect.ModelPTX, "hrf": detect.ModelHRF}[o.Model]; !ok {
		return nil, fmt.Errorf("unknown model %q; one of cuda, hrf or ptx is expected", o.Model)
	}
	if s.FailOn, ok = map[Severity]detect.Severity{"": detect.Error, Error: detect.Error, Warning: detect.Warning, Info: detect.Info}[o.FailOn]; !ok {
		return nil, fmt.Errorf("unknown severity %q; one of error, info or warning is expected", o.FailOn)
	}
	return s, nil
}

func newReport(r *report.Report, source func(string) []string) *Report {
	out := &Report{Verdict: Verdict(r.Verdict), report: r, source: source}
	for _, s := range r.Skipped {
		out.Skipped = append(out.Skipped, s.What+": "+s.Reason)
	}
	text := out.text(false)
	for i := range r.Findings {
		f := &r.Findings[i]
		g := Finding{ID: f.ID, Kind: string(f.Kind), Severity: Severity(f.Severity.String()), Title: text.Title(f), Why: f.Message, Fix: f.Fix,
			Kernel: report.Demangle(f.Kernel), Count: f.Count, finding: f}
		if f.Patch != nil {
			g.Patch = f.Patch.Diff
		}
		for j := range f.Accesses {
			a := &f.Accesses[j]
			p := a.Place()
			g.Places = append(g.Places, Place{p.File, p.Line, p.Column, report.Demangle(p.Function), text.Describe(a)})
		}
		out.Findings = append(out.Findings, g)
	}
	return out
}

func (r *Report) text(color bool) *report.Text {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // names are shown unchanged
	}
	return &report.Text{Color: color, Dir: dir, Source: r.source}
}

// Explain writes a finding of the report with its source lines, as the command line does. short leaves out addresses,
// synchronisation and counts.
func (r *Report) Explain(w io.Writer, f *Finding, short, color bool) {
	text := r.text(color)
	text.Short = short
	text.Finding(w, f.finding)
}

// JSON writes the report in the format described in docs/json.md.
func (r *Report) JSON(w io.Writer) error { return report.JSON(w, r.report, false) }

// SARIF writes the report as SARIF 2.1.0. File names are relative to dir.
func (r *Report) SARIF(w io.Writer, dir string) error {
	return report.SARIF(w, r.report, r.export(dir))
}

// HTML writes the report as an HTML page in one file.
func (r *Report) HTML(w io.Writer) error {
	return report.HTML(w, r.report, r.export(""), fmt.Sprintf("%s, %d findings", r.Verdict, len(r.Findings)), false)
}

func (r *Report) export(dir string) *report.Export {
	return &report.Export{Dir: dir, Help: docs.Kind, Source: r.source, FailOn: detect.Error}
}
