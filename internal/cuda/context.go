package cuda

import (
	"io"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// Context is one process's view of the device: its modules, streams, events, allocations and errors.
//
// Each thread of the process that has a number in the libraries is an agent: see hostThreads. All other threads
// together are one agent, whose calls are ordered as they are made. Races between streams are found all the same,
// because a call that does not wait orders nothing.
type Context struct {
	dev  *Device
	host uint32 // agent of the calling thread
	id   uint64

	threads hostThreads

	limits engine.Limits // for launches

	shares  bool  // it has memory that the host can access
	signals bool  // see signalling
	sticky  error // an *Error after a fault, which every later call returns

	streams map[StreamID]*stream
	lastID  uint64
	live    []*stream // the result of allStreams; nil: to be computed
	gpus    []*gpu
	gpu     *gpu            // of the call: the current device of its thread
	current map[uint32]*gpu // by host thread; absent: the first

	events  map[EventID]*eventState
	modules map[*Module]bool
	allocs  map[uint64]allocation
	leased  *devmem.Lease // nil: none
	pinned  map[uint64]registration
	freedAt map[uint64]string // by address: what freed the last allocation there

	written map[uint64]writtenValue // by address

	reserved []*reservation
	physical map[uint64]*physical // by handle

	opened map[uint64]int  // memory of other processes, by address: how many times
	shut   map[uint64]bool // that was opened and is closed

	pools     map[uint64]*pool // by handle
	poolsMade uint64

	works    uint64              // number of operations put into streams
	progress map[uint32]progress // by agent

	mallocs int         // numbers allocations for their names
	clock   uint64      // ns; an artificial time for event timing
	alone   func() bool // reports that no other thread of the program runs; nil: there is no program
	printf  io.Writer
	closed  bool
}

// allocation is the record of an allocation of the context.
type allocation struct {
	size  uint64
	kind  devmem.AllocKind
	pool  *pool // nil: it is not stream-ordered
	flags uint32
	// When leaks are searched for: frames is the call stack of the call, innermost first, and leaks says that the
	// program made it.
	frames []event.Frame
	leaks  bool
}

type registration struct {
	size, offset uint64
}

// NewContext begins the use of the device by a process, or by a caller that drives it directly.
func (d *Device) NewContext() *Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.contexts++
	c := &Context{dev: d, id: d.contexts, streams: map[StreamID]*stream{}, current: map[uint32]*gpu{},
		events: map[EventID]*eventState{}, modules: map[*Module]bool{}, allocs: map[uint64]allocation{},
		pinned: map[uint64]registration{}, freedAt: map[uint64]string{}, progress: map[uint32]progress{}, printf: d.cfg.Printf, limits: d.limits()}
	c.host = d.newAgent()
	c.threads.begin(c.host)
	for n := range max(d.cfg.Devices, 1) {
		c.gpus = append(c.gpus, c.newGPU(n))
	}
	c.use(c.gpus[0])
	d.open[c.id] = c
	return c
}

// builtFor records that the process holds PTX for an architecture (90 for compute_90), and no other that this device
// could run. The device changes to one that can run it, unless its capability is fixed.
func (c *Context) builtFor(arch int) {
	if lim := engine.LimitsOf(arch); c.dev.cfg.Limits == (engine.Limits{}) && lim.Major > c.limits.Major {
		c.limits = lim
	}
}

// enter locks the device for one call and returns the function that ends the call. It returns the sticky error, if any.
func (c *Context) enter() (func(), error) {
	c.dev.mu.Lock()
	leave := func() {
		c.dev.flush()
		c.dev.mu.Unlock()
	}
	if c.closed {
		return leave, fail(InitializationError, "the context is closed")
	}
	return leave, c.sticky
}

// Close ends the context and frees its modules and allocations.
func (c *Context) Close() {
	leave, _ := c.enter()
	defer leave()
	if c.closed {
		return
	}
	c.meet()
	c.release()
	c.closed = true
	c.leave()
}

// endOfContext is the name of what frees the allocations of a context that is reset.
const endOfContext = "context end"

// release frees everything the context holds, after a device synchronisation.
func (c *Context) release() {
	c.waitAll(endOfContext)
	for _, m := range c.sortedModules() {
		m.unload()
	}
	c.leaks()
	for _, addr := range sortedKeys(c.allocs) {
		c.freeAlloc(addr, c.host, endOfContext)
		c.freed(addr, endOfContext)
	}
	for _, addr := range sortedKeys(c.pinned) {
		c.unregister(addr)
	}
	c.endVirtual()
	c.endLease()
}

// Reset is cudaDeviceReset: everything that the context made on the current device is destroyed. A sticky error stays.
// If there are several devices, the modules stay, with the values of their variables.
func (c *Context) Reset() error {
	leave, err := c.enter()
	defer leave()
	if len(c.gpus) > 1 {
		c.reset(c.gpu)
		return err
	}
	c.release()
	c.streams, c.live = map[StreamID]*stream{}, nil
	clear(c.gpu.perThread)
	c.events = map[EventID]*eventState{}
	return err
}

// Synchronize is cudaDeviceSynchronize: the host waits for all streams of the current device.
func (c *Context) Synchronize() error {
	leave, err := c.enter()
	defer leave()
	for _, s := range c.allStreams() {
		if err == nil {
			err = c.blocked(s)
		}
	}
	if err == nil {
		c.waitGPU(c.gpu, "cudaDeviceSynchronize")
	}
	return err
}

// order makes agent continue after everything that another has done. Each agent publishes under a token equal to its
// own number. A wait sees the newest signal, which is the meaning of "all work so far" in every rule of the API.
func (c *Context) order(agent, other uint32, name string) {
	c.dev.tell(event.HostOp{Kind: event.HostSignal, Agent: other, Token: uint64(other), Name: name})
	c.dev.tell(event.HostOp{Kind: event.HostWait, Agent: agent, Token: uint64(other), Name: name})
	c.follow(c.threads.party(agent), c.progress[c.threads.party(other)])
}

// waitAll orders the host after every stream of every device.
func (c *Context) waitAll(name string) {
	for _, s := range c.allStreams() {
		c.order(c.host, s.agent, name)
	}
	for _, g := range c.gpus {
		c.order(c.host, g.gone, name)
		c.order(c.host, g.goneFree, name)
	}
	c.settleAll()
}
