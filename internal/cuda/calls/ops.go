// Package calls contains the tables from which both sides of the stand-in libraries are made: the requests of programs
// to the checker, the calls of CUDA's APIs that are single requests, the unsupported calls, the error codes, and the
// layout of the structures that the APIs fill. The server reads the tables; the C sources of package standin are
// generated from them.
package calls

// Version is the version of the protocol. The libraries are built from the sources inside the tool, so the versions can
// only differ if an old program contains the static library of another version.
const Version = 13

// Env is the environment variable with the name of the server's socket, an abstract address: it can be reached from
// every folder, and disappears when the server is killed.
const Env = "FENCEPOST_SOCKET"

// GPUWorker is the program that makes the driver calls for package gpu.
const GPUWorker = "gpu-worker"

// ThreadsLibrary is the library, loaded before all others, that observes what orders the threads of a program.
const ThreadsLibrary = "libfencepost_threads.so"

// PythonEnv is the environment variable with the folder of Fencepost's Python modules.
const PythonEnv = "FENCEPOST_PYTHON"

// SocketPrefix is the prefix of the name of every server's socket. The number of the server's process follows, for
// programs that were started without the environment variable.
const SocketPrefix = "fencepost-"

// FlushSignal asks a program to write its buffered standard output and to end. It is a real-time signal, which hardly
// any program uses. The libraries do not handle it if the program does.
const FlushSignal = 53

// The reasons of NotChecked.
const (
	ReasonForked    = iota // a kernel was launched in the forked child of a process that has used CUDA
	ReasonNotMapped        // a process has no room at the addresses of device memory
	NumReasons
)

// Marker is a string in every library, by which the tool recognises its own libraries.
const Marker = "fencepost-standin-1"

// Op is a request.
type Op uint32

// A request is a header of four little-endian u32 (op, number of arguments, thread id, length of the blob), the
// arguments as u64, and the blob. A reply is a header of four u32 (error code, number of results, bytes of waiting
// kernel output combined with Unawaited, length of the blob), the results as u64, and the blob.
const (
	Hello Op = iota // the reply carries the descriptor of the memory
	Mapped
	LoadModule
	UnloadModule
	GetKernel
	GetSymbol
	Launch
	Malloc
	Free
	MallocAsync
	FreeAsync
	HostRegister
	HostUnregister
	Copy
	Fill
	Pointer
	StreamCreate
	StreamDestroy
	StreamSynchronize
	StreamQuery
	StreamWaitEvent
	StreamInfo
	EventCreate
	EventDestroy
	EventRecord
	EventSynchronize
	EventQuery
	EventElapsed
	HostFunc
	DeviceSynchronize
	DeviceReset
	FuncSetAttribute
	FuncAttributes
	MemInfo
	Occupancy
	Output
	Unsupported
	Attributes
	Failed
	Looked
	NotChecked
	SetLimit
	Operator
	Pool
	Argument
	Findings
	Posting
	Posted
	Lease
	MallocLeased
	Source
	TensorMap
	Texture
	ClusterOccupancy
	HostAccess
	Thread
	SetDevice
	GetDevice
	DeviceCanAccessPeer
	PeerAccess
	AddressReserve
	AddressFree
	MemCreate
	MemRelease
	MemMap
	MemUnmap
	MemSetAccess
	MemMapped
	StreamValue
	Condition
	Ipc
	NumOps
)

// Unawaited is a bit of a reply, in the word with the bytes of kernel output. It says that there is work for which the
// host has not waited, and memory that both may access.
const Unawaited = 1 << 31

// Spec is the shape of a request, which the server checks and the generator writes.
type Spec struct {
	Name string
	Args int  // number of arguments
	Blob bool // a blob may follow
	Doc  string
}

// Frames is the greatest number of return addresses of the program's call stack, innermost first, that may follow the
// arguments of a Placed request. It suffices to get through the layers of a header library, such as Thrust, to the code
// that called it.
const Frames = 48

// A request for a graph node, made by the launch of the graph, carries two places: at most OriginFrames return
// addresses of the call that made the node, then OfGraphLaunch plus the number of the launch in its process, which is
// not a possible address, then the return addresses of the call that launches.
const (
	OriginFrames  = 40
	OfGraphLaunch = 0xffff << 48
)

// Placed lists the requests that carry the place of their call in the program.
var Placed = []Op{Malloc, Free, Copy, Fill, MallocAsync, FreeAsync, Failed, Launch, Operator, MallocLeased, TensorMap, Texture, HostAccess, MemUnmap, Condition}

// A Placed request of an interpreted program carries the place of the call in the script instead of return addresses.
// Script is then set in the op of its header, an additional argument is the length of a text of at most MaxScript
// bytes, and the text follows the blob and counts in its length. The text has a line for each frame, innermost first:
// line number, tab, file, tab, function.
const (
	Script    = 1 << 31
	MaxScript = 4096
)

// Postable lists the requests that a process may put into its mailbox instead of sending them. They need no answer. The
// mailbox is a part of the shared file. The server empties it before it executes any request of the process, when it is
// told to (Posted), and when the process has ended, in whatever way. So posted requests are executed in order and never
// lost. A process posts only requests that it knows to succeed, because nobody receives the error.
//
// The mailbox begins with a page of which the server uses three words: MailWritten and MailDone, the total numbers of
// bytes written and read, and MailClosed, which is 1 if everything fails. The rest of the page belongs to the process.
// Behind MailHead bytes is the ring of MailRing bytes with the requests, in the form in which they are sent.
//
// Behind the ring are MailPool bytes in which the process may place the bytes of memory that it allocates in a lease.
// Addresses are not reused for long, so that accesses to freed memory are found. Bytes are reused, because the first
// access to a page costs much more than access to a cached one.
var Postable = []Op{FreeAsync, Operator, MallocLeased}

// The layout of a mailbox, in bytes.
const (
	MailWritten = 0
	MailDone    = 8
	MailClosed  = 16
	MailHead    = 1 << 22
	MailRing    = 1 << 18
	MailPool    = 1 << 30
)

// Specs describes the requests, by Op.
var Specs = [NumOps]Spec{
	Hello:               {"Hello", 2, false, "protocol version, alias address of a process that takes up a lost connection or 0 -> base, arena bytes, device bytes, file offset of the status page, alias address (0: map it), 1 if the pages of the memory are pinned"},
	Mapped:              {"Mapped", 1, false, "address of the alias mapping ->"},
	LoadModule:          {"LoadModule", 1, true, "1: blob is PTX texts with a NUL between them, 0: fat binaries end to end -> module"},
	UnloadModule:        {"UnloadModule", 1, false, "module ->"},
	GetKernel:           {"GetKernel", 1, true, "module; name -> kernel; blob of (u32 offset, u32 size) for each parameter"},
	GetSymbol:           {"GetSymbol", 1, true, "module; name -> address, size"},
	Launch:              {"Launch", 10, true, "kernel, stream, grid xyz, block xyz, dynamic shared bytes, flags; parameter block ->"},
	Malloc:              {"Malloc", 2, false, "bytes, memory kind | flags<<8 -> address"},
	Free:                {"Free", 2, false, "address, memory kind expected ->"},
	MallocAsync:         {"MallocAsync", 3, false, "bytes, stream, memory pool or 0 for the current one of the stream's device -> address"},
	FreeAsync:           {"FreeAsync", 2, false, "address, stream ->"},
	HostRegister:        {"HostRegister", 2, false, "page-aligned address, bytes -> file offset"},
	HostUnregister:      {"HostUnregister", 1, false, "address -> page-aligned address, bytes"},
	Copy:                {"Copy", 11, false, "dst, pitch, slice pitch, src, pitch, slice pitch, width bytes, height, depth, direction | async<<8 | no memory at dst<<9 | at src<<10 | CopyDuringCall or CopyAnyTime<<8, stream ->"},
	Fill:                {"Fill", 8, false, "dst, pitch, slice pitch, width bytes, height, depth, async, stream ->"},
	Pointer:             {"Pointer", 1, false, "address -> memory type (0 unregistered, 1 host, 2 device, 3 managed), base, bytes, flags, device"},
	StreamCreate:        {"StreamCreate", 2, false, "flags, priority -> stream"},
	StreamDestroy:       {"StreamDestroy", 1, false, "stream ->"},
	StreamSynchronize:   {"StreamSynchronize", 1, false, "stream ->"},
	StreamQuery:         {"StreamQuery", 1, false, "stream ->"},
	StreamWaitEvent:     {"StreamWaitEvent", 2, false, "stream, event ->"},
	StreamInfo:          {"StreamInfo", 1, false, "stream -> flags, priority, id, device"},
	EventCreate:         {"EventCreate", 1, false, "flags -> event"},
	EventDestroy:        {"EventDestroy", 1, false, "event ->"},
	EventRecord:         {"EventRecord", 3, false, "event, stream, RecordWork... ->"},
	EventSynchronize:    {"EventSynchronize", 1, false, "event ->"},
	EventQuery:          {"EventQuery", 1, false, "event ->"},
	EventElapsed:        {"EventElapsed", 2, false, "start, end -> nanoseconds"},
	HostFunc:            {"HostFunc", 2, false, "stream, FunctionPut -> its agent; agent, FunctionBegins or FunctionEnds ->: a thread of the program executes a function for the stream"},
	DeviceSynchronize:   {"DeviceSynchronize", 0, false, "->"},
	DeviceReset:         {"DeviceReset", 0, false, "->"},
	FuncSetAttribute:    {"FuncSetAttribute", 3, false, "kernel, attribute, value ->"},
	FuncAttributes:      {"FuncAttributes", 1, false, "kernel -> shared, const, local, threads, registers, PTX version, binary version, dynamic shared, carveout"},
	MemInfo:             {"MemInfo", 0, false, "-> free, total"},
	Occupancy:           {"Occupancy", 3, false, "kernel, threads a block, dynamic shared bytes -> blocks a multiprocessor"},
	Output:              {"Output", 0, false, "-> kernel output in the blob"},
	Unsupported:         {"Unsupported", 0, true, "name of a call that is not supported ->"},
	Attributes:          {"Attributes", 1, false, "architecture that the program was built for (90 for compute_90), 0 when that is not known -> value of each device attribute, by number"},
	Failed:              {"Failed", 1, true, "error; name of the call that returns it, NUL, what is out of bounds or nothing -> failures nobody asked for"},
	Looked:              {"Looked", 1, false, "error, or 0: those of the thread; the program asked for it -> failures nobody asked for"},
	NotChecked:          {"NotChecked", 1, true, "reason; kernel or cause: a request without Hello ->"},
	SetLimit:            {"SetLimit", 2, false, "limit, value ->"},
	Operator:            {"Operator", 1, true, "stream; name of what the host computes in the stream's place, NUL, and for each box of bytes it touches 7 u64: 1 when it writes, address, pitch, slice pitch, width bytes, height, depth ->"},
	Pool:                {"Pool", 4, false, "PoolDefault..., device (up to PoolCreate) or pool, number, value -> value"},
	Argument:            {"Argument", 3, true, "address, bytes, bytes of an element; name of what lies there, newline, its type, for the next launch of this thread ->"},
	Findings:            {"Findings", 0, false, "-> what was found and what could not be checked that this process was not told yet: JSON in the blob"},
	Posting:             {"Posting", 1, false, "address of the mailbox's mapping in this process, 0 to ask for it, or 1 when there can be none -> its offset in the file, its bytes, what was told first (0: nothing yet)"},
	Posted:              {"Posted", 1, false, "1: with an answer, once all that was posted is done; 0: no reply is sent ->"},
	Lease:               {"Lease", 1, false, "bytes -> first address, end of addresses that this process gives out by itself"},
	MallocLeased:        {"MallocLeased", 4, false, "bytes, stream, address in a lease, offset of its bytes in the pool or all ones: a MallocAsync that needs no answer ->"},
	Source:              {"Source", 0, true, "name of a text that code was compiled from and that is in no file, newline, the text ->"},
	TensorMap:           {"TensorMap", 9, true, "address of the CUtensorMap, element type, rank, address of the tensor, interleave, swizzle, L2 promotion, fill, 1 in im2col mode; 25 u64: sizes, strides, box, element strides, lower and upper corners -> its bytes in the blob"},
	Texture:             {"Texture", 1, true, "1: a surface; 31 u64: address, pitch, slice pitch, width, height, depth, dimensions, layered, cube, linear memory, channel format, bits of 4 channels, 3 address modes, linear filter, normalized coordinates, integers as floats, sRGB, border as bits of 4 floats, levels, linear filter between levels, bias, least and most level of detail as bits of floats -> texture or surface object"},
	HostAccess:          {"HostAccess", 3, true, "address, bytes, 1 when they are written; name or nothing: the program's own code touches memory that kernels can reach ->"},
	Thread:              {"Thread", 2, true, "number of the calling thread among those that have called CUDA, with ThreadOfStream if it executes a function for a stream, its closed epochs; for each thread of which it has learned 2 u64: number, closed epochs that come before its next call ->"},
	SetDevice:           {"SetDevice", 1, false, "device, for the calls of this thread ->"},
	GetDevice:           {"GetDevice", 0, false, "-> device of this thread, number of devices"},
	DeviceCanAccessPeer: {"DeviceCanAccessPeer", 2, false, "device, peer -> 1 when it can be given access"},
	PeerAccess:          {"PeerAccess", 2, false, "peer, 1: the current device gets access to its memory, 0: no more ->"},
	AddressReserve:      {"AddressReserve", 2, false, "bytes, alignment -> address"},
	AddressFree:         {"AddressFree", 2, false, "address, bytes ->"},
	MemCreate:           {"MemCreate", 2, false, "bytes, device -> handle of a physical allocation"},
	MemRelease:          {"MemRelease", 1, false, "handle ->"},
	MemMap:              {"MemMap", 3, false, "address, bytes, handle ->"},
	MemUnmap:            {"MemUnmap", 2, false, "address, bytes ->"},
	MemSetAccess:        {"MemSetAccess", 4, false, "address, bytes, device, its CUmemAccess_flags ->"},
	MemMapped:           {"MemMapped", 3, false, "address, 1: another handle of it, device -> handle, bytes, CUmemAccess_flags of the device of what is mapped there; 0, 0, handle -> device"},
	Ipc:                 {"Ipc", 5, false, "IpcGetMemory..., address or event (IpcOpenMemory: flags), 3 words of a handle that is opened -> 3 words of a handle, or what was opened"},
	StreamValue:         {"StreamValue", 5, false, "stream, address, value, bytes and ValueWait for a wait, its condition (CUstreamWaitValue_flags) ->"},
	Condition:           {"Condition", 4, false, "stream, condition of a graph or 0 to make one, 1 to set it, value -> the condition that was made or its value"},
	ClusterOccupancy:    {"ClusterOccupancy", 4, false, "kernel, threads a block, dynamic shared bytes, blocks of a cluster as in the flags of a launch -> clusters resident at once, blocks of the largest cluster"},
}

// Threads is the number of host threads that have a number of their own: see Thread. The calls of a thread form epochs.
// An epoch ends when the thread lets other threads go on after its calls.
const Threads = 64

// ThreadOfStream marks the number of a thread that executes a function of the program for a stream.
const ThreadOfStream = 1 << 16

// ValueWait marks a StreamValue that waits.
const ValueWait = 1 << 8

// The operations of Pool. On a device: its default pool; its current pool (number: PoolOfDevice...); choosing a pool
// (number: the pool; value: the kind that it must have); making a pool (number: its greatest size in bytes, 0: no
// bound; value: its kind). On a pool: destroying it; returning its unused memory; reading an attribute (number);
// setting an attribute to a value; the access of a device (number); granting access (value: CUmemAccess_flags).
const (
	PoolDefault = iota
	PoolCurrent
	PoolChoose
	PoolCreate
	PoolDestroy
	PoolTrim
	PoolGet
	PoolSet
	PoolAccess
	PoolGrant
)

// The kinds of memory of a pool.
const (
	PoolOfDevice  = iota
	PoolOfHost    // pinned memory
	PoolOfManaged // managed memory
	PoolKinds
)

// The meanings of a recorded event: the work so far, the work before the launch that follows, or the start of what that
// launch releases (cudaLaunchAttributeProgrammaticEvent), when its blocks trigger it or when they begin.
const (
	RecordWork = iota
	RecordBegin
	RecordTrigger
	RecordTriggerAtStart
)

// The operations of Ipc: a handle of memory or of an event, closing memory that was opened, opening a handle of memory
// or of an event.
const (
	IpcGetMemory = iota
	IpcGetEvent
	IpcCloseMemory
	IpcOpenMemory
	IpcOpenEvent
)

// The meanings of HostFunc.
const (
	FunctionPut = iota
	FunctionBegins
	FunctionEnds
)

// The arguments of Launch.
const (
	LaunchCooperative  = 1 // flags
	LaunchConfigured   = 2 // the launch was written <<<...>>>: the program's code does not receive its error
	LaunchProgrammatic = 4 // programmatic stream serialization is allowed
	LaunchCluster      = 8 // from this bit on the three extents of clusters, of 8 bits each; zeros if none are given
)

// The memory kinds of Malloc and Free.
const (
	KindDevice = iota
	KindManaged
	KindPinned
	KindAny    // Free: device or managed
	KindArray  // a CUDA array
	KindObject // Free: a texture or surface object
)

// The stream handles of the API: 0 is the default stream as the caller was compiled.
const (
	StreamLegacy    = 1
	StreamPerThread = 2
)

// OfGraph is a flag of StreamCreate, of EventCreate and of Malloc's kind that programs cannot use. It marks a stream
// that runs a branch of a graph, an event that is an edge of a graph, and the permanent memory of an allocation node.
const OfGraph = 1 << 40

// OfBatch is such a flag of StreamCreate, for a stream that makes a copy of a batch.
const OfBatch = 1 << 41

// When a copy reads its source: bits of its direction above the lowest 8, besides 1 for an asynchronous copy. In
// neither case is the read ordered after the earlier work of the stream.
const (
	CopyDuringCall = 8  // before the call returns
	CopyAnyTime    = 16 // between the call and the end of the copy
)

// A texture or surface object is ObjectBytes of memory: TextureBytes that the engine reads (engine.Texture), followed
// by data of the process.
const (
	TextureBytes = 128
	ObjectBytes  = 560
)
