package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteIntrinsics checks that the header always has the same path, and that a damaged one is written again.
func TestWriteIntrinsics(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	path, err := writeIntrinsics(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"", "damaged"} {
		if damage != "" {
			if err := os.WriteFile(path, []byte(damage), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		again, err := writeIntrinsics(dir)
		text, _ := os.ReadFile(again)
		if err != nil || again != path || string(text) != string(intrinsics) {
			t.Errorf("written again after %q: %s of %d bytes, %v; want %s of %d", damage, again, len(text), err, path, len(intrinsics))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files in the folder: %s", left)
	}
}

// TestWrapIntrinsics checks that each source includes the header that the caller named, whatever the output.
func TestWrapIntrinsics(t *testing.T) {
	out, _, err := Wrap([]string{"-c", "a.cu"}, Rewrite{Intrinsics: "/cache/i.h"})
	if got := strings.Join(out, " "); err != nil || !strings.HasPrefix(got, "-include /cache/i.h ") {
		t.Errorf("%s, %v", got, err)
	}
	if out, _, err := Wrap([]string{"--version"}, Rewrite{Intrinsics: "/cache/i.h"}); err != nil || len(out) != 1 {
		t.Errorf("a question: %q, %v", out, err)
	}
}
