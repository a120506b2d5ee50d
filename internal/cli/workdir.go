package cli

import (
	"os"
	"path/filepath"
	"time"
)

const workPrefix = "fencepost-run-"

// workDir makes a folder for the files of one run, and the function that removes it. It is locked while the run lasts:
// one that is not locked was left behind by a run that was killed, and is removed by a later one.
func workDir() (dir string, remove func(), err error) {
	sweep(os.TempDir())
	if dir, err = os.MkdirTemp("", workPrefix); err != nil {
		return "", nil, err
	}
	f, err := os.Open(dir)
	if err == nil {
		err = lock(f, false)
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir); f.Close() }, nil
}

// sweep removes this user's folders of runs that were killed. What cannot be removed is left.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, workPrefix+"*")) // the pattern is right
	for _, dir := range dirs {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || time.Since(st.ModTime()) < time.Minute { // one that is new may not be locked yet
			continue
		}
		if !owned(st) {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if lock(f, true) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
