package evaluate

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/toolchain"
)

// TestWrite measures two programs. The threads of one share a matrix and synchronise by barriers. The threads of the
// other share data that were written before they began.
func TestWrite(t *testing.T) {
	cc, err := (&toolchain.Finder{}).FindCC(t.Context())
	if err != nil {
		t.Skip(err)
	}
	var sources []string
	for _, name := range []string{"lufact", "raycaster"} {
		sources = append(sources, filepath.Join("..", "..", "..", "corpus", "cpu", "kernels", name+".c"))
	}
	var out strings.Builder
	if err := Write(context.Background(), &out, Options{Sources: sources, CC: cc.Path, Dir: t.TempDir(), Threads: 4, Rounds: 1}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if n := strings.Count(text, "\n\n"); n != 4 {
		t.Errorf("%d tables, want 5", n+1)
	}
	for _, name := range []string{"lufact", "raycaster", "geometric mean"} {
		if n := strings.Count(text, name); n != 5 {
			t.Errorf("%s is in %d tables", name, n)
		}
	}
	for _, want := range []string{
		`lufact +\d+\.\d% +\d+\.\d% +\d+\.\d +\d+\.\d +\d+\.\d% +\d+\.\d% +\d+ +\d+\.\d\d +0\n`, // no races
		`raycaster +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d{4,5}\n`,                      // events
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("nothing matches %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
