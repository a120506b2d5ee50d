package isa

import "strings"

// deviceRuntime are the functions of CUDA's runtime that are called by kernels which launch kernels
// (cuda_device_runtime_api.h).
var deviceRuntime = []string{"GetParameterBufferV2", "LaunchDeviceV2", "StreamCreateWithFlags", "StreamDestroy", "EventCreateWithFlags", "EventDestroy",
	"EventRecord", "EventRecordWithFlags", "StreamWaitEvent", "MemcpyAsync", "MemsetAsync", "Memcpy2DAsync", "Memset2DAsync", "GetLastError", "PeekAtLastError", "GetErrorName", "GetErrorString", "GetDevice",
	"GetDeviceCount", "DeviceGetAttribute", "FuncGetAttributes", "OccupancyMaxActiveBlocksPerMultiprocessor",
	"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "Malloc", "Free"}

// perThread is the suffix of functions in code for per-thread default streams.
const perThread = "_ptsz"

// builtins are the functions that an engine supplies if a program declares and does not define them.
var builtins = func() map[string]bool {
	all := map[string]bool{"vprintf": true, "malloc": true, "free": true, "__assertfail": true}
	for _, name := range deviceRuntime {
		for _, prefix := range devicePrefixes {
			all[prefix+name], all[prefix+name+perThread] = true, true
		}
	}
	return all
}()

// devicePrefixes are the prefixes of functions of the device runtime, in CUDA 12 and later, and in earlier versions.
var devicePrefixes = []string{"__cudaCDP2", "cuda"}

// DeviceRuntimeCalls lists the functions of the device runtime that an engine supplies, by the names that DeviceRuntime
// returns.
func DeviceRuntimeCalls() []string { return deviceRuntime }

// DeviceRuntime returns the name of a function of the device runtime without prefix and suffix, and whether it is for
// per-thread default streams. The name is "" for other functions.
func DeviceRuntime(name string) (call string, perThreadStream bool) {
	for _, prefix := range devicePrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return strings.TrimSuffix(rest, perThread), strings.HasSuffix(rest, perThread)
		}
	}
	return "", false
}

// DeviceCall returns the name, as DeviceRuntime does, if f is a function of the device runtime without a body, and ""
// otherwise.
func (f *Func) DeviceCall() string {
	call, _ := DeviceRuntime(f.Builtin)
	return call
}

// LaunchesKernels reports whether the kernel, or a function that it may call, puts operations into streams of the
// device.
func (f *Func) LaunchesKernels() bool {
	return f.Any(func(in *Inst) bool { return in.Callee != nil && in.Callee.DeviceCall() != "" })
}
