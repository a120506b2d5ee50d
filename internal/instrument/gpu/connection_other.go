//go:build !linux

package gpu

import (
	"errors"
	"os"
)

// connection returns an error, because this system cannot use a GPU.
func connection() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("a GPU is driven on Linux only")
}
