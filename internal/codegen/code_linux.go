package codegen

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Supported reports whether executable memory is implemented for this system. The system may refuse it all the same.
const Supported = true

// executable maps pages, writes code to them, and then makes them executable instead of writable.
func executable(code []byte) ([]byte, error) {
	pages, err := unix.Mmap(-1, 0, len(code), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("memory for code: %w", err)
	}
	copy(pages, code)
	if err := unix.Mprotect(pages, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		release(pages)
		return nil, fmt.Errorf("memory for code: %w", err)
	}
	flush(pages)
	return pages, nil
}

func release(pages []byte) {
	if err := unix.Munmap(pages); err != nil {
		panic("BUG: " + err.Error())
	}
}

// At returns the address of an offset.
func (c *Code) At(offset int) uintptr { return uintptr(unsafe.Pointer(&c.pages[offset])) }
