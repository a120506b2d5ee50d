package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/docs"
	"fencepost.dev/fencepost/internal/report"
)

// reports are what a command writes besides its text, and the findings that it leaves out.
type reports struct {
	html, sarif, junit, summary string
	annotate                    string // "github", "gitlab" or ""
	suppress, baseline          string
	triage                      report.Triage
	sources                     []string // of the program
}

// gitlabReport is the file that a job of GitLab names under artifacts: reports: codequality.
const gitlabReport = "gl-code-quality-report.json"

// reportFlags are those of exportFlags, and what leaves findings out.
func reportFlags() []*flag {
	return append(exportFlags(), []*flag{
		{"suppress", "FILE", "do not report findings that this file suppresses (docs/suppressions.md)",
			func(o *options, v string) error { o.reports.suppress = v; return nil }},
		{"baseline", "FILE", "do not report findings that this earlier JSON report has",
			func(o *options, v string) error { o.reports.baseline = v; return nil }},
	}...)
}

// exportFlags are the files that commands with findings write.
func exportFlags() []*flag {
	file := func(name, doc string, at func(*options) *string) *flag {
		return &flag{name, "FILE", doc, func(o *options, v string) error {
			*at(o) = v
			return writable(name, v, "")
		}}
	}
	return []*flag{
		colorFlag,
		file("html", "write the findings as a page for a browser, in one file", func(o *options) *string { return &o.reports.html }),
		file("sarif", "write the findings as SARIF 2.1.0, for code scanning (docs/ci.md)", func(o *options) *string { return &o.reports.sarif }),
		file("junit", "write the findings as results of tests in JUnit's format", func(o *options) *string { return &o.reports.junit }),
		file("summary", "write a summary in Markdown", func(o *options) *string { return &o.reports.summary }),
		{"annotate", "WHERE", "mark lines in a review: github, gitlab (" + gitlabReport + "), auto (the one whose CI runs it), none", setAnnotate},
	}
}

func setAnnotate(o *options, v string) error {
	at := ""
	switch {
	case os.Getenv("GITHUB_ACTIONS") == "true":
		at = "github"
	case os.Getenv("GITLAB_CI") == "true":
		at = "gitlab"
	}
	return choose(v, map[string]string{"github": "github", "gitlab": "gitlab", "auto": at, "none": ""}, "place for annotations", &o.reports.annotate)
}

// written gives the files that the flags name.
func (x *reports) written() map[string]string {
	return map[string]string{"html": x.html, "sarif": x.sarif, "junit": x.junit, "summary": x.summary}
}

// read gives the files that the flags name.
func (x *reports) read() []string { return []string{x.suppress, x.baseline} }

// load reads the suppressions and the baseline, before the program runs, which may take long. args are those of the command.
func (x *reports) load(args []string) error {
	x.triage = report.Triage{Today: time.Now(), Kinds: docs.Kinds()}
	if x.suppress != "" {
		text, err := os.ReadFile(x.suppress)
		if err != nil {
			return fmt.Errorf("--suppress: %w", err)
		}
		if x.triage.Entries, err = report.ParseSuppressions(x.suppress, string(text), docs.Kinds()); err != nil {
			return usagef("--suppress: %v", err)
		}
	}
	if x.baseline != "" {
		text, err := os.ReadFile(x.baseline)
		if err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
		if x.triage.Baseline, err = report.ReadFindings(x.baseline, text); err != nil {
			return usagef("--baseline: %v", err)
		}
		x.triage.Name, x.triage.Compared = x.baseline, true
	}
	for _, a := range args {
		if a == "--" {
			break
		}
		if isSource(a) {
			x.sources = append(x.sources, a)
		}
	}
	return nil
}

// triage gives the findings fingerprints and marks those that are left out. The verdict is that of the others.
func (o *options) triage(r *report.Report, source func(string) []string) {
	source = report.CachedSource(source)
	o.weigh(r)
	if names := o.configured(); len(names) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s sets %s (fencepost config).", o.config.file, strings.Join(names, ", ")))
	}
	report.Fingerprint(r.Findings, source)
	t := &o.reports.triage
	t.Source, t.Files = source, o.reports.sources
	r.Notes = append(r.Notes, t.Apply(r)...)
	report.Patches(r.Findings, source)
	if n := len(r.Findings) - len(report.Counted(r.Findings)); n > 0 {
		by := map[string]int{}
		for i := range r.Findings {
			if s := r.Findings[i].Suppressed; s != nil {
				by[s.By]++
			}
		}
		text := ""
		for _, who := range []string{"file", "comment", "baseline"} {
			if by[who] > 0 {
				text += fmt.Sprintf(", %d by %s", by[who], map[string]string{"file": o.reports.suppress, "comment": "comments", "baseline": o.reports.baseline}[who])
			}
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s left out: %s.", count(n, "finding"), text[2:]))
	}
	if r.Verdict == report.Found && !slices.ContainsFunc(report.Counted(r.Findings), func(f report.Finding) bool { return f.Severity >= o.session.FailOn }) {
		r.Verdict = report.Judge(r, o.session.FailOn)
	}
}

// weigh gives the findings the severities that the configuration sets.
func (o *options) weigh(r *report.Report) {
	if len(o.config.severities) == 0 {
		return
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if s, ok := o.config.severities[f.Kind]; ok {
			f.Severity = s
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b report.Finding) int { return int(b.Severity) - int(a.Severity) })
	if r.Verdict == report.Clean || r.Verdict == report.Found {
		r.Verdict = report.Judge(r, o.session.FailOn)
	}
}

// nothingLeftOut refuses --suppress and --baseline where findings are compared with what is expected. Those of the configuration
// do not hold there.
func (o *options) nothingLeftOut(what string) error {
	for _, name := range []string{"suppress", "baseline"} {
		if o.origins[name].by == "--"+name {
			return usagef("--%s: %s compares findings with what the sources say, and leaves none out", name, what)
		}
	}
	return nil
}

// export is what the formats need besides the report.
func (o *options) export(source func(string) []string) *report.Export {
	return &report.Export{Version: versionString(), Dir: projectRoot(), Help: docs.Kind, Source: source, FailOn: o.session.FailOn, Command: o.command}
}

// projectRoot is the folder to which the services of reviews take names to be relative: that of the repository, if the working
// folder is in one.
func projectRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Stat(filepath.Join(up, ".git")); err == nil {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}

// annotate writes the marks that GitHub reads from the output of a step. They come before the text, whose last line is the verdict.
func (o *options) annotate(w io.Writer, r *report.Report, source func(string) []string) {
	if o.reports.annotate == "github" {
		report.GitHub(w, r, o.export(source))
	}
}

// writeReports writes the files that were asked for.
func writeReports(e *env, o *options, r *report.Report, source func(string) []string) error {
	x := o.export(source)
	write := func(flag, name string, to func(io.Writer) error) error {
		if name == "" {
			return nil
		}
		var b bytes.Buffer
		err := to(&b)
		if err == nil {
			err = os.WriteFile(name, b.Bytes(), 0o666)
		}
		if err != nil {
			return &unwrittenError{fmt.Errorf("--%s: %w", flag, err)}
		}
		return nil
	}
	last := summary(o, r)
	summary := func(w io.Writer) error { return report.Markdown(w, r, x, last) }
	errs := []error{writeJSON(e, o, r),
		write("html", o.reports.html, func(w io.Writer) error { return report.HTML(w, r, x, last, o.times) }),
		write("sarif", o.reports.sarif, func(w io.Writer) error { return report.SARIF(w, r, x) }),
		write("junit", o.reports.junit, func(w io.Writer) error { return report.JUnit(w, r, x, o.times) })}
	step := os.Getenv("GITHUB_STEP_SUMMARY")
	if own, err := filepath.Abs(o.reports.summary); err != nil || own != step {
		errs = append(errs, write("summary", o.reports.summary, summary))
	}
	if o.reports.summary != "" || o.reports.annotate == "github" {
		errs = append(errs, appendSummary(step, summary))
	}
	if o.reports.annotate == "gitlab" {
		errs = append(errs, write("annotate", gitlabReport, func(w io.Writer) error { return report.GitLab(w, r, x) }))
	}
	return errors.Join(errs...)
}

// appendSummary adds the summary to the page of a step on GitHub.
func appendSummary(name string, to func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return &unwrittenError{fmt.Errorf("--annotate: %w", err)}
	}
	if err := errors.Join(to(f), f.Close()); err != nil {
		return &unwrittenError{fmt.Errorf("--annotate: %w", err)}
	}
	return nil
}

// sourcesOf unites the sources of programs.
func sourcesOf(all []func(string) []string) func(string) []string {
	return func(file string) []string {
		for _, read := range all {
			if lines := read(file); lines != nil {
				return lines
			}
		}
		return nil
	}
}
