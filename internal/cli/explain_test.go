package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/docs"
)

// kindsOfTheCode returns the kinds that the sources of the project declare.
func kindsOfTheCode(t *testing.T) (kinds []string) {
	t.Helper()
	for _, file := range []string{"internal/detect/detect.go", "internal/engine/contract.go"} {
		for _, m := range regexp.MustCompile(`Kind\s+= "([a-z-]+)"`).FindAllStringSubmatch(readDoc(t, file), -1) {
			kinds = append(kinds, m[1])
		}
	}
	for _, m := range regexp.MustCompile(`Misuse = "([a-z-]+)"`).FindAllStringSubmatch(readDoc(t, "internal/cuda/failure.go"), -1) {
		kinds = append(kinds, m[1])
	}
	kinds = append(kinds, "launch-refused")
	return slices.DeleteFunc(kinds, func(k string) bool { return k == "step-limit" }) // ends a launch, and is no finding
}

// TestExplainIsTotal checks that exactly the kinds that the code can report have a page, with every part.
func TestExplainIsTotal(t *testing.T) {
	kinds := kindsOfTheCode(t)
	if len(kinds) < 38 {
		t.Errorf("only %d kinds were found in the sources: %q", len(kinds), kinds)
	}
	for _, k := range kinds {
		page, err := explain(k)
		if err != nil {
			t.Error(err)
			continue
		}
		p := docs.Pages()[k]
		if p.Rule == "" || p.Fix == "" || p.Manual == "" || (p.Corpus == "") == (p.Program == "") {
			t.Errorf("the page of %s lacks a part: %+v", k, p)
		}
		if strings.Contains(page, "// want") || !strings.Contains(page, "## Program") {
			t.Errorf("the page of %s:\n%s", k, page)
		}
	}
	for k := range docs.Pages() {
		if !slices.Contains(kinds, k) {
			t.Errorf("there is a page of %q, which nothing reports", k)
		}
	}
	got := docs.Kinds()
	slices.Sort(got)
	if slices.Sort(kinds); !slices.Equal(got, slices.Compact(kinds)) {
		t.Errorf("findings.md has the kinds\n%q, the code\n%q", got, kinds)
	}
}

// TestExplainedProgramsHaveTheirFinding runs the programs of the corpus that pages show.
func TestExplainedProgramsHaveTheirFinding(t *testing.T) {
	for kind, p := range docs.Pages() {
		if p.Corpus == "" {
			continue
		}
		var out, errs bytes.Buffer
		Main([]string{"fencepost", "check", "corpus/" + p.Corpus}, nil, &out, &errs)
		if !strings.Contains(out.String(), "["+kind+"]") {
			t.Errorf("corpus/%s, which the page of %s shows, does not have it:\n%s%s", p.Corpus, kind, out.String(), errs.String())
		}
	}
}
