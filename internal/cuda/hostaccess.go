package cuda

import (
	"context"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// hostPage is the alignment of memory that the host can access: its pages are guarded one by one (standin/src/guard.h).
const hostPage = 4096

// alignment returns the alignment of an allocation, and records whether the host can access the memory. The device is
// locked.
func (c *Context) alignment(kind devmem.AllocKind) uint64 {
	if kind == devmem.ManagedAlloc || kind == devmem.PinnedAlloc {
		c.shares = true
		return hostPage
	}
	return allocAlign
}

// touchable is alignment for the memory of a module.
func (c *Context) touchable(kind devmem.AllocKind) {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.alignment(kind)
}

// unawaited reports whether the host may access memory that is in use by work for which it has not waited.
func (c *Context) unawaited() bool {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if !c.shares || c.sticky != nil || c.dev.cfg.Sink == nil || c.dev.cfg.Needs&event.NeedHost == 0 {
		return false
	}
	known := c.progress[c.threads.first]
	for agent, p := range c.progress {
		if p[agent] > known[agent] {
			return !c.signals
		}
	}
	c.signals = false
	return false
}

// signalling records a launch of a kernel that may signal the host while it runs: by a flag that host code polls, or by
// atomic operations on both sides. Accesses by host code are then not judged until it has waited for all work, because
// neither the flag nor the operations are known.
func (c *Context) signalling(k *Kernel) {
	if !k.signalled {
		k.signalled, k.signals = true, k.fn.Any((*isa.Inst).Signals)
	}
	c.signals = c.signals || k.signals
}

// HostAccess reports an access to device memory by code of the program: by the named function, if it is known, at a
// place, as event.HostPlace gives it.
func (c *Context) HostAccess(addr, size uint64, write bool, name, place string) {
	leave, _ := c.enter()
	defer leave()
	a, ok := c.dev.mem.Find(addr)
	if !ok || a.Freed || size == 0 || c.signals {
		return
	}
	op := event.HostOp{Kind: event.HostRead, Agent: c.host, Addr: addr, Size: min(size, a.Addr+a.Size-addr), Name: "host code" + place}
	if name != "" {
		op.Name = name + " (host code)" + place
	}
	if write {
		op.Kind = event.HostWrite
	}
	c.dev.tell(op)
}

func (p *process) hostAccess(_ context.Context, r *request) ([]uint64, []byte, error) {
	p.ctx.HostAccess(r.args[0], r.args[1], r.args[2] != 0, string(r.blob), p.place(r))
	return nil, nil, nil
}
