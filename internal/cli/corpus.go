package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
)

// isCorpus reports whether a name means the built-in corpus and not a file.
func isCorpus(name string) bool {
	name = filepath.ToSlash(filepath.Clean(name))
	if name != "corpus" && !strings.HasPrefix(name, "corpus/") {
		return false
	}
	st, err := os.Stat(name)
	return err != nil || st.IsDir()
}

// checkCorpus checks one program of the corpus, or several, which it compares with their expectations.
func checkCorpus(ctx context.Context, e *env, o *options, name string) (int, error) {
	chosen, one, err := corpusPrograms(name)
	if err != nil {
		return 0, err
	}
	if !one {
		if err := o.nothingLeftOut("check " + name); err != nil {
			return 0, err
		}
		return checkPrograms(ctx, e, o, chosen)
	}
	in, err := session.CorpusInput(chosen[0])
	if err != nil {
		return 0, err
	}
	return checkInput(ctx, e, o, in, corpusLines(chosen[0]))
}

// corpusPrograms returns the programs of the corpus with a name. one reports whether it is the name of a program and
// not of a folder.
func corpusPrograms(name string) (chosen []*corpus.Program, one bool, err error) {
	if _, ok := irregularWords(name); ok {
		return nil, false, usagef("what races in corpus/irregular depends on graphs: fencepost compare %s", name)
	}
	programs, err := corpus.All()
	if err != nil {
		return nil, false, fmt.Errorf("the built-in corpus is broken: %w", err)
	}
	name = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "corpus")
	name = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(name, ".cu"), ".ptx"), "/")
	var names []string
	for _, p := range programs {
		names = append(names, "corpus/"+p.Path())
		if p.Path() == name {
			return []*corpus.Program{p}, true, nil
		}
		if name == "" || p.Dir == name {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, false, usagef("the corpus has no %q%s", "corpus/"+name, nearest.Hint("corpus/"+name, names))
	}
	return chosen, false, nil
}

// wantComment is an expectation in a source of the corpus. It only repeats what the report says.
var wantComment = regexp.MustCompile(`(?m)[ \t]*// (want|gap) .*$`)

// corpusLines returns the source of a program of the corpus, without its expectations.
func corpusLines(p *corpus.Program) func(string) []string {
	lines := strings.Split(wantComment.ReplaceAllString(p.Source, ""), "\n")
	return func(file string) []string {
		if file == path.Join("corpus", p.File()) {
			return lines
		}
		return nil
	}
}

// corpusSources returns the sources of programs of the corpus.
func corpusSources(programs []*corpus.Program) func(string) []string {
	all := make([]func(string) []string, len(programs))
	for i, p := range programs {
		all[i] = corpusLines(p)
	}
	return sourcesOf(all)
}

// checkPrograms checks programs and compares the findings with the wants of their sources.
func checkPrograms(ctx context.Context, e *env, o *options, programs []*corpus.Program) (int, error) {
	w := o.reportWriter(e, e.stdout)
	stop := showProgress(e, &o.session)
	results := session.CheckCorpus(ctx, &o.session, programs)
	stop()
	all := &report.Report{Verdict: report.Clean}
	wrong, found := 0, 0
	for i := range results {
		r := &results[i]
		writeResult(w, r)
		if !r.OK() {
			wrong++
		}
		if r.Err != nil {
			all.Skipped = append(all.Skipped, report.Skipped{What: "corpus/" + r.Program.Path(), Reason: r.Err.Error()})
			continue
		}
		found += len(r.Report.Findings)
		all.Kernels = append(all.Kernels, r.Report.Kernels...)
		all.Skipped = append(all.Skipped, r.Report.Skipped...)
		all.Findings = append(all.Findings, r.Report.Findings...)
		all.Notes = append(all.Notes, r.Report.Notes...)
	}
	source := corpusSources(programs)
	report.Fingerprint(all.Findings, source)
	switch {
	case len(all.Skipped) > 0:
		all.Verdict = report.NotChecked
	case wrong > 0:
		all.Verdict = report.Found
	}
	writeCorpusSummary(w, results, found, wrong)
	return exitCodes[all.Verdict], writeReports(e, o, all, source)
}

func writeCorpusSummary(w io.Writer, results []session.CorpusResult, found, wrong int) {
	if wrong > 0 {
		fmt.Fprintf(w, "\nfencepost: %d of %s differ from what their sources say\n", wrong, count(len(results), "program"))
		return
	}
	fmt.Fprintf(w, "\nfencepost: %s, %s, all as the sources say and no others\n", count(len(results), "program"), count(found, "finding"))
	for i := range results {
		if p := results[i].Program; p.Racy() {
			fmt.Fprintf(w, "One of them in full: fencepost check corpus/%s\n", p.Path())
			return
		}
	}
}

// writeResult writes a program's name, its findings in short form with their source lines, and the differences from the
// expectations.
func writeResult(w io.Writer, r *session.CorpusResult) {
	text := newText(w, corpusLines(r.Program))
	name := "corpus/" + r.Program.Path() + ".cu"
	if r.Err != nil {
		fmt.Fprintf(w, "%s: FAILED\n  %s\n", name, strings.ReplaceAll(r.Err.Error(), "\n", "\n  "))
		return
	}
	status := "ok"
	if !r.OK() {
		status = "DIFFERENT"
	}
	counts := findingCounts(r.Report.Findings)
	if counts == "" {
		counts = "no findings"
	}
	fmt.Fprintf(w, "%s: %s, %s\n", name, status, counts)
	for i := range r.Report.Findings {
		text.Brief(w, &r.Report.Findings[i])
	}
	for _, m := range r.Missing {
		fmt.Fprintf(w, "  missing: %s\n", m)
	}
	for _, u := range r.Unexpected {
		fmt.Fprintf(w, "  unexpected: %s\n", u)
	}
	if r.WrongResult() {
		fmt.Fprintf(w, "  wrong result: %s\n", strings.Join(r.Report.Notes, "\n  "))
	}
	for _, s := range r.Report.Skipped {
		fmt.Fprintf(w, "  not checked: %s: %s\n", s.What, s.Reason)
	}
}
