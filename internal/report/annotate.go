package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
)

// annotations is the number of annotations of one level that GitHub shows for a step.
const annotations = 10

// GitHub writes workflow commands that mark the lines of findings in a change under review. It marks the first finding
// of each group, on both of its lines in one message, and at most as many findings as GitHub shows.
func GitHub(w io.Writer, r *Report, x *Export) {
	text := &Text{Dir: x.Dir, Source: CachedSource(x.Source)}
	written := map[detect.Severity]int{}
	counted := Counted(r.Findings)
	left := 0
	for _, g := range Groups(counted) {
		f := g[0]
		if written[f.Severity]++; written[f.Severity] > annotations {
			left++
			continue
		}
		command := map[detect.Severity]string{detect.Error: "error", detect.Warning: "warning", detect.Info: "notice"}[f.Severity]
		var at string
		if p := f.place(); p.File != "" && p.Line > 0 {
			at = fmt.Sprintf("file=%s,line=%d,", property(x.Relative(p.File)), p.Line)
			if p.Column > 0 {
				at += fmt.Sprintf("col=%d,", p.Column)
			}
		}
		fmt.Fprintf(w, "::%s %stitle=%s::%s\n", command, at, property(text.Title(f)), data(x.told(f)))
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "::error title=not checked::%s\n", data(s.What+": "+s.Reason))
	}
	if left > 0 {
		fmt.Fprintf(w, "::notice title=fencepost::%s\n", data(fmt.Sprintf("%d more causes are in the report.", left)))
	}
}

// told describes a finding in a few lines.
func (x *Export) told(f *Finding) string {
	var lines []string
	for _, a := range f.inDisplayOrder() {
		s := a.told()
		if p := a.Place(); p.File != "" {
			s += fmt.Sprintf(" at %s:%d", x.Relative(p.File), p.Line)
		}
		lines = append(lines, s)
	}
	lines = append(lines, "why: "+f.Message)
	if f.Fix != "" {
		lines = append(lines, "fix: "+f.Fix)
	}
	return strings.Join(append(lines, "fencepost explain "+string(f.Kind)), "\n")
}

// data escapes the message of a workflow command. property escapes one of its parameters.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(clean(s))
}

func property(s string) string { return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s)) }

type codeQuality struct {
	Description string `json:"description"`
	Check       string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

// GitLab writes a code quality report, which GitLab shows beside the lines of a merge request. Findings without a line
// in a file are left out.
func GitLab(w io.Writer, r *Report, x *Export) error {
	text := &Text{Dir: x.Dir, Source: CachedSource(x.Source)}
	out := []codeQuality{}
	for _, f := range Counted(r.Findings) {
		p := f.place()
		if p.File == "" || p.Line == 0 {
			continue
		}
		q := codeQuality{Description: text.Title(&f) + "\n" + x.told(&f), Check: string(f.Kind), Fingerprint: f.Fingerprint,
			Severity: map[detect.Severity]string{detect.Error: "critical", detect.Warning: "minor", detect.Info: "info"}[f.Severity]}
		if q.Fingerprint == "" {
			q.Fingerprint = f.ID
		}
		q.Location.Path, q.Location.Lines.Begin = x.Relative(p.File), p.Line
		out = append(out, q)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
