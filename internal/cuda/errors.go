package cuda

import (
	"fmt"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/event"
)

// Code is an error code of the runtime API (cudaError).
type Code uint32

// The codes that this package returns (CUDA Runtime API, "Data types used by CUDA Runtime", enum cudaError).
const (
	Success                     Code = 0
	InvalidValue                Code = 1
	MemoryAllocation            Code = 2
	InitializationError         Code = 3
	InvalidConfiguration        Code = 9
	InvalidPitchValue           Code = 12
	InvalidSymbol               Code = 13
	InvalidMemcpyDirection      Code = 21
	LaunchMaxDepthExceeded      Code = 65
	InvalidDeviceFunction       Code = 98
	NoDevice                    Code = 100
	InvalidDevice               Code = 101
	InvalidKernelImage          Code = 200
	NoKernelImageForDevice      Code = 209
	InvalidPtx                  Code = 218
	DeviceUninitialized         Code = 201
	InvalidResourceHandle       Code = 400
	SymbolNotFound              Code = 500
	NotReady                    Code = 600
	IllegalAddress              Code = 700
	LaunchOutOfResources        Code = 701
	LaunchTimeout               Code = 702
	PeerAccessAlreadyEnabled    Code = 704
	PeerAccessNotEnabled        Code = 705
	Assert                      Code = 710
	HostMemoryAlreadyRegistered Code = 712
	HostMemoryNotRegistered     Code = 713
	MisalignedAddress           Code = 716
	LaunchFailure               Code = 719
	CooperativeLaunchTooLarge   Code = 720
	NotSupported                Code = 801
	InvalidClusterSize          Code = 912
	Unknown                     Code = 999
)

// Error is a refusal of the API.
type Error struct {
	Code Code
	Msg  string // one sentence with the facts
	Err  error  // the underlying error, if there is one
	Kind Misuse // "" if the error by itself is not a finding

	Launch     *LaunchReport // of a launch that is refused
	lost       bool          // it has lost the device
	configured bool          // the launch was written <<<...>>>
	minor      bool          // see Failure.Minor
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Msg) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Unchecked says that a kernel could not be executed, and so was not checked.
type Unchecked struct {
	Kernel   string         // "" for a broken module that the program loads
	Err      error          // a ptx.ErrorList with the unsupported instructions or names, or the reason why no PTX was found
	Language event.Language // in which the kernel was written
}

func (e *Unchecked) Error() string { return fmt.Sprintf("%s cannot be executed: %v", e.Kernel, e.Err) }

// Unwrap returns the cause.
func (e *Unchecked) Unwrap() error { return e.Err }

// Lost says that a launch did not take place because an earlier one has brought the device down.
type Lost struct {
	Err error // the device's error
}

func (e *Lost) Error() string { return "the device is lost: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Lost) Unwrap() error { return e.Err }

func fail(c Code, format string, args ...any) error {
	return &Error{Code: c, Msg: fmt.Sprintf(format, args...)}
}

// String returns the runtime API's name of the code: "cudaErrorInvalidValue".
func (c Code) String() string { return calls.ErrorName(uint32(c)) }

// codeNamed finds a code by its name. An unknown name is a bug of the caller.
func codeNamed(name string) Code {
	for _, e := range calls.Errors {
		if e.Name == name {
			return Code(e.Code)
		}
	}
	panic("BUG: no error code " + name)
}
