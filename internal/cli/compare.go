package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
)

const compareLong = `
fencepost compare prog.cu
fencepost compare ./app [arguments]
fencepost compare kernel.ptx [--launch FILE]
  attaches every detector to one execution. It shows which findings each detector has, how long the kernels take with it
  in relation to no detector, and how much metadata it held. --detector selects detectors. Detectors that judge warps in
  lockstep get a separate execution, and one more execution runs without a detector. Only the output of the first
  execution is shown.

fencepost compare ./prog [arguments]
  runs a program that "fencepost cc" built. It attaches the detectors of CPU programs to one execution, and shows how
  much slimfast shares, as in table 3.1 of its thesis.

fencepost compare corpus[/FOLDER[/NAME]]
  compares the detectors with the races that the sources of the built-in programs state. A miss is a line with a race of
  severity error that the detector did not name; a false alarm is a race that it named where there is none. A folder that
  is a suite (scoped, scopedapps, ...) gives a table of programs and detectors; there, races of severity warning are
  required too.

fencepost compare corpus/irregular[/WORD]...
  runs kernels that walk graphs, with planted bugs or without, and compares the detectors with the definition of a race.
  Words select the runs that match all of them: a pattern, a type, a unit, bugs, a graph, as in
  corpus/irregular/push/block/dag-200. All runs together take minutes.

With --json FILE, the key "detectors" of the report has the table (docs/json.md); --times writes times into it.`

func compareCommand() *command {
	return &command{name: "compare", args: "PROG.cu | APP | KERNEL.ptx | corpus[/NAME]", long: compareLong,
		doc: "run all detectors side by side on one execution",
		// A program's own arguments may look like flags, so ours stand before it.
		flags: append([]*flag{launchFlag, corpusJobsFlag, nvccFlag}, runFlags()...), run: runCompare}
}

func runCompare(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if o.session.Bare {
		return 0, usagef("compare what? --detector none leaves nothing to compare")
	}
	if len(args) == 0 {
		return 0, usagef("compare detectors on what? Name a CUDA source, a program, a .ptx file, or corpus")
	}
	if path, ok, err := cpuProgram(args); err != nil || ok {
		if err != nil {
			return 0, err
		}
		return runCPU(ctx, e, o, path, args[1:], true)
	}
	if err := o.onlyTraces("compare runs kernels"); err != nil {
		return 0, err
	}
	if words, ok := irregularWords(args[0]); ok {
		return compareIrregular(ctx, e, o, args, words)
	}
	if isCorpus(args[0]) {
		if o.launch != "" {
			return 0, corpusLaunch(args[0])
		}
		return compareCorpus(ctx, e, o, args)
	}
	x, err := executionOf(ctx, e, o, args)
	if err != nil {
		return 0, err
	}
	defer x.cleanup()
	stop := showProgress(e, &o.session)
	r, err := session.Compare(ctx, &o.session, x.run)
	stop()
	if err != nil {
		return 0, err
	}
	return tellComparison(e, o, r, x.source)
}

// tellComparison prints the findings, by whom, and the table.
func tellComparison(e *env, o *options, r *report.Report, source func(string) []string) (int, error) {
	w := o.reportWriter(e, e.stdout)
	o.triage(r, source)
	o.annotate(w, r, source)
	writeFoundBy(w, r, source)
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "not checked: %s: %s\n", s.What, s.Reason)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	if len(r.Findings)+len(r.Skipped)+len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	newText(w, source).Detectors(w, r)
	return exitCodes[r.Verdict], writeReports(e, o, r, source)
}

// writeFoundBy writes findings in short, each with the detectors that have it.
func writeFoundBy(w io.Writer, r *report.Report, source func(string) []string) {
	text := newText(w, source)
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Suppressed != nil {
			continue
		}
		text.Brief(w, f)
		if f.Class == detect.Race {
			fmt.Fprintf(w, "    %s\n", foundBy(r, f))
		}
	}
}

// foundBy tells which detectors have a finding and which have not.
func foundBy(r *report.Report, f *report.Finding) string {
	var by, not []string
	for _, d := range r.Detectors {
		if f.By(d.Name) {
			by = append(by, d.Name)
		} else {
			not = append(not, d.Name)
		}
	}
	s := "found by " + strings.Join(by, ", ")
	if len(not) > 0 {
		s += "; not by " + strings.Join(not, ", ")
	}
	return s
}

func compareCorpus(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) > 1 {
		return 0, usagef("compare takes one name of the corpus; flags stand before it")
	}
	programs, one, err := corpusPrograms(args[0])
	if err != nil {
		return 0, err
	}
	if err := o.nothingLeftOut("compare " + args[0]); err != nil {
		return 0, err
	}
	w := o.reportWriter(e, e.stdout)
	stop := showProgress(e, &o.session)
	results := session.CompareCorpus(ctx, &o.session, programs)
	stop()
	all := &report.Report{Verdict: report.Clean}
	suite := !one && programs[0].Suite && programs[0].Dir == programs[len(programs)-1].Dir
	if suite {
		session.WriteSuite(w, results)
	}
	for i := range results {
		x := &results[i]
		if !suite || x.Err != nil {
			writeJudged(w, x, one)
		}
		if x.Err != nil {
			all.Skipped = append(all.Skipped, report.Skipped{What: "corpus/" + x.Program.Path(), Reason: x.Err.Error()})
			continue
		}
		session.AddComparison(all, x.Report)
	}
	if len(all.Skipped) > 0 {
		all.Verdict = report.NotChecked
	}
	fmt.Fprintln(w)
	newText(w, corpusLines(programs[0])).Detectors(w, all)
	return exitCodes[all.Verdict], writeReports(e, o, all, corpusSources(programs))
}

// writeJudged writes who was wrong about a program, and with what findings.
func writeJudged(w io.Writer, x *session.CorpusResult, findings bool) {
	name := "corpus/" + x.Program.Path() + ".cu"
	if x.Err != nil {
		fmt.Fprintf(w, "%s: FAILED\n  %s\n", name, strings.ReplaceAll(x.Err.Error(), "\n", "\n  "))
		return
	}
	var misses, alarms []string
	for _, d := range x.Report.Detectors {
		if d.Misses > 0 {
			misses = append(misses, fmt.Sprintf("%s %d", d.Name, d.Misses))
		}
		if d.FalseAlarms > 0 {
			alarms = append(alarms, fmt.Sprintf("%s %d", d.Name, d.FalseAlarms))
		}
	}
	s := "all agree"
	switch {
	case len(misses) > 0 && len(alarms) > 0:
		s = "missed by " + strings.Join(misses, ", ") + "; false alarms by " + strings.Join(alarms, ", ")
	case len(misses) > 0:
		s = "missed by " + strings.Join(misses, ", ")
	case len(alarms) > 0:
		s = "false alarms by " + strings.Join(alarms, ", ")
	case len(x.Program.Wants) == 0 || x.Program.Dir == corpus.Fault:
		s = "no detector names a race"
	}
	fmt.Fprintf(w, "%s: %s\n", name, s)
	if findings {
		writeFoundBy(w, x.Report, corpusLines(x.Program))
	}
}
