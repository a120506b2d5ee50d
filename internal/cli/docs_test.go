package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestISAPageIsFresh compares docs/isa.md with the instruction table.
func TestISAPageIsFresh(t *testing.T) {
	var b bytes.Buffer
	if err := writeISAPage(&b); err != nil {
		t.Fatal(err)
	}
	if readDoc(t, "docs/isa.md") != b.String() {
		t.Error("docs/isa.md is stale: run go generate ./docs")
	}
}

// TestFindingsPageIsTotal checks that the page describes every kind of finding.
func TestFindingsPageIsTotal(t *testing.T) {
	page := readDoc(t, "docs/findings.md")
	var kinds []string
	for _, file := range []string{"internal/detect/detect.go", "internal/engine/contract.go", "internal/session/resolve.go"} {
		for _, m := range regexp.MustCompile(`Kind\s+= "([a-z-]+)"`).FindAllStringSubmatch(readDoc(t, file), -1) {
			if m[1] != "step-limit" { // ends a launch, and is no finding
				kinds = append(kinds, m[1])
			}
		}
	}
	if len(kinds) < 20 {
		t.Errorf("only %d kinds were found in the sources: %q", len(kinds), kinds)
	}
	titles := ""
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "### ") {
			titles += line
		}
	}
	for _, k := range kinds {
		if !strings.Contains(titles, k) {
			t.Errorf("docs/findings.md does not explain %q", k)
		}
	}
}

// TestJSONPageIsTotal checks that the page describes every key of a report.
func TestJSONPageIsTotal(t *testing.T) {
	page := readDoc(t, "docs/json.md")
	for _, m := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(readDoc(t, "internal/report/testdata/report.json"), -1) {
		if key := m[1]; !strings.Contains(page, "`"+key+"`") && !strings.Contains(page, `"`+key+`"`) {
			t.Errorf("docs/json.md does not explain %q", key)
		}
	}
}

// TestReadmeBeginsWithTwoCommands checks the first fenced block of the README.
func TestReadmeBeginsWithTwoCommands(t *testing.T) {
	_, rest, _ := strings.Cut(readDoc(t, "README.md"), "```")
	_, rest, _ = strings.Cut(rest, "\n")
	block, _, _ := strings.Cut(rest, "```")
	want := []string{"go run ./cmd/fencepost demo", "go test ./..."}
	if got := strings.Split(strings.TrimSpace(block), "\n"); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the first block of README.md is %q, want %q", got, want)
	}
}

// TestReadmeShowsARealFinding compares the finding in the README with the output of the command.
func TestReadmeShowsARealFinding(t *testing.T) {
	var out, errs bytes.Buffer
	code := Main([]string{"fencepost", "check", "corpus/race/stencil"}, nil, &out, &errs)
	if code != exitFindings {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	if want := "$ fencepost check corpus/race/stencil\n" + out.String(); !strings.Contains(readDoc(t, "README.md"), want) {
		t.Errorf("README.md does not hold\n%s", want)
	}
}

// TestVerifyPageShowsTheLock checks that docs/verify.md has the lock that the script verifylock proves, and the
// expected output.
func TestVerifyPageShowsTheLock(t *testing.T) {
	page, script := readDoc(t, "docs/verify.md"), readDoc(t, "internal/cli/testdata/script/verifylock.txtar")
	_, lock, _ := strings.Cut(script, "-- queue.cu --\n")
	if lock == "" || !strings.Contains(page, "```\n"+lock+"```\n") {
		t.Error("docs/verify.md does not have the lock of verifylock.txtar")
	}
	told := regexp.MustCompile(`(?m)^stdout '(The write .*)'$`).FindAllStringSubmatch(script, -1)
	if told == nil {
		t.Error("verifylock.txtar wants no write that is lost")
	}
	for _, m := range told {
		if !regexp.MustCompile(strings.TrimSuffix(m[1], "$")).MatchString(page) {
			t.Errorf("docs/verify.md does not have %q", m[1])
		}
	}
}

// TestHelpNamesEveryFlagOnce checks that the help fits one page and names each flag once.
func TestHelpNamesEveryFlagOnce(t *testing.T) {
	var b bytes.Buffer
	writeHelp(&b)
	lines := strings.Split(b.String(), "\n")
	if len(lines) > 68 {
		t.Errorf("the help page has %d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 125 {
			t.Errorf("the help page has a line of %d bytes: %s", len(line), line)
		}
	}
	for _, c := range commands() {
		seen := map[string]bool{}
		for _, f := range c.flags {
			if seen[f.name] {
				t.Errorf("%s has two flags --%s", c.name, f.name)
			}
			seen[f.name] = true
		}
	}
}

// TestFlags checks which flags each command honours. A listed flag without effect would mislead. A flag that only other
// commands of the same family have is refused with a reason.
func TestFlags(t *testing.T) {
	const (
		export   = " color html sarif junit summary annotate"                                               // files for other programs
		report   = " fail-on error-exitcode json limit print-limit max-findings suppress baseline" + export // what is told, and where
		judge    = " detector model"                                                                        // who judges
		watched  = " skip-kernel variable skip-variable blocks threads addresses"                           // what is judged
		schedule = watched + " kernel kernel-name seed schedule engine arch device prune instrument"        // how kernels are executed
		always   = " timeout times"
	)
	honoured := map[string]string{
		"demo": "color",
		"config": "nvcc fail-on error-exitcode limit max-findings suppress baseline color annotate kernel kernel-name" +
			watched + " arch seed seeds schedule engine timeout detector model",
		"run":        "compiler devices jobs kill leaks nvcc seeds uninit verbose" + report + judge + schedule + always,
		"check":      "arg block compiler grid launch shared jobs nvcc seeds uninit" + report + judge + schedule + always,
		"compare":    "launch jobs nvcc seeds" + report + judge + schedule + always,
		"record":     "devices out values launch nvcc" + report + strings.TrimSuffix(schedule, " instrument") + always,
		"analyze":    report + judge + watched + always,
		"export":     "out",
		"verify":     "arg barriers block checkpoint equivalence first graph grid incl jobs json kernel launch launch-number model nvcc repair schedule shared symmetry timeout times unroll" + export,
		"simulate":   "events gpu hw instructions json launch nvcc program resources threads variable-bytes",
		"suppress":   "reason expires",
		"instrument": "out instrument prune",
		"isa":        "markdown",
		"doctor":     "install nvcc yes",
	}
	for _, c := range commands() {
		var has []string
		for _, f := range c.flags {
			has = append(has, f.name)
			if c.refused[f.name] != "" {
				t.Errorf("%s lists --%s and refuses it", c.name, f.name)
			}
		}
		want := strings.Fields(honoured[c.name])
		slices.Sort(has)
		slices.Sort(want)
		if !slices.Equal(has, want) {
			t.Errorf("%s lists the flags %v, and honours %v", c.name, has, want)
		}
	}
}
