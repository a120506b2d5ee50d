package cuda

import (
	"bufio"
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/event"
)

// sources finds the source places of return addresses of programs, from the line tables of their files.
type sources struct {
	files  map[string]*image
	frames map[frameKey][]event.Frame
}

type frameKey struct {
	file string
	addr uint64
}

// image is an executable or a library of a program.
type image struct {
	progs   []elf.ProgHeader
	symbols []elf.Symbol // functions, by address
	lines   *dwarf.Data  // nil: none
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

// mappingOf finds the code that holds an address. The list is read again where it does not know the address.
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

// stack gives the frames of a request's call stack, innermost first, of the program's own code: what the compiler makes for a
// launch is left out, and so is what called main. The device is locked.
func (p *process) stack(r *request) []event.Frame {
	if len(r.script) > 0 {
		return r.script
	}
	var all []event.Frame
	for _, a := range r.frames {
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

// place is the end of a host operation's name that says where in the program it stands, "" when that is not known. See
// event.HostPlace.
func (p *process) place(r *request) string {
	return event.HostPlace(p.caller(r))
}

// caller gives the frames of a request's call stack that have a source line, innermost first.
func (p *process) caller(r *request) []event.Frame {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.stack(r)), func(f event.Frame) bool { return f.File == "" || f.Line <= 0 })
}

// withoutStubs removes the frames between <<<...>>> and the runtime: a stub, for templates another one, and the host function that
// has the kernel's name.
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
	frames = frames[min(last+2, len(frames)):]
	if len(frames) > 0 {
		frames = slices.Clone(frames)
		frames[0].Column = 0 // of what the launch was expanded to
	}
	return frames
}

// resolve gives the frames of the code at an address, inlined calls innermost first; one with neither file nor line where
// nothing is known.
func (s *sources) resolve(m mapping, addr uint64, pid int32) []event.Frame {
	if s.files == nil {
		s.files, s.frames = map[string]*image{}, map[frameKey][]event.Frame{}
	}
	im := s.files[m.file]
	if im == nil {
		im = openImage(m.file, pid)
		s.files[m.file] = im
	}
	at, ok := im.address(addr - m.from + m.offset)
	if !ok {
		return nil
	}
	key := frameKey{m.file, at}
	frames, ok := s.frames[key]
	if !ok {
		frames = im.frames(at)
		s.frames[key] = frames
	}
	return frames
}

// debugLimit bounds the debugging information that is read of one file.
const debugLimit = 1 << 30

// openImage reads a file of a process; what cannot be read of it is missing.
func openImage(file string, pid int32) *image {
	im := &image{}
	if deleted, ok := strings.CutSuffix(file, " (deleted)"); ok {
		file = deleted
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == deleted+" (deleted)" {
			file = fmt.Sprintf("/proc/%d/exe", pid)
		}
	}
	f, err := elf.Open(file)
	if err != nil {
		return im
	}
	defer f.Close()
	defer func() { _ = recover() }() // a broken file tells nothing
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			im.progs = append(im.progs, p.ProgHeader)
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		symbols, _ = f.DynamicSymbols()
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			im.symbols = append(im.symbols, s)
		}
	}
	slices.SortStableFunc(im.symbols, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	if s := f.Section(".debug_info"); s != nil && s.Size < debugLimit {
		if lines, err := f.DWARF(); err == nil {
			im.lines = lines
		}
	}
	return im
}

// address turns an offset in the file into the address that its tables name.
func (im *image) address(offset uint64) (uint64, bool) {
	for _, p := range im.progs {
		if offset >= p.Off && offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

func (im *image) frames(addr uint64) (frames []event.Frame) {
	defer func() {
		if recover() != nil { // broken debugging information
			frames = nil
		}
		if len(frames) == 0 {
			frames = []event.Frame{{Function: im.function(addr)}}
		}
	}()
	if im.lines == nil {
		return nil
	}
	r := im.lines.Reader()
	unit, err := r.SeekPC(addr)
	if err != nil {
		return nil
	}
	lr, err := im.lines.LineReader(unit)
	if err != nil || lr == nil {
		return nil
	}
	line, ok := lineOf(lr, addr)
	if !ok {
		return nil
	}
	calls := im.calls(r, lr.Files(), addr)
	if len(calls) == 0 {
		calls = []event.Frame{{Function: im.function(addr)}}
	}
	// Each function is entered at the place that the one around it names; the innermost stands at the line.
	file, n, column := line.File.Name, line.Line, line.Column
	for i := range calls {
		c := &calls[i]
		c.File, file = file, c.File
		c.Line, n = n, c.Line
		c.Column, column = column, c.Column
	}
	return calls
}

// lineOf finds the entry for an address. (LineReader.SeekPC looks into the first sequence alone, and templates have their own.)
func lineOf(lr *dwarf.LineReader, addr uint64) (dwarf.LineEntry, bool) {
	var before, e dwarf.LineEntry
	for before.EndSequence = true; lr.Next(&e) == nil; before = e {
		if !before.EndSequence && before.Address <= addr && addr < e.Address {
			return before, before.File != nil
		}
	}
	return before, false
}

// calls gives the functions at an address, innermost first, with the places where they were inlined. r stands behind a unit's
// entry.
func (im *image) calls(r *dwarf.Reader, files []*dwarf.LineFile, addr uint64) []event.Frame {
	var calls []event.Frame
	for depth := 1; depth > 0; {
		e, err := r.Next()
		if err != nil || e == nil {
			break
		}
		if e.Tag == 0 {
			depth--
			continue
		}
		within := false
		if e.Tag == dwarf.TagSubprogram || e.Tag == dwarf.TagInlinedSubroutine || e.Tag == dwarf.TagLexDwarfBlock {
			within = im.covers(e, addr)
		}
		if within && e.Tag != dwarf.TagLexDwarfBlock {
			calls = append([]event.Frame{im.call(e, files)}, calls...)
		}
		switch {
		case !e.Children:
		case within || e.Tag == dwarf.TagNamespace || e.Tag == dwarf.TagClassType || e.Tag == dwarf.TagStructType:
			depth++
		default:
			r.SkipChildren()
		}
	}
	return calls
}

func (im *image) covers(e *dwarf.Entry, addr uint64) bool {
	ranges, err := im.lines.Ranges(e)
	return err == nil && slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] })
}

// call names a function and says where it was inlined.
func (im *image) call(e *dwarf.Entry, files []*dwarf.LineFile) event.Frame {
	f := event.Frame{Function: im.name(e, 4)}
	if i, ok := e.Val(dwarf.AttrCallFile).(int64); ok && int(i) < len(files) && files[i] != nil {
		f.File = files[i].Name
	}
	if n, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
		f.Line = int(n)
	}
	if n, ok := e.Val(dwarf.AttrCallColumn).(int64); ok {
		f.Column = int(n)
	}
	return f
}

// name gives the linker name of a function where there is one; it may stand at another entry.
func (im *image) name(e *dwarf.Entry, more int) string {
	for _, a := range []dwarf.Attr{dwarf.AttrLinkageName, dwarf.AttrName} {
		if s, ok := e.Val(a).(string); ok {
			return s
		}
	}
	for _, a := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		if off, ok := e.Val(a).(dwarf.Offset); ok && more > 0 {
			r := im.lines.Reader()
			r.Seek(off)
			if o, err := r.Next(); err == nil && o != nil {
				return im.name(o, more-1)
			}
		}
	}
	return ""
}

// function is the symbol that covers an address, "" when none does.
func (im *image) function(addr uint64) string {
	i, _ := slices.BinarySearchFunc(im.symbols, addr+1, func(s elf.Symbol, a uint64) int {
		if s.Value < a {
			return -1
		}
		return 1
	})
	if i > 0 && addr-im.symbols[i-1].Value < im.symbols[i-1].Size {
		return im.symbols[i-1].Name
	}
	return ""
}
