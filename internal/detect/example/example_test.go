package example

import (
	"os"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
)

func TestExample(t *testing.T) {
	for _, c := range []struct {
		line  string
		found int
	}{
		{"0 sts; 1 lds", 1},
		{"0 sts; 0 bar; 1 lds", 0},
		{"0 sts; 2 bar; 1 lds", 1}, // another block's barrier
		{"0 sts; 2 lds", 0},        // another block's memory
		{"0 sts; 0.1 lds", 0},      // its own warp
		{"0 lds; 1 sts", 0},        // a blind spot
		{"0 sts 1; 1 lds 2", 0},
		{"0 st; 1 ld", 0},
	} {
		b := litmus.Launch(2)
		litmus.Do(b, c.line)
		d := Spec.New(detect.Config{})
		d.Events(b)
		if got := len(d.Findings()); got != c.found {
			t.Errorf("%q: %d findings, want %d", c.line, got, c.found)
		}
	}
}

// TestPageShowsIt compares the code on docs/detectors.md with the file.
func TestPageShowsIt(t *testing.T) {
	page, err := os.ReadFile("../../../docs/detectors.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("example.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```go\n")
	if block, _, _ = strings.Cut(block, "```\n"); block != string(file) {
		t.Error("the code on docs/detectors.md is not internal/detect/example/example.go: put the file there")
	}
}
