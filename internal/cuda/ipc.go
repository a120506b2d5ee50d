package cuda

import (
	"context"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
)

// This file implements memory and events that processes pass to each other (cudaIpcGetMemHandle,
// cudaIpcGetEventHandle). All processes have the same memory at the same addresses, so opened memory has the same
// address as for its owner.
//
// Synchronisation between the code of two processes (pipes, sockets, semaphores, MPI) is not observed. After the first
// handle has been opened, the calls of processes are ordered as they are made: each follows everything for which the
// process of the previous call has waited. So work for which no process has waited races with that of the other
// process, unless an event orders the two.

// ipcMark is the first word of a handle, plus its kind.
const ipcMark = 0x6970_6368_616e_0000

// ipcLazyPeerAccess is cudaIpcMemLazyEnablePeerAccess: the current device gets access to the memory of the device that the memory belongs to.
const ipcLazyPeerAccess = 1

// IPC does what the calls about handles for other processes ask for: see calls.IpcGetMemory and what follows. A handle is ipcMark plus its kind,
// the context that it is of, and the address or the event.
func (c *Context) IPC(what, value uint64, handle [3]uint64) ([]uint64, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	mine := func(object uint64) []uint64 { return []uint64{ipcMark + what, c.id, object} }
	switch what {
	case calls.IpcGetMemory:
		a, ok := c.dev.mem.Find(value)
		if !ok || a.Freed || a.Kind != devmem.DeviceAlloc || c.allocs[a.Addr].size == 0 || c.allocs[a.Addr].pool != nil {
			return nil, fail(InvalidValue, "a handle for other processes of what cudaMalloc did not allocate in this one")
		}
		return mine(a.Addr), nil
	case calls.IpcGetEvent:
		e, ok := c.events[EventID(value)]
		switch {
		case !ok:
			return nil, c.noHandle("event", value)
		case e.flags&eventInterprocess == 0:
			return nil, fail(InvalidValue, "the event was made without cudaEventInterprocess")
		}
		return mine(value), nil
	case calls.IpcCloseMemory:
		if c.opened[value] == 0 {
			return nil, fail(InvalidValue, "%#x is not the address of opened memory of another process", value)
		}
		if c.opened[value]--; c.opened[value] == 0 {
			c.shut[value] = true
		}
		return []uint64{0, 0, 0}, nil
	}
	owner := c.dev.open[handle[1]]
	switch {
	case handle[0] != ipcMark+what-calls.IpcOpenMemory || owner == nil:
		return nil, fail(InvalidResourceHandle, "the handle is none, or its process has ended")
	case owner == c:
		return nil, fail(DeviceUninitialized, "the handle is of this process, which has the memory or the event")
	}
	c.dev.sharing = true
	c.order(c.host, owner.threads.speaking, processesName)
	if what == calls.IpcOpenEvent {
		e := owner.events[EventID(handle[2])]
		if e == nil {
			return nil, fail(InvalidResourceHandle, "the event was destroyed")
		}
		id := EventID(c.newID())
		c.events[id] = &eventState{c.gpu, e.eventRecord}
		return []uint64{uint64(id), 0, 0}, nil
	}
	a, ok := c.dev.mem.Find(handle[2])
	if !ok || owner.allocs[handle[2]].size == 0 {
		return nil, fail(InvalidValue, "the memory was freed")
	}
	if value&ipcLazyPeerAccess != 0 && a.Device != c.gpu.number {
		c.gpu.peers |= 1 << a.Device
	}
	if c.opened == nil {
		c.opened, c.shut = map[uint64]int{}, map[uint64]bool{}
	}
	delete(c.shut, handle[2])
	c.opened[handle[2]]++
	return []uint64{handle[2], 0, 0}, nil
}

// meet orders the following calls of this process after those that another one has made. The device is locked.
func (c *Context) meet() {
	d := c.dev
	if d.sharing && d.calling != nil && d.calling != c {
		c.order(c.host, d.calling.threads.speaking, processesName)
	}
	d.calling = c
}

// leave publishes to the other processes, when this one ends, the work for which it has waited. The device is locked.
func (c *Context) leave() {
	d := c.dev
	delete(d.open, c.id)
	if d.calling != c {
		return
	}
	d.calling = nil
	for _, id := range sortedKeys(d.open) {
		if other := d.open[id]; d.sharing {
			other.order(other.host, c.threads.speaking, processesName)
		}
	}
}

const processesName = "the order of the calls of two processes"

func (p *process) ipc(_ context.Context, r *request) ([]uint64, []byte, error) {
	if r.args[0] > calls.IpcOpenEvent {
		return nil, nil, fail(InvalidValue, "operation %d on handles for other processes", r.args[0])
	}
	results, err := p.ctx.IPC(r.args[0], r.args[1], [3]uint64{r.args[2], r.args[3], r.args[4]})
	return results, nil, err
}
