// Package elfline finds source places in executables and libraries, from their DWARF line tables and symbols.
package elfline

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
)

// Image is an executable or a library of a program.
type Image struct {
	progs     []elf.ProgHeader
	symbols   []elf.Symbol // functions, by address
	variables []elf.Symbol // likewise
	lines     *dwarf.Data  // nil: none
}

// debugLimit bounds the debugging information that is read from one file.
const debugLimit = 1 << 30

// Open reads a file of a process, even one that was deleted. Parts that cannot be read are missing.
func Open(file string, pid int32) *Image {
	im := &Image{}
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
	defer func() { _ = recover() }() // an invalid file provides nothing
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
		switch {
		case elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0:
			im.symbols = append(im.symbols, s)
		case elf.ST_TYPE(s.Info) == elf.STT_OBJECT && s.Size > 0:
			im.variables = append(im.variables, s)
		}
	}
	for _, list := range [][]elf.Symbol{im.symbols, im.variables} {
		slices.SortStableFunc(list, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	}
	if s := f.Section(".debug_info"); s != nil && s.Size < debugLimit {
		if lines, err := f.DWARF(); err == nil {
			im.lines = lines
		}
	}
	return im
}

// Address converts an offset in the file to the address in its tables.
func (im *Image) Address(offset uint64) (uint64, bool) {
	for _, p := range im.progs {
		if offset >= p.Off && offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

// Frames returns the frames of the code at an address, inlined calls innermost first. If nothing is known it returns
// one frame with neither file nor line.
func (im *Image) Frames(addr uint64) (frames []event.Frame) {
	defer func() {
		if recover() != nil { // broken debugging information
			frames = nil
		}
		if len(frames) == 0 {
			frames = []event.Frame{{Function: im.Function(addr)}}
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
	calls := im.calls(r, lr.Files(), addr, false)
	if len(calls) == 0 {
		if r.Seek(unit.Offset); unit.Children {
			_, _ = r.Next()
			calls = im.calls(r, lr.Files(), addr, true)
		}
	}
	if len(calls) == 0 {
		calls = []event.Frame{{Function: im.Function(addr)}}
	}
	// Each function is entered at the place that the enclosing one names; the innermost is at the line.
	file, n, column := line.File.Name, line.Line, line.Column
	for i := range calls {
		c := &calls[i]
		c.File, file = file, c.File
		c.Line, n = n, c.Line
		c.Column, column = column, c.Column
	}
	// In DWARF 5 a folder may be relative to the folder of the compilation. debug/dwarf joins the two only for older
	// versions. What it joins for DWARF 5 may be that folder and an absolute path, because clang names a file in this
	// way if it shares only the root with the folder.
	if dir, _ := unit.Val(dwarf.AttrCompDir).(string); dir != "" {
		for i := range calls {
			f := &calls[i].File
			if *f != "" && !filepath.IsAbs(*f) {
				*f = filepath.Join(dir, *f)
			}
			if absolute, ok := strings.CutPrefix(*f, dir); ok && filepath.IsAbs(absolute) && !exists(*f) && exists(absolute) {
				*f = absolute
			}
		}
	}
	return calls
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// lineOf finds the entry for an address. (LineReader.SeekPC examines only the first sequence, and templates have their
// own.)
func lineOf(lr *dwarf.LineReader, addr uint64) (dwarf.LineEntry, bool) {
	var before, e dwarf.LineEntry
	for before.EndSequence = true; lr.Next(&e) == nil; before = e {
		if e.Line == 0 && !e.EndSequence && before.Line != 0 {
			e.File, e.Line, e.Column = before.File, before.Line, before.Column // code of several places, which the compiler has merged
		}
		if !before.EndSequence && before.Address <= addr && addr < e.Address {
			return before, before.File != nil
		}
	}
	return before, false
}

// calls returns the functions at an address, innermost first, with the places where they were inlined. r has read a
// unit's entry. If nested is set, calls also examines functions and blocks that do not cover the address: GCC puts the
// functions that it makes from OpenMP regions inside the function and the block of the regions.
func (im *Image) calls(r *dwarf.Reader, files []*dwarf.LineFile, addr uint64, nested bool) []event.Frame {
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
		case within || nested && (e.Tag == dwarf.TagSubprogram || e.Tag == dwarf.TagLexDwarfBlock) || e.Tag == dwarf.TagNamespace || e.Tag == dwarf.TagClassType || e.Tag == dwarf.TagStructType:
			depth++
		default:
			r.SkipChildren()
		}
	}
	return calls
}

func (im *Image) covers(e *dwarf.Entry, addr uint64) bool {
	ranges, err := im.lines.Ranges(e)
	return err == nil && slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] })
}

// call names a function and says where it was inlined.
func (im *Image) call(e *dwarf.Entry, files []*dwarf.LineFile) event.Frame {
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

// name returns the linker name of a function if it has one; the name may be at another entry.
func (im *Image) name(e *dwarf.Entry, more int) string {
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

// Function is the symbol that covers an address, "" if there is none.
func (im *Image) Function(addr uint64) string {
	name, _, _ := covering(im.symbols, addr)
	return name
}

// Variable returns the variable of the program that contains an address, its size, and the offset of the address; "" if
// there is none.
func (im *Image) Variable(addr uint64) (name string, size, offset uint64) {
	return covering(im.variables, addr)
}

func covering(list []elf.Symbol, addr uint64) (name string, size, offset uint64) {
	i, _ := slices.BinarySearchFunc(list, addr+1, func(s elf.Symbol, a uint64) int {
		if s.Value < a {
			return -1
		}
		return 1
	})
	if i > 0 && addr-list[i-1].Value < list[i-1].Size {
		return list[i-1].Name, list[i-1].Size, addr - list[i-1].Value
	}
	return "", 0, 0
}
