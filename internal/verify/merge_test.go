package verify

import (
	"context"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// TestReportOneLine checks that there is a finding for each variable if a compiler has given their races one place, and
// otherwise one for each place.
func TestReportOneLine(t *testing.T) {
	src := "C line\nint x, y;\ngrid 2, 1;\nkernel { x = x + 1; y = y + 1; }\n"
	test, err := litmus.Parse("line.litmus", src, litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := Litmus(context.Background(), test, Options{})
	count := func() int { return len(r.Report().Findings) }
	if apart := count(); apart < 2 {
		t.Fatalf("%d findings", apart)
	}
	for i := range r.Findings {
		for k := range r.Findings[i].Sides {
			s := &r.Findings[i].Sides[k]
			for f := range s.frames {
				s.frames[f].Line, s.frames[f].Column = 4, 1
			}
		}
	}
	out := r.Report().Findings
	if len(out) != 2 || out[0].ID == out[1].ID || out[0].Accesses[0].Object.Name == out[1].Accesses[0].Object.Name {
		t.Errorf("%+v", out)
	}
}
