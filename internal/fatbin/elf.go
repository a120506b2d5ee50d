package fatbin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The sections that nvcc and clang put GPU code into.
const (
	sectionPlain   = ".nv_fatbin"       // fat binaries that are loaded one by one
	sectionLinked  = "__nv_relfatbin"   // fat binaries of separately compiled units
	sectionWrapper = ".nvFatBinSegment" // the wrappers that are registered
)

const emCUDA = 190 // e_machine of a cubin

// maxInspected bounds the sections that are read from libraries with which a program is linked: some contain gigabytes
// of GPU code.
const maxInspected = 512 << 20

// elf reads an ELF file of size bytes.
func (b *Binary) elf(r io.ReaderAt, size int64) error {
	if err := fewSections(r); err != nil {
		return err
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := believable(f, uint64(size)); err != nil {
		return err
	}
	if f.Class != elf.ELFCLASS64 || f.ByteOrder.String() != "LittleEndian" {
		return errNotELF64
	}
	if f.Machine == emCUDA {
		b.Format = Cubin
		b.Groups = []Group{{Name: filepath.Base(b.Path), Entries: []Entry{{Kind: ELF}}}}
		return nil
	}
	b.Format = elfFormat(f)
	for _, s := range f.Sections {
		if s.Name != sectionPlain && s.Name != sectionLinked || s.Type == elf.SHT_NOBITS || s.Size == 0 {
			continue
		}
		if b.headers && s.Size > maxInspected {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return fmt.Errorf("section %s: %w", s.Name, err)
		}
		if err := b.add(s.Name, data, s.Name == sectionLinked); err != nil {
			return err
		}
	}
	b.dropDeviceRuntime()
	b.dynamic(f)
	return b.findRuntime(f)
}

// maxSections bounds the sections of a file: object files with one for each function have some 100,000.
const maxSections = 1 << 20

// fewSections checks the number of sections before debug/elf allocates memory for them. If the header says 0, the first
// section contains it.
func fewSections(r io.ReaderAt) error {
	var head [64]byte
	if _, err := r.ReadAt(head[:], 0); err != nil || head[elf.EI_CLASS] != byte(elf.ELFCLASS64) || head[elf.EI_DATA] != byte(elf.ELFDATA2LSB) {
		return nil // debug/elf or the caller reports it
	}
	at, n := binary.LittleEndian.Uint64(head[40:]), uint64(binary.LittleEndian.Uint16(head[60:]))
	var size [8]byte
	if n != 0 || at == 0 || at >= 1<<62 {
		return nil
	}
	if _, err := r.ReadAt(size[:], int64(at)+32); err != nil {
		return nil
	}
	if n = binary.LittleEndian.Uint64(size[:]); n > maxSections {
		return fmt.Errorf("it says it has %d sections; at most %d are read", n, maxSections)
	}
	return nil
}

// believable compares the section headers with the size of the file. The sections that are read must be inside it; they
// must not be compressed, which would let a small file take much memory; and they must not overlap, which would let it
// take much time.
func believable(f *elf.File, size uint64) error {
	total := uint64(0)
	for _, s := range f.Sections {
		if !isRead(s) {
			continue
		}
		switch {
		case s.Offset > size || s.FileSize > size-s.Offset:
			return fmt.Errorf("section %s is said to have %d bytes at offset %#x, and the file has %d: it is cut off or damaged", s.Name, s.FileSize, s.Offset, size)
		case s.Flags&elf.SHF_COMPRESSED != 0:
			return fmt.Errorf("section %s is compressed, which no linker does to it", s.Name)
		}
		if total += s.FileSize; total > size {
			return fmt.Errorf("section %s overlaps others: all together have more bytes than the file", s.Name)
		}
	}
	return nil
}

// isRead reports whether the section is read by this package.
func isRead(s *elf.Section) bool {
	switch s.Type {
	case elf.SHT_DYNAMIC, elf.SHT_STRTAB, elf.SHT_SYMTAB, elf.SHT_DYNSYM, elf.SHT_GNU_VERSYM, elf.SHT_GNU_VERNEED, elf.SHT_GNU_VERDEF:
		return true
	case elf.SHT_NOBITS, elf.SHT_NULL:
		return false
	}
	return s.Name == sectionPlain || s.Name == sectionLinked || hasTexts(s)
}

// hasTexts reports whether the section is one of read-only data or a note.
func hasTexts(s *elf.Section) bool {
	return (s.Type == elf.SHT_PROGBITS || s.Type == elf.SHT_NOTE) && s.Flags&elf.SHF_ALLOC != 0 &&
		s.Flags&(elf.SHF_EXECINSTR|elf.SHF_WRITE|elf.SHF_COMPRESSED) == 0 && s.Name != sectionPlain && s.Name != sectionLinked
}

// elfFormat distinguishes programs from libraries. Both are ET_DYN if the program is position-independent, but only a
// program names an interpreter or has the flag for it.
func elfFormat(f *elf.File) Format {
	switch f.Type {
	case elf.ET_EXEC:
		return Executable
	case elf.ET_REL:
		return Object
	case elf.ET_DYN:
		if flags, err := f.DynValue(elf.DT_FLAGS_1); err == nil && len(flags) > 0 && flags[0]&uint64(elf.DF_1_PIE) != 0 {
			return Executable
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				return Executable
			}
		}
		return Library
	}
	return Other
}

// dropDeviceRuntime removes NVIDIA's device runtime from the groups: its code does not make a program a CUDA program,
// and its PTX does not mean that the program's own PTX is there.
func (b *Binary) dropDeviceRuntime() {
	for i := range b.Groups {
		b.Groups[i].Entries = WithoutDeviceRuntime(b.Groups[i].Entries)
	}
	b.Groups = slices.DeleteFunc(b.Groups, func(g Group) bool { return len(g.Entries) == 0 })
}

// dynamic reads the dynamic section.
func (b *Binary) dynamic(f *elf.File) {
	// A file without a dynamic section has none of these; that is not an error here.
	b.Needed, _ = f.ImportedLibraries()
	for _, n := range b.Needed {
		if strings.HasPrefix(n, "libcudart.so") {
			b.Soname, b.Runtime = n, SharedRuntime
		}
		if n == "libcuda.so.1" || n == "libcuda.so" {
			b.Driver = true
		}
	}
	rpath, _ := f.DynString(elf.DT_RPATH)
	runpath, _ := f.DynString(elf.DT_RUNPATH)
	b.RPath, b.RunPath = b.folders(rpath), b.folders(runpath)
}

func (b *Binary) folders(lists []string) []string {
	origin := filepath.Dir(b.Path)
	if abs, err := filepath.Abs(origin); err == nil {
		origin = abs
	}
	var out []string
	for _, l := range lists {
		for dir := range strings.SplitSeq(l, ":") {
			if dir != "" {
				out = append(out, strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin).Replace(dir))
			}
		}
	}
	return out
}

// findRuntime determines which CUDA runtime the program uses if it does not name libcudart.
//
// A wrapper segment means that __cudaRegisterFatBinary is called. If the file does not import that function it contains
// it, even if stripped; the marker says whose it is. A program without GPU code of its own may contain a runtime
// nevertheless, for cudaMalloc alone; symbols or texts then show that.
func (b *Binary) findRuntime(f *elf.File) error {
	if b.Runtime != NoRuntime || b.Format == Object || b.Format == Other {
		return nil
	}
	imported, _ := f.ImportedSymbols()
	for _, s := range imported {
		if s.Name == "__cudaRegisterFatBinary" || s.Name == "cudaMalloc" || s.Name == "cudaLaunchKernel" {
			b.Runtime = SharedRuntime
			return nil
		}
	}
	found, err := textsIn(f, Marker, nvidiaText[0], nvidiaText[1])
	if err != nil {
		return err
	}
	switch {
	case found[0]:
		b.Runtime = StaticOurs
	case f.Section(sectionWrapper) != nil, found[1] && found[2], definesRuntime(f):
		b.Runtime = StaticNVIDIA
	}
	return nil
}

// definesRuntime reports whether the symbol table, if it has not been stripped, contains the runtime's functions as
// local symbols: NVIDIA's static library hides what it defines.
func definesRuntime(f *elf.File) bool {
	symbols, err := f.Symbols()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return s.Section != elf.SHN_UNDEF && s.Name == "__cudaRegisterFatBinary" && elf.ST_BIND(s.Info) == elf.STB_LOCAL
	})
}

// textsIn reports for each text whether it occurs in a read-only data section or a note. Sections are read piece by
// piece, because there are programs of several GB.
func textsIn(f *elf.File, texts ...string) ([]bool, error) {
	found := make([]bool, len(texts))
	longest := 0
	for _, t := range texts {
		longest = max(longest, len(t))
	}
	const piece = 1 << 20
	buf := make([]byte, piece+longest)
	for _, s := range f.Sections {
		if !hasTexts(s) {
			continue
		}
		kept := 0 // bytes kept from the preceding piece, so that no text is split
		for at := int64(0); at < int64(s.FileSize); at += piece {
			n, err := s.ReadAt(buf[kept:kept+int(min(piece, int64(s.FileSize)-at))], at)
			if err != nil && err != io.EOF || n == 0 {
				return nil, fmt.Errorf("section %s: %w", s.Name, err)
			}
			window := buf[:kept+n]
			for i, t := range texts {
				found[i] = found[i] || bytes.Contains(window, []byte(t))
			}
			kept = copy(buf, window[max(0, len(window)-longest+1):])
		}
	}
	return found, nil
}

// standIns are the libraries that Fencepost replaces. machineCode are those libraries of NVIDIA that it does not
// replace and whose kernels are machine code only.
var (
	standIns    = []string{"libcudart", "libcuda", "libcublas", "libcurand"}
	machineCode = []string{"libcublasLt", "libcusparse", "libcusparseLt", "libcufft", "libcufftXt", "libcufftw", "libcusolver", "libcusolverMg", "libcudnn", "libnccl",
		"libnppc", "libnppial", "libnppicc", "libnppidei", "libnppif", "libnppig", "libnppim", "libnppist", "libnppisu", "libnppitc", "libnpps", "libnvjpeg",
		"libcutensor", "libnvgraph", "libnvshmem_host"}
)

// lacks returns the soname of a library with which the file is linked and whose kernels cannot be run, and "" if there
// is none.
func (b *Binary) lacks() string {
	for _, name := range b.Needed {
		if lib, _, _ := strings.Cut(name, ".so"); slices.Contains(machineCode, lib) {
			return name
		}
	}
	return ""
}

// Program reads an executable and the shared libraries with which it is linked, as far as they are in its own search
// path and in libraryPath (the folders of LD_LIBRARY_PATH). It skips libraries of the system. The first result is the
// executable. Libraries without CUDA are left out, and the entries of libraries have no Text.
func Program(path string, libraryPath []string) ([]*Binary, error) {
	first, err := File(path)
	if err != nil {
		return nil, err
	}
	all := []*Binary{first}
	seen := map[string]bool{}
	for queue := []*Binary{first}; len(queue) > 0; queue = queue[1:] {
		b := queue[0]
		for _, name := range b.Needed {
			p := b.Locate(name, libraryPath)
			if p == "" || seen[p] {
				continue
			}
			seen[p] = true
			// The stand-ins replace the CUDA libraries themselves.
			if slices.ContainsFunc(standIns, func(lib string) bool { return strings.HasPrefix(name, lib+".so") }) {
				continue
			}
			lib, err := file(p, true)
			if err != nil {
				return all, err
			}
			queue = append(queue, lib)
			if lib.CUDA() {
				all = append(all, lib)
			}
		}
	}
	return all, nil
}

// Locate finds a needed library the way the dynamic linker does, or returns "".
func (b *Binary) Locate(name string, libraryPath []string) string {
	if strings.Contains(name, "/") {
		return existing(name)
	}
	for _, dir := range slices.Concat(b.RPath, libraryPath, b.RunPath) {
		if p := existing(filepath.Join(dir, name)); p != "" {
			return p
		}
	}
	return ""
}

func existing(path string) string {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path
	}
	return ""
}
