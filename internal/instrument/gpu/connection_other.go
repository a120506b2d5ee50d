//go:build !linux

package gpu

import (
	"errors"
	"os"
)

// connection says that no GPU is driven on this system.
func connection() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("a GPU is driven on Linux only")
}
