package record

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/elfline"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// Names resolve the numbers in the events of a process. The receiver of the events may use them, and after the run
// anybody may.
type Names struct {
	process *process
	images  map[string]*elfline.Image
	frames  map[uint64][]event.Frame // by code address
	list    []module                 // saved when the process ends, because its memory may then disappear
	pid     int32
}

// module is an executable or a library whose code is recorded.
type module struct {
	base, from, to uint64
	path           string
}

// keep copies the needed data from the shared memory.
func (n *Names) keep() {
	n.pid = int32(*n.process.half(headPid))
	n.list = n.modules()
}

func (n *Names) modules() (list []module) {
	if n.list != nil {
		return n.list
	}
	mem := n.process.mem
	for i := range min(*n.process.half(headModules), moduleCount) {
		m := mem[modulesAt+int(i)*moduleBytes:][:moduleBytes]
		path, _, _ := strings.Cut(string(m[24:]), "\x00")
		list = append(list, module{binary.NativeEndian.Uint64(m), binary.NativeEndian.Uint64(m[8:]), binary.NativeEndian.Uint64(m[16:]), path})
	}
	return list
}

func (n *Names) image(path string) *elfline.Image {
	if n.images == nil {
		n.images = map[string]*elfline.Image{}
	}
	im := n.images[path]
	if im == nil {
		if n.list == nil {
			n.pid = int32(*n.process.half(headPid))
		}
		im = elfline.Open(path, n.pid)
		n.images[path] = im
	}
	return im
}

// Thread returns the name of a thread or of a task of OpenMP.
func (n *Names) Thread(id uint16) string {
	if ids := n.process.asm.ids; int(id) < len(ids) && ids[id].task {
		return cpu.TaskName(id)
	}
	return fmt.Sprintf("T%d", id)
}

// Frames returns the call stack of a location, innermost first, up to main.
func (n *Names) Frames(location uint32, _ int) (all []event.Frame) {
	if location == 0 || int(location) > len(n.process.asm.located) {
		return nil
	}
	return n.stack(n.process.asm.located[location-1])
}

// stack returns the call stack of one of the recorder's locations.
func (n *Names) stack(location uint32) (all []event.Frame) {
	for _, pc := range n.process.asm.calls.frames(location) {
		for _, f := range n.at(pc - 1) {
			if f.File == "" {
				continue
			}
			all = append(all, f)
			if f.Function == "main" {
				return all
			}
		}
	}
	return all
}

// at returns the frames of an instruction.
func (n *Names) at(pc uint64) []event.Frame {
	if n.frames == nil {
		n.frames = map[uint64][]event.Frame{}
	}
	frames, ok := n.frames[pc]
	if !ok {
		for _, m := range n.modules() {
			if m.from <= pc && pc < m.to {
				frames = n.image(m.path).Frames(pc - m.base)
				for i := range frames {
					if frames[i].File != "" {
						frames[i].File = filepath.Clean(frames[i].File)
					}
				}
			}
		}
		n.frames[pc] = frames
	}
	return frames
}

// Threads returns the number of threads and tasks that have a name.
func (n *Names) Threads() int { return len(n.process.asm.ids) }

// Variables returns the number of variables.
func (n *Names) Variables() int { return int(n.process.asm.memory.count) }

// Global returns the program's variable that contains a variable of the events, or the zero Object if there is none.
func (n *Names) Global(variable uint32) report.Object {
	address := n.process.asm.memory.address[variable]
	for _, m := range n.modules() {
		if address < m.base {
			continue
		}
		if name, size, offset := n.image(m.path).Variable(address - m.base); name != "" {
			return report.Object{Name: inModule(name), Named: true, Size: size, Offset: offset}
		}
	}
	return report.Object{}
}

// inModule returns the name that a debugger gives a variable of a Fortran module.
func inModule(symbol string) string {
	if rest, ok := strings.CutPrefix(symbol, "__"); ok {
		if module, name, ok := strings.Cut(rest, "_MOD_"); ok {
			return module + "::" + name
		}
	}
	return symbol
}

// Object describes a variable: a variable of the program, a block of the heap, or a stack.
func (n *Names) Object(variable uint32) report.Object {
	a := n.process.asm
	if int(variable) >= len(a.memory.address) {
		return report.Object{}
	}
	if o := n.Global(variable); o.Named {
		return o
	}
	address := a.memory.address[variable]
	for begin, b := range a.blocks {
		if begin <= address && address-begin < b.size {
			return report.Object{Name: n.block(b), Size: b.size, Offset: address - begin, Freed: b.freed}
		}
	}
	for _, t := range a.ids {
		if t.stackFrom <= address && address < t.stackTo {
			return report.Object{Name: "the stack of " + n.Thread(t.id)}
		}
	}
	return report.Object{Name: "memory"}
}

// block describes a block of the heap by the place of its allocation.
func (n *Names) block(b block) string {
	s := fmt.Sprintf("heap block of %d bytes", b.size)
	for _, f := range n.stack(b.location) {
		if f.Line > 0 && !strings.HasPrefix(f.File, "/usr/") {
			return fmt.Sprintf("%s, allocated at %s:%d", s, filepath.Base(f.File), f.Line)
		}
	}
	return s
}

// Locations returns the number of locations.
func (n *Names) Locations() int { return len(n.process.asm.located) }
