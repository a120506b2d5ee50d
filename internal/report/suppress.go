package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/nearest"
)

// Suppressed describes the suppression of a finding.
type Suppressed struct {
	By     string // "file", "comment" or "baseline"
	At     string // place of the entry or the comment, name of the baseline
	Reason string // "" for a baseline
}

// Entry is one entry of a suppression file. All non-empty fields must match; Function, Source, Line and Variable must
// match one access.
type Entry struct {
	Kind, Kernel, Function, Source, Variable, Detector, Fingerprint string
	Line                                                            int
	Reason                                                          string
	Expires                                                         time.Time // the last day on which it is valid; zero: forever

	at   string // "file:line"
	used bool
}

// tomlEntry is the form of an entry in the file.
type tomlEntry struct {
	Kind        string          `toml:"kind"`
	Kernel      string          `toml:"kernel"`
	Function    string          `toml:"function"`
	Source      string          `toml:"source"`
	Line        int             `toml:"line"`
	Variable    string          `toml:"variable"`
	Detector    string          `toml:"detector"`
	Fingerprint string          `toml:"fingerprint"`
	Reason      string          `toml:"reason"`
	Expires     *toml.LocalDate `toml:"expires"`
}

var entryKeys = []string{"kind", "kernel", "function", "source", "line", "variable", "detector", "fingerprint", "reason", "expires"}

// tableHeader begins an entry.
var tableHeader = regexp.MustCompile(`^\s*\[\[\s*suppress\s*\]\]`)

// ParseSuppressions reads a suppression file. kinds are the valid kinds; nil allows any.
func ParseSuppressions(name, text string, kinds []string) ([]*Entry, error) {
	var file struct {
		Suppress []tomlEntry `toml:"suppress"`
	}
	d := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, suppressionsError(name, err)
	}
	var lines []int
	for i, l := range strings.Split(text, "\n") {
		if tableHeader.MatchString(l) {
			lines = append(lines, i+1)
		}
	}
	var out []*Entry
	var errs []error
	for i, t := range file.Suppress {
		e := &Entry{Kind: t.Kind, Kernel: t.Kernel, Function: t.Function, Source: t.Source, Line: t.Line, Variable: t.Variable,
			Detector: t.Detector, Fingerprint: t.Fingerprint, Reason: t.Reason, at: name}
		if i < len(lines) { // entries may also be written as one list
			e.at = fmt.Sprintf("%s:%d", name, lines[i])
		}
		if t.Expires != nil {
			e.Expires = t.Expires.AsTime(time.UTC)
		}
		switch {
		case t.Kind == "" && t.Fingerprint == "":
			errs = append(errs, fmt.Errorf("%s: an entry names a kind or a fingerprint", e.at))
		case strings.TrimSpace(t.Reason) == "":
			errs = append(errs, fmt.Errorf("%s: an entry says why: reason = \"...\"", e.at))
		case t.Line < 0 || t.Line > 0 && t.Source == "":
			errs = append(errs, fmt.Errorf("%s: a line is one of a source: source = \"...\"", e.at))
		case t.Kind != "" && kinds != nil && !slices.Contains(kinds, t.Kind):
			errs = append(errs, fmt.Errorf("%s: unknown kind %q%s", e.at, t.Kind, nearest.Hint(t.Kind, kinds)))
		}
		out = append(out, e)
	}
	return out, errors.Join(errs...)
}

// suppressionsError adds the place to an error, and a suggestion for an unknown key.
func suppressionsError(name string, err error) error {
	var strict *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &strict):
		var errs []error
		for i := range strict.Errors {
			e := &strict.Errors[i]
			row, _ := e.Position()
			key := e.Key()
			keys := entryKeys
			if len(key) == 1 {
				keys = []string{"suppress"}
			}
			last := key[len(key)-1]
			errs = append(errs, fmt.Errorf("%s:%d: unknown key %q%s", name, row, last, nearest.Hint(last, keys)))
		}
		return errors.Join(errs...)
	case errors.As(err, &decode):
		row, column := decode.Position()
		return fmt.Errorf("%s:%d:%d: %s", name, row, column, strings.TrimPrefix(decode.Error(), "toml: "))
	}
	return fmt.Errorf("%s: %w", name, err)
}

// WriteEntry writes an entry that suppresses a finding of a JSON report.
func WriteEntry(f *OldFinding, reason, expires string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[[suppress]] # %s\n", f.ID)
	put := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", key, tomlString(value))
		}
	}
	put("kind", f.Kind)
	put("kernel", BareName(f.Kernel))
	for _, a := range f.Accesses {
		if a.File != "" {
			in := ""
			if a.Function != "" { // a function of the host is not in the report
				in = " in " + BareName(a.Function)
			}
			fmt.Fprintf(&b, "# %s of %s at %s:%d%s\n", a.Op, a.Variable, filepath.Base(a.File), a.Line, in)
		}
	}
	put("fingerprint", f.Fingerprint)
	put("reason", reason)
	if expires != "" {
		fmt.Fprintf(&b, "expires = %s\n", expires)
	}
	return b.String()
}

// tomlString quotes a string. JSON's escapes are some of TOML's.
func tomlString(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a string is not JSON: " + err.Error())
	}
	return string(text)
}

// OldFinding is a finding as read from a JSON report.
type OldFinding struct {
	ID          string `json:"id"`
	Fingerprint string `json:"fingerprint"`
	Kind        string `json:"kind"`
	Kernel      string `json:"kernel"`
	Severity    string `json:"severity"`
	Suppressed  *struct {
		By string `json:"by"`
	} `json:"suppressed"`
	Accesses []struct {
		Op       string `json:"op"`
		File     string `json:"file"`
		Line     int    `json:"line"`
		Function string `json:"function"`
		Variable string `json:"variable"`
	} `json:"accesses"`
}

// ReadFindings reads the findings of a JSON report.
func ReadFindings(name string, text []byte) ([]OldFinding, error) {
	var r struct {
		Schema   string       `json:"schema"`
		Findings []OldFinding `json:"findings"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is no JSON report: %w", name, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("%s is no report of schema %s, but of %q", name, Schema, r.Schema)
	}
	return r.Findings, nil
}

// Triage marks findings that are suppressed.
type Triage struct {
	Entries  []*Entry
	Baseline []OldFinding
	Name     string // of the baseline
	Compared bool   // there is a baseline, possibly an empty one
	Source   func(file string) []string
	Files    []string // sources of the program whose comments apply, in addition to those of findings
	Today    time.Time
	Kinds    []string // kinds that comments may name; nil allows any
}

// Apply marks findings, which must have fingerprints, and returns a note on each suppression that is unused, expired,
// or invalid.
func (t *Triage) Apply(r *Report) (notes []string) {
	r.Baseline = t.Compared
	old := map[string]bool{}
	for i := range t.Baseline {
		key := t.Baseline[i].Fingerprint
		if key == "" { // of a report without fingerprints
			key = t.Baseline[i].ID
		}
		old[key] = true
	}
	comments := t.comments(r)
	for i := range r.Findings {
		f := &r.Findings[i]
		if old[f.Fingerprint] || old[f.ID] {
			f.Suppressed = &Suppressed{By: "baseline", At: t.Name}
		}
		for _, e := range t.Entries { // all that match count as used
			if !t.expired(e) && e.matches(f) {
				e.used = true
				f.Suppressed = &Suppressed{By: "file", At: e.at, Reason: e.Reason}
			}
		}
		for _, c := range comments {
			if c.matches(f) {
				c.used = true
				f.Suppressed = &Suppressed{By: "comment", At: c.place(), Reason: c.reason}
			}
		}
	}
	for _, e := range t.Entries {
		switch {
		case t.expired(e):
			notes = append(notes, fmt.Sprintf("%s: this suppression expired after %s and is not applied.", e.at, e.Expires.Format(time.DateOnly)))
		case !e.used:
			notes = append(notes, fmt.Sprintf("%s: this suppression applies to no finding.", e.at))
		}
	}
	for _, c := range comments {
		if n := c.note(t.Kinds); n != "" {
			notes = append(notes, n)
		}
	}
	return notes
}

func (t *Triage) expired(e *Entry) bool {
	return !e.Expires.IsZero() && !t.Today.Before(e.Expires.AddDate(0, 0, 1))
}

func (e *Entry) matches(f *Finding) bool {
	if e.Kind != "" && e.Kind != string(f.Kind) || e.Fingerprint != "" && e.Fingerprint != f.Fingerprint ||
		e.Detector != "" && !f.By(e.Detector) {
		return false
	}
	if e.Kernel != "" && !nameMatches(e.Kernel, f.Kernel) && !slices.ContainsFunc(f.Accesses, func(a Access) bool { return nameMatches(e.Kernel, a.Kernel) }) {
		return false
	}
	if e.Function == "" && e.Source == "" && e.Line == 0 && e.Variable == "" {
		return true
	}
	return slices.ContainsFunc(f.Accesses, func(a Access) bool {
		p := a.Place()
		return (e.Function == "" || nameMatches(e.Function, p.Function)) && (e.Source == "" || fileMatches(e.Source, p.File)) &&
			(e.Line == 0 || e.Line == p.Line) && (e.Variable == "" || variableMatches(e.Variable, &a.Object))
	})
}

// nameMatches compares a pattern with a linker name in the forms in which a user may write it: bare, or with its
// parameters.
func nameMatches(pattern, name string) bool {
	return name != "" && (glob(pattern, BareName(name), false) || glob(pattern, Demangle(name), false))
}

func variableMatches(pattern string, o *Object) bool {
	name := o.Name
	if o.Named {
		name = BareName(name)
	}
	return name != "" && glob(pattern, name, false)
}

// fileMatches compares a pattern with a file's name or its last components.
func fileMatches(pattern, file string) bool {
	if file == "" {
		return false
	}
	file = filepath.ToSlash(file)
	if glob(pattern, file, true) {
		return true
	}
	for i, c := range file {
		if c == '/' && glob(strings.TrimPrefix(pattern, "./"), file[i+1:], true) {
			return true
		}
	}
	return false
}

// glob compares text with a pattern in which * matches any characters, ? one. In file names neither matches a slash,
// but ** does, and **/ also matches no folder.
func glob(pattern, text string, file bool) bool {
	for i := 0; i < len(pattern); i++ {
		switch {
		case file && strings.HasPrefix(pattern[i:], "**/") && glob(pattern[i+3:], text[min(i, len(text)):], file):
			return true
		case pattern[i] == '*':
			all := file && strings.HasPrefix(pattern[i:], "**")
			rest := strings.TrimLeft(pattern[i:], "*")
			for j := i; ; j++ {
				if glob(rest, text[j:], file) {
					return true
				}
				if j == len(text) || file && !all && text[j] == '/' {
					return false
				}
			}
		case i >= len(text) || pattern[i] != text[i] && (pattern[i] != '?' || file && text[i] == '/'):
			return false
		}
	}
	return len(text) == len(pattern)
}

// comment is one `fencepost: ignore[kind] reason` in a source.
type comment struct {
	file   string
	line   int
	kinds  []string
	reason string
	used   bool
}

func (c *comment) place() string { return fmt.Sprintf("%s:%d", filepath.Base(c.file), c.line) }

var ignoreComment = regexp.MustCompile(`//\s*fencepost:\s*ignore(?:\[([^\]]*)\])?[ \t]*(.*?)\s*$`)

// comments reads the comments of the sources with findings, and of the program's files.
func (t *Triage) comments(r *Report) (all []*comment) {
	files := slices.Clone(t.Files)
	for i := range r.Findings {
		for j := range r.Findings[i].Accesses {
			if p := r.Findings[i].Accesses[j].Place(); p.File != "" && p.Line > 0 {
				files = append(files, p.File)
			}
		}
	}
	slices.Sort(files)
	if t.Source == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, file := range slices.Compact(files) {
		abs := file
		if p, err := filepath.Abs(file); err == nil {
			abs = p
		}
		if seen[abs] {
			continue
		}
		seen[abs] = true
		for i, l := range t.Source(file) {
			if m := ignoreComment.FindStringSubmatch(l); m != nil {
				c := &comment{file: file, line: i + 1, reason: m[2]}
				for _, k := range strings.Split(m[1], ",") {
					if k = strings.TrimSpace(k); k != "" {
						c.kinds = append(c.kinds, k)
					}
				}
				all = append(all, c)
			}
		}
	}
	return all
}

func (c *comment) matches(f *Finding) bool {
	if !slices.Contains(c.kinds, string(f.Kind)) {
		return false
	}
	return slices.ContainsFunc(f.Accesses, func(a Access) bool {
		p := a.Place()
		return p.Line == c.line && (p.File == c.file || filepath.Base(p.File) == filepath.Base(c.file) && sameFile(p.File, c.file))
	})
}

func sameFile(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

// note describes the error of a comment; "" if there is none.
func (c *comment) note(kinds []string) string {
	if len(c.kinds) == 0 {
		return c.place() + ": a comment to ignore findings names their kind: // fencepost: ignore[missing-barrier] reason."
	}
	for _, k := range c.kinds {
		if kinds != nil && !slices.Contains(kinds, k) {
			return fmt.Sprintf("%s: the comment to ignore findings names an unknown kind %q%s", c.place(), k, nearest.Hint(k, kinds))
		}
	}
	if !c.used {
		return c.place() + ": the comment to ignore findings applies to none."
	}
	return ""
}

// Counted returns the findings that are not suppressed.
func Counted(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Suppressed != nil })
}

// Judge returns the verdict of a report. NotChecked ranks below findings, which require action in any case.
// ProgramFailed ranks above: a program that failed, perhaps because a call is unsupported, makes the report unreliable.
// Suppressed findings do not count.
func Judge(r *Report, failOn detect.Severity) Verdict {
	found := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Suppressed == nil && f.Severity >= failOn })
	failed := r.Program != nil && r.Program.Exit != 0
	switch {
	case failed && len(r.Skipped) > 0 && !found:
		return NotChecked
	case failed:
		return ProgramFailed
	case found:
		return Found
	case len(r.Skipped) > 0:
		return NotChecked
	}
	return Clean
}
