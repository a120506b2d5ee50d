package session

import (
	"bytes"
	"context"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// TestJobs wants the same report and the same output of kernels for any number of seeds run at a time.
func TestJobs(t *testing.T) {
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if p.Name != "ticket_lock" && p.Name != "message_plain" && p.Name != "histogram" {
			continue
		}
		in, err := CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		for _, jobs := range []int{1, 3, 8} {
			var printed, json bytes.Buffer
			r, err := Check(context.Background(), &Options{Seeds: 6, Jobs: jobs, FailOn: detect.Error, Printf: &printed}, in)
			if err != nil {
				t.Fatal(err)
			}
			if err := report.JSON(&json, r, false); err != nil {
				t.Fatal(err)
			}
			got := json.String() + printed.String()
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s: %d jobs give another report:\n%s\nand one job\n%s", p.Name, jobs, got, want)
			}
		}
	}
}
