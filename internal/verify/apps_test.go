package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// TestTable2 finds the heterogeneous races of four applications at sizes of table 2 of the paper.
func TestTable2(t *testing.T) {
	for _, c := range []struct {
		name, race    string
		blocks, block int
	}{
		{"1dconv", "ready[", 12, 4}, {"1dconv", "ready[", 25, 4},
		{"gcon", "label[", 4, 2}, {"gcon", "label[", 15, 2},
		{"gcol", "colour[", 4, 2}, {"gcol", "colour[", 15, 2},
		{"matmul", "product[", 4, 3}, {"matmul", "product[", 15, 3},
	} {
		r := verifyText(t, c.name, read(t, c.name), litmus.Options{Grid: c.blocks, Block: c.block}, Options{First: true})
		if len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Title, "heterogeneous race on "+c.race) {
			t.Errorf("%s %d,%d: %s %+v", c.name, c.blocks, c.block, r.Summary(), r.Findings)
		}
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

// TestTable3 finds barrier divergence at the sizes of table 3 of the paper.
func TestTable3(t *testing.T) {
	xf := strings.Replace(read(t, "xfbarrier"), "    }\n    barrier();", "    }\n    if (threadIdx == 1) return;\n    barrier();", 1)
	for _, c := range []struct {
		name, src     string
		blocks, block int
	}{
		{"histogram", read(t, "histogram"), 4, 2}, {"histogram", read(t, "histogram"), 6, 4},
		{"xfbarrier", xf, 4, 2}, {"xfbarrier", xf, 6, 4},
		{"selectmatches", read(t, "selectmatches"), 1, 16}, {"warpreduce", read(t, "warpreduce"), 1, 256},
	} {
		r := verifyText(t, c.name, c.src, litmus.Options{Grid: c.blocks, Block: c.block}, Options{First: true})
		if len(r.Findings) != 1 || r.Findings[0].Title != "barrier divergence" {
			t.Errorf("%s %d,%d: %s", c.name, c.blocks, c.block, r.Summary())
		}
	}
}
