//go:build !linux

package codegen

// Supported reports whether executable memory is implemented for this system.
const Supported = false

func executable([]byte) ([]byte, error) { return nil, ErrUnsupported }

func release([]byte) {}

// At returns the address of an offset.
func (c *Code) At(int) uintptr { panic("BUG: code where there is none") }
