package verify

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

var update = flag.Bool("update", false, "write docs/verify-tables.md")

// tableRow is a row of tables 1 to 3 of the paper: a program at a size, and the printed values.
type tableRow struct {
	table         int
	program       string
	blocks, block int
	printed       float64 // seconds
	executions    int     // n!, for ttaslock its square, of a program without error; -1 for one with
}

// In variant 1 of a lock the releases are relaxed, in variant 2 the acquires.
var tableRows = []tableRow{
	{1, "caslock", 4, 2, 50, 40320}, {1, "caslock1", 4, 2, 0.1, -1}, {1, "caslock1", 6, 4, 0.1, -1}, {1, "caslock2", 4, 2, 0.1, -1}, {1, "caslock2", 6, 4, 0.1, -1},
	{1, "ticketlock", 4, 2, 320, 40320}, {1, "ticketlock1", 4, 2, 0.1, -1}, {1, "ticketlock1", 6, 4, 0.1, -1}, {1, "ticketlock2", 4, 2, 0.1, -1}, {1, "ticketlock2", 6, 4, 0.1, -1},
	{1, "ttaslock", 3, 2, 500, 518400}, {1, "ttaslock1", 4, 2, 0.1, -1}, {1, "ttaslock1", 6, 4, 0.1, -1}, {1, "ttaslock2", 4, 2, 0.1, -1}, {1, "ttaslock2", 6, 4, 0.1, -1},
	{1, "xfbarrier", 4, 3, 28, 1}, {1, "xfbarrier1", 4, 3, 0.1, -1}, {1, "xfbarrier1", 6, 4, 0.2, -1}, {1, "xfbarrier2", 4, 3, 0.1, -1}, {1, "xfbarrier2", 6, 4, 0.2, -1},
	{2, "1dconv", 12, 4, 8.9, -1}, {2, "1dconv", 15, 4, 15.2, -1}, {2, "1dconv", 20, 4, 28.7, -1}, {2, "1dconv", 25, 4, 47.7, -1},
	{2, "gcon", 4, 2, 2, -1}, {2, "gcon", 5, 2, 5, -1}, {2, "gcon", 7, 2, 25, -1}, {2, "gcon", 10, 2, 75, -1}, {2, "gcon", 15, 2, 295, -1},
	{2, "gcol", 4, 2, 0.5, -1}, {2, "gcol", 5, 2, 1.7, -1}, {2, "gcol", 7, 2, 3.6, -1}, {2, "gcol", 10, 2, 14.5, -1}, {2, "gcol", 15, 2, 18, -1},
	{2, "matmul", 4, 3, 8, -1}, {2, "matmul", 5, 3, 9, -1}, {2, "matmul", 7, 3, 32, -1}, {2, "matmul", 10, 3, 360, -1}, {2, "matmul", 15, 3, 175, -1},
	{3, "histogram", 4, 2, 0.1, -1}, {3, "histogram", 6, 4, 0.1, -1}, {3, "xfbarrier", 4, 2, 0.1, -1}, {3, "xfbarrier", 6, 4, 0.7, -1},
	{3, "selectmatches", 1, 16, 13, -1}, {3, "warpreduce", 1, 256, 0.3, -1},
}

// source returns the program of a row.
func (r *tableRow) source(t *testing.T) string {
	name := strings.TrimRight(r.program, "12")
	variant := r.program[len(name):]
	src := read(t, name)
	src, _, _ = strings.Cut(src, "~exists") // the condition is for the size of the file
	switch {
	case variant == "2":
		src = strings.ReplaceAll(src, ", acq,", ", rlx,")
	case variant == "1":
		src = strings.ReplaceAll(src, ", rel,", ", rlx,")
	case r.table == 3 && name == "xfbarrier":
		src = strings.Replace(src, "    }\n    barrier();", "    }\n    if (threadIdx == 1) return;\n    barrier();", 1)
	}
	return src
}

// tableErrors are the beginnings of the titles of the errors of each table.
var tableErrors = map[int]string{1: "data race", 2: "heterogeneous race", 3: "barrier divergence"}

// repairRow is a row of table 4 of the paper: an application with races, its repair here, and the printed values.
type repairRow struct {
	program              string
	blocks, block        int
	lines, executions    int // that are changed, and then
	races, fixes, states int // printed: the last are executions
}

var repairRows = []repairRow{{"gcol", 2, 1, 3, 73, 3, 6, 350242}, {"matmul", 3, 1, 1, 1296, 2, 1, 2409}, {"1dconv", 2, 2, 1, 1, 1, 1, 995328}}

// repairSection repairs the applications of table 4, explores the results, and returns the section of the page.
func repairSection(t *testing.T, check func(line string)) string {
	var b strings.Builder
	b.WriteString("\n## Table 4: repair\n\nThe paper repairs each program within 3 seconds. *Executions* are those of the repaired program, which are all explored.\n\n" +
		"| program | blocks, threads | lines changed | programs tried | executions | seconds | printed: races, changes, executions |\n|---|---|---|---|---|---|---|\n")
	for _, row := range repairRows {
		src, size := read(t, row.program), litmus.Options{Grid: row.blocks, Block: row.block}
		test, err := litmus.Parse(row.program, src, size)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r := RepairLitmus(context.Background(), test, src, size, Options{})
		seconds := time.Since(begin).Seconds()
		if r.Proof == nil || r.Proof.Verdict() != OK || len(r.Changes) != row.lines || r.Proof.Executions != row.executions {
			t.Errorf("%s: %q %v\n%s %+v", row.program, r.Reason, r.Changes, r.Diff, r.Proof)
			continue
		}
		line := fmt.Sprintf("| %s | %d, %d | %d | %d | %d |", row.program, row.blocks, row.block, len(r.Changes), r.Tried, r.Proof.Executions)
		check(line)
		fmt.Fprintf(&b, "%s %.3f | %d, %d, %d |\n", line, seconds, row.races, row.fixes, row.states)
	}
	return b.String()
}

// tableRemarks precede tables.
var tableRemarks = map[int]string{2: "\nThe paper's search explores 4 executions of 1dconv, 455 of gcon, 11 of gcol and 18 of matmul before the first race. Here the race\nappears in the first execution, before it is complete.\n"}

// TestTables compares the verdicts with tables 1 to 4 and figure 4 of the paper, and the page docs/verify-tables.md
// with the results.
func TestTables(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "verify-tables.md")
	page, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	check := func(line string) {
		if !*update && !strings.Contains(string(page), line) {
			t.Errorf("%s does not have %q; write it again: go test ./internal/verify -run TestTables -update", file, line)
		}
	}
	var b strings.Builder
	b.WriteString(tablesHead)
	table := 0
	for _, row := range tableRows {
		if row.table != table {
			table = row.table
			fmt.Fprintf(&b, "\n## Table %d: %s\n%s\n| program | blocks, threads | verdict | executions | seconds | printed |\n|---|---|---|---|---|---|\n", table, tableErrors[table], tableRemarks[table])
		}
		if row.executions > 40320 && !*update && !testsize.Long() {
			continue
		}
		begin := time.Now()
		r := verifyText(t, row.program, row.source(t), litmus.Options{Grid: row.blocks, Block: row.block}, Options{First: true})
		seconds := time.Since(begin).Seconds()
		verdict := "no error"
		switch {
		case row.executions >= 0 && (r.Verdict() != OK || r.Executions != row.executions):
			t.Errorf("%s %d,%d: %s, want %d executions without error", row.program, row.blocks, row.block, r.Summary(), row.executions)
		case row.executions < 0 && (len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Title, tableErrors[table])):
			t.Errorf("%s %d,%d: %s %+v, want a %s", row.program, row.blocks, row.block, r.Summary(), r.Findings, tableErrors[table])
			continue
		case row.executions < 0:
			verdict = r.Findings[0].Title
		}
		line := fmt.Sprintf("| %s | %d, %d | %s | %d |", row.program, row.blocks, row.block, verdict, r.Executions)
		fmt.Fprintf(&b, "%s %.3f | %g |\n", line, seconds, row.printed)
		check(line)
	}
	b.WriteString(repairSection(t, check))
	text, picture := growthSection(t, check)
	b.WriteString(text)
	if *update {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "verify-growth.svg"), picture, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

const tablesHead = `# Which programs of the paper does verify explore, and how fast?

This page shows tables 1 to 4, figure 4 and tables 6 to 9 of "GPUMC: A Stateless Model Checker for GPU Weak Memory Concurrency" with programs
of our own, written from the descriptions in the paper (internal/verify/testdata). In variant 1 of a lock or barrier the releases are relaxed,
in variant 2 the acquires. *Executions* are those that were complete when the first error was found, or all if there is no error. *Printed*
are the seconds of the paper, on its machine and with its programs, some of which are larger. So the verdicts can be compared, and of the
seconds only the order of magnitude. Our seconds are of one core of an Intel Xeon.

` + "`go test ./internal/verify -run TestTables -update`" + ` writes the page. The tests check all of it except the seconds.
`
