package cuda

import (
	"context"
	"fmt"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// MaxDevices bounds Config.Devices.
const MaxDevices = event.MaxDevices

// gpu is one of the devices that a context sees: its default streams, and the memory that its kernels may access. All
// devices share one address space. An allocation belongs to the device that was current when it was made.
type gpu struct {
	number    int
	legacy    *stream
	perThread map[uint32]*stream // by host thread
	// gone and goneFree stand for the destroyed streams, blocking and non-blocking: agents that have waited for them.
	gone, goneFree uint32
	// pools are the memory pools of the device by the kind of their memory (calls.PoolOfDevice and following). The
	// host's pools belong to device 0.
	pools [calls.PoolKinds]struct {
		first, current *pool // nil until they are needed; cudaMallocAsync uses the current one
	}
	peers uint64 // bits of the devices whose memory its kernels may access
}

// newGPU makes a device. Names of streams include the device unless it is the first.
func (c *Context) newGPU(number int) *gpu {
	g := &gpu{number: number, perThread: map[uint32]*stream{}, gone: c.dev.newAgent(), goneFree: c.dev.newAgent()}
	g.legacy = &stream{gpu: g, agent: c.dev.newAgent(), name: "default stream" + g.suffix()}
	return g
}

func (g *gpu) suffix() string {
	if g.number == 0 {
		return ""
	}
	return fmt.Sprintf(" of device %d", g.number)
}

// inEvents returns the device in the form for events: see event.Launch.
func (g *gpu) inEvents(c *Context) uint8 {
	if len(c.gpus) == 1 {
		return 0
	}
	return uint8(g.number + 1)
}

// gpuOf finds a device by its number.
func (c *Context) gpuOf(number int) (*gpu, error) {
	if number < 0 || number >= len(c.gpus) {
		return nil, fail(InvalidDevice, "device %d, and there are %d, numbered from 0", number, len(c.gpus))
	}
	return c.gpus[number], nil
}

// Devices is the number of devices that the context sees.
func (c *Context) Devices() int { return len(c.gpus) }

// SetDevice is cudaSetDevice: it sets the device of a host thread's later calls.
func (c *Context) SetDevice(number int, thread uint32) error {
	leave, err := c.enter()
	defer leave()
	g, bad := c.gpuOf(number)
	if bad != nil {
		return bad
	}
	c.current[thread] = g
	c.use(g)
	return err
}

// CurrentDevice is cudaGetDevice.
func (c *Context) CurrentDevice(thread uint32) int {
	leave, _ := c.enter()
	defer leave()
	return c.currentOf(thread).number
}

func (c *Context) currentOf(thread uint32) *gpu {
	if g := c.current[thread]; g != nil {
		return g
	}
	return c.gpus[0]
}

// use sets the device of the call.
func (c *Context) use(g *gpu) { c.gpu = g }

// CanAccessPeer is cudaDeviceCanAccessPeer: all devices can, but no device is its own peer.
func (c *Context) CanAccessPeer(number, peer int) (bool, error) {
	leave, err := c.enter()
	defer leave()
	if _, bad := c.gpuOf(number); bad != nil {
		return false, bad
	}
	if _, bad := c.gpuOf(peer); bad != nil {
		return false, bad
	}
	return number != peer, err
}

// PeerAccess is cudaDeviceEnablePeerAccess or cudaDeviceDisablePeerAccess: it sets whether kernels of the current
// device may access memory of another device.
func (c *Context) PeerAccess(peer int, enable bool) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return err
	}
	g := c.gpu
	switch _, bad := c.gpuOf(peer); {
	case bad != nil:
		return bad
	case peer == g.number:
		return fail(InvalidDevice, "device %d is not a peer of itself", peer)
	case enable && g.peers>>peer&1 != 0:
		return fail(PeerAccessAlreadyEnabled, "device %d has access to the memory of device %d already", g.number, peer)
	case !enable && g.peers>>peer&1 == 0:
		return fail(PeerAccessNotEnabled, "device %d has no access to the memory of device %d", g.number, peer)
	}
	g.peers ^= 1 << peer
	return nil
}

// own makes later allocations belong to a device. reached also says that its kernels are about to run. The memory is
// shared by all contexts, so this is set before each use.
func (g *gpu) own(m *devmem.Memory) { m.On(g.number, 0) }

func (g *gpu) reached(m *devmem.Memory) { m.On(g.number, ^(g.peers | 1<<g.number)) }

// between makes a synchronous copy in the legacy default stream wait for the default streams of the devices that hold
// its ends, which in turn wait for the copy (CUDA Programming Guide, "Peer-to-Peer Memory Copy": the copy starts when
// all commands issued to either device have completed, and commands issued later start after it has). It returns the
// function that makes them wait.
func (c *Context) between(s *stream, name string, ends ...int) (after func()) {
	var others []*gpu
	for _, n := range ends {
		if n >= 0 && n < len(c.gpus) && n != s.gpu.number {
			others = append(others, c.gpus[n])
		}
	}
	for _, g := range others {
		c.begin(g.legacy, name)
		c.order(s.agent, g.legacy.agent, name)
	}
	return func() {
		for _, g := range others {
			c.order(g.legacy.agent, s.agent, name)
		}
	}
}

// waitGPU orders the host after the streams of a device.
func (c *Context) waitGPU(g *gpu, name string) {
	if len(c.gpus) == 1 {
		c.waitAll(name)
		return
	}
	for _, s := range c.allStreams() {
		if s.gpu == g {
			c.order(c.host, s.agent, name)
		}
	}
	c.order(c.host, g.gone, name)
	c.order(c.host, g.goneFree, name)
}

// on returns the instance of a module on a device: each device has variables of its own. The module is loaded there on
// first use.
func (m *Module) on(g *gpu) (*Module, error) {
	if m.gpu == g || !m.ctx.modules[m] {
		return m, nil
	}
	if other := m.others[g]; other != nil {
		return other, nil
	}
	for _, v := range m.program.Module.Vars {
		if v.Managed {
			return nil, &Unchecked{Err: fmt.Errorf("the module has a __managed__ variable (%s), and is used on devices %d and %d: one variable of several devices is not supported", v.Name, m.gpu.number, g.number)}
		}
	}
	now := m.ctx.gpu
	m.ctx.use(g)
	defer m.ctx.use(now)
	other, err := m.ctx.load(m.images)
	if err != nil {
		return nil, err
	}
	if m.others == nil {
		m.others = map[*gpu]*Module{}
	}
	m.others[g] = other
	return other, nil
}

// on returns the instance of a kernel on a device, with the attributes that were set there.
func (k *Kernel) on(g *gpu) (*Kernel, error) {
	m, err := k.module.on(g)
	if err != nil || m == k.module {
		return k, err
	}
	return m.kernel(k.Name())
}

// deviceOf returns the number of the device to which memory belongs, and -1 for memory of all devices and of the host.
func (e side) deviceOf() int {
	if !e.known || e.kind == devmem.ManagedAlloc || e.kind == devmem.PinnedAlloc {
		return -1
	}
	return e.gpu
}

// reset destroys everything that the context made on a device, except modules.
func (c *Context) reset(g *gpu) {
	c.waitGPU(g, endOfContext)
	for _, addr := range sortedKeys(c.allocs) {
		if a, _ := c.dev.mem.Find(addr); a.Device == g.number {
			c.freeAlloc(addr, c.host, endOfContext)
			c.freed(addr, endOfContext)
		}
	}
	for id, s := range c.streams {
		if s.gpu == g {
			delete(c.streams, id)
		}
	}
	for id, e := range c.events {
		if e.gpu == g {
			delete(c.events, id)
		}
	}
	clear(g.perThread)
	g.peers, c.live = 0, nil
}

func (p *process) setDevice(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.SetDevice(int(int32(r.args[0])), r.thread)
}

func (p *process) getDevice(_ context.Context, r *request) ([]uint64, []byte, error) {
	return []uint64{uint64(p.ctx.CurrentDevice(r.thread)), uint64(p.ctx.Devices())}, nil, nil
}

func (p *process) canAccessPeer(_ context.Context, r *request) ([]uint64, []byte, error) {
	can, err := p.ctx.CanAccessPeer(int(int32(r.args[0])), int(int32(r.args[1])))
	if !can {
		return []uint64{0}, nil, err
	}
	return []uint64{1}, nil, err
}

func (p *process) peerAccess(_ context.Context, r *request) ([]uint64, []byte, error) {
	return nil, nil, p.ctx.PeerAccess(int(int32(r.args[0])), r.args[1] != 0)
}
