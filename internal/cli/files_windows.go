package cli

import (
	"errors"
	"io/fs"
	"os"
)

// lock cannot lock folders here: to share one is always possible, to have it alone never.
func lock(_ *os.File, exclusive bool) error {
	if exclusive {
		return errors.ErrUnsupported
	}
	return nil
}

// owned holds for all that lies in a folder for temporary files: each user has one of their own here.
func owned(fs.FileInfo) bool { return true }
