package cuda

import (
	"context"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// hostPage is the alignment of memory that the host can touch: its pages are guarded one by one (standin/src/guard.h).
const hostPage = 4096

// alignment gives the alignment of an allocation, and notes that there is memory that the host can touch. The device is locked.
func (c *Context) alignment(kind devmem.AllocKind) uint64 {
	if kind == devmem.ManagedAlloc || kind == devmem.PinnedAlloc {
		c.shares = true
		return hostPage
	}
	return allocAlign
}

// touchable is alignment for memory that a module has.
func (c *Context) touchable(kind devmem.AllocKind) {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.alignment(kind)
}

// unawaited says that the host may touch memory that work uses for which it has not waited.
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

// signalling notes a launch of a kernel that may tell the host of what it does while it runs: by a flag that host code polls, or by atomic
// operations on both sides. What host code does until it has waited for all work is not judged then, since neither is known.
func (c *Context) signalling(k *Kernel) {
	if !k.signalled {
		k.signalled, k.signals = true, k.fn.Any((*isa.Inst).Signals)
	}
	c.signals = c.signals || k.signals
}

// HostAccess reports an access to device memory by code of the program: by what is named, if that is known, at a place, as event.HostPlace
// gives it.
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
