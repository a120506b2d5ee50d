//go:build !linux

package cuda

import (
	"context"
	"errors"
	"os"
	"time"

	"fencepost.dev/fencepost/internal/engine/devmem"
)

// newMemory makes a device's memory, which no program shares.
func newMemory(size uint64) (*devmem.Memory, *os.File, []byte, error) {
	mem, err := devmem.New(size)
	return mem, nil, nil, err
}

func (d *Device) closeShared() error { return nil }

// Supported returns the reason why programs cannot run on this system: they find the device through mechanisms of Linux
// (the dynamic linker, memfd_create, abstract sockets, /proc).
func Supported() error {
	return errors.New("programs run on Linux only: on this system use `fencepost check FILE.ptx`, or run this command in a Linux container")
}

// Run fails with the error of Supported.
func Run(context.Context, RunOptions) (ExitStatus, error) { return ExitStatus{}, Supported() }

// Linger is the waiting time for processes that use the device after the newest call. On this system there are none.
func Linger() time.Duration { return 0 }
