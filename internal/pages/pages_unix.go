//go:build unix

package pages

import "golang.org/x/sys/unix"

// Reserve returns size bytes of address space that read as zero. The error is the system's.
func Reserve(size uint64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// Release returns the bytes of a Reserve to the system.
func Release(b []byte) error { return unix.Munmap(b) }

// Commit makes bytes of a Reserve usable; on this system all are from the beginning.
func Commit([]byte) error { return nil }
