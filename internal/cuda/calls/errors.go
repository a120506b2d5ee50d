package calls

// Error is one error code: its number, its names in the runtime API and (where it has one) the driver API, a short text.
type Error struct {
	Code   uint32
	Name   string
	Driver string
	Text   string
}

// Errors lists the error codes by number.
var Errors = []Error{
	{0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
	{1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{4, "cudaErrorCudartUnloading", "CUDA_ERROR_DEINITIALIZED", "the runtime is shutting down"},
	{5, "cudaErrorProfilerDisabled", "CUDA_ERROR_PROFILER_DISABLED", "no profiler is attached"},
	{9, "cudaErrorInvalidConfiguration", "", "invalid configuration argument"},
	{12, "cudaErrorInvalidPitchValue", "", "invalid pitch"},
	{13, "cudaErrorInvalidSymbol", "", "invalid device symbol"},
	{16, "cudaErrorInvalidHostPointer", "", "invalid host pointer"},
	{17, "cudaErrorInvalidDevicePointer", "", "invalid device pointer"},
	{18, "cudaErrorInvalidTexture", "", "invalid texture"},
	{20, "cudaErrorInvalidChannelDescriptor", "", "invalid channel descriptor"},
	{21, "cudaErrorInvalidMemcpyDirection", "", "invalid direction of a copy"},
	{31, "cudaErrorNotYetImplemented", "", "not implemented yet"},
	{34, "cudaErrorStubLibrary", "CUDA_ERROR_STUB_LIBRARY", "the library is a stub"},
	{35, "cudaErrorInsufficientDriver", "", "the driver is older than the runtime"},
	{36, "cudaErrorCallRequiresNewerDriver", "", "the call needs a newer driver"},
	{43, "cudaErrorDuplicateVariableName", "", "a variable name is defined twice"},
	{46, "cudaErrorDevicesUnavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE", "all devices are busy or unavailable"},
	{49, "cudaErrorIncompatibleDriverContext", "", "incompatible driver context"},
	{52, "cudaErrorMissingConfiguration", "", "a launch without its configuration"},
	{65, "cudaErrorLaunchMaxDepthExceeded", "", "device launches are nested too deeply"},
	{69, "cudaErrorLaunchPendingCountExceeded", "", "too many device launches are pending"},
	{98, "cudaErrorInvalidDeviceFunction", "", "invalid device function"},
	{100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{127, "cudaErrorStartupFailure", "", "the runtime could not start"},
	{200, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE", "invalid kernel image"},
	{201, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{205, "cudaErrorMapBufferObjectFailed", "CUDA_ERROR_MAP_FAILED", "mapping failed"},
	{206, "cudaErrorUnmapBufferObjectFailed", "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
	{207, "cudaErrorArrayIsMapped", "CUDA_ERROR_ARRAY_IS_MAPPED", "the array is mapped"},
	{208, "cudaErrorAlreadyMapped", "CUDA_ERROR_ALREADY_MAPPED", "the resource is already mapped"},
	{209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"},
	{210, "cudaErrorAlreadyAcquired", "CUDA_ERROR_ALREADY_ACQUIRED", "the resource is already acquired"},
	{211, "cudaErrorNotMapped", "CUDA_ERROR_NOT_MAPPED", "the resource is not mapped"},
	{214, "cudaErrorECCUncorrectable", "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable memory error"},
	{215, "cudaErrorUnsupportedLimit", "CUDA_ERROR_UNSUPPORTED_LIMIT", "the limit is not supported"},
	{216, "cudaErrorDeviceAlreadyInUse", "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "the device is in exclusive use by another thread"},
	{217, "cudaErrorPeerAccessUnsupported", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these devices"},
	{218, "cudaErrorInvalidPtx", "CUDA_ERROR_INVALID_PTX", "the PTX could not be compiled"},
	{219, "cudaErrorInvalidGraphicsContext", "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "invalid graphics context"},
	{221, "cudaErrorJitCompilerNotFound", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the PTX compiler was not found"},
	{222, "cudaErrorUnsupportedPtxVersion", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX version is not supported"},
	{223, "cudaErrorJitCompilationDisabled", "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX compilation is disabled"},
	{300, "cudaErrorInvalidSource", "CUDA_ERROR_INVALID_SOURCE", "invalid device kernel source"},
	{301, "cudaErrorFileNotFound", "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	{302, "cudaErrorSharedObjectSymbolNotFound", "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "symbol of a shared object not found"},
	{303, "cudaErrorSharedObjectInitFailed", "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a shared object failed to initialize"},
	{304, "cudaErrorOperatingSystem", "CUDA_ERROR_OPERATING_SYSTEM", "an operating system call failed"},
	{400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{401, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE", "the resource is not in a state for this operation"},
	{402, "cudaErrorLossyQuery", "CUDA_ERROR_LOSSY_QUERY", "the query would leave data of the answer out"},
	{500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{701, "cudaErrorLaunchOutOfResources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	{702, "cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	{703, "cudaErrorLaunchIncompatibleTexturing", "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "launch with incompatible texturing"},
	{704, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
	{705, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
	{708, "cudaErrorSetOnActiveProcess", "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the device is already active in this process"},
	{709, "cudaErrorContextIsDestroyed", "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is destroyed"},
	{710, "cudaErrorAssert", "CUDA_ERROR_ASSERT", "device-side assert triggered"},
	{712, "cudaErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the memory range is already registered"},
	{713, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the memory range is not registered"},
	{714, "cudaErrorHardwareStackError", "CUDA_ERROR_HARDWARE_STACK_ERROR", "stack error on the device"},
	{715, "cudaErrorIllegalInstruction", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
	{716, "cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{717, "cudaErrorInvalidAddressSpace", "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported in this address space"},
	{718, "cudaErrorInvalidPc", "CUDA_ERROR_INVALID_PC", "invalid program counter"},
	{719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{720, "cudaErrorCooperativeLaunchTooLarge", "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
	{800, "cudaErrorNotPermitted", "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
	{801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{802, "cudaErrorSystemNotReady", "CUDA_ERROR_SYSTEM_NOT_READY", "the system is not ready"},
	{803, "cudaErrorSystemDriverMismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and runtime do not match"},
	{900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted while the stream is capturing"},
	{901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture was invalidated by an earlier error"},
	{902, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would become one"},
	{903, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture was not begun in this stream"},
	{904, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a fork of the capture was not joined to the stream that began it"},
	{905, "cudaErrorStreamCaptureIsolation", "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a capturing stream would depend on work that is not captured"},
	{906, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the default stream would depend on a capturing stream"},
	{907, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture"},
	{908, "cudaErrorStreamCaptureWrongThread", "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture was begun by another thread"},
	{909, "cudaErrorTimeout", "CUDA_ERROR_TIMEOUT", "the wait timed out"},
	{910, "cudaErrorGraphExecUpdateFailure", "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph could not be updated"},
	{911, "cudaErrorExternalDevice", "CUDA_ERROR_EXTERNAL_DEVICE", "an external device failed"},
	{912, "cudaErrorInvalidClusterSize", "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
	{999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
}

// ErrorOf gives the error of a code: cudaErrorUnknown, the last one, where there is none.
func ErrorOf(code uint32) Error {
	for _, e := range Errors {
		if e.Code == code {
			return e
		}
	}
	return Errors[len(Errors)-1]
}

// ErrorName gives the runtime API's name of a code.
func ErrorName(code uint32) string { return ErrorOf(code).Name }
