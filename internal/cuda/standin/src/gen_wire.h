// Code generated from the tables of package calls by calls/gen; DO NOT EDIT.

#define FP_VERSION 13
#define FP_ENV "FENCEPOST_SOCKET"
#define FP_MARKER "fencepost-standin-1"
#define FP_SOCKET_PREFIX "fencepost-"
#define FP_FLUSH_SIGNAL 53
#define FP_FORKED 0
#define FP_NOT_MAPPED 1
#define FP_ATTRIBUTES 161
#define FP_FRAMES 48
#define FP_SCRIPT 0x80000000u
#define FP_MAX_SCRIPT 4096
#define FP_PYTHON_ENV "FENCEPOST_PYTHON"
#define FP_ORIGIN_FRAMES 40
#define FP_OF_GRAPH_LAUNCH 0xffff000000000000ull
#define FP_LAUNCH_COOPERATIVE 1
#define FP_LAUNCH_CONFIGURED 2
#define FP_LAUNCH_PROGRAMMATIC 4
#define FP_LAUNCH_CLUSTER 8
#define FP_KIND_DEVICE 0
#define FP_KIND_MANAGED 1
#define FP_KIND_PINNED 2
#define FP_KIND_ANY 3
#define FP_KIND_ARRAY 4
#define FP_KIND_OBJECT 5
#define FP_MAIL_WRITTEN 0
#define FP_MAIL_DONE 8
#define FP_MAIL_CLOSED 16
#define FP_MAIL_HEAD 4194304
#define FP_MAIL_RING 262144
#define FP_MAIL_POOL 1073741824
#define FP_THREADS 64
#define FP_THREAD_OF_STREAM 0x10000u
#define FP_POOL_DEFAULT 0
#define FP_POOL_CURRENT 1
#define FP_POOL_CHOOSE 2
#define FP_POOL_CREATE 3
#define FP_POOL_DESTROY 4
#define FP_POOL_TRIM 5
#define FP_POOL_GET 6
#define FP_POOL_SET 7
#define FP_POOL_ACCESS 8
#define FP_POOL_GRANT 9
#define FP_IPC_GET_MEMORY 0
#define FP_IPC_GET_EVENT 1
#define FP_IPC_CLOSE_MEMORY 2
#define FP_IPC_OPEN_MEMORY 3
#define FP_IPC_OPEN_EVENT 4
#define FP_RECORD_WORK 0
#define FP_RECORD_BEGIN 1
#define FP_RECORD_TRIGGER 2
#define FP_RECORD_TRIGGER_AT_START 3
#define FP_POOL_OF_DEVICE 0
#define FP_POOL_OF_HOST 1
#define FP_POOL_OF_MANAGED 2
#define FP_VALUE_WAIT 256
#define FP_OF_BATCH 2199023255552
#define FP_COPY_DURING_CALL 8
#define FP_COPY_ANY_TIME 16
#define FP_FUNCTION_PUT 0
#define FP_FUNCTION_BEGINS 1
#define FP_FUNCTION_ENDS 2
#define FP_UNAWAITED 0x80000000u
#define FP_TEXTURE 128
#define FP_OBJECT 560
#define FP_STREAM_LEGACY 1
#define FP_STREAM_PER_THREAD 2
#define FP_OF_GRAPH 1099511627776

enum {
  FP_Hello = 0, // protocol version, alias address of a process that takes up a lost connection or 0 -> base, arena bytes, device bytes, file offset of the status page, alias address (0: map it), 1 if the pages of the memory are pinned
  FP_Mapped = 1, // address of the alias mapping ->
  FP_LoadModule = 2, // 1: blob is PTX texts with a NUL between them, 0: fat binaries end to end -> module
  FP_UnloadModule = 3, // module ->
  FP_GetKernel = 4, // module; name -> kernel; blob of (u32 offset, u32 size) for each parameter
  FP_GetSymbol = 5, // module; name -> address, size
  FP_Launch = 6, // kernel, stream, grid xyz, block xyz, dynamic shared bytes, flags; parameter block ->
  FP_Malloc = 7, // bytes, memory kind | flags<<8 -> address
  FP_Free = 8, // address, memory kind expected ->
  FP_MallocAsync = 9, // bytes, stream, memory pool or 0 for the current one of the stream's device -> address
  FP_FreeAsync = 10, // address, stream ->
  FP_HostRegister = 11, // page-aligned address, bytes -> file offset
  FP_HostUnregister = 12, // address -> page-aligned address, bytes
  FP_Copy = 13, // dst, pitch, slice pitch, src, pitch, slice pitch, width bytes, height, depth, direction | async<<8 | no memory at dst<<9 | at src<<10 | CopyDuringCall or CopyAnyTime<<8, stream ->
  FP_Fill = 14, // dst, pitch, slice pitch, width bytes, height, depth, async, stream ->
  FP_Pointer = 15, // address -> memory type (0 unregistered, 1 host, 2 device, 3 managed), base, bytes, flags, device
  FP_StreamCreate = 16, // flags, priority -> stream
  FP_StreamDestroy = 17, // stream ->
  FP_StreamSynchronize = 18, // stream ->
  FP_StreamQuery = 19, // stream ->
  FP_StreamWaitEvent = 20, // stream, event ->
  FP_StreamInfo = 21, // stream -> flags, priority, id, device
  FP_EventCreate = 22, // flags -> event
  FP_EventDestroy = 23, // event ->
  FP_EventRecord = 24, // event, stream, RecordWork... ->
  FP_EventSynchronize = 25, // event ->
  FP_EventQuery = 26, // event ->
  FP_EventElapsed = 27, // start, end -> nanoseconds
  FP_HostFunc = 28, // stream, FunctionPut -> its agent; agent, FunctionBegins or FunctionEnds ->: a thread of the program executes a function for the stream
  FP_DeviceSynchronize = 29, // ->
  FP_DeviceReset = 30, // ->
  FP_FuncSetAttribute = 31, // kernel, attribute, value ->
  FP_FuncAttributes = 32, // kernel -> shared, const, local, threads, registers, PTX version, binary version, dynamic shared, carveout
  FP_MemInfo = 33, // -> free, total
  FP_Occupancy = 34, // kernel, threads a block, dynamic shared bytes -> blocks a multiprocessor
  FP_Output = 35, // -> kernel output in the blob
  FP_Unsupported = 36, // name of a call that is not supported ->
  FP_Attributes = 37, // architecture that the program was built for (90 for compute_90), 0 when that is not known -> value of each device attribute, by number
  FP_Failed = 38, // error; name of the call that returns it, NUL, what is out of bounds or nothing -> failures nobody asked for
  FP_Looked = 39, // error, or 0: those of the thread; the program asked for it -> failures nobody asked for
  FP_NotChecked = 40, // reason; kernel or cause: a request without Hello ->
  FP_SetLimit = 41, // limit, value ->
  FP_Operator = 42, // stream; name of what the host computes in the stream's place, NUL, and for each box of bytes it touches 7 u64: 1 when it writes, address, pitch, slice pitch, width bytes, height, depth ->
  FP_Pool = 43, // PoolDefault..., device (up to PoolCreate) or pool, number, value -> value
  FP_Argument = 44, // address, bytes, bytes of an element; name of what lies there, newline, its type, for the next launch of this thread ->
  FP_Findings = 45, // -> what was found and what could not be checked that this process was not told yet: JSON in the blob
  FP_Posting = 46, // address of the mailbox's mapping in this process, 0 to ask for it, or 1 when there can be none -> its offset in the file, its bytes, what was told first (0: nothing yet)
  FP_Posted = 47, // 1: with an answer, once all that was posted is done; 0: no reply is sent ->
  FP_Lease = 48, // bytes -> first address, end of addresses that this process gives out by itself
  FP_MallocLeased = 49, // bytes, stream, address in a lease, offset of its bytes in the pool or all ones: a MallocAsync that needs no answer ->
  FP_Source = 50, // name of a text that code was compiled from and that is in no file, newline, the text ->
  FP_TensorMap = 51, // address of the CUtensorMap, element type, rank, address of the tensor, interleave, swizzle, L2 promotion, fill, 1 in im2col mode; 25 u64: sizes, strides, box, element strides, lower and upper corners -> its bytes in the blob
  FP_Texture = 52, // 1: a surface; 31 u64: address, pitch, slice pitch, width, height, depth, dimensions, layered, cube, linear memory, channel format, bits of 4 channels, 3 address modes, linear filter, normalized coordinates, integers as floats, sRGB, border as bits of 4 floats, levels, linear filter between levels, bias, least and most level of detail as bits of floats -> texture or surface object
  FP_ClusterOccupancy = 53, // kernel, threads a block, dynamic shared bytes, blocks of a cluster as in the flags of a launch -> clusters resident at once, blocks of the largest cluster
  FP_HostAccess = 54, // address, bytes, 1 when they are written; name or nothing: the program's own code touches memory that kernels can reach ->
  FP_Thread = 55, // number of the calling thread among those that have called CUDA, with ThreadOfStream if it executes a function for a stream, its closed epochs; for each thread of which it has learned 2 u64: number, closed epochs that come before its next call ->
  FP_SetDevice = 56, // device, for the calls of this thread ->
  FP_GetDevice = 57, // -> device of this thread, number of devices
  FP_DeviceCanAccessPeer = 58, // device, peer -> 1 when it can be given access
  FP_PeerAccess = 59, // peer, 1: the current device gets access to its memory, 0: no more ->
  FP_AddressReserve = 60, // bytes, alignment -> address
  FP_AddressFree = 61, // address, bytes ->
  FP_MemCreate = 62, // bytes, device -> handle of a physical allocation
  FP_MemRelease = 63, // handle ->
  FP_MemMap = 64, // address, bytes, handle ->
  FP_MemUnmap = 65, // address, bytes ->
  FP_MemSetAccess = 66, // address, bytes, device, its CUmemAccess_flags ->
  FP_MemMapped = 67, // address, 1: another handle of it, device -> handle, bytes, CUmemAccess_flags of the device of what is mapped there; 0, 0, handle -> device
  FP_StreamValue = 68, // stream, address, value, bytes and ValueWait for a wait, its condition (CUstreamWaitValue_flags) ->
  FP_Condition = 69, // stream, condition of a graph or 0 to make one, 1 to set it, value -> the condition that was made or its value
  FP_Ipc = 70, // IpcGetMemory..., address or event (IpcOpenMemory: flags), 3 words of a handle that is opened -> 3 words of a handle, or what was opened
};

// fp_placed says which requests tell where in the program their call is.
static int fp_placed(u32 op) {
  return op == FP_Malloc || op == FP_Free || op == FP_Copy || op == FP_Fill || op == FP_MallocAsync || op == FP_FreeAsync || op == FP_Failed || op == FP_Launch || op == FP_Operator || op == FP_MallocLeased || op == FP_TensorMap || op == FP_Texture || op == FP_HostAccess || op == FP_MemUnmap || op == FP_Condition;
}
