package session

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/report"
)

// checkStencil checks corpus/race/stencil.
func checkStencil(t *testing.T, o *Options) *report.Report {
	t.Helper()
	for _, p := range corpusPrograms(t) {
		if p.File() != "race/stencil.cu" {
			continue
		}
		in, err := CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Check(context.Background(), o, in)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatal("there is no program race/stencil")
	return nil
}

// TestWatchedRaces compares the reported races with those in each selection of blocks, threads and variables. In the
// kernel, one of the corpus, threads of adjacent warps race on tile in each of four blocks.
func TestWatchedRaces(t *testing.T) {
	sequential(t)
	only := func(expr string) *regexp.Regexp { return regexp.MustCompile(expr) }
	ranges := func(text string) []detect.Range {
		list, err := detect.ParseRanges(text, 32)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, name := range []string{"hb", "barracuda+", "hirace", "racecheck", "iguard"} {
		spec, err := detect.Choose(all.Detectors(), name)
		if err != nil {
			t.Fatal(err)
		}
		var count [4]int
		for i, c := range []struct {
			watch Watch
			races bool
		}{
			{Watch{}, true},
			{Watch{Blocks: ranges("0")}, true},
			{Watch{Blocks: ranges("1-3")}, true},
			{Watch{Blocks: ranges("0-2,3")}, true},
			{Watch{Blocks: ranges("4")}, false},
			{Watch{Threads: ranges("5")}, false},
			{Watch{Threads: ranges("31-32")}, true},
			{Watch{Variable: only("^tile$")}, true},
			{Watch{Variable: only("^out$")}, false},
			{Watch{SkipVariable: only("tile")}, false},
		} {
			r := checkStencil(t, &Options{Detectors: []detect.Spec{spec}, Watch: c.watch, Seeds: 1, Jobs: 2})
			n := 0
			for _, f := range r.Findings {
				n += f.Count
			}
			if n > 0 != c.races {
				t.Errorf("%s, %+v: %d races", name, c.watch, n)
			}
			if i < len(count) {
				count[i] = n
			}
			if note := c.watch.note(); note != "" && !slices.Contains(r.Notes, note) {
				t.Errorf("notes %q", r.Notes)
			}
		}
		if count[1]+count[2] != count[0] || count[3] != count[0] {
			t.Errorf("%s: of all, of block 0, of the others, of all again: %v races", name, count)
		}
	}
}

// TestWatchedKernels checks that a filter is an expression, or a name as it is in a report.
func TestWatchedKernels(t *testing.T) {
	for _, c := range []struct {
		filter, kernel string
		watched        bool
	}{
		{"scan", "scan_add(int*)", true},
		{"^scan$", "scan_add(int*)", false},
		{"scan_add(int*)", "scan_add(int*)", true},
		{"scan_add(int*)", "scan(int*)", false},
		{"scan<4>(int*)", "void scan<4>(int*)", true},
		{"sum|scan", "void scan<4>(int*)", true},
	} {
		w := Watch{Kernel: regexp.MustCompile(c.filter)}
		skip := Watch{SkipKernel: w.Kernel}
		if w.kernel(c.kernel) != c.watched || skip.kernel(c.kernel) == c.watched {
			t.Errorf("%s, %s: watched %t", c.filter, c.kernel, !c.watched)
		}
	}
}
