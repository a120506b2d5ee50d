package session

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/report"
)

// TestAsync compares what every detector says of asynchronous copies with testdata. The default detector finds what is not waited for and
// what is used again too early, and nothing else; the papers' detectors see a copy as accesses by its thread when it is issued, and so
// find what a barrier would order. Some of them know no order by barriers in memory.
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

// racesBy counts those that a detector found.
func racesBy(r CorpusResult, detector string) (n int) {
	for _, f := range r.Report.Findings {
		if f.Class == detect.Race && (f.Detector == detector || slices.Contains(f.Also, detector)) {
			n++
		}
	}
	return n
}
