package cuda

import (
	"io"
	"syscall"

	"fencepost.dev/fencepost/internal/cuda/calls"
)

// PythonEnv is the environment variable that tells the libraries the folder of our Python modules.
const PythonEnv = calls.PythonEnv

// RunOptions say what program to run and how.
type RunOptions struct {
	Path string
	Args []string // without the program's name
	Env  []string // as os.Environ gives it; nil means this process's
	Dir  string   // working directory; "" means this process's

	Stdin          io.Reader // nil: empty. An *os.File is handed on as it is
	Stdout, Stderr io.Writer

	Device *Device
	// Outlives lets the program run on when this process is killed: its CUDA calls fail from then on.
	Outlives bool
	// Libraries is the folder of the stand-in libraries (standin.Build), put before LD_LIBRARY_PATH. "" puts none.
	Libraries string
}

// ExitStatus is how a program ended, and what of it the device did not see.
type ExitStatus struct {
	Code   int            // exit code; -1 when a signal ended it, or nothing could
	Signal syscall.Signal // 0 when it exited
	// Unsupported lists the API calls the program made that are not supported, sorted.
	Unsupported []string
	// Faults are connections that broke the protocol: an old static library, or memory corruption in the program.
	Faults []error
	// Undelivered says that calls did not reach the device: the program has cut their way, or made them in a signal
	// handler within another call.
	Undelivered bool
	// Unheard is what processes told of themselves that cannot be checked, sorted.
	Unheard []Unheard
	// Left are the processes that still ran when they had been waited for; Users those that use the device, or may.
	Left, Users []string
	// Host is where the host stood when the run was stopped, after "it was".
	Host string
}
