package racecheck_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/detect/racecheck"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/session"
)

// TestCorpus compares with the default detector on the corpus: except for some programs, racecheck reports exactly its
// races in shared memory, by source lines.
func TestCorpus(t *testing.T) {
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	exceptions := map[string]bool{
		"norace/byte_alone":    false, // relaxed loads are plain accesses
		"norace/byte_mixed":    false,
		"race/byte_mixed":      false,
		"norace/message_block": false, // flags do not order
		"race/reduce_volatile": false, // its pairs include a write that is not the last
	}
	o := &session.Options{Seeds: 1, Jobs: runtime.NumCPU(), Detectors: []detect.Spec{hb.Spec, racecheck.Spec}}
	found := 0 // pairs
	for _, r := range session.CheckCorpus(context.Background(), o, programs) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		mine, hbs := map[[2]int]bool{}, map[[2]int]bool{}
		for _, f := range r.Report.Findings {
			if f.Class != detect.Race || len(f.Accesses) != 2 || len(f.Accesses[0].Frames) == 0 || len(f.Accesses[1].Frames) == 0 {
				continue // of the host
			}
			lines := [2]int{f.Accesses[0].Frames[0].Line, f.Accesses[1].Frames[0].Line}
			slices.Sort(lines[:])
			by := append([]string{f.Detector}, f.Also...)
			if slices.Contains(by, "racecheck") {
				mine[lines] = true
			}
			if slices.Contains(by, "hb") && f.Accesses[0].Space == event.Shared {
				hbs[lines] = true
			}
		}
		found += len(mine)
		if maps.Equal(mine, hbs) {
			continue
		}
		if _, ok := exceptions[r.Program.Path()]; !ok {
			t.Errorf("%s: pairs of lines %v, those of hb in shared memory %v", r.Program.Path(), mine, hbs)
		}
		exceptions[r.Program.Path()] = true
	}
	for p, was := range exceptions {
		if !was {
			t.Errorf("%s is no exception", p)
		}
	}
	if found < 20 {
		t.Errorf("only %d findings", found)
	}
}
