package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"fencepost.dev/fencepost/internal/cuda/standin"
	"fencepost.dev/fencepost/internal/toolchain"
)

// cacheDir is the folder that outlives a run: the user's cache folder, or one for temporary files when there is none.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("fencepost-%d", os.Getuid()))
	}
	return filepath.Join(dir, "fencepost")
}

// libraries builds the stand-in libraries, or finds them built.
func libraries(ctx context.Context) (string, error) {
	finder := toolchain.Finder{}
	cc, err := finder.FindCC(ctx)
	if err != nil {
		return "", err
	}
	return standin.Build(ctx, cc.Path, cacheDir())
}
