package verify

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// TestPage follows docs/verify.md from the first bug to the proof, and compares the texts on the page.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, src, _ := strings.Cut(page, "```\nC lock\n")
	src, _, _ = strings.Cut("C lock\n"+src, "```")
	test, err := litmus.Parse("lock.litmus", src, litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var fixed strings.Builder
	RepairLitmus(context.Background(), test, src, litmus.Options{}, Options{}).Text(&fixed)
	if !strings.Contains(page, fixed.String()) {
		t.Errorf("the page does not show\n%s", fixed.String())
	}
	step := func(o Options, from, to string) string {
		src = strings.Replace(src, from, to, 1)
		lines := strings.Split(src, "\n")
		var b strings.Builder
		verifyText(t, "lock.litmus", src, litmus.Options{}, o).Text(&b, func(_ string, n int) string { return lines[n-1] },
			func(sgr, s string) string { return s })
		return b.String()
	}
	first := step(Options{First: true}, "", "")
	if !strings.Contains(page, first) {
		t.Errorf("the page does not show\n%s", first)
	}
	for _, c := range []struct{ from, to string }{{"rel, cta", "rel, gpu"}, {"1, rlx, gpu", "1, acq, gpu"}, {"exchange(lock, 1", "cas(lock, 0, 1"}} {
		out := step(Options{First: true}, c.from, c.to)
		for line := range strings.Lines(out) {
			if strings.Contains(line, "= why") || strings.Contains(line, "= fix") || strings.HasPrefix(line, "fencepost: No") {
				if !strings.Contains(page, line) {
					t.Errorf("the page does not show %q", line)
				}
			}
		}
	}
}
