package gpu

import (
	"fmt"
	"os"
	"syscall"
)

// connection returns the two ends of a connection.
func connection() (ours, theirs *os.File, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(pair[0]), "gpu"), os.NewFile(uintptr(pair[1]), "gpu"), nil
}
