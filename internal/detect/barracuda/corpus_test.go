package barracuda_test

import (
	"context"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/barracuda"
	"fencepost.dev/fencepost/internal/session"
)

func TestCorpus(t *testing.T) {
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []detect.Spec{barracuda.Spec, barracuda.PlusSpec} {
		o := &session.Options{Seeds: 1, Jobs: runtime.NumCPU(), Detectors: []detect.Spec{spec}}
		for _, r := range session.CheckCorpus(context.Background(), o, programs) {
			if r.Err != nil {
				t.Error(r.Program.Path(), r.Err)
				continue
			}
			t.Log(spec.Name, r.Program.Path(), len(r.Report.Findings), len(r.Report.Skipped))
			for _, f := range r.Report.Findings {
				t.Log("    ", f.Detector, f.Kind, f.Severity, f.Message)
			}
			for _, s := range r.Report.Skipped {
				t.Log("    SKIPPED", s.What, s.Reason)
			}
		}
	}
}
