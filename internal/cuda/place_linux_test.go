package cuda

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/elfline"
	"fencepost.dev/fencepost/internal/event"
)

// placesSource has a function into which others are inlined, in a block.
const placesSource = `static volatile int count;
static inline __attribute__((always_inline)) void leaf(int n) {
  count += n;
}
static inline __attribute__((always_inline)) void middle(int n) {
  { int twice = count; leaf(twice); leaf(n);
  }
}
int outer(int n) {
  middle(n);
  return count;
}
int other(int n) { return n ? count : outer(1); }
int main(void) { return outer(3) + other(1); }
`

// buildC compiles C source text with flags.
func buildC(t *testing.T, source string, flags ...string) string {
	t.Helper()
	needTool(t, "gcc")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prog.c"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gcc", append(flags, "-o", "prog", "prog.c")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return filepath.Join(dir, "prog")
}

// framesText is a call stack in a line, innermost first.
func framesText(frames []event.Frame) string {
	var list []string
	for _, f := range frames {
		list = append(list, fmt.Sprintf("%s %s:%d:%d", f.Function, filepath.Base(f.File), f.Line, f.Column))
	}
	return strings.Join(list, ", ")
}

// stacksOf returns the call stacks at the addresses of a function, and an address of each.
func stacksOf(t *testing.T, exe, name string) map[string]uint64 {
	t.Helper()
	im, stacks := elfline.Open(exe, 1), map[string]uint64{}
	s := symbolsOf(t, exe)[name]
	for a := s.Value; a < s.Value+s.Size; a++ {
		stacks[framesText(im.Frames(a))] = a
	}
	return stacks
}

// symbolsOf returns the symbols of a program by name.
func symbolsOf(t *testing.T, exe string) map[string]elf.Symbol {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]elf.Symbol{}
	for _, s := range symbols {
		by[s.Name] = s
	}
	return by
}

// TestDeletedImage reads the file of a process that was deleted after it had begun.
func TestDeletedImage(t *testing.T) {
	exe := buildC(t, "int pause(void); int main(void) { return pause(); }\n", "-g")
	main := symbolsOf(t, exe)["main"]
	cmd := exec.Command(exe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	pid := int32(cmd.Process.Pid)
	var code mapping
	until(t, "the program to begin", func() bool {
		list := mappings(pid)
		i := slices.IndexFunc(list, func(m mapping) bool { return m.file == exe })
		if i >= 0 {
			code = list[i]
		}
		return i >= 0
	})
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(mappings(pid), func(m mapping) bool { return m.file == exe+" (deleted)" })
	if i < 0 || mappings(pid)[i].from != code.from || code.from >= code.to {
		t.Fatalf("%+v is gone: %+v", code, mappings(pid))
	}
	for file, want := range map[string]bool{exe + " (deleted)": true, exe + "x (deleted)": false, exe: false} {
		if got := framesText(elfline.Open(file, pid).Frames(main.Value)); (got == "main prog.c:1:33") != want {
			t.Errorf("%s: main is at %s", file, got)
		}
	}
}

// TestMappings finds the code of this process.
func TestMappings(t *testing.T) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(context.Background(), int32(os.Getpid()))
	pc := uint64(reflect.ValueOf(TestMappings).Pointer())
	m, ok := p.mappingOf(pc)
	if !ok || m.file != self || m.from > pc || m.to <= pc {
		t.Errorf("%#x is in %+v, %v; want %s", pc, m, ok, self)
	}
	if len(p.maps) == 0 {
		t.Error("the list is not kept")
	}
	for _, m := range p.maps {
		if m.from >= m.to || !strings.HasPrefix(m.file, "/") {
			t.Errorf("%+v", m)
		}
	}
	if _, ok := p.mappingOf(1); ok {
		t.Error("there is code at 1")
	}
	p.maps = []mapping{{from: 16, to: 32, file: "a"}, {from: 32, to: 48, file: "b"}}
	for addr, want := range map[uint64]string{16: "a", 31: "a", 32: "b", 47: "b"} {
		if m, ok := p.mappingOf(addr); !ok || m.file != want {
			t.Errorf("%d is in %q", addr, m.file)
		}
	}
	if got := mappings(1 << 30); got != nil {
		t.Errorf("no process has %v", got)
	}
	files := func() int {
		list, _ := filepath.Glob("/proc/self/fd/*")
		return len(list)
	}
	before := files()
	for range 20 {
		mappings(p.pid)
		elfline.Open(self, p.pid)
	}
	if n := files(); n > before+5 {
		t.Errorf("%d files are open, %d before", n, before)
	}
}

// TestStack names the call stack of a program: what it calls the driver from, out to main.
func TestStack(t *testing.T) {
	exe := buildC(t, placesSource, "-O1", "-g")
	file, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d := newScript(t).c.dev
	p := newProcess(context.Background(), 1<<30)
	p.open(d)
	const at = 0x7000_0000_0000
	maps := []mapping{{from: at, to: at + 1<<20, file: exe}}
	back := func(function, stack string) uint64 { // the return address of a call that is there
		t.Helper()
		for text, addr := range stacksOf(t, exe, function) {
			if strings.HasPrefix(text, stack) {
				for _, g := range file.Progs {
					if g.Type == elf.PT_LOAD && addr >= g.Vaddr && addr < g.Vaddr+g.Filesz {
						return at + addr - g.Vaddr + g.Off + 1
					}
				}
			}
		}
		t.Fatalf("no code at %s in %q", stack, sortedKeys(stacksOf(t, exe, function)))
		return 0
	}
	leaf, other, last := back("outer", "leaf prog.c:3:9, middle prog.c:6:37"), back("other", "other prog.c:13:"), back("main", "main prog.c:14:")
	const inner = "leaf prog.c:3:9, middle prog.c:6:37, outer prog.c:10:3"
	for _, r := range []struct {
		addrs []uint64
		want  string
	}{
		{nil, ""}, {[]uint64{leaf}, inner}, {[]uint64{leaf, last}, inner + ", main prog.c:14"}, {[]uint64{leaf, last, other}, inner + ", main prog.c:14"},
		{[]uint64{other, leaf}, "other prog.c:13, " + inner}, {[]uint64{1, leaf}, ""}, {[]uint64{leaf, at + 1<<20 + 1, last}, inner},
	} {
		p.maps = maps
		got := framesText(p.stack(&request{frames: r.addrs}))
		for _, f := range []string{"main prog.c:14", "other prog.c:13"} { // at some column
			if i := strings.Index(got, f+":"); i >= 0 {
				rest := got[i+len(f):]
				got = got[:i+len(f)] + rest[len(rest)-len(strings.TrimLeft(rest, ":0123456789")):]
			}
		}
		if got != r.want {
			t.Errorf("%#x: %s, want %s", r.addrs, got, r.want)
		}
	}
	p.maps = maps
	lines := strings.Split(p.place(&request{frames: []uint64{leaf}}), "\n")
	if len(lines) != 4 || lines[0] != "" || !strings.HasSuffix(lines[1], "prog.c:3 leaf") || !strings.HasSuffix(lines[2], "prog.c:6 middle") || !strings.HasSuffix(lines[3], "prog.c:10 outer") {
		t.Errorf("place %q", lines)
	}
	if len(d.sources.files) != 1 || len(d.sources.frames) != 3 {
		t.Errorf("%d files, %d addresses are kept", len(d.sources.files), len(d.sources.frames))
	}
}

// TestWithoutStubs removes what the compiler makes of <<<...>>>.
func TestWithoutStubs(t *testing.T) {
	frame := func(name string) event.Frame { return event.Frame{Function: name, File: "a.cu", Line: 5, Column: 7} }
	for in, want := range map[string]string{
		"":                                            "",
		"cudaFree main":                               "cudaFree:7 main:7",
		"__device_stub_k k main":                      "main:0",
		"__device_stub_k k f main":                    "f:0 main:7",
		"x __device_stub_k k f main":                  "f:0 main:7",
		"_Z15__device_stub_s s main m2":               "main:0 m2:7",
		"__device_stub_a __device_stub_b b main":      "main:0",
		"_Z20__device_stub__Z1kPiPi main":             "main:0",
		"_Z20__device_stub__Z1kPiPi f main":           "f:0 main:7",
		"_Z23__device_stub__ZN1n1kEPiPi _ZN1n1kEPi f": "f:0",
		"__device_stub__ZN1n2ktIiEEvPT_ __wrapper__device_stub_kt<int> kt<int> f": "f:0",
		"__device_stub_k k":                  "",
		"_Z16__device_stub__kv main":         "main:7",
		"_ZN1n16__device_stub__kEv f main":   "f:7 main:7",
		"_ZL21__device_stub__Z1kPiPi k main": "main:0",
		"__device_stub_k":                    "",
	} {
		var frames []event.Frame
		for name := range strings.FieldsSeq(in) {
			frames = append(frames, frame(name))
		}
		before := slices.Clone(frames)
		var got []string
		for _, f := range withoutStubs(frames) {
			got = append(got, fmt.Sprintf("%s:%d", f.Function, f.Column))
		}
		if text := strings.Join(got, " "); text != want || !slices.Equal(frames, before) {
			t.Errorf("%s: %s, want %s", in, text, want)
		}
	}
}
