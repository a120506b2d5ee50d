package cuda

import (
	"context"
	"errors"
	"net"
	"sync"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine"
)

// process is one connected process.
type process struct {
	pid      int32
	ctx      *Context
	life     context.Context // ends with the process
	end      context.CancelCauseFunc
	out      output
	mail     mailbox
	users    map[*net.UnixConn]bool // its connections
	handling sync.Mutex
	mapped   chan struct{} // closed when the first connection has mapped the memory
	once     sync.Once
	alias    uint64
	// handles: the program's numbers of things.
	modules   map[uint64]*Module
	broken    map[uint64]error // modules that could not be loaded
	kernels   map[uint64]*Kernel
	next      uint64
	maps      []mapping
	failing   map[uint32]*Error // by host thread: the error of the last request, until its call ends
	unseen    map[asked]int
	arguments map[uint32][]engine.Argument // by host thread: names for its next launch
}

// ErrEnded says that a launch was stopped because its process had ended.
var ErrEnded = errors.New("the program ended while the kernel ran")

// The reasons of Unheard.
const (
	Forked    uint64 = calls.ReasonForked    // a kernel was launched in a forked child of a process that had used CUDA
	NotMapped uint64 = calls.ReasonNotMapped // a process has no room at the addresses of device memory
)

// Unheard is something in a program that the checker could not observe.
type Unheard struct {
	Reason uint64
	Text   string // the kernel, or the cause
}

func newProcess(ctx context.Context, pid int32) *process {
	p := &process{pid: pid, users: map[*net.UnixConn]bool{}, mapped: make(chan struct{}),
		modules: map[uint64]*Module{}, broken: map[uint64]error{}, kernels: map[uint64]*Kernel{}}
	p.life, p.end = context.WithCancelCause(ctx)
	return p
}

// open makes the process's context. This waits for a running launch of another process. The server is not locked
// meanwhile, because that launch may have to be stopped.
func (p *process) open(d *Device) {
	p.ctx = d.NewContext()
	p.ctx.printf = &p.out
}

// mappedAt is the address of the alias, 0 if it is not mapped.
func (p *process) mappedAt() uint64 {
	select {
	case <-p.mapped:
		return p.alias
	default:
		return 0
	}
}
