package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// TestTable4 repairs the applications of table 4 of the paper, at its sizes but for 1dconv, and explores what comes out.
func TestTable4(t *testing.T) {
	for _, c := range []struct {
		name          string
		blocks, block int
		lines         int // that are changed
		executions    int // then
	}{
		{"gcol", 2, 1, 3, 73}, {"matmul", 3, 1, 1, 1296}, {"1dconv", 2, 2, 1, 1}, {"seg", 0, 0, 1, 4},
	} {
		src := read(t, c.name)
		size := litmus.Options{Grid: c.blocks, Block: c.block}
		test, err := litmus.Parse(c.name, src, size)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r := RepairLitmus(context.Background(), test, src, size, Options{})
		if r.Proof == nil || r.Proof.Verdict() != OK || len(r.Changes) != c.lines || r.Proof.Executions != c.executions {
			t.Errorf("%s: %q %v\n%s %+v", c.name, r.Reason, r.Changes, r.Diff, r.Proof)
			continue
		}
		t.Logf("%s: %d programs tried in %v; %s; %v", c.name, r.Tried, time.Since(begin), r.Proof.Summary(), r.Changes)
	}
}
