//go:build !linux

package codegen

// Supported says that there is memory for code.
const Supported = false

func executable([]byte) ([]byte, error) { return nil, ErrUnsupported }

func release([]byte) {}

// At gives the address of an offset.
func (c *Code) At(int) uintptr { panic("BUG: code where there is none") }
