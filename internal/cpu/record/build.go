package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed src
var sources embed.FS

// Marker is a symbol that every program linked with the recorder has.
const Marker = "fencepost_recorder"

// flags compile the recorder. Its functions replace those of the C library with the same names, so the compiler must
// not treat them as builtins. The C library's headers define some of them inline, which with clang makes them strong.
var flags = []string{"-D__NO_INLINE__", "-std=gnu11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-w"}

// Names of files in the folder of Build.
const (
	objectFile  = "recorder.o"
	listFile    = "recorder.list" // the recorder's symbols that libraries of the program must find
	gccFolder   = "gcc"           // precedes GCC's own runtime library
	builtinFile = "fencepost_builtin.h"
)

func key(cc string) string {
	h := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := sources.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		panic("BUG: embedded sources: " + err.Error())
	}
	fmt.Fprintf(h, "%s %v", cc, flags)
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// Build compiles the recorder, unless the cache has it, and returns its folder.
func Build(ctx context.Context, cc, cache string) (dir string, err error) {
	dir = filepath.Join(cache, "recorder-"+key(cc))
	if _, err := os.Stat(filepath.Join(dir, listFile)); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := build(ctx, cc, work); err != nil {
		return "", fmt.Errorf("building the recorder with %s: %w", cc, err)
	}
	if err := os.Rename(work, dir); err != nil {
		if _, there := os.Stat(filepath.Join(dir, listFile)); there != nil {
			return "", err
		}
	}
	return dir, nil
}

func build(ctx context.Context, cc, work string) error {
	if err := os.CopyFS(work, sources); err != nil {
		return err
	}
	gcc := filepath.Join(work, gccFolder)
	if err := os.Mkdir(gcc, 0o755); err != nil {
		return err
	}
	object := filepath.Join(work, objectFile)
	empty := filepath.Join(gcc, "empty.c")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		slices.Concat(flags, []string{"-c", filepath.Join(work, "src", "recorder.c"), "-o", object}),
		{"-c", empty, "-o", filepath.Join(gcc, "libtsan_preinit.o")},
	} {
		if text, err := exec.CommandContext(ctx, cc, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, text)
		}
	}
	if err := os.WriteFile(filepath.Join(gcc, "libtsan.a"), []byte("!<arch>\n"), 0o644); err != nil {
		return err
	}
	list, err := exported(object)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, listFile), list, 0o644)
}

// exported lists the exports of an object in the format of the linker's --dynamic-list.
func exported(object string) ([]byte, error) {
	f, err := elf.Open(object)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	for _, s := range symbols {
		if elf.ST_BIND(s.Info) != elf.STB_LOCAL && s.Section != elf.SHN_UNDEF && elf.ST_VISIBILITY(s.Other) == elf.STV_DEFAULT {
			fmt.Fprintf(&b, "  %s;\n", s.Name)
		}
	}
	b.WriteString("};\n")
	return b.Bytes(), nil
}

// Instrumented reports whether an executable was linked with the recorder (ours) or with ThreadSanitizer's runtime
// (theirs). readable reports whether this version can read what the recorder writes.
func Instrumented(name string) (ours, theirs, readable bool) {
	f, err := elf.Open(name)
	if err != nil {
		return false, false, false
	}
	defer f.Close()
	symbols, _ := f.DynamicSymbols()
	for _, s := range symbols {
		if s.Name == Marker {
			ours, readable = true, number(f, s) == version
		}
		theirs = theirs || strings.HasPrefix(s.Name, "__tsan_")
	}
	return ours, theirs && !ours, readable
}

// number returns the value of a constant of 4 bytes, or 0 if there is none.
func number(f *elf.File, s elf.Symbol) uint32 {
	if int(s.Section) >= len(f.Sections) {
		return 0
	}
	var value [4]byte
	section := f.Sections[s.Section]
	if _, err := section.ReadAt(value[:], int64(s.Value-section.Addr)); err != nil {
		return 0
	}
	return f.ByteOrder.Uint32(value[:])
}
