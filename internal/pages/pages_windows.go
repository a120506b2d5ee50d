package pages

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// Reserve returns size bytes of address space, which must be committed before they are touched. The error is the
// system's.
func Reserve(size uint64) ([]byte, error) {
	at, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address is no Go pointer, and stays what it is until Release.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size), nil
}

// Release returns the bytes of a Reserve to the system.
func Release(b []byte) error { return windows.VirtualFree(address(b), 0, windows.MEM_RELEASE) }

// Commit makes bytes of a Reserve usable. They read as zero where they were not committed before.
func Commit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := windows.VirtualAlloc(address(b), uintptr(len(b)), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

// Drop gives whole pages back to the system, so that they read as zero, and says whether it could.
func Drop(b []byte, shared bool) bool {
	return !shared && windows.VirtualFree(address(b), uintptr(len(b)), windows.MEM_DECOMMIT) == nil && Commit(b) == nil
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
