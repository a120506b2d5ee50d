package cli

import (
	"os"
	"path/filepath"
	"time"
)

const workPrefix = "fencepost-run-"

// workDir makes a folder for the files of one run, and a function that removes it. The folder is locked while the run
// lasts. An unlocked one was left behind by a run that was killed, and a later run removes it.
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

// sweep removes this user's folders of runs that were killed. Folders that cannot be removed stay.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, workPrefix+"*")) // the pattern is valid
	for _, dir := range dirs {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || time.Since(st.ModTime()) < time.Minute { // a new one may not be locked yet
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
