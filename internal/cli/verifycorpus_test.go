package cli

import (
	"context"
	goflag "flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify"
)

var updateVerify = goflag.Bool("update-verify", false, "write docs/verify-corpus.md")

// corpusRow is what verify finds of a program of the corpus under one model.
type corpusRow struct {
	verdict    string
	executions int
	ended      bool
	seconds    float64
}

func (r *corpusRow) String() string {
	if !r.ended {
		return "not ended | | "
	}
	return fmt.Sprintf("%s | %d | ", r.verdict, r.executions)
}

// exploreProgram explores a program under a model; nil if it launches more than once, or more than four threads.
func exploreProgram(t *testing.T, p *corpus.Program, model string, limit time.Duration) (*corpusRow, *verify.Result) {
	in, err := session.CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Launch.Launches) != 1 {
		return nil, nil
	}
	if l := &in.Launch.Launches[0]; l.Grid.Count()*l.Block.Count() > 4 {
		return nil, nil
	}
	begin := time.Now()
	r, rep, err := exploreLaunch(context.Background(), session.Options{Timeout: limit}, in, verify.Options{Unroll: 8, Model: model})
	if err != nil || r == nil {
		t.Fatalf("%s: %v, %+v", p.Path(), err, rep)
	}
	return &corpusRow{r.Verdict(), r.Executions, !r.Stopped || r.Refusal != "", time.Since(begin).Seconds()}, r
}

// TestVerifyCorpus explores the programs of the corpus that launch few threads under both models, and wants no verdict that
// contradicts what their sources say: no proof where an error is wanted, and no error where nothing is. Under the model PTX, in
// which volatile accesses are atomic, the detector hb of that model must find no race where there is no error. What is found is held
// against docs/verify-corpus.md.
func TestVerifyCorpus(t *testing.T) {
	limit := time.Second
	if testsize.Long() {
		limit = 20 * time.Second
	}
	if *updateVerify {
		limit = time.Minute
	}
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "docs", "verify-corpus.md")
	page, err := os.ReadFile(file)
	if err != nil && !*updateVerify {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(corpusHead)
	explored := map[string]int{}
	for i, p := range programs {
		row, r := exploreProgram(t, p, verify.SRC11, limit)
		if row == nil {
			continue
		}
		wanted := slices.ContainsFunc(p.Wants, func(w corpus.Want) bool { return w.Severity == detect.Error.String() })
		explored[row.verdict]++
		if wanted && row.verdict == verify.OK || len(p.Wants)+len(p.Gaps) == 0 && row.verdict == verify.Error {
			t.Errorf("%s: %s, and the source wants %v: %+v", p.Path(), row.verdict, p.Wants, r.Findings)
		}
		line := fmt.Sprintf("| %s | %s", p.Path(), row)
		if known := strings.Contains(string(page), line); !known && !*updateVerify && row.ended {
			t.Errorf("%s does not have %q; write it again: go test ./internal/cli -run TestVerifyCorpus -update-verify", file, line)
		}
		line += fmt.Sprintf("%.3f | ", row.seconds)
		if i%4 == 0 || testsize.Long() || *updateVerify {
			under := corpusPTX(t, p, limit)
			fmt.Fprintf(&b, "%s%s%.3f |\n", line, under, under.seconds)
			if known := strings.Contains(string(page), "| "+under.String()); !known && !*updateVerify && under.ended {
				t.Errorf("%s: %s under the model ptx is not in %s", p.Path(), under, file)
			}
		}
	}
	t.Logf("%v", explored)
	if explored[verify.OK] < 20 || explored[verify.Error] < 20 {
		t.Errorf("the verdicts are %v: too few", explored)
	}
	if *updateVerify {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// corpusPTX explores a program under the model PTX, and holds it against what the detector hb finds in three schedules.
func corpusPTX(t *testing.T, p *corpus.Program, limit time.Duration) *corpusRow {
	row, r := exploreProgram(t, p, verify.PTX, limit)
	if len(p.Wants)+len(p.Gaps) == 0 && row.verdict == verify.Error {
		t.Errorf("%s: %s under the model ptx, and the source wants nothing: %+v", p.Path(), row.verdict, r.Findings)
	}
	if row.verdict != verify.OK {
		return row
	}
	in, err := session.CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	hb, err := detect.Choose(all.Detectors(), "hb")
	if err != nil {
		t.Fatal(err)
	}
	o := session.Options{Detectors: []detect.Spec{hb}, Model: detect.ModelPTX, Seeds: 3, Timeout: 30 * time.Second}
	rep, err := session.Check(context.Background(), &o, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rep.Findings {
		if f := &rep.Findings[i]; f.Class == detect.Race && f.Severity == detect.Error {
			t.Errorf("%s: hb finds %s, and verify no error in %d executions: %+v", p.Path(), f.Kind, row.executions, f.Accesses)
		}
	}
	return row
}

const corpusHead = `# What does verify find in the programs of the corpus?

The programs that launch at most four threads once, with a bound of 8 iterations. *ok* and *error* are verdicts, *bounded* are programs
that are refused or reach the bound. Executions are those that end. Under the model ptx volatile accesses are atomic, so the races of a
volatile access are no errors. Where there is no error under it, the detector ` + "`hb --model ptx`" + ` finds no race in three schedules. Seconds
are of one core of an AMD EPYC beside other work; *not ended* are programs that a minute was too short for.

The page is written by ` + "`go test ./internal/cli -run TestVerifyCorpus -update-verify`" + `; all but the seconds is checked by the test.

| program | scoped RC11 | executions | seconds | PTX | executions | seconds |
|---|---|---|---|---|---|---|
`
