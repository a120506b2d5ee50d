package calls

// Forward is an API call that is exactly one request. The generator writes its C function.
//
// Params is the C parameter list in short form, comma separated, each "kind name":
//
//	stream s     stream handle; 0 is the default stream as the caller was compiled
//	handle e     any other handle or device pointer, passed on as a number
//	u32 x, i32 x, size x
//	out-handle p, out-size p, out-u32 p, out-i32 p, out-u64 p    takes a result; NULL is refused
//	skip-TYPE x  a parameter of that kind that is not passed on
//
// Args are the request's arguments: names of parameters or numbers, separated by blanks; "" means the parameters in
// order.
type Forward struct {
	Name   string
	Params string
	Op     Op
	Args   string
	Sync   bool // kernel output appears after it
	PTSZ   bool // has a _ptsz variant, whose default stream is the thread's own
}

// Runtime lists such calls of the runtime API.
var Runtime = []Forward{
	{Name: "cudaMallocHost", Params: "out-handle p, size n", Op: Malloc, Args: "n 2"},
	{Name: "cudaMalloc", Params: "out-handle p, size n", Op: Malloc, Args: "n 0"},
	{Name: "cudaFree", Params: "handle p", Op: Free, Args: "p 3", Sync: true},
	{Name: "cudaFreeHost", Params: "handle p", Op: Free, Args: "p 2", Sync: true},
	{Name: "cudaMallocAsync", Params: "out-handle p, size n, stream s", Op: MallocAsync, Args: "n s 0", PTSZ: true},
	{Name: "cudaFreeAsync", Params: "handle p, stream s", Op: FreeAsync, PTSZ: true},
	{Name: "cudaMemGetInfo", Params: "out-size free, out-size total", Op: MemInfo, Args: "-"},

	{Name: "cudaStreamCreate", Params: "out-handle s", Op: StreamCreate, Args: "0 0"},
	{Name: "cudaStreamCreateWithFlags", Params: "out-handle s, u32 flags", Op: StreamCreate, Args: "flags 0"},
	{Name: "cudaStreamCreateWithPriority", Params: "out-handle s, u32 flags, i32 priority", Op: StreamCreate, Args: "flags priority"},
	{Name: "cudaStreamDestroy", Params: "handle s", Op: StreamDestroy},
	{Name: "cudaStreamSynchronize", Params: "stream s", Op: StreamSynchronize, Sync: true, PTSZ: true},
	{Name: "cudaStreamQuery", Params: "stream s", Op: StreamQuery, Sync: true, PTSZ: true},
	{Name: "cudaStreamGetFlags", Params: "stream s, out-u32 flags", Op: StreamInfo, Args: "s", PTSZ: true},
	{Name: "cudaStreamGetPriority", Params: "stream s, out-skip-u64 flags, out-i32 priority", Op: StreamInfo, Args: "s", PTSZ: true},
	{Name: "cudaStreamGetId", Params: "stream s, out-skip-u64 flags, out-skip-u64 priority, out-u64 id", Op: StreamInfo, Args: "s", PTSZ: true},

	{Name: "cudaEventCreate", Params: "out-handle e", Op: EventCreate, Args: "0"},
	{Name: "cudaEventCreateWithFlags", Params: "out-handle e, u32 flags", Op: EventCreate, Args: "flags"},
	{Name: "cudaEventSynchronize", Params: "handle e", Op: EventSynchronize, Sync: true},
	{Name: "cudaEventQuery", Params: "handle e", Op: EventQuery, Sync: true},
	{Name: "cudaEventDestroy", Params: "handle e", Op: EventDestroy},

	{Name: "cudaDeviceSynchronize", Op: DeviceSynchronize, Sync: true},
	{Name: "cudaThreadSynchronize", Op: DeviceSynchronize, Sync: true},

	{Name: "cudaLibraryUnload", Params: "handle l", Op: UnloadModule},
}

// Driver lists such calls of the driver API.
var Driver = []Forward{
	{Name: "cuCtxSetLimit", Params: "u32 limit, size n", Op: SetLimit},

	{Name: "cuMemAlloc_v2", Params: "out-handle p, size n", Op: Malloc, Args: "n 0"},
	{Name: "cuMemAllocHost_v2", Params: "out-handle p, size n", Op: Malloc, Args: "n 2"},
	{Name: "cuMemHostAlloc", Params: "out-handle p, size n, skip-u32 flags", Op: Malloc, Args: "n 2"},
	{Name: "cuMemAllocManaged", Params: "out-handle p, size n, skip-u32 flags", Op: Malloc, Args: "n 1"},
	{Name: "cuMemFree_v2", Params: "handle p", Op: Free, Args: "p 3", Sync: true},
	{Name: "cuMemFreeHost", Params: "handle p", Op: Free, Args: "p 2", Sync: true},
	{Name: "cuMemAllocAsync", Params: "out-handle p, size n, stream s", Op: MallocAsync, Args: "n s 0", PTSZ: true},
	{Name: "cuMemFreeAsync", Params: "handle p, stream s", Op: FreeAsync, PTSZ: true},
	{Name: "cuMemAddressFree", Params: "handle p, size n", Op: AddressFree},
	{Name: "cuMemRelease", Params: "handle h", Op: MemRelease},
	{Name: "cuMemUnmap", Params: "handle p, size n", Op: MemUnmap},
	{Name: "cuMemGetInfo_v2", Params: "out-size free, out-size total", Op: MemInfo, Args: "-"},

	{Name: "cuStreamCreate", Params: "out-handle s, u32 flags", Op: StreamCreate, Args: "flags 0"},
	{Name: "cuStreamCreateWithPriority", Params: "out-handle s, u32 flags, i32 priority", Op: StreamCreate, Args: "flags priority"},
	{Name: "cuStreamDestroy_v2", Params: "handle s", Op: StreamDestroy},
	{Name: "cuStreamSynchronize", Params: "stream s", Op: StreamSynchronize, Sync: true, PTSZ: true},
	{Name: "cuStreamQuery", Params: "stream s", Op: StreamQuery, Sync: true, PTSZ: true},
	{Name: "cuStreamGetFlags", Params: "stream s, out-u32 flags", Op: StreamInfo, Args: "s", PTSZ: true},
	{Name: "cuStreamGetPriority", Params: "stream s, out-skip-u64 flags, out-i32 priority", Op: StreamInfo, Args: "s", PTSZ: true},

	{Name: "cuEventCreate", Params: "out-handle e, u32 flags", Op: EventCreate, Args: "flags"},
	{Name: "cuEventSynchronize", Params: "handle e", Op: EventSynchronize, Sync: true},
	{Name: "cuEventQuery", Params: "handle e", Op: EventQuery, Sync: true},
	{Name: "cuEventDestroy_v2", Params: "handle e", Op: EventDestroy},

	{Name: "cuCtxSynchronize", Op: DeviceSynchronize, Sync: true},
	{Name: "cuModuleUnload", Params: "handle m", Op: UnloadModule},
	{Name: "cuLibraryUnload", Params: "handle l", Op: UnloadModule},
}

// Accepted lists calls that have no effect and succeed: hints, limits that are never read back, profiling marks. Each
// is "name: parameters" in the kinds of Forward without out-.
var Accepted = []string{
	"cudaDeviceSetCacheConfig: u32 config",
	"cudaThreadSetCacheConfig: u32 config",
	"cudaDeviceSetSharedMemConfig: u32 config",
	"cudaFuncSetCacheConfig: handle f, u32 config",
	"cudaFuncSetSharedMemConfig: handle f, u32 config",
	"cudaProfilerStart",
	"cudaProfilerStop",
	"cudaStreamAttachMemAsync: handle s, handle p, size n, u32 flags",
	"cudaStreamAttachMemAsync_ptsz: handle s, handle p, size n, u32 flags",
	"cudaCtxResetPersistingL2Cache",
	"cudaDeviceFlushGPUDirectRDMAWrites: u32 target, u32 scope",
	"cudaDeviceGraphMemTrim: u32 device",
}

// AcceptedDriver is Accepted for the driver API.
var AcceptedDriver = []string{
	"cuCtxSetCacheConfig: u32 config",
	"cuCtxSetSharedMemConfig: u32 config",
	"cuFuncSetCacheConfig: handle f, u32 config",
	"cuFuncSetSharedMemConfig: handle f, u32 config",
	"cuKernelSetCacheConfig: handle k, u32 config, u32 device",
	"cuProfilerStart",
	"cuProfilerStop",
	"cuStreamAttachMemAsync: handle s, handle p, size n, u32 flags",
	"cuCtxResetPersistingL2Cache",
	"cuDeviceGraphMemTrim: u32 device",
	"cuFuncLoad: handle f",
}
