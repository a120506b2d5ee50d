// Package codegen holds machine code that is made at run time. Each of its folders encodes the instructions of one
// processor. Package lanes uses them to compile lists of operations.
//
// Pages of code are never writable and executable at once. A function in assembly enters the code. The code uses no
// stack and calls no Go code, so that the runtime sees the function that entered it. A signal may find a program
// counter that belongs to no Go function: the runtime does not preempt there, and a profile names no function. So code
// must end soon.
package codegen

import (
	"errors"
	"runtime"
)

// ErrUnsupported says that this system provides no executable memory, or that Fencepost has no code to request it.
var ErrUnsupported = errors.New("this system gives no memory for code")

// Code is machine code. The caller must keep it alive (runtime.KeepAlive) while it runs: its pages are unmapped once it
// is unreachable.
type Code struct{ pages []byte }

// New copies machine code, which must be position-independent, to executable pages.
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
