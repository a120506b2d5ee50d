package session

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// toldOf is something that a process has been told: a finding with its severity, or something that was not checked.
type toldOf struct {
	process       uint64
	severity      detect.Severity
	detector, key string
}

// answer is the answer to a query of a process.
type answer struct {
	Findings   []answeredFinding `json:"findings"`
	NotChecked []string          `json:"not_checked"`
}

type answeredFinding struct {
	ID       string      `json:"id"`
	Kind     detect.Kind `json:"kind"`
	Severity string      `json:"severity"`
	Text     string      `json:"text"` // as in the report of the run
}

// asked answers a query of a process with the findings made in it since its last query: new findings, findings that
// occurred again, and findings that became more severe. It is a hook of the device.
func (r *once) asked(a cuda.Asked) []byte {
	r.judges.Wait()
	out := answer{Findings: []answeredFinding{}, NotChecked: []string{}}
	missed := func(text string) {
		if r.news(toldOf{process: a.Process, key: text}, 1) {
			out.NotChecked = append(out.NotChecked, text)
		}
	}
	list := slices.Clone(r.findings)
	for _, f := range a.Failures {
		// Whether a program looks at the result of a call is known only at its end.
		if f.Kind != cuda.ErrorIgnored && f.Kind != cuda.LaunchRefused {
			list = append(list, failure(&f))
		}
	}
	broken := map[int]bool{}
	for _, d := range r.judges.Defects() {
		broken[d.Detector] = true
		missed("what " + r.judgeName(d.Detector) + " judges: a defect of Fencepost has ended it")
	}
	for i, d := range r.detectors {
		if !broken[i] {
			list = append(list, r.found(d)...)
		}
	}
	list = withoutOutlived(list)
	dir, _ := os.Getwd() // if this fails, names are shown unchanged
	text := &report.Text{Dir: dir, Source: report.CachedSource(r.opts.Sources.Read)}
	list = slices.DeleteFunc(list, func(f report.Finding) bool { return f.Severity == detect.Info || !r.of(&f, a.Process) })
	for _, f := range report.Merge(list) {
		of := toldOf{a.Process, f.Severity, f.Detector, f.ID}
		before := r.told[of]
		if r.news(of, f.Count) {
			var b strings.Builder
			text.Finding(&b, &f)
			said := strings.TrimSpace(b.String())
			if before > 0 {
				said += fmt.Sprintf("\nThis has occurred again: the places and threads above are those of the first time, of %d occurrences.", f.Count)
			}
			out.Findings = append(out.Findings, answeredFinding{f.ID, f.Kind, f.Severity.String(), said})
		}
	}
	for _, s := range r.skipped {
		missed(s.What + ": " + s.Reason)
	}
	for _, call := range a.Unsupported {
		what, why := unsupported(call)
		missed(what + ": " + why)
	}
	data, err := json.Marshal(&out)
	if err != nil {
		panic("BUG: an answer that is no JSON: " + err.Error())
	}
	return data
}

// news records the number of occurrences that a process has been told, and reports whether that was news.
func (r *once) news(what toldOf, count int) bool {
	if r.told == nil {
		r.told = map[toldOf]int{}
	}
	old := r.told[what]
	r.told[what] = count
	return old != count
}

// of reports whether a finding concerns a process: all kernels in it were launched by that process. Operations of the
// host alone, and findings not known to concern another process, concern every process.
func (r *once) of(f *report.Finding, process uint64) bool {
	return !slices.ContainsFunc(f.Accesses, func(a report.Access) bool {
		l, ok := r.launched[a.Launch]
		return ok && l.process != process
	})
}
