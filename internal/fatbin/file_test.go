package fatbin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type section struct {
	name  string
	flags elf.SectionFlag
	data  []byte
}

// makeELF makes an ELF file that has only sections.
func makeELF(typ elf.Type, machine elf.Machine, sections ...section) []byte {
	const headSize, entrySize = 64, 64
	names := []byte{0}
	var body []byte
	table := []elf.Section64{{}}
	for _, s := range append(sections, section{name: ".shstrtab"}) {
		h := elf.Section64{Name: uint32(len(names)), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(s.flags),
			Off: uint64(headSize + len(body)), Size: uint64(len(s.data)), Addralign: 1}
		names = append(append(names, s.name...), 0)
		if s.name == ".shstrtab" {
			h.Type, s.data, h.Size = uint32(elf.SHT_STRTAB), names, uint64(len(names))
		}
		body = append(body, s.data...)
		table = append(table, h)
	}
	head := elf.Header64{Type: uint16(typ), Machine: uint16(machine), Version: 1, Shoff: uint64(headSize + len(body)),
		Ehsize: headSize, Shentsize: entrySize, Shnum: uint16(len(table)), Shstrndx: uint16(len(table) - 1)}
	copy(head.Ident[:], elf.ELFMAG)
	head.Ident[elf.EI_CLASS], head.Ident[elf.EI_DATA], head.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	var out bytes.Buffer
	for _, part := range []any{head, body, table} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFilePrograms(t *testing.T) {
	plain, z := read(t, "plain.fatbin"), read(t, "zstd.fatbin")
	sass := build(entry(ELF, 90, flagArch, 0, 0, make([]byte, 8)), entry(ELF, 80, 0, 0, 0, make([]byte, 8)))
	lto := build(entry(LTO, 80, 0, 0, 0, make([]byte, 8)))
	wrapper := section{sectionWrapper, elf.SHF_ALLOC | elf.SHF_WRITE, make([]byte, WrapperSize)}
	text := func(s string) section { return section{".rodata", elf.SHF_ALLOC, []byte(s)} }
	code := func(name string, parts ...[]byte) section {
		return section{name, elf.SHF_ALLOC, bytes.Join(parts, nil)}
	}
	nvidia := text("x" + nvidiaText[1] + "\x00" + nvidiaText[0] + "\x00")
	for _, c := range []struct {
		name     string
		sections []section
		groups   string
		runtime  Runtime
		problem  string
	}{
		{"nothing", []section{text("hello")}, "", NoRuntime, ""},
		{"ours", []section{text("fencepost-standin-1"), wrapper, code(sectionPlain, plain)}, ".nv_fatbin:1", StaticOurs, ""},
		{"ours in a note", []section{{".note.fencepost", elf.SHF_ALLOC, []byte(Marker)}, wrapper, code(sectionPlain, plain)}, ".nv_fatbin:1", StaticOurs, ""},
		{"theirs, no text left", []section{wrapper, code(sectionPlain, plain)}, ".nv_fatbin:1", StaticNVIDIA, "NVIDIA's CUDA runtime"},
		{"theirs, no code of its own", []section{nvidia}, "", StaticNVIDIA, "NVIDIA's CUDA runtime"},
		{"a program that only speaks of it", []section{text(nvidiaText[0])}, "", NoRuntime, ""},
		{"two programs", []section{text(Marker), wrapper, code(sectionPlain, plain, z)}, ".nv_fatbin:1 .nv_fatbin:2", StaticOurs, ""},
		{"separate", []section{text(Marker), wrapper, code(sectionPlain, build()), code(sectionLinked, plain, z)}, "__nv_relfatbin:3 linked", StaticOurs, ""},
		{"machine code", []section{text(Marker), wrapper, code(sectionPlain, sass)}, ".nv_fatbin:2", StaticOurs,
			"it holds machine code (SASS) but no PTX; the machine code is for sm_80, sm_90a"},
		{"link-time IR", []section{text(Marker), wrapper, code(sectionPlain, lto)}, ".nv_fatbin:1", StaticOurs, "or link-time IR but no PTX"},
		{"machine code of the device link", []section{text(Marker), wrapper, code(sectionPlain, sass, plain)}, ".nv_fatbin:2 .nv_fatbin:1", StaticOurs, ""},
	} {
		b, err := File(write(t, t.TempDir(), "app", makeELF(elf.ET_EXEC, elf.EM_X86_64, c.sections...)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var groups []string
		for _, g := range b.Groups {
			s := g.Name + ":" + string(rune('0'+len(g.Entries)))
			if g.Linked {
				s += " linked"
			}
			groups = append(groups, s)
		}
		if got := strings.Join(groups, " "); got != c.groups || b.Runtime != c.runtime || b.Format != Executable {
			t.Errorf("%s: a %v, groups %q, runtime %d; want %q, %d", c.name, b.Format, got, b.Runtime, c.groups, c.runtime)
		}
		var no *CannotRun
		problem := b.Problem()
		switch {
		case c.problem == "" && problem != nil:
			t.Errorf("%s: problem %v", c.name, problem)
		case c.problem != "" && (!errors.As(problem, &no) || !strings.Contains(no.Reason, c.problem) || no.Remedy == ""):
			t.Errorf("%s: problem %v, want %q", c.name, problem, c.problem)
		}
		if b.CUDA() != (c.runtime != NoRuntime) {
			t.Errorf("%s: CUDA %v", c.name, b.CUDA())
		}
	}
}

// A text that lies across two of the pieces a section is read in is found all the same.
func TestMarkerBetweenPieces(t *testing.T) {
	for _, at := range []int{0, 1<<20 - 5, 1 << 20, 2<<20 - len(Marker)} {
		data := make([]byte, 2<<20)
		copy(data[at:], Marker)
		b, err := File(write(t, t.TempDir(), "app", makeELF(elf.ET_EXEC, elf.EM_X86_64, section{".rodata", elf.SHF_ALLOC, data})))
		if err != nil || b.Runtime != StaticOurs {
			t.Errorf("at %#x: runtime %d, %v", at, b.Runtime, err)
		}
	}
}

func TestFileKinds(t *testing.T) {
	dir := t.TempDir()
	ptx := "// made by hand\n/* really\n */\n\t.version 8.5\n.target sm_90a, debug\n.address_size 64\n"
	for _, c := range []struct {
		name    string
		data    []byte
		format  Format
		entries string
	}{
		{"k.fatbin", read(t, "plain.fatbin"), FatBinary, "0:PTX 80 9.5 twice.cu 871@0x10"},
		{"k.ptx", []byte(ptx + "\x00"), PTXFile, "0:PTX 90a 8.5 k.ptx 83@0x0"},
		{"dump", []byte(ptx), PTXFile, "0:PTX 90a 8.5 dump 83@0x0"},
		{"broken.PTX", []byte("not PTX"), PTXFile, "0:PTX 0 0.0 broken.PTX 7@0x0"},
		{"run.sh", []byte("#!/bin/sh\n./app\n"), Other, ""},
		{"empty", nil, Other, ""},
		{"k.cubin", makeELF(elf.ET_EXEC, emCUDA), Cubin, "0:SASS 0 0.0  0@0x0"},
		{"k.o", makeELF(elf.ET_REL, elf.EM_X86_64, section{sectionPlain, elf.SHF_ALLOC, read(t, "lz4.fatbin")}), Object, "0:PTX 80 9.5 twice.cu 871@0x10"},
	} {
		path := write(t, dir, c.name, c.data)
		b, err := File(path)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var entries []Entry
		for _, g := range b.Groups {
			entries = append(entries, g.Entries...)
		}
		for i := range entries {
			entries[i].Name = filepath.Base(entries[i].Name)
			if entries[i].Name == "." {
				entries[i].Name = ""
			}
		}
		if got := summary(entries); got != c.entries || b.Format != c.format {
			t.Errorf("%s: a %v, %s; want a %v, %s", c.name, b.Format, got, c.format, c.entries)
		}
	}
	b, err := File(dir)
	if err != nil || b.Format != PTXFolder || len(b.Groups) != 1 || filepath.Base(b.Groups[0].Name) != "k.ptx" {
		t.Errorf("folder: %+v, %v", b, err)
	}
	for _, path := range []string{t.TempDir(), filepath.Join(dir, "absent")} {
		if _, err := File(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
	app := write(t, dir, "bad", makeELF(elf.ET_EXEC, elf.EM_X86_64, section{sectionPlain, elf.SHF_ALLOC, read(t, "plain.fatbin")[:100]}))
	var e *Error
	if _, err := File(app); !errors.As(err, &e) || e.Offset != 8 || !strings.HasPrefix(err.Error(), app+": .nv_fatbin: ") {
		t.Errorf("broken container: %v", err)
	}
}

func TestProgramWithoutTexts(t *testing.T) {
	path := write(t, t.TempDir(), "app", makeELF(elf.ET_EXEC, elf.EM_X86_64, section{sectionPlain, elf.SHF_ALLOC, read(t, "zstd.fatbin")}))
	b, err := file(path, true)
	if err != nil || !b.HasPTX() || slices.ContainsFunc(b.Groups[0].Entries, func(e Entry) bool { return e.Text != nil }) {
		t.Errorf("%+v, %v", b, err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add(makeELF(elf.ET_DYN, elf.EM_X86_64, section{sectionPlain, elf.SHF_ALLOC, read(f, "plain.fatbin")}, section{".rodata", elf.SHF_ALLOC, []byte(Marker)}))
	f.Add([]byte("// x\n.version 8.0\n.target sm_80\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "app")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if b, err := File(path); err == nil {
			_ = b.Problem()
		}
	})
}

// TestHostileELF gives files whose headers describe data that the file does not have. Each must be an error, soon and
// with little memory.
func TestHostileELF(t *testing.T) {
	const sectionTable = 40 // e_shoff in the header
	le := binary.LittleEndian
	rodata := section{".rodata", elf.SHF_ALLOC, []byte("some data")}
	code := section{sectionPlain, elf.SHF_ALLOC, read(t, "plain.fatbin")}
	for _, c := range []struct {
		name  string
		spoil func(data, table []byte) []byte // table: the section headers, of which the one after the null section is to be spoilt
		want  string
	}{
		{"size", func(d, s []byte) []byte { le.PutUint64(s[64+32:], 2600<<40); return d }, "is said to have 2858730232217600 bytes at offset"},
		{"offset", func(d, s []byte) []byte { le.PutUint64(s[64+24:], 1<<62); return d }, "is said to have"},
		{"overflow", func(d, s []byte) []byte { le.PutUint64(s[64+24:], 100); le.PutUint64(s[64+32:], 1<<63-1); return d }, "is said to have"},
		{"compressed", func(d, s []byte) []byte { le.PutUint64(s[64+8:], uint64(elf.SHF_ALLOC|elf.SHF_COMPRESSED)); return d }, "compressed"},
		{"many", func(d, s []byte) []byte { le.PutUint16(d[60:], 0); le.PutUint64(s[32:], 1<<40); return d }, "it says it has 1099511627776 sections"},
		{"overlap", func(d, s []byte) []byte {
			for at := 64; at < len(s); at += 64 {
				le.PutUint64(s[at+24:], 0)
				le.PutUint64(s[at+32:], uint64(len(d)))
			}
			return d
		}, "overlap"},
	} {
		for _, first := range []section{rodata, code} {
			data := makeELF(elf.ET_DYN, elf.EM_X86_64, first, section{".rodata2", elf.SHF_ALLOC, []byte("more")})
			at := le.Uint64(data[sectionTable:])
			path := write(t, t.TempDir(), "app", c.spoil(data, data[at:]))
			_, err := File(path)
			if c.name == "compressed" && first.name == ".rodata" { // nobody reads such a section
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s of %s: %v, want %q", c.name, first.name, err, c.want)
			}
		}
	}
}

// TestLacks checks that a program linked with a library of machine code is refused, with the library's name.
func TestLacks(t *testing.T) {
	for name, lacking := range map[string]bool{"libcufft.so.12": true, "libcublasLt.so.13": true, "libcudnn.so.9": true, "libcublas.so.13": false,
		"libcurand.so.10": false, "libcudart.so.13": false, "libm.so.6": false} {
		b := Binary{Path: "program", Driver: true, Needed: []string{"libc.so.6", name}}
		err := b.Problem()
		if (err != nil) != lacking || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := Binary{Path: "tool", Needed: []string{"libcufft.so.12"}}
	if err := b.Problem(); err != nil {
		t.Errorf("a library that uses no CUDA itself: %v", err)
	}
}
