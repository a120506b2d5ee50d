package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

func read(t *testing.T, name string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name+".litmus"))
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func verifyText(t *testing.T, name, src string, l litmus.Options, o Options) *Result {
	t.Helper()
	test, err := litmus.Parse(name, src, l)
	if err != nil {
		t.Fatal(err)
	}
	return Litmus(context.Background(), test, o)
}

// TestSEG checks the executions of section 4.2 of the paper: 4, with their outcomes, and one race.
func TestSEG(t *testing.T) {
	r := verifyText(t, "seg", read(t, "seg"), litmus.Options{}, Options{})
	got := ""
	for _, o := range r.Outcomes {
		got += fmt.Sprintf("%s: %d\n", o.State, o.Count)
	}
	want := "T2:a=0 T2:b=0: 1\nT2:a=0 T2:b=1: 1\nT2:a=1 T2:b=0: 1\nT2:a=1 T2:b=1: 1\n"
	if got != want || !r.Holds || r.Executions != 4 {
		t.Errorf("%d executions, outcomes\n%s", r.Executions, got)
	}
	if len(r.Findings) != 1 || r.Findings[0].Title != "data race on Y" || r.Findings[0].Sides[0].Line != 6 || r.Findings[0].Sides[1].Line != 9 {
		t.Errorf("findings %+v", r.Findings)
	}
}
