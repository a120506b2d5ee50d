package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// TestTable1 holds the verdicts against table 1 of the paper: locks and a barrier between blocks, and what becomes of them if
// releases (variant 1) or acquires (variant 2) are weakened to relaxed. The locks without race are explored whole where that takes
// little; the number of executions is then n! (for ttaslock its square).
func TestTable1(t *testing.T) {
	for _, c := range []struct {
		name          string
		variant       int
		blocks, block int
		executions    int // of a program without race
	}{
		{"caslock", 0, 3, 2, 720},
		{"caslock", 1, 4, 2, 0}, {"caslock", 1, 6, 4, 0}, {"caslock", 2, 4, 2, 0}, {"caslock", 2, 6, 4, 0},
		{"ticketlock", 0, 3, 2, 720},
		{"ticketlock", 1, 4, 2, 0}, {"ticketlock", 1, 6, 4, 0}, {"ticketlock", 2, 4, 2, 0}, {"ticketlock", 2, 6, 4, 0},
		{"ttaslock", 0, 2, 2, 576},
		{"ttaslock", 1, 4, 2, 0}, {"ttaslock", 1, 6, 4, 0}, {"ttaslock", 2, 4, 2, 0}, {"ttaslock", 2, 6, 4, 0},
		{"xfbarrier", 0, 4, 3, 1}, {"xfbarrier", 0, 6, 4, 1},
		{"xfbarrier", 1, 4, 3, 0}, {"xfbarrier", 1, 6, 4, 0}, {"xfbarrier", 2, 4, 3, 0}, {"xfbarrier", 2, 6, 4, 0},
	} {
		src := read(t, c.name)
		src, _, _ = strings.Cut(src, "~exists") // the condition is for the size of the file
		switch c.variant {
		case 1:
			src = strings.ReplaceAll(src, ", rel,", ", rlx,")
		case 2:
			src = strings.ReplaceAll(src, ", acq,", ", rlx,")
		}
		name := fmt.Sprintf("%s%d %d,%d", c.name, c.variant, c.blocks, c.block)
		r := verifyText(t, name, src, litmus.Options{Grid: c.blocks, Block: c.block}, Options{First: true})
		switch race := len(r.Findings) == 1 && strings.Contains(r.Findings[0].Title, "race"); {
		case c.variant == 0 && (r.Verdict() != OK || r.Executions != c.executions):
			t.Errorf("%s: %s, %+v; want %d executions without error", name, r.Verdict(), r.Result, c.executions)
		case c.variant > 0 && !race:
			t.Errorf("%s: no race is found: %s", name, r.Summary())
		case c.variant > 0:
			t.Logf("%s: %s after %d executions", name, r.Findings[0].Title, r.Executions)
		default:
			t.Logf("%s: %+v", name, r.Result)
		}
	}
}

// TestSEG has the executions of section 4.2 of the paper: 4, with their outcomes, and one race.
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
