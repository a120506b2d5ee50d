package isa

import "strings"

// deviceRuntime are the functions of CUDA's runtime that kernels which launch kernels call (cuda_device_runtime_api.h).
var deviceRuntime = []string{"GetParameterBufferV2", "LaunchDeviceV2", "StreamCreateWithFlags", "StreamDestroy", "EventCreateWithFlags", "EventDestroy",
	"EventRecord", "EventRecordWithFlags", "StreamWaitEvent", "MemcpyAsync", "MemsetAsync", "Memcpy2DAsync", "Memset2DAsync", "GetLastError", "PeekAtLastError", "GetErrorName", "GetErrorString", "GetDevice",
	"GetDeviceCount", "DeviceGetAttribute", "FuncGetAttributes", "OccupancyMaxActiveBlocksPerMultiprocessor",
	"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "Malloc", "Free"}

// perThread marks functions in code for per-thread default streams.
const perThread = "_ptsz"

// builtins are the functions an engine supplies when a program declares them and does not define them.
var builtins = func() map[string]bool {
	all := map[string]bool{"vprintf": true, "malloc": true, "free": true, "__assertfail": true}
	for _, name := range deviceRuntime {
		for _, prefix := range devicePrefixes {
			all[prefix+name], all[prefix+name+perThread] = true, true
		}
	}
	return all
}()

// devicePrefixes are those of functions of the device runtime, as CUDA 12 and later, and as earlier versions call them.
var devicePrefixes = []string{"__cudaCDP2", "cuda"}

// DeviceRuntimeCalls lists the functions of the device runtime that an engine supplies, as DeviceRuntime names them.
func DeviceRuntimeCalls() []string { return deviceRuntime }

// DeviceRuntime gives the name of a function of the device runtime without what comes before and behind, and says whether it is for
// per-thread default streams. The name is "" of other functions.
func DeviceRuntime(name string) (call string, perThreadStream bool) {
	for _, prefix := range devicePrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return strings.TrimSuffix(rest, perThread), strings.HasSuffix(rest, perThread)
		}
	}
	return "", false
}

// DeviceCall gives the name of the function of the device runtime that f is, as DeviceRuntime does; "" where it is none, or has a body.
func (f *Func) DeviceCall() string {
	call, _ := DeviceRuntime(f.Builtin)
	return call
}

// LaunchesKernels says that the kernel, or a function that it may call, puts operations into streams of the device.
func (f *Func) LaunchesKernels() bool {
	return f.Any(func(in *Inst) bool { return in.Callee != nil && in.Callee.DeviceCall() != "" })
}
