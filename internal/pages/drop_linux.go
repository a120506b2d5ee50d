package pages

import "golang.org/x/sys/unix"

// Drop returns whole pages to the system, so that they read as zero, and reports whether it could. shared says that
// they belong to a mapping that processes share, and not to a Reserve.
func Drop(b []byte, shared bool) bool {
	if shared {
		return unix.Madvise(b, unix.MADV_REMOVE) == nil
	}
	return unix.Madvise(b, unix.MADV_DONTNEED) == nil
}
