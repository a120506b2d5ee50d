package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWorkDir checks that the folder of a killed run is removed by the next one, and those of runs that last are not.
func TestWorkDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := time.Now().Add(-time.Hour)
	held, remove, err := workDir()
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	left, fresh, other := filepath.Join(os.TempDir(), workPrefix+"1"), filepath.Join(os.TempDir(), workPrefix+"2"), filepath.Join(os.TempDir(), "else")
	for _, dir := range []string{left, fresh, other} {
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{left, other, held} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	second, removeSecond, err := workDir()
	if err != nil {
		t.Fatal(err)
	}
	removeSecond()
	for dir, want := range map[string]bool{left: false, second: false, held: true, fresh: true, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
}
