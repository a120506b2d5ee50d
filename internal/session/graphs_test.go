package session

import (
	"bytes"
	"context"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// TestGraphOrder launches graphs: nodes that no path orders race, nodes that one orders do not.
func TestGraphOrder(t *testing.T) {
	exe := hostProgram(t, "testdata/graphs.c")
	for _, scenario := range []string{"branches", "path", "host", "join", "child", "capture", "launches", "stream"} {
		for _, ordered := range []bool{false, true} {
			args, want := []string{scenario}, report.Found
			if ordered {
				args, want = append(args, "ordered"), report.NotChecked // no kernel ran
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			var out bytes.Buffer
			r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Error}, &Program{Path: exe, Args: args, Stdout: &out})
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != want {
				t.Errorf("%v: verdict %s, want %s; %v", args, r.Verdict, want, r.Skipped)
			}
			for _, f := range r.Findings {
				if f.Kind != "inter-kernel" {
					t.Errorf("%v: %s %s: %s", args, f.Severity, f.Kind, f.Message)
				}
			}
		}
	}
}
