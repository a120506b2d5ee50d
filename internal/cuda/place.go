package cuda

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/elfline"
	"fencepost.dev/fencepost/internal/event"
)

// sources finds the source places of return addresses of programs, from the line tables of their files.
type sources struct {
	files  map[string]*elfline.Image
	frames map[frameKey][]event.Frame
}

type frameKey struct {
	file string
	addr uint64
}

// mapping is a part of a file in the address space of a process.
type mapping struct {
	from, to, offset uint64
	file             string
}

// mappings lists the code of a process, by address.
func mappings(pid int32) []mapping {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	defer f.Close()
	var list []mapping
	for in := bufio.NewScanner(f); in.Scan(); {
		fields := strings.Fields(in.Text())
		if len(fields) < 6 || !strings.Contains(fields[1], "x") || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		m := mapping{file: strings.Join(fields[5:], " ")}
		m.from, _ = strconv.ParseUint(from, 16, 64)
		m.to, _ = strconv.ParseUint(to, 16, 64)
		m.offset, _ = strconv.ParseUint(fields[2], 16, 64)
		list = append(list, m)
	}
	return list
}

// mappingOf finds the code that contains an address. It reads the list again if the address is unknown.
func (p *process) mappingOf(addr uint64) (mapping, bool) {
	holds := func(m mapping) bool { return m.from <= addr && addr < m.to }
	i := slices.IndexFunc(p.maps, holds)
	if i < 0 {
		p.maps = mappings(p.pid)
		if i = slices.IndexFunc(p.maps, holds); i < 0 {
			return mapping{}, false
		}
	}
	return p.maps[i], true
}

// stack returns the frames of a request's call stack, innermost first, of the program's own code: without the functions
// that the compiler makes for a launch, and without the callers of main. A request for a node of a graph has two
// stacks: that of the call that made the node, followed by that of the call that launches the graph. The device is
// locked.
func (p *process) stack(r *request) []event.Frame {
	if len(r.script) > 0 {
		return r.script
	}
	at := slices.IndexFunc(r.frames, func(a uint64) bool { return a >= calls.OfGraphLaunch })
	if at < 0 {
		return p.calls(r.frames)
	}
	node, launch := p.calls(r.frames[:at]), slices.Clone(p.calls(r.frames[at+1:]))
	if i := slices.IndexFunc(launch, hasLine); i >= 0 {
		launch[i].Graph = uint32(r.frames[at])
	}
	return slices.Concat(node, launch)
}

// calls returns the frames of one call stack.
func (p *process) calls(addresses []uint64) []event.Frame {
	var all []event.Frame
	for _, a := range addresses {
		m, ok := p.mappingOf(a - 1)
		if !ok {
			break
		}
		frames := p.ctx.dev.sources.resolve(m, a-1, p.pid)
		all = append(all, frames...)
		if slices.ContainsFunc(frames, func(f event.Frame) bool { return f.Function == "main" }) {
			break
		}
	}
	return withoutStubs(all)
}

// place is the suffix of a host operation's name with its place in the program, "" if that is not known. See
// event.HostPlace.
func (p *process) place(r *request) string {
	return event.HostPlace(p.caller(r))
}

// caller returns the frames of a request's call stack that have a source line, innermost first.
func (p *process) caller(r *request) []event.Frame {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.stack(r)), func(f event.Frame) bool { return !hasLine(f) })
}

func hasLine(f event.Frame) bool { return f.File != "" && f.Line > 0 }

// withoutStubs removes the frames between <<<...>>> and the runtime: a stub, for templates another one, and the host
// function with the kernel's name, unless it ended by a jump to the stub.
func withoutStubs(frames []event.Frame) []event.Frame {
	const mark = "__device_stub_"
	last := -1
	for i, f := range frames {
		if strings.Contains(f.Function, mark) {
			last = i
		}
	}
	if last < 0 {
		return frames
	}
	if clangStub(frames[last].Function) {
		return frames[last+1:]
	}
	stub := frames[last].Function
	frames = frames[last+1:]
	if len(frames) > 0 && hostFunction(frames[0].Function, stub) {
		frames = frames[1:]
	}
	if len(frames) > 0 {
		frames = slices.Clone(frames)
		frames[0].Column = 0 // that of the expansion of the launch
	}
	return frames
}

// hostFunction reports whether a function is the host function that has the name of the kernel of a stub of nvcc.
func hostFunction(function, stub string) bool {
	name, _, _ := strings.Cut(function, "<")
	if strings.HasPrefix(name, "_Z") {
		return strings.Contains(stub, name)
	}
	return strings.Contains(stub, "__device_stub_"+name) || strings.Contains(stub, strconv.Itoa(len(name))+name)
}

// clangStub reports whether a function is the only stub that clang makes for a kernel: it is named __device_stub__ plus
// the kernel's name, whereas nvcc uses the linker name.
func clangStub(function string) bool {
	_, kernel, ok := strings.Cut(function, "__device_stub__")
	return ok && strings.HasPrefix(function, "_Z") && !strings.HasPrefix(function, "_ZL") && !strings.HasPrefix(kernel, "Z")
}

// resolve returns the frames of the code at an address, inlined calls innermost first. If nothing is known it returns
// one frame with neither file nor line.
func (s *sources) resolve(m mapping, addr uint64, pid int32) []event.Frame {
	if s.files == nil {
		s.files, s.frames = map[string]*elfline.Image{}, map[frameKey][]event.Frame{}
	}
	im := s.files[m.file]
	if im == nil {
		im = elfline.Open(m.file, pid)
		s.files[m.file] = im
	}
	at, ok := im.Address(addr - m.from + m.offset)
	if !ok {
		return nil
	}
	key := frameKey{m.file, at}
	frames, ok := s.frames[key]
	if !ok {
		frames = im.Frames(at)
		if name := im.Function(at); clangStub(name) && len(frames) > 0 { // in its debugging information it is the kernel
			frames = slices.Clone(frames)
			frames[len(frames)-1].Function = name
		}
		s.frames[key] = frames
	}
	return frames
}
