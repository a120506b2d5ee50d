package event

import (
	"slices"
	"testing"
)

func TestHostPlace(t *testing.T) {
	frames := []Frame{{File: "/home/look at me: now/a in b.cu", Line: 12, Function: "_Z4copyPv"}, {Function: "unknown"}, {File: "m.cu", Line: 3, Function: "main"}, {File: "#1: g.cu", Line: 4, Function: "main", Graph: 77}}
	name := "cudaMemcpyAsync (stream 2)" + HostPlace(frames)
	call, got := CutHostPlace(name)
	if want := []Frame{frames[0], frames[2], frames[3]}; call != "cudaMemcpyAsync (stream 2)" || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %v", call, got, want)
	}
	if got, want := HostText(name), "cudaMemcpyAsync (stream 2) at a in b.cu:12"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, broken := range []string{"cudaFree", "cudaFree\nx", "cudaFree\n:12 f", "cudaFree\nx:y f", ""} {
		if call, frames := CutHostPlace(broken); len(frames) != 0 || call != "cudaFree" && broken != "" {
			t.Errorf("%q: %q, %v", broken, call, frames)
		}
	}
}
