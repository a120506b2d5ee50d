package cuda

import (
	"io"
	"syscall"

	"fencepost.dev/fencepost/internal/cuda/calls"
)

// PythonEnv is the environment variable with the folder of Fencepost's Python modules, for the libraries.
const PythonEnv = calls.PythonEnv

// RunOptions select the program and how to run it.
type RunOptions struct {
	Path string
	Args []string // without the program's name
	Env  []string // as from os.Environ; nil means this process's
	Dir  string   // working directory; "" means this process's

	Stdin          io.Reader // nil: empty. An *os.File is passed on directly
	Stdout, Stderr io.Writer

	Device *Device
	// Outlives lets the program keep running when this process is killed: its CUDA calls fail from then on.
	Outlives bool
	// Libraries is the folder of the stand-in libraries (standin.Build), which is prepended to LD_LIBRARY_PATH. "" adds
	// none.
	Libraries string
}

// ExitStatus is how a program ended, and the parts of it that the device did not see.
type ExitStatus struct {
	Code   int            // exit code; -1 if a signal ended it, or if it could not be ended
	Signal syscall.Signal // 0 if it exited
	// Unsupported lists the unsupported API calls of the program, sorted.
	Unsupported []string
	// Faults are connections that violated the protocol, because of an old static library or memory corruption in the
	// program.
	Faults []error
	// Undelivered says that calls did not reach the device: the program closed their connection, or made them in a
	// signal handler within another call.
	Undelivered bool
	// Unheard is the notes of processes about themselves that cannot be checked, sorted.
	Unheard []Unheard
	// Left are the processes that still ran at the end of the waiting time. Users are those of them that use the
	// device, or may use it.
	Left, Users []string
	// Host is where the host was when the run was stopped, a text that follows "it was".
	Host string
}
