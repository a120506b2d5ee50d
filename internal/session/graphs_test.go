package session

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// TestGraphOrder launches graphs. Nodes race unless a path orders them.
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
			for i := range r.Findings {
				f := &r.Findings[i]
				if f.Kind != "inter-kernel" {
					t.Errorf("%v: %s %s: %s", args, f.Severity, f.Kind, f.Message)
				}
				nodes := scenario != "launches" && scenario != "stream" // of one launch, that race
				if strings.Contains(f.Message, "nodes of one graph") != nodes || strings.Contains(f.Fix, "by an edge") != nodes {
					t.Errorf("%v: %s; %s", args, f.Message, f.Fix)
				}
				if a := f.Accesses[0].Frames; scenario == "capture" {
					b := f.Accesses[1].Frames
					if len(a) != 2 || len(b) != 2 || b[0].Line != a[0].Line+3 || a[0].Graph != 0 || a[1].Graph == 0 || a[1] != b[1] {
						t.Errorf("%v: the nodes were made at %v and %v", args, a, b)
					}
				}
			}
		}
	}
}

// TestGraphKernels checks the order by conditional nodes and by programmatic edges of graphs.
func TestGraphKernels(t *testing.T) {
	exe := hostProgram(t, "testdata/graphkernels.c", "-lcuda")
	for _, scenario := range []string{"condition", "two", "before", "behind", "iterations", "programmatic", "beside"} {
		for _, ordered := range []bool{false, true} {
			args, want := []string{scenario}, report.Found
			if ordered {
				args, want = append(args, "ordered"), report.Clean
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			var out bytes.Buffer
			r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Warning}, &Program{Path: exe, Args: args, Stdout: &out, Libraries: standins(t)})
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != want || out.Len() > 0 || len(r.Findings) > 1 {
				t.Errorf("%v: verdict %s, want %s; %v; %d findings; printed %q", args, r.Verdict, want, r.Skipped, len(r.Findings), out.String())
			}
			for i := range r.Findings {
				if f := &r.Findings[i]; f.Kind != "inter-kernel" || f.Severity != detect.Error && scenario != "two" {
					t.Errorf("%v: %s %s: %s", args, f.Severity, f.Kind, f.Message)
				}
			}
		}
	}
}

// TestBatchOrder makes batches of copies. The copies of a batch are not ordered, but the batch is. Reads out of stream
// order have the order that the API guarantees.
func TestBatchOrder(t *testing.T) {
	exe := hostProgram(t, "testdata/batches.c")
	for _, scenario := range []string{"overlap", "chain", "before", "behind", "during", "any", "reuse", "done"} {
		for _, right := range []bool{false, true} {
			args, want := []string{scenario}, report.Found
			if right {
				args, want = append(args, "right"), report.NotChecked // no kernel ran
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Warning}, &Program{Path: exe, Args: args, Stdout: io.Discard})
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != want || len(r.Findings) > 1 {
				t.Errorf("%v: verdict %s, want %s; %v; %d findings", args, r.Verdict, want, r.Skipped, len(r.Findings))
			}
			for i := range r.Findings {
				if f := &r.Findings[i]; f.Kind != "inter-kernel" || f.Severity != detect.Error {
					t.Errorf("%v: %s %s: %s", args, f.Severity, f.Kind, f.Message)
				}
			}
		}
	}
}
