package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fencepost.dev/fencepost/internal/cuda/standin"
	"fencepost.dev/fencepost/internal/toolchain"
)

// sharedCache is the folder that survives a run. spareCache is one that survives as long as temporary files do.
func sharedCache() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "fencepost"), err
}

func spareCache() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("fencepost-cache-%d", os.Getuid()))
	return dir, private(dir)
}

// libraries builds the stand-in libraries, or finds them built, in the first cache that can hold them. It writes a note
// if it uses the second cache.
func libraries(ctx context.Context, notes io.Writer) (string, error) {
	finder := toolchain.Finder{}
	cc, err := finder.FindCC(ctx)
	if err != nil {
		return "", err
	}
	in := func(cache func() (string, error)) (string, error) {
		dir, err := cache()
		if err != nil {
			return "", &standin.FolderError{Err: err}
		}
		return standin.Build(ctx, cc.Path, dir)
	}
	libs, err := in(sharedCache)
	if folder := (*standin.FolderError)(nil); !errors.As(err, &folder) {
		return libs, err
	}
	libs, spare := in(spareCache)
	if spare != nil {
		return "", errors.Join(err, spare)
	}
	fmt.Fprintf(notes, "fencepost: note: %v; %s is used instead\n", err, filepath.Dir(libs))
	return libs, nil
}

// private creates a folder that no other user can write to, or checks that an existing one is such: other users may
// create folders beside it.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() || !owned(st) || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s belongs to another user, or others can write to it", dir)
	}
	return nil
}
