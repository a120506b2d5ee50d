package fatbin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Format is the format of a file.
type Format uint8

// The formats that File distinguishes.
const (
	Other      Format = iota // none of the below; a script, for example
	Executable               // ELF program
	Library                  // ELF shared library
	Object                   // ELF relocatable object
	Cubin                    // ELF with GPU machine code
	FatBinary                // a bare fat binary
	PTXFile                  // PTX text
	PTXFolder                // folder with .ptx files
)

var formatNames = [...]string{"file", "executable", "shared library", "object file", "cubin", "fat binary", "PTX file", "folder of PTX files"}

// String names the format.
func (f Format) String() string { return formatNames[f] }

// Runtime is the source of a program's CUDA runtime (cudaMalloc and so on).
type Runtime uint8

// The sources of a CUDA runtime.
const (
	NoRuntime     Runtime = iota // calls no CUDA runtime
	SharedRuntime                // libcudart.so.N, see Binary.Soname, or one that another library brings
	StaticNVIDIA                 // NVIDIA's library is linked in; it runs on NVIDIA's driver only
	StaticOurs                   // Fencepost's stand-in library is linked in
)

// Marker is the text by which a program with Fencepost's static runtime is recognised, stripped or not. It is in the
// read-only data of libcudart_static.a in internal/cuda/standin. The digit that follows is the version of the protocol.
const Marker = "fencepost-standin-"

// nvidiaText are texts of NVIDIA's static runtime; a program that contains both and not Marker contains that runtime.
var nvidiaText = [2]string{"CUDA driver version is insufficient for CUDA runtime version", "libcuda.so.1"}

// Group is the entries that are loaded together: one fat binary, or all units of a program that was compiled separately
// (-rdc=true) and whose PTX must be linked.
type Group struct {
	Name    string // section, or file for PTX files
	Linked  bool   // units refer to each other
	Entries []Entry
}

// HasPTX reports whether any entry is PTX.
func (g *Group) HasPTX() bool {
	return slices.ContainsFunc(g.Entries, func(e Entry) bool { return e.Kind == PTX })
}

// Binary is the result of File.
type Binary struct {
	Path    string
	Format  Format
	Groups  []Group // in file order; fat binaries with no entry are left out
	Runtime Runtime
	Soname  string   // "libcudart.so.13" if it is linked dynamically
	Driver  bool     // it links libcuda.so.1 dynamically
	Needed  []string // sonames of the shared libraries it is linked with
	RPath   []string // folders of DT_RPATH, which come before LD_LIBRARY_PATH, with $ORIGIN replaced
	RunPath []string // folders of DT_RUNPATH, which come after it

	headers bool // do not read the texts of entries
}

// CUDA reports whether the file itself contains GPU code or calls CUDA.
func (b *Binary) CUDA() bool {
	return len(b.Groups) > 0 || b.Runtime != NoRuntime || b.Driver
}

// HasPTX reports whether there is any PTX.
func (b *Binary) HasPTX() bool {
	return slices.ContainsFunc(b.Groups, func(g Group) bool { return g.HasPTX() })
}

// Problem returns the reason why the file cannot be run and how to rebuild it, or nil. It is a *CannotRun.
func (b *Binary) Problem() error {
	if b.Runtime == StaticNVIDIA {
		no := &CannotRun{Path: b.Path,
			Reason: "NVIDIA's CUDA runtime is linked into it statically, and that runs on NVIDIA's driver only",
			Remedy: "link it again with nvcc's -cudart shared, or build it with `fencepost nvcc` in place of nvcc"}
		if b.Format == Library {
			no.Remedy += "; a library that NVIDIA ships built that way cannot be run"
		}
		return no
	}
	if lib := b.lacks(); lib != "" && b.CUDA() {
		return &CannotRun{Path: b.Path, Reason: "it is linked with " + lib + ", whose kernels are machine code, and Fencepost has nothing to put in its place",
			Remedy: "build a program without that library for the check (of NVIDIA's, cuBLAS and cuRAND are computed on the host)"}
	}
	if len(b.Groups) > 0 && !b.HasPTX() {
		return &CannotRun{Path: b.Path, Reason: b.noPTX(),
			Remedy: "build it again so that PTX is embedded: add -gencode arch=compute_80,code=compute_80 (CMake: CUDA_ARCHITECTURES 80-virtual), or build it with `fencepost nvcc` in place of nvcc"}
	}
	return nil
}

// noPTX describes what the file contains instead of PTX.
func (b *Binary) noPTX() string {
	var have []string
	lto := false
	for _, g := range b.Groups {
		for _, e := range g.Entries {
			lto = lto || e.Kind == LTO
			if e.Kind == ELF && e.Arch > 0 {
				have = append(have, fmt.Sprintf("sm_%d%s", e.Arch, e.Suffix))
			}
		}
	}
	slices.Sort(have)
	have = slices.Compact(have)
	s := "it holds machine code (SASS) but no PTX"
	if lto {
		s = "it holds machine code (SASS) or link-time IR but no PTX"
	}
	if len(have) > 0 {
		s += "; the machine code is for " + strings.Join(have, ", ")
	}
	return s
}

// CannotRun is an error: a program that cannot be run or checked.
type CannotRun struct {
	Path   string
	Reason string
	Remedy string
}

// Error returns path, reason and remedy in one line.
func (e *CannotRun) Error() string { return e.Path + ": " + e.Reason + "; " + e.Remedy }

// File reads the relevant parts of an executable, shared library, object, cubin, fat binary, PTX file or folder of PTX
// files. A file of another kind is Other, without an error. It returns errors of reading, and for an invalid container
// an *Error whose offset counts from the start of its section, with the path before it.
func File(path string) (*Binary, error) { return file(path, false) }

func file(path string, headers bool) (*Binary, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return folder(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &Binary{Path: path, headers: headers}
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	head, err = head[:n], nil
	switch {
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		err = b.elf(f, info.Size())
	case n >= 4 && binary.LittleEndian.Uint32(head) == Magic:
		b.Format = FatBinary
		err = b.bare(path)
	case strings.EqualFold(filepath.Ext(path), ".ptx") || looksLikePTX(head):
		b.Format = PTXFile
		err = b.ptx(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// looksLikePTX reports whether the first directive, after blanks and comments, is .version.
func looksLikePTX(head []byte) bool {
	for {
		head = bytes.TrimLeft(head, " \t\r\n")
		switch {
		case bytes.HasPrefix(head, []byte("//")):
			_, head, _ = bytes.Cut(head, []byte("\n"))
		case bytes.HasPrefix(head, []byte("/*")):
			_, head, _ = bytes.Cut(head[2:], []byte("*/"))
		default:
			return bytes.HasPrefix(head, []byte(".version"))
		}
	}
}

func (b *Binary) ptx(path string) error {
	if st, err := os.Stat(path); err == nil && st.Size() > int64(MaxPTX()) {
		return fmt.Errorf("%d bytes of PTX: more than %d are refused", st.Size(), MaxPTX())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	e := Entry{Kind: PTX, Name: path, Text: bytes.TrimRight(text, "\x00"), Size: int64(len(text))}
	e.Arch, e.Suffix, e.Major, e.Minor = ptxTarget(text)
	b.Groups = append(b.Groups, Group{Name: path, Entries: []Entry{e}})
	return nil
}

// ptxTarget reads the version and target directives of a PTX text. Absent ones stay zero.
func ptxTarget(text []byte) (arch int, suffix string, major, minor int) {
	if len(text) > 1<<16 {
		text = text[:1<<16]
	}
	for line := range bytes.Lines(text) {
		s := strings.TrimSpace(string(line))
		if rest, ok := strings.CutPrefix(s, ".version"); ok {
			fmt.Sscanf(rest, "%d.%d", &major, &minor)
		}
		if rest, ok := strings.CutPrefix(s, ".target"); ok {
			rest = strings.TrimSpace(rest)
			if n, _ := fmt.Sscanf(rest, "sm_%d", &arch); n == 1 {
				tail := strings.TrimLeft(strings.TrimPrefix(rest, "sm_"), "0123456789")
				if strings.HasPrefix(tail, "a") || strings.HasPrefix(tail, "f") {
					suffix = tail[:1]
				}
			}
			return arch, suffix, major, minor
		}
	}
	return arch, suffix, major, minor
}

// bare reads a file that consists of fat binaries only.
func (b *Binary) bare(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return b.add(filepath.Base(path), data, false)
}

// add parses the fat binaries in data. Each becomes a group of its own, or all become one group if they are to be
// linked.
func (b *Binary) add(name string, data []byte, linked bool) error {
	if allZero(data) {
		return nil
	}
	p := parser{budget: maxRaw, headers: b.headers}
	if err := p.containers(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	unit := -1
	for _, e := range p.entries {
		if unit < 0 || !linked && e.Unit != unit {
			b.Groups = append(b.Groups, Group{Name: name, Linked: linked})
		}
		unit = e.Unit
		g := &b.Groups[len(b.Groups)-1]
		g.Entries = append(g.Entries, e)
	}
	return nil
}

// folder reads the .ptx files of a folder, in the order of their names.
func folder(path string) (*Binary, error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(path), "*.ptx"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no .ptx file in this folder", path)
	}
	slices.Sort(names)
	b := &Binary{Path: path, Format: PTXFolder}
	for _, n := range names {
		if err := b.ptx(n); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// escapeGlob escapes a path for use as a pattern of filepath.Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// errNotELF64 is for programs of other machine types: CUDA has been 64-bit only since version 12.
var errNotELF64 = errors.New("not a 64-bit little-endian ELF file")
