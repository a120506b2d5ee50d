package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
)

// exported is a report with every sort of finding.
func exported() *Report {
	r := &Report{Verdict: Found, Kernels: []Kernel{{Name: "_Z5otherv", Launches: 1}, {Name: reduceName, Launches: 1}},
		Skipped: []Skipped{{"cudaGraphLaunch", "Graphs are not supported."}}, Notes: []string{"A remark."},
		Findings: Merge([]Finding{race(), inAtomic(), outOfBounds(), deadlock()})}
	Fingerprint(r.Findings, testSource)
	return r
}

func testExport() *Export {
	return &Export{Version: "1", Dir: "/home/ada/proj", Source: testSource, FailOn: detect.Error,
		Help: func(kind string) string { return "About *" + kind + "*." }}
}

// field describes the value of a property of an object.
type field struct {
	name     string
	required bool
	is       any // "string", "integer", "boolean", "object", the allowed words, an object or a list
}
type object []field
type list struct{ of any }

// The parts of the standard that are written. Its objects are closed: a property that is not named here is none.
var (
	sText     = object{{"text", true, "string"}, {"markdown", false, "string"}}
	sLevel    = []string{"none", "note", "warning", "error"}
	sRegion   = object{{"startLine", true, "integer"}, {"startColumn", false, "integer"}, {"snippet", false, sText}}
	sArtifact = object{{"uri", true, "string"}, {"uriBaseId", false, "string"}}
	sPhysical = object{{"artifactLocation", true, sArtifact}, {"region", false, sRegion}}
	sLogical  = object{{"fullyQualifiedName", true, "string"}, {"kind", true, "string"}}
	sLocation = object{{"id", false, "integer"}, {"physicalLocation", false, sPhysical}, {"message", false, sText},
		{"logicalLocations", false, list{sLogical}}}
	sStep = object{{"location", true, sLocation}, {"importance", true, []string{"important", "essential", "unimportant"}},
		{"nestingLevel", true, "integer"}}
	sFlow   = object{{"message", true, sText}, {"threadFlows", true, list{object{{"id", true, "string"}, {"locations", true, list{sStep}}}}}}
	sSilent = object{{"kind", true, []string{"inSource", "external"}}, {"justification", false, "string"}}
	sResult = object{{"ruleId", true, "string"}, {"ruleIndex", true, "integer"}, {"level", true, sLevel}, {"message", true, sText},
		{"locations", false, list{sLocation}}, {"relatedLocations", false, list{sLocation}}, {"partialFingerprints", true, "object"},
		{"codeFlows", false, list{sFlow}}, {"baselineState", false, []string{"new", "unchanged", "updated", "absent"}},
		{"suppressions", false, list{sSilent}}, {"occurrenceCount", false, "integer"}, {"properties", true, "object"}}
	sRule = object{{"id", true, "string"}, {"shortDescription", true, sText}, {"fullDescription", true, sText}, {"help", true, sText},
		{"defaultConfiguration", true, object{{"level", true, sLevel}}}, {"properties", true, object{{"tags", true, list{"string"}}}}}
	sDriver = object{{"name", true, "string"}, {"version", true, "string"}, {"rules", true, list{sRule}}}
	sNotice = object{{"level", true, sLevel}, {"message", true, sText}}
	sInvoke = object{{"executionSuccessful", true, "boolean"}, {"toolExecutionNotifications", false, list{sNotice}}}
	sRun    = object{{"tool", true, object{{"driver", true, sDriver}}}, {"invocations", true, list{sInvoke}}, {"originalUriBaseIds", true, "object"},
		{"columnKind", true, []string{"utf16CodeUnits", "unicodeCodePoints"}}, {"results", true, list{sResult}}}
	sLog = object{{"$schema", true, "string"}, {"version", true, []string{"2.1.0"}}, {"runs", true, list{sRun}}}
)

// wrong lists the parts of a JSON value that the description does not allow, and the missing ones.
func wrong(at string, v, is any) (out []string) {
	ok := false
	switch is := is.(type) {
	case string:
		n, number := v.(float64)
		ok = is == "integer" && number && n == float64(int(n)) || v != nil && is == map[reflect.Kind]string{reflect.String: "string",
			reflect.Bool: "boolean", reflect.Map: "object"}[reflect.TypeOf(v).Kind()]
	case []string:
		for _, s := range is {
			ok = ok || s == v
		}
	case list:
		var all []any
		all, ok = v.([]any)
		for i, x := range all {
			out = append(out, wrong(fmt.Sprintf("%s[%d]", at, i), x, is.of)...)
		}
	case object:
		var m map[string]any
		m, ok = v.(map[string]any)
		for _, f := range is {
			if x, has := m[f.name]; has {
				out = append(out, wrong(at+"."+f.name, x, f.is)...)
			} else if f.required {
				out = append(out, at+" lacks "+f.name)
			}
			delete(m, f.name)
		}
		for name := range m {
			out = append(out, at+" has "+name)
		}
	}
	if !ok {
		out = append(out, fmt.Sprintf("%s is %v, and not as %v", at, v, is))
	}
	return out
}

// TestSARIFStructure checks the output against the parts of the standard's schema that it uses.
func TestSARIFStructure(t *testing.T) {
	r := exported()
	r.Findings[0].Suppressed = &Suppressed{By: "comment", At: "a.cu:1", Reason: "known"}
	r.Findings[1].Suppressed = &Suppressed{By: "baseline", At: "old.json"}
	r.Baseline = true
	var b bytes.Buffer
	if err := SARIF(&b, r, testExport()); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.sarif", b.Bytes())
	var log any
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if out := wrong("log", log, sLog); len(out) > 0 {
		t.Errorf("%s\n%s", strings.Join(out, "\n"), b.String())
	}
}

// TestSARIFResult checks the properties that code scanning uses.
func TestSARIFResult(t *testing.T) {
	r := exported()
	var b bytes.Buffer
	if err := SARIF(&b, r, testExport()); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if len(run.Results) != len(r.Findings) || len(run.Invocations[0].Notifications) != 2 {
		t.Fatalf("%d results, invocations %+v", len(run.Results), run.Invocations)
	}
	for i, x := range run.Results {
		f := &r.Findings[i]
		if rule := run.Tool.Driver.Rules[x.RuleIndex]; rule.ID != string(f.Kind) || x.RuleID != rule.ID || rule.Help.Markdown != "About *"+rule.ID+"*." {
			t.Errorf("result %d is of %s, its rule is %+v", i, x.RuleID, rule)
		}
		if n := len(f.Accesses); len(x.Locations) != 1 || len(x.Related) != n-1 || len(x.Flows[0].Threads) != n {
			t.Errorf("%s has %d accesses: %+v", f.Kind, n, x)
		}
		if x.Fingerprints["fencepost/v1"] != f.Fingerprint || f.Fingerprint == "" {
			t.Errorf("%s has the fingerprints %v", f.Kind, x.Fingerprints)
		}
		if at := x.Locations[0].Physical; f.Kind == detect.MissingBarrier &&
			(at.Artifact != sarifArtifact{"reduce.cu", sarifBase} || at.Region.Line != 4 || at.Region.Column != 2) {
			t.Errorf("the race is at %+v %+v", at.Artifact, at.Region)
		}
	}
}

// TestFingerprintIgnoresOtherLines moves a race in its file, and changes its lines.
func TestFingerprintIgnoresOtherLines(t *testing.T) {
	of := func(source []string, shift int) string {
		f := race()
		for i := range f.Accesses {
			p := &f.Accesses[i].Frames[0]
			p.Line, p.Column, p.PTXLine = p.Line+shift, p.Column+shift, p.PTXLine+shift
		}
		all := []Finding{f}
		Fingerprint(all, func(string) []string { return source })
		return all[0].Fingerprint
	}
	first := of(reduceSource, 0)
	if got := of(append([]string{"// a comment", "#include <x>"}, reduceSource...), 2); got != first || first == "" {
		t.Errorf("two lines before it make the fingerprint %s of %s", got, first)
	}
	for i := 3; i <= 4; i++ {
		edited := append([]string{}, reduceSource...)
		if edited[i] = "    " + edited[i] + "  "; of(edited, 0) != first {
			t.Errorf("the spaces around line %d change the fingerprint", i+1)
		}
		if edited[i] += " // edited"; of(edited, 0) == first {
			t.Errorf("line %d was edited, and the fingerprint is the same", i+1)
		}
	}
}

// TestFingerprintsDiffer has two findings with equal lines, in either order of their accesses.
func TestFingerprintsDiffer(t *testing.T) {
	f, g, h := race(), race(), race()
	g.Accesses[0], g.Accesses[1] = g.Accesses[1], g.Accesses[0]
	h.Class, h.Kind = detect.MemoryFault, "out-of-bounds"
	all := []Finding{f, g, h}
	Fingerprint(all, testSource)
	alone := []Finding{g}
	Fingerprint(alone, testSource)
	x, y, z := all[0].Fingerprint, all[1].Fingerprint, all[2].Fingerprint
	if x == y || x == z || y == z || alone[0].Fingerprint != x {
		t.Errorf("the fingerprints are %s, %s, %s; of the second alone %s, want that of the first", x, y, z, alone[0].Fingerprint)
	}
}

func TestJUnit(t *testing.T) {
	r := exported()
	r.Findings[0].Suppressed = &Suppressed{By: "file", At: "s.toml:1", Reason: "known"}
	r.Findings[1].Message = "control \x01 and ]]> & <tag>"
	var b bytes.Buffer
	if err := JUnit(&b, r, testExport(), false); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.junit.xml", b.Bytes())
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	// Four findings: one suppressed, two errors, one warning. One kernel without any, one call that was not checked.
	if s := got.Suites[0]; s.Tests != 6 || s.Failures != 2 || s.Errors != 1 || s.Skipped != 1 || len(s.Cases) != 6 {
		t.Errorf("tests %d, failures %d, errors %d, skipped %d, cases %d", s.Tests, s.Failures, s.Errors, s.Skipped, len(s.Cases))
	}
	b.Reset()
	if err := JUnit(&b, &Report{Verdict: NotChecked}, testExport(), false); err != nil || !strings.Contains(b.String(), `errors="1"`) {
		t.Errorf("a run that checked nothing: %v\n%s", err, b.String())
	}
}

func TestGitHub(t *testing.T) {
	r := exported()
	r.Findings[3].Suppressed = &Suppressed{By: "file"}
	var b bytes.Buffer
	GitHub(&b, r, testExport())
	golden(t, "report.github.txt", b.Bytes())
	many := &Report{}
	for i := range annotations + 5 {
		f := race()
		f.Group = fmt.Sprint(i)
		many.Findings = append(many.Findings, f)
	}
	b.Reset()
	GitHub(&b, many, testExport())
	if n := strings.Count(b.String(), "::error "); n != annotations || !strings.Contains(b.String(), "5 more causes") {
		t.Errorf("%d annotations:\n%s", n, b.String())
	}
}

func TestGitLab(t *testing.T) {
	var b bytes.Buffer
	if err := GitLab(&b, exported(), testExport()); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.gitlab.json", b.Bytes())
	var got []codeQuality
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got) != 3 { // one finding has no line
		t.Fatalf("%v: %d entries", err, len(got))
	}
	for _, q := range got {
		if q.Fingerprint == "" || q.Location.Path != "reduce.cu" || q.Location.Lines.Begin == 0 || q.Severity == "" {
			t.Errorf("%+v", q)
		}
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, exported(), testExport(), "2 errors"); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.md", b.Bytes())
}
