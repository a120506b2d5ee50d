package instrument_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
)

var update = flag.Bool("update", false, "write the tables of docs/gpu.md")

// benchmarks are the programs of the cost table.
var benchmarks = []string{"norace/bitonic", "norace/histogram", "norace/histogram_shared", "norace/lookback", "norace/matmul", "norace/reduce",
	"norace/reduce_shuffle", "norace/scan", "norace/stencil", "norace/transpose", "scopedapps/colouring", "scopedapps/connectivity",
	"scopedapps/convolution", "scopedapps/matmul", "scopedapps/reduction", "scopedapps/rule110"}

// counter counts the instructions that launches execute.
type counter struct {
	engine.Engine
	lanes uint64
}

func (c *counter) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	s, err := c.Engine.Run(ctx, l)
	c.lanes += s.Lanes
	return s, err
}

// executed returns how many instructions the threads of a program execute if it is run with o.
func executed(t *testing.T, p *corpus.Program, o session.Options) float64 {
	t.Helper()
	c := &counter{Engine: engine.NewRef()}
	o.Seeds, o.Jobs, o.Timeout = 1, 1, 10*time.Minute
	o.Engine = func() engine.Engine { return c }
	r := session.CheckCorpus(context.Background(), &o, []*corpus.Program{p})[0]
	if r.Err != nil || r.WrongResult() {
		t.Errorf("%s: %v, or a wrong result", p.Path(), r.Err)
	}
	return float64(c.lanes)
}

// costRow returns the row of a program in the cost table.
func costRow(t *testing.T, p *corpus.Program) string {
	t.Helper()
	static := func(o instrument.Options) string {
		_, out, err := instrument.Text(p.Path()+".ptx", p.PTX, o)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%.1f %%", 100*float64(out.Logged)/float64(out.Static))
	}
	logged := session.Options{Logged: true, Detectors: []detect.Spec{hb.Spec}}
	pruned := logged
	pruned.Prune = true
	checked := session.Options{Logged: true, Mode: instrument.HiRace, Detectors: []detect.Spec{hirace.Spec}}
	bare := executed(t, p, session.Options{Bare: true})
	name, _, _ := strings.Cut(p.Path(), "@")
	return fmt.Sprintf("| %s | %s | %s | %s | %.0f | %.1f | %.1f | %.1f |\n", name, static(instrument.Options{}), static(instrument.Options{Prune: true}),
		static(instrument.Options{Mode: instrument.HiRace}), bare, executed(t, p, logged)/bare, executed(t, p, pruned)/bare, executed(t, p, checked)/bare)
}

// TestCosts compares docs/gpu.md with the costs of instrumented programs: of all in long mode, otherwise of one in
// four.
func TestCosts(t *testing.T) {
	if testing.Short() && !*update {
		t.Skip("it counts whole programs")
	}
	t.Parallel()
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*corpus.Program{}
	for _, p := range all {
		name, _, _ := strings.Cut(p.Path(), "@")
		if byName[name] == nil {
			byName[name] = p
		}
	}
	var table strings.Builder
	table.WriteString("| program | `log` | `log --prune` | `hirace` | executed | `log` | `log --prune` | `hirace` |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	_, page, _ := section(t, "costs")
	rows := strings.SplitAfter(page, "\n")
	for i, name := range benchmarks {
		if byName[name] == nil {
			t.Fatalf("the corpus has no %s", name)
		}
		if at := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "| "+name+" ") }); at >= 0 && i%4 != 0 && !*update && !testsize.Long() {
			table.WriteString(rows[at])
			continue
		}
		table.WriteString(costRow(t, byName[name]))
	}
	requireSection(t, "costs", table.String())
}

const gpuPage = "../../docs/gpu.md"

// section returns the part of docs/gpu.md between two comments, and the text before and after it.
func section(t *testing.T, name string) (before, part, after string) {
	t.Helper()
	doc, err := os.ReadFile(gpuPage)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": go test ./internal/instrument -run TestCosts -update -->\n", "<!-- end -->\n"
	before, rest, ok := strings.Cut(string(doc), begin)
	part, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/gpu.md has no part %q", begin)
	}
	return before + begin, part, end + after
}

// requireSection compares a part of docs/gpu.md with the expected text, or writes the part.
func requireSection(t *testing.T, name, want string) {
	t.Helper()
	before, got, after := section(t, name)
	if got == want {
		return
	}
	if !*update {
		t.Errorf("docs/gpu.md is out of date: run go test ./internal/instrument -run TestCosts -update; want\n%s", want)
		return
	}
	if err := os.WriteFile(gpuPage, []byte(before+want+after), 0o666); err != nil {
		t.Fatal(err)
	}
}
