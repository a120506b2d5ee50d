package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"fencepost.dev/fencepost/internal/event"
)

type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as test results. A finding is a failing test if it has a severity that fails, and a skipped
// one if it is suppressed. Something that was not checked is an error. A kernel without findings is a passing test.
// Seconds are written if times is true.
func JUnit(w io.Writer, r *Report, x *Export, times bool) error {
	s := junitSuite{Name: "fencepost", Time: "0"}
	text := &Text{Dir: x.Dir, Source: CachedSource(x.Source)}
	found := map[string]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		found[f.Kernel] = true
		c := x.junitFinding(f, text)
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	total, named := 0.0, map[string]bool{}
	for _, k := range r.Kernels {
		total += k.Seconds
		if !found[k.Name] && !named[k.Name] {
			named[k.Name] = true
			s.Cases = append(s.Cases, junitCase{Class: xmlText(Demangle(k.Name)), Name: "no finding", Time: "0"})
		}
	}
	missing := r.Skipped
	if len(r.Kernels) == 0 && r.Operators == 0 && r.Verify == nil && len(missing) == 0 {
		missing = []Skipped{{"the run", "No kernel ran."}} // a run that checked nothing must not look like a passing one
	}
	for _, m := range missing {
		s.Errors++
		s.Cases = append(s.Cases, junitCase{Class: "not checked", Name: xmlText(m.What), Time: "0",
			Error: &junitMessage{Message: xmlText(m.Reason), Type: "not-checked"}})
	}
	if p := r.Program; p != nil && p.Exit != 0 {
		s.Errors++
		s.Cases = append(s.Cases, junitCase{Class: "program", Name: "exit code", Time: "0",
			Error: &junitMessage{Message: strings.TrimSpace(fmt.Sprintf("the program ended with exit code %d %s", p.Exit, p.Signal)), Type: "program-failed"}})
	}
	s.Tests = len(s.Cases)
	if times {
		s.Time = fmt.Sprintf("%.3f", total)
	}
	out, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{s}}, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(out)+"\n")
	return err
}

func (x *Export) junitFinding(f *Finding, text *Text) junitCase {
	var b strings.Builder
	text.Finding(&b, f)
	c := junitCase{Class: xmlText(Demangle(f.Kernel)), Name: xmlText(fmt.Sprintf("%s %s", f.Kind, f.ID)), Time: "0"}
	if c.Class == "" {
		c.Class = "host"
	}
	if p := f.place(); p.File != "" {
		c.File, c.Line = xmlText(x.Relative(p.File)), p.Line
	}
	switch body := xmlText(b.String()); {
	case f.Suppressed != nil:
		c.Skipped = &junitMessage{Message: xmlText(strings.TrimSuffix(fmt.Sprintf("suppressed by %s at %s: %s", f.Suppressed.By, f.Suppressed.At, f.Suppressed.Reason), ": "))}
	case f.Severity >= x.FailOn:
		c.Failure = &junitMessage{xmlText(text.Title(f)), string(f.Kind), body}
	default:
		c.Out = body
	}
	return c
}

// place is the place of a finding in formats with only one place.
func (f *Finding) place() (p event.Frame) {
	for _, a := range f.inDisplayOrder() {
		if p = a.Place(); p.File != "" {
			return p
		}
	}
	return p
}

// xmlText removes characters that XML 1.0 does not allow.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
