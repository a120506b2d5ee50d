package session

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/report"
)

// TestAsync compares every detector's findings about asynchronous copies with testdata. The default detector finds
// exactly the copies that are not waited for and the memory that is reused too early. The papers' detectors treat a
// copy as accesses by its thread at its issue, so they find races that a barrier would order. Some of them know no
// order by mbarriers.
func TestAsync(t *testing.T) {
	for _, r := range suiteResults(t, "async") {
		misused := slices.ContainsFunc(r.Report.Findings, func(f report.Finding) bool {
			return slices.Contains([]engine.FaultKind{engine.MbarrierEarly, engine.MbarrierEnded, engine.WgmmaNoFence, engine.WgmmaTouched, engine.TensorMemory, engine.TensorLeak}, engine.FaultKind(f.Kind))
		})
		if found := racesBy(r, "hb"); found == 0 && !misused {
			t.Errorf("%s: hb finds nothing", r.Program.Path())
		}
	}
	for _, r := range suiteResults(t, "async_norace") {
		if found := racesBy(r, "hb"); found != 0 {
			t.Errorf("%s: hb finds %d races", r.Program.Path(), found)
		}
	}
}

// racesBy returns the number of races that a detector found.
func racesBy(r CorpusResult, detector string) (n int) {
	for _, f := range r.Report.Findings {
		if f.Class == detect.Race && (f.Detector == detector || slices.Contains(f.Also, detector)) {
			n++
		}
	}
	return n
}
