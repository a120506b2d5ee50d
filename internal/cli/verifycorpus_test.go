package cli

import (
	"context"
	goflag "flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify"
)

var update = goflag.Bool("update", false, "write docs/verify-corpus.md")

// tableUnroll is the bound of loops in the table. tableLimit is the time limit for a program under one model.
const tableUnroll, tableLimit = 8, 4 * time.Second

// tableModels are the columns of the table.
var tableModels = []string{verify.SRC11, verify.PTX}

// tabled reports whether a program belongs in the table: it launches once, at most two blocks of at most four threads.
func tabled(in *session.Input) bool {
	l := in.Launch.Launches
	if len(l) != 1 {
		return false
	}
	blocks, block := l[0].Grid.Count(), l[0].Block.Count()
	return blocks <= 2 && block <= 4 || blocks*block <= 4
}

// exploreProgram explores a program of the corpus under a model.
func exploreProgram(t *testing.T, p *corpus.Program, model string, limit time.Duration) *verify.Result {
	in, err := session.CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	r, rep, err := exploreLaunch(context.Background(), session.Options{Timeout: limit}, in, verify.Options{Unroll: tableUnroll, Model: model})
	if err != nil || r == nil {
		t.Fatalf("%s: %v, %+v", p.Path(), err, rep)
	}
	return r
}

// overTime is the verdict on a program that takes longer than tableLimit.
const overTime = "too long"

// tableVerdict returns the verdict of a result as in the table, and the number of executions.
func tableVerdict(r *verify.Result) (verdict, executions string) {
	executions = fmt.Sprint(r.Executions)
	switch {
	case r.Refusal != "":
		return "refused", ""
	case r.Stopped:
		return overTime, ""
	case r.Verdict() == verify.OK:
		return "no error", executions
	case r.Verdict() == verify.Bounded:
		return "bound", executions
	}
	kinds := map[string]bool{}
	for i := range r.Findings {
		if f := &r.Findings[i]; !f.Warning {
			kind, _, _ := strings.Cut(f.Title, " on ")
			kind, _, _ = strings.Cut(kind, ":")
			kinds[kind] = true
		}
	}
	if len(kinds) == 0 {
		kinds["condition"] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), executions
}

// racePairs returns the pairs of source places that race in findings of a run.
func racePairs(findings []report.Finding, predicted bool) map[string]bool {
	out := map[string]bool{}
	for i := range findings {
		f := &findings[i]
		if f.Class != detect.Race || f.Predicted != predicted || len(f.Accesses) != 2 {
			continue
		}
		var places []string
		for _, a := range f.Accesses {
			file, line := session.ScheduledPlace(a.Frames)
			places = append(places, fmt.Sprintf("%s:%d", filepath.Base(file), line))
		}
		slices.Sort(places)
		out[strings.Join(places, " ")] = true
	}
	return out
}

// exploredPairs returns the pairs of source places that race in a result.
func exploredPairs(r *verify.Result) map[string]bool {
	return racePairs(r.Report().Findings, false)
}

// runPairs runs a program under a model in some schedules. It returns the pairs of source places that race, and those
// that gwcp predicts to race.
func runPairs(t *testing.T, p *corpus.Program, model detect.Model, seeds int) (races, predicted map[string]bool) {
	in, err := session.CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := session.Check(context.Background(), &session.Options{Model: model, Seeds: seeds, Jobs: 1, Timeout: 30 * time.Second}, in)
	if err != nil {
		t.Fatal(err)
	}
	return racePairs(rep.Findings, false), racePairs(rep.Findings, true)
}

// unordered are programs of which hb finds a pair unordered under the model PTX that verify does not, with the reason.
var unordered = map[string]string{}

const fenceOrder = "the manual's order of sc fences orders the accesses, and hb does not know that order"

func init() {
	for _, p := range []string{"bugs/global_chain_sequence_store", "bugs/global_blocks_flag_atomic_cta", "race/message_plain"} {
		unordered[p] = fenceOrder
	}
}

// againstHB checks that the findings of hb in three schedules are among those explored under the model PTX.
func againstHB(t *testing.T, p *corpus.Program, r *verify.Result) {
	if r.Refusal != "" || r.Stopped {
		return
	}
	races, _ := runPairs(t, p, detect.ModelPTX, 3)
	have, missing := exploredPairs(r), false
	for pair := range races {
		if !have[pair] {
			missing = true
			if unordered[p.Path()] == "" {
				t.Errorf("%s: hb finds the race %s under the model ptx, and verify none in %d executions", p.Path(), pair, r.Executions)
			}
		}
	}
	if !missing && unordered[p.Path()] != "" {
		t.Errorf("%s: hb finds no other race any more, which was to differ because %s", p.Path(), unordered[p.Path()])
	}
}

// judgePredictions returns how many of gwcp's predicted races under the model cuda the exploration confirms, and how
// many it refutes.
func judgePredictions(t *testing.T, p *corpus.Program, r *verify.Result) string {
	races, predicted := runPairs(t, p, detect.ModelCUDA, 1)
	have := exploredPairs(r)
	confirmed, others := 0, 0
	for pair := range predicted {
		switch {
		case races[pair]:
		case have[pair]:
			confirmed++
		default:
			others++
		}
	}
	said := ""
	if confirmed > 0 {
		said = fmt.Sprintf("%d confirmed", confirmed)
	}
	switch {
	case others > 0 && (r.Refusal != "" || r.Stopped || r.Cut > 0):
		said += fmt.Sprintf(" %d open", others)
	case others > 0:
		said += fmt.Sprintf(" %d refuted", others)
	}
	return strings.TrimSpace(said)
}

// againstSource checks that no verdict contradicts the source.
func againstSource(t *testing.T, p *corpus.Program, model string, r *verify.Result) {
	wanted := slices.ContainsFunc(p.Wants, func(w corpus.Want) bool { return w.Severity == detect.Error.String() })
	// Under the model PTX volatile accesses are atomic, and sources want errors of them.
	if model == verify.SRC11 && wanted && r.Verdict() == verify.OK || len(p.Wants)+len(p.Gaps) == 0 && r.Verdict() == verify.Error {
		t.Errorf("%s under %s: %s, and the source wants %v: %+v", p.Path(), model, r.Verdict(), p.Wants, r.Findings)
	}
}

// corpusRow is a row of the table: the program, its blocks and threads, the verdict, executions and seconds under each
// model, and the fate of predictions.
type corpusRow [9]string

func (r *corpusRow) String() string { return "| " + strings.Join(r[:], " | ") + " |\n" }

// readRows reads the rows of the page, by program.
func readRows(page string) map[string]corpusRow {
	rows := map[string]corpusRow{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 11 || !strings.Contains(cells[1], "/") {
			continue
		}
		var row corpusRow
		for i := range row {
			row[i] = strings.TrimSpace(cells[i+1])
		}
		rows[row[0]] = row
	}
	return rows
}

// fill explores a program for its row under both models, or only under the second one if both is set.
func (r *corpusRow) fill(t *testing.T, p *corpus.Program, both bool) {
	for m, model := range tableModels {
		cells := r[2+3*m : 5+3*m]
		if !*update && (cells[0] == overTime || m > 0 && !both) {
			continue
		}
		limit := tableLimit
		if !*update {
			limit *= 15 // the machine may be slower
		}
		begin := time.Now()
		x := exploreProgram(t, p, model, limit)
		if *update {
			cells[2] = fmt.Sprintf("%.3f", time.Since(begin).Seconds())
		}
		cells[0], cells[1] = tableVerdict(x)
		againstSource(t, p, model, x)
		switch {
		case !both:
		case model == verify.PTX:
			againstHB(t, p, x)
		default:
			r[8] = judgePredictions(t, p, x)
		}
	}
}

// TestVerifyCorpus explores the programs of the corpus that launch few threads under both models, and compares the
// results with the page docs/verify-corpus.md. It does not explore programs again that take too long for the page.
// Outside long mode, it explores one of two programs (one of eight in short mode), most of them only under scoped RC11.
func TestVerifyCorpus(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "verify-corpus.md")
	page, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	rows := readRows(string(page))
	var b strings.Builder
	var counts [2]map[string]int
	for m := range counts {
		counts[m] = map[string]int{}
	}
	for i, p := range programs {
		in, err := session.CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		if !tabled(in) {
			continue
		}
		old, ok := rows[p.Path()]
		if delete(rows, p.Path()); !ok && !*update {
			t.Errorf("%s has no row of %s", file, p.Path())
			continue
		}
		row := old
		l := &in.Launch.Launches[0]
		row[0], row[1] = p.Path(), fmt.Sprintf("%d, %d", l.Grid.Count(), l.Block.Count())
		if all := *update || testsize.Long(); all || i%testsize.Of(8, 5, 1) == 0 {
			row.fill(t, p, all || i%8 == 0)
		}
		if row != old && !*update {
			t.Errorf("%s has\n%sfound is\n%s", file, &old, &row)
		}
		for m := range counts {
			switch verdict := row[2+3*m]; verdict {
			case "no error", "refused", "bound", overTime:
				counts[m][verdict]++
			default:
				counts[m]["error"]++
			}
		}
		b.WriteString(row.String())
	}
	if len(rows) > 0 && !*update {
		t.Errorf("%s has rows of what is no such program: %v", file, slices.Sorted(maps.Keys(rows)))
	}
	head := corpusHead
	for m, model := range []string{"scoped RC11", "the model PTX"} {
		c := counts[m]
		head += fmt.Sprintf("- Under %s %d programs have no error and %d have one; %d reach the bound, %d are refused, and %d are too long.\n",
			model, c["no error"], c["error"], c["bound"], c["refused"], c[overTime])
	}
	if head += corpusColumns; *update {
		err = os.WriteFile(file, []byte(head+b.String()), 0o666)
	} else if !strings.HasPrefix(string(page), head) {
		t.Errorf("%s does not begin with\n%s", file, head)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const corpusHead = `# What does verify find in the corpus?

The table has every program of the corpus that makes one launch of at most two blocks of at most four threads, or of at most four threads in
all. Each is explored with a bound of 8 iterations (` + "`--unroll 8`" + `) for at most 4 seconds under each model. *Executions* are the complete ones.
*Seconds* are of one core of an AMD EPYC. The verdict names the kinds of errors; warnings are not named. *Predicted* says whether scoped RC11
has an execution with the races that the detector gwcp predicts from one run and that hb does not find there.

`

const corpusColumns = `
No program without an error under scoped RC11 has a source that expects one, and no program that is meant to be correct has an error under
either model. hb, under the model PTX, finds races in three schedules. verify finds all of these under that model, except in three programs,
in which the order of fence.sc orders the accesses: hb does not track that order.

` + "`go test ./internal/cli -run TestVerifyCorpus -update`" + ` writes the page. The tests check all of it except the seconds.

| program | blocks, threads | scoped RC11 | executions | seconds | PTX | executions | seconds | predicted |
|---|---|---|---|---|---|---|---|---|
`
