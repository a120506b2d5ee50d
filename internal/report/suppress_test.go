package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
)

// today is the date in these tests.
var today = time.Date(2026, 11, 23, 15, 0, 0, 0, time.UTC)

// knownKinds are those that the tests may name.
var knownKinds = []string{"missing-barrier", "missing-fence"}

func TestSuppressions(t *testing.T) {
	for entry, want := range map[string]bool{
		`kind = "missing-barrier"`:                                             true,
		`kind = "missing-fence"`:                                               false,
		`kind = "missing-barrier"; kernel = "red*"`:                            true,
		`kind = "missing-barrier"; kernel = "reduce(int const*, int*, int)"`:   true,
		`kind = "missing-barrier"; kernel = "scan"`:                            false,
		`kind = "missing-barrier"; function = "reduce"`:                        true,
		`kind = "missing-barrier"; function = "other"`:                         false,
		`kind = "missing-barrier"; source = "proj/*.cu"`:                       true,
		`kind = "missing-barrier"; source = "/home/**/reduce.cu"`:              true,
		`kind = "missing-barrier"; source = "/home/*/reduce.cu"`:               false,
		`kind = "missing-barrier"; source = "educe.cu"`:                        false,
		`kind = "missing-barrier"; source = "reduce.cu"; line = 5`:             true,
		`kind = "missing-barrier"; source = "reduce.cu"; line = 6`:             false,
		`kind = "missing-barrier"; variable = "t?le"`:                          true,
		`kind = "missing-barrier"; variable = "tiles"`:                         false,
		`kind = "missing-barrier"; detector = "hb"`:                            true,
		`kind = "missing-barrier"; detector = "gwcp"`:                          false,
		`kind = "missing-barrier"; expires = 2026-11-23`:                       true,
		`kind = "missing-barrier"; expires = 2026-11-22`:                       false,
		`fingerprint = "FINGERPRINT"`:                                          true,
		`fingerprint = "0"`:                                                    false,
		`kind = "missing-fence"; fingerprint = "FINGERPRINT"; kernel = "redu"`: false,
	} {
		r := &Report{Verdict: Found, Findings: Merge([]Finding{race()})}
		Fingerprint(r.Findings, testSource)
		text := "# why not\n[[suppress]]\nreason = \"known\"\n" +
			strings.NewReplacer("FINGERPRINT", r.Findings[0].Fingerprint, "; ", "\n").Replace(entry) + "\n"
		entries, err := ParseSuppressions("s.toml", text, knownKinds)
		if err != nil {
			t.Fatal(err)
		}
		notes := (&Triage{Entries: entries, Today: today, Source: testSource}).Apply(r)
		got := r.Findings[0].Suppressed
		if (got != nil) != want || (Judge(r, detect.Error) == Clean) != want || (len(notes) == 0) != want {
			t.Errorf("%s: suppressed %+v, verdict %s, notes %q", entry, got, Judge(r, detect.Error), notes)
		}
		if got != nil && *got != (Suppressed{By: "file", At: "s.toml:2", Reason: "known"}) {
			t.Errorf("%s: %+v", entry, got)
		}
		if strings.Contains(entry, "11-22") != strings.Contains(fmt.Sprint(notes), "expired") {
			t.Errorf("%s: notes %q", entry, notes)
		}
	}
}

func TestWrongSuppressions(t *testing.T) {
	for text, want := range map[string]string{
		"[[suppress]]\nkind = \"missing-barier\"\nreason = \"x\"\n":                `s.toml:1: unknown kind "missing-barier"; did you mean "missing-barrier"?`,
		"\n[[suppress]]\nkind = \"missing-barrier\"\n":                             "s.toml:2: an entry says why",
		"[[suppress]]\nreason = \"x\"\n":                                           "s.toml:1: an entry names a kind",
		"[[suppress]]\nkind = \"missing-barrier\"\nreason = \"x\"\nkernal = \"a\"": `s.toml:4: unknown key "kernal"; did you mean "kernel"?`,
		"[[supress]]\nkind = \"missing-barrier\"\n":                                `unknown key "supress"; did you mean "suppress"?`,
		"[[suppress]]\nkind = \"missing-barrier\"\nreason = \"x\"\nline = 4":       "s.toml:1: a line is one of a source",
		"[[suppress]]\nkind = 3\n":                                                 "s.toml:2:8: ",
	} {
		if _, err := ParseSuppressions("s.toml", text, knownKinds); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestIgnoreComments(t *testing.T) {
	for _, c := range []struct {
		line    int // from 1
		comment string
		want    bool
		note    string
	}{
		{4, "// fencepost: ignore[missing-barrier] one warp", true, ""},
		{5, "//fencepost:ignore[missing-fence, missing-barrier] one warp", true, ""},
		{6, "// fencepost: ignore[missing-barrier] one warp", false, "reduce.cu:6: the comment to ignore findings applies to none."},
		{4, "// fencepost: ignore[missing-fence]", false, "reduce.cu:4: the comment to ignore findings applies to none."},
		{4, "// fencepost: ignore one warp", false, "names their kind"},
		{4, "// fencepost: ignore[missing-barier]", false, `unknown kind "missing-barier"; did you mean "missing-barrier"?`},
	} {
		source := append([]string{}, reduceSource...)
		source[c.line-1] += " " + c.comment
		r := &Report{Verdict: Found, Findings: Merge([]Finding{race()})}
		notes := (&Triage{Today: today, Kinds: knownKinds, Source: func(string) []string { return source }}).Apply(r)
		s := r.Findings[0].Suppressed
		if (s != nil) != c.want || len(notes) > 0 != (c.note != "") || !strings.Contains(fmt.Sprint(notes), c.note) {
			t.Errorf("%s: suppressed %+v, notes %q", c.comment, s, notes)
		}
		if s != nil && *s != (Suppressed{"comment", fmt.Sprintf("reduce.cu:%d", c.line), "one warp"}) {
			t.Errorf("%s: %+v", c.comment, s)
		}
	}
}

// TestBaseline writes a report, adds a finding, and uses the report to suppress all others. Then an entry made from a
// finding suppresses it.
func TestBaseline(t *testing.T) {
	old := exported()
	old.Findings[0].Suppressed = &Suppressed{By: "file", At: "s.toml:2", Reason: "known"}
	var b bytes.Buffer
	if err := JSON(&b, old, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"at": "s.toml:2"`) {
		t.Errorf("a suppressed finding is not marked:\n%s", b.String())
	}
	findings, err := ReadFindings("old.json", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	r := exported()
	extra := race()
	extra.Accesses[1].Frames[0].Line = 6
	r.Findings = Merge(append(r.Findings, extra))
	Fingerprint(r.Findings, testSource)
	(&Triage{Baseline: findings, Name: "old.json", Compared: true, Today: today}).Apply(r)
	if left := Counted(r.Findings); len(left) != 1 || left[0].Accesses[1].Frames[0].Line != 6 || !r.Baseline {
		t.Errorf("%d findings are new", len(left))
	}
	if _, err := ReadFindings("x", []byte(`{"schema": "other"}`)); err == nil {
		t.Error("any JSON is a baseline")
	}
	host := findings[1]
	host.Accesses = slices.Clone(host.Accesses[:1])
	host.Accesses[0].Function = ""
	if got := WriteEntry(&host, "x", ""); strings.Contains(got, " in \n") {
		t.Errorf("an access without a function is in one:\n%s", got)
	}
	entry := WriteEntry(&findings[1], `say "no"`, "2030-01-01")
	entries, err := ParseSuppressions("s.toml", entry, nil)
	if err != nil || len(entries) != 1 || entries[0].Reason != `say "no"` || entries[0].Expires.Year() != 2030 {
		t.Fatalf("%v: %+v\n%s", err, entries, entry)
	}
	again := exported()
	(&Triage{Entries: entries, Today: today}).Apply(again)
	for i := range again.Findings {
		if got := again.Findings[i].Suppressed != nil; got != (i == 1) {
			t.Errorf("finding %d is suppressed: %t, by\n%s", i, got, entry)
		}
	}
}

// TestOnlyFindingsAreSuppressed checks that suppressions do not affect what was not checked, nor a failure of the
// program.
func TestOnlyFindingsAreSuppressed(t *testing.T) {
	r := exported()
	for i := range r.Findings {
		r.Findings[i].Suppressed = &Suppressed{By: "file"}
	}
	skipped := Judge(r, detect.Error)
	r.Skipped = nil
	clean := Judge(r, detect.Error)
	r.Program = &Program{Exit: 1}
	if failed := Judge(r, detect.Error); skipped != NotChecked || clean != Clean || failed != ProgramFailed {
		t.Errorf("the verdicts are %s, %s and %s", skipped, clean, failed)
	}
}
