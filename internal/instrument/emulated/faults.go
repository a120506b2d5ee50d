package emulated

import (
	"fmt"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// GPU is implemented by an engine that is a GPU. Its memory pages are pinned. It may not report invalid accesses to
// global memory, so they are found in the log.
type GPU interface{ GPU() bool }

// faults are the faults of a launch on a GPU, at most one for each kind and place.
type faults struct {
	l      *engine.Launch
	own    uint64         // the address of the log, which does not count as memory of the program
	list   []engine.Fault // found in the log
	device []engine.Fault // reported by the engine
}

// there reports whether an access to global memory is valid.
func (f *faults) there(in *isa.Inst, addr, size uint64) bool { return f.wrong(in, addr, size) == "" }

// wrong returns the kind of fault of an access to global memory, or "" if the access is valid.
func (f *faults) wrong(in *isa.Inst, addr, size uint64) engine.FaultKind {
	a, ok := f.l.Program.Memory.Find(addr)
	switch {
	case addr&(size-1) != 0:
		return engine.Misaligned
	case !ok || a.Addr == f.own || !in.Word && addr+size > a.Addr+a.Size:
		return engine.OutOfBounds
	case a.Freed:
		return engine.UseAfterFree
	case a.Const && in.Class != isa.Load:
		return engine.ReadOnly
	}
	return ""
}

// outside adds an invalid access that the log has.
func (f *faults) outside(e *event.Event, in *isa.Inst, lane int, addr uint64) {
	size := uint64(e.Size)
	kind := f.wrong(in, addr, size)
	for i := range f.list {
		if x := &f.list[i]; x.Kind == kind && x.Stands[0].Place == e.Place {
			x.Count++
			return
		}
	}
	doing, flags := "reads", event.FlagRead
	switch {
	case in.Class == isa.Store, in.Class == isa.Tile && in.Tiles.Store:
		doing, flags = "writes", event.FlagWrite
	case in.Class == isa.Atomic:
		doing, flags = "updates", event.FlagRead|event.FlagWrite
	}
	f.list = append(f.list, engine.Fault{Kind: kind, Launch: f.l.Launch, Count: 1,
		Message: fmt.Sprintf("the thread %s %d bytes at %s", doing, size, engine.DescribeAddress(f.l.Program.Memory, kind, addr, size)),
		Stands: []engine.Stand{{Place: e.Place, Block: f.l.BlockOf(e.Warp), Thread: f.l.ThreadOf(e.Warp, lane), Threads: 1, Doing: doing, Flags: flags, Space: event.Global,
			Address: addr, Size: int(size)}}})
}

func (f *faults) add(x engine.Fault) { f.device = append(f.device, x) }

// tell reports the faults. If the log has an invalid access, it omits the device's report that an access ended the
// kernel.
func (f *faults) tell() {
	if f.l.OnFault == nil {
		return
	}
	for _, x := range f.list {
		f.l.OnFault(x)
	}
	for _, x := range f.device {
		if len(f.list) == 0 || x.Kind != engine.OutOfBounds && x.Kind != engine.Misaligned {
			f.l.OnFault(x)
		}
	}
}
