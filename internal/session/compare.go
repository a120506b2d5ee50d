package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/report"
)

// Compare attaches all chosen detectors (all detectors, if none was chosen) to one execution, and reports the findings
// and the cost of each. Detectors that need warps in lockstep get an execution of their own. A last execution, without
// a detector, is the baseline for costs. Everything runs on one core, so that detectors that share cores do not slow
// each other down. run makes an execution with the given options; i counts its calls.
func Compare(ctx context.Context, o *Options, run func(i int, o *Options) (*report.Report, error)) (*report.Report, error) {
	chosen := o.Detectors
	if len(chosen) == 0 {
		chosen = all.Detectors()
	}
	var reports []*report.Report
	var lockstep, independent []detect.Spec
	for _, d := range chosen {
		if d.Lockstep {
			lockstep = append(lockstep, d)
		} else {
			independent = append(independent, d)
		}
	}
	deadline := time.Now().Add(o.Timeout)
	runs := 0
	// again makes an execution within the remaining time. ok is false if no time remains.
	again := func(each *Options) (r *report.Report, ok bool, err error) {
		if o.Timeout > 0 {
			if each.Timeout = time.Until(deadline); each.Timeout <= 0 {
				return nil, false, nil
			}
		}
		if ctx.Err() != nil {
			return nil, false, nil
		}
		r, err = run(runs, each)
		runs++
		return r, true, err
	}
	var late []report.Skipped
	for _, group := range [][]detect.Spec{independent, lockstep} {
		if len(group) == 0 {
			continue
		}
		each := *o
		each.Detectors, each.Jobs, each.Meter = group, 1, true
		r, ok, err := again(&each)
		if err != nil {
			return nil, err
		}
		if ok {
			reports = append(reports, r)
			continue
		}
		for _, d := range group {
			late = append(late, report.Skipped{What: "detector " + d.Name, Reason: "not run: the --timeout has passed, or the run was interrupted"})
		}
	}
	if len(reports) == 0 {
		return nil, errors.New(whyStopped(ctx))
	}
	bare := *o
	bare.Detectors, bare.Bare, bare.Jobs = nil, true, 1
	base, measured, err := again(&bare)
	if err != nil {
		return nil, err
	}
	reports[0].Skipped = append(reports[0].Skipped, late...)
	out := unite(reports, o)
	slices.SortStableFunc(out.Detectors, func(a, b report.Detector) int { return rank(chosen, a.Name) - rank(chosen, b.Name) })
	for i := range out.Detectors {
		if measured {
			out.Detectors[i].Bare = kernelSeconds(base)
		}
	}
	return out, nil
}

func kernelSeconds(r *report.Report) (s float64) {
	for _, k := range r.Kernels {
		s += k.Seconds
	}
	return s
}

// AddComparison adds a program's comparison to that of others. Times are added; the largest metadata size is kept.
func AddComparison(all, r *report.Report) {
	all.Kernels = append(all.Kernels, r.Kernels...)
	all.Skipped = append(all.Skipped, r.Skipped...)
	all.Findings = append(all.Findings, r.Findings...)
	all.Detectors = addCosts(all.Detectors, r.Detectors)
}

func rank(order []detect.Spec, name string) int {
	return slices.IndexFunc(order, func(s detect.Spec) bool { return s.Name == name })
}

// CompareCorpus compares detectors on programs of the corpus, o.Jobs at a time, and judges each by the races that the
// sources want. Results are in the order of the programs.
func CompareCorpus(ctx context.Context, o *Options, programs []*corpus.Program) []CorpusResult {
	return eachProgram(ctx, o, programs, func(ctx context.Context, o *Options, p *corpus.Program) (res CorpusResult) {
		in, err := CorpusInput(p)
		if err == nil {
			res.Report, err = Compare(ctx, o, func(_ int, o *Options) (*report.Report, error) { return Check(ctx, o, in) })
		}
		if res.Err = err; err == nil {
			judgeDetectors(p, res.Report)
		}
		return res
	})
}

// judgeDetectors counts, for each detector of a report, the lines with a race that the program's source wants and the
// detector did not find, and the races that it found on lines for which no want names a race. Kinds are not compared,
// because detectors classify races differently. Wanted warnings do not count, because it is a matter of interpretation
// whether they are races. In suites they do count, because the papers of the suites call them races.
func judgeDetectors(p *corpus.Program, r *report.Report) {
	races, asked := raceLines(p, true), raceLines(p, p.Suite)
	for i := range r.Detectors {
		d := &r.Detectors[i]
		d.Judged, d.FalseAlarms = true, 0
		missing := maps.Clone(asked)
		for j := range r.Findings {
			f := &r.Findings[j]
			if f.Class != detect.Race || !f.By(d.Name) {
				continue
			}
			lines := linesIn(p, f)
			if len(lines) == 0 || slices.ContainsFunc(lines, func(line int) bool { return !races[line] }) {
				d.FalseAlarms++
			}
			for _, line := range lines {
				delete(missing, line)
			}
		}
		d.Misses = len(missing)
	}
}

// raceLines returns the lines of a program on which there is a race of severity error, or, with mild, of any severity.
func raceLines(p *corpus.Program, mild bool) map[int]bool {
	lines := map[int]bool{}
	for _, w := range slices.Concat(p.Wants, p.Gaps) {
		if slices.Contains(detect.RaceKinds(), detect.Kind(w.Kind)) && (mild || w.Severity == detect.Error.String()) {
			lines[w.Line] = true
		}
	}
	return lines
}
