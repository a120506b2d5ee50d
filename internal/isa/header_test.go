package isa

import (
	"testing"

	"fencepost.dev/fencepost/ptx"
)

func TestUnknown(t *testing.T) {
	for header, want := range map[string]string{
		".version 9.5\n.target sm_121a, debug":        "",
		".version 1.0\n.target sm_10, map_f64_to_f32": "",
		".version 9.6\n.target sm_80":                 "version 9.6 of the PTX ISA (1.0 to 9.5 are known)",
		".version 0.9\n.target sm_80":                 "version 0.9 of the PTX ISA (1.0 to 9.5 are known)",
		".version 8.0\n.target sm_999":                "target sm_999",
		".version 8.0\n.target sm_80a":                "target sm_80a",
		".version 99.9\n.target sm_8, turbo":          "version 99.9 of the PTX ISA (1.0 to 9.5 are known) and target sm_8 and target turbo",
	} {
		m, err := ptx.Parse("a.ptx", header+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := Unknown(m); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
