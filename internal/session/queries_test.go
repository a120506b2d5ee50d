package session

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
)

// TestQueries runs programs that query whether work is complete, and use the answer or not. In the programs of put and
// the copies below, stream 0 writes device memory and copies it to pinned memory, which is then read by an operation
// that does not wait for stream 0.
func TestQueries(t *testing.T) {
	exe := interpreter(t)
	const (
		setup               = "S0 1;S1 1;S2 0;E0 0;m0 0 256;m1 2 256;m2 0 256;"
		work                = "k0 0 0 0 1 32 0 5;c1 0 0 0 128 4 1 0;"
		elsewhere, blocking = "c2 0 1 0 128 4 1 1;", "c8 0 1 0 128 4 0;" // what reads: another stream, cudaMemcpy
	)
	for _, p := range []struct {
		name, script string
		codes        string // of what is not success, in order
		race         bool
	}{
		{"stream, ignored", work + "Z0;" + elsewhere, "600", true},
		{"stream, ignored, then cudaMemcpy", work + "Z0;" + blocking, "600", true},
		{"stream, polled", work + "Z0;Z0;" + elsewhere, "600", false},
		{"stream, polled, then cudaMemcpy", work + "Z0;Z0;" + blocking, "600", false},
		{"new work after the poll", work + "Z0;Z0;" + work + "Z0;" + elsewhere, "600 600", true},
		{"new work within the poll", work + "Z0;" + work + "Z0;" + elsewhere, "600 600", true},
		{"not ready is no last error", work + "Z0;e;R0 0;Q0;e;", "600 600", false},
		{"after a wait", work + "z0;Z0;" + elsewhere, "", false},
		{"after a wait of the device", work + "y;Z0;" + elsewhere, "", false},
		{"no work", "Z0;Z-1;Q0;R0 0;Q0;" + work + elsewhere, "", true},
		{"event, ignored", work + "R0 0;Q0;" + elsewhere, "600", true},
		{"event, polled", work + "R0 0;Q0;Q0;" + elsewhere, "600", false},
		{"event before the work, polled", "R0 0;" + work + "Q0;" + elsewhere, "", true},
		{"event recorded again", work + "R0 0;Q0;R0 0;Q0;" + elsewhere, "600 600", true},
		{"default stream waits for none that is non-blocking", work + "Z-1;" + elsewhere, "", true},
		{"default stream and a blocking one", "k0 0 0 2 1 32 0 5;c1 0 0 0 128 4 1 2;Z-1;Z-1;" + elsewhere, "600", false},
		{"not ready does not order the default stream", "k0 0 0 2 1 32 0 5;c1 0 0 0 128 4 1 2;Z-1;" + elsewhere, "600", true},
		{"a wait for an event is work", work + "R0 0;W1 0;Z1;Z1;" + blocking, "600", false},
		{"a thousand times", strings.Repeat(work+"Z0;", 1001) + elsewhere, strings.Repeat("600 ", 999) + "600", false},
		{"a thousand times, with waits", strings.Repeat(work+"Z0;z0;", 1001) + work + "Z0;" + elsewhere, strings.Repeat("600 ", 1001) + "600", true},
		{"destroyed with work", work + "D0;y;" + elsewhere, "", false},
		{"destroyed after its end", work + "R0 0;z0;D0;Q0;" + elsewhere, "", false},
	} {
		t.Run(p.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var out bytes.Buffer
			r, err := Run(ctx, &Options{Seeds: 1, Jobs: 1, FailOn: detect.Error},
				&Program{Path: exe, Args: []string{setup + p.script}, Stdout: &out})
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, code := range strings.Fields(out.String()) {
				if code != "0" {
					codes = append(codes, code)
				}
			}
			if got := strings.Join(codes, " "); got != p.codes {
				t.Errorf("the calls fail with %q, want %q", got, p.codes)
			}
			var found []string
			for _, f := range r.Findings {
				found = append(found, fmt.Sprintf("%s:%s", f.Severity, f.Kind))
			}
			want := ""
			if p.race {
				want = "error:inter-kernel"
			}
			if got := strings.Join(found, " "); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}
