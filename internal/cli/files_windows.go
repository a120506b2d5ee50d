package cli

import (
	"errors"
	"io/fs"
	"os"
)

// lock cannot lock folders on this system: a shared lock always succeeds, an exclusive one never.
func lock(_ *os.File, exclusive bool) error {
	if exclusive {
		return errors.ErrUnsupported
	}
	return nil
}

// owned reports true for everything in a folder for temporary files: each user has one of their own on this system.
func owned(fs.FileInfo) bool { return true }
