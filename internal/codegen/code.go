// Package codegen keeps machine code that is made at run time. Its folders encode the instructions of a processor each; package lanes
// compiles lists of operations with them.
//
// Pages of code are never writable and executable at once. Code is entered by a function in assembly, takes no stack and calls no Go
// code, so that the runtime sees the function that entered it. A signal finds a program counter that belongs to no Go function: the
// runtime does not preempt there, and a profile names no function. So code must come to its end soon.
package codegen

import (
	"errors"
	"runtime"
)

// ErrUnsupported says that this system gives no executable memory, or that nobody has written how.
var ErrUnsupported = errors.New("this system gives no memory for code")

// Code is machine code. It must be kept alive (runtime.KeepAlive) while it runs: its pages are unmapped once it is unreachable.
type Code struct{ pages []byte }

// New copies machine code, which must not depend on where it is, to executable pages.
func New(code []byte) (*Code, error) {
	pages, err := executable(code)
	if err != nil {
		return nil, err
	}
	c := &Code{pages}
	runtime.AddCleanup(c, release, pages)
	return c, nil
}

// Size is the number of bytes that the pages take.
func (c *Code) Size() int { return len(c.pages) }
