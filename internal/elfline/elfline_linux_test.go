package elfline

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// placesSource has a function into a block of which others are inlined.
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
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc")
	}
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

func sorted(m map[string]uint64) []string { return slices.Sorted(maps.Keys(m)) }

// framesText formats a call stack as a line, innermost first.
func framesText(frames []event.Frame) string {
	var list []string
	for _, f := range frames {
		list = append(list, fmt.Sprintf("%s %s:%d:%d", f.Function, filepath.Base(f.File), f.Line, f.Column))
	}
	return strings.Join(list, ", ")
}

// stacksOf returns the call stacks at the addresses of a function, and an address of each.
func stacksOf(im *Image, name string) map[string]uint64 {
	stacks := map[string]uint64{}
	for _, s := range im.symbols {
		if s.Name == name {
			for a := s.Value; a < s.Value+s.Size; a++ {
				stacks[framesText(im.Frames(a))] = a
			}
		}
	}
	return stacks
}

// TestFramesOfImage finds the places of code, including inlined calls.
func TestFramesOfImage(t *testing.T) {
	im := Open(buildC(t, placesSource, "-O1", "-g"), 1)
	got := sorted(stacksOf(im, "outer"))
	for _, want := range []string{
		"leaf prog.c:3:9, middle prog.c:6:24, outer prog.c:10:3", "leaf prog.c:3:9, middle prog.c:6:37, outer prog.c:10:3",
		"middle prog.c:6:9, outer prog.c:10:3",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no code at %s in %q", want, got)
		}
	}
	for _, s := range got {
		if !strings.Contains(s, "outer prog.c:9:") && !strings.HasSuffix(s, "outer prog.c:10:3") && !strings.HasPrefix(s, "outer prog.c:11:") && !strings.HasPrefix(s, "outer prog.c:12:") {
			t.Errorf("code of outer at %s", s)
		}
	}
	for _, s := range sorted(stacksOf(im, "other")) {
		if !strings.HasPrefix(s, "other prog.c:13:") && !strings.HasPrefix(s, "outer prog.c:") {
			t.Errorf("code of other at %s", s)
		}
	}
	if got := framesText(im.Frames(1)); got != " .:0:0" {
		t.Errorf("no code is at %q", got)
	}
}

// TestFramesOfRegion finds calls that are inlined into functions that GCC makes from OpenMP regions, which are in
// another function and in its blocks.
func TestFramesOfRegion(t *testing.T) {
	const source = `static volatile int count;
static inline __attribute__((always_inline)) void leaf(int n) {
  count += n;
}
int main(int argc, char **argv) {
#pragma omp parallel
  leaf(argc);
  for (int i = 0; i < argc; i++) {
    int twice = 2 * i;
#pragma omp task
    leaf(twice);
  }
  return 0;
}
`
	im := Open(buildC(t, source, "-O1", "-g", "-fopenmp"), 1)
	for region, line := range map[string]string{"main._omp_fn.0": "7:3", "main._omp_fn.1": "11:5"} {
		got := sorted(stacksOf(im, region))
		if want := fmt.Sprintf("leaf prog.c:3:9, %s prog.c:%s", region, line); !slices.Contains(got, want) {
			t.Errorf("no code at %s in %q", want, got)
		}
	}
}

// TestFramesOfClang finds the file of a unit that was given to clang by its absolute path. Clang names its folder
// relative to its own, or not at all.
func TestFramesOfClang(t *testing.T) {
	path, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("there is no clang")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "src", "prog.c"), filepath.Join(dir, "prog")
	if err := os.Mkdir(filepath.Dir(source), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte(placesSource), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{dir, "/usr"} {
		cmd := exec.Command(path, "-O1", "-gdwarf-5", "-o", program, source)
		cmd.Dir = from
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("clang: %v\n%s", err, out)
		}
		im := Open(program, 1)
		for _, addr := range stacksOf(im, "outer") {
			for _, f := range im.Frames(addr) {
				if f.File != source {
					t.Errorf("compiled in %s: code of outer in %q", from, f.File)
				}
			}
		}
	}
}

// TestFramesWithoutLines finds functions without debugging information, or with only the symbols of a library.
func TestFramesWithoutLines(t *testing.T) {
	for _, flags := range [][]string{{"-O1", "-g0"}, {"-O1", "-g", "-s", "-shared", "-fPIC"}} {
		im := Open(buildC(t, placesSource, flags...), 1)
		if got := sorted(stacksOf(im, "outer")); !slices.Equal(got, []string{"outer .:0:0"}) {
			t.Errorf("%v: code of outer at %q", flags, got)
		}
	}
	for _, file := range []string{"/no/such/file", "/proc/self/status", ""} {
		im := Open(file, 1)
		if _, ok := im.Address(0); ok || len(im.symbols) != 0 || framesText(im.Frames(0)) != " .:0:0" {
			t.Errorf("file %q: %+v", file, im)
		}
	}
}

// TestAddresses converts offsets in a file to addresses, and addresses to symbols.
func TestAddresses(t *testing.T) {
	im := &Image{
		progs:   []elf.ProgHeader{{Off: 0x100, Vaddr: 0x5000, Filesz: 0x10}, {Off: 0x200, Vaddr: 0x8000, Filesz: 0x20}},
		symbols: []elf.Symbol{{Name: "a", Value: 0x5000, Size: 4}, {Name: "b", Value: 0x5004, Size: 4}, {Name: "c", Value: 0x5010, Size: 8}},
	}
	for offset, want := range map[uint64]uint64{0xff: 0, 0x100: 0x5000, 0x10f: 0x500f, 0x110: 0, 0x200: 0x8000, 0x21f: 0x801f, 0x220: 0, 0: 0, 1 << 63: 0} {
		if got, ok := im.Address(offset); got != want || ok != (want != 0) {
			t.Errorf("offset %#x is at %#x, %v, want %#x", offset, got, ok, want)
		}
	}
	for addr, want := range map[uint64]string{0x4fff: "", 0x5000: "a", 0x5003: "a", 0x5004: "b", 0x5007: "b", 0x5008: "", 0x500f: "", 0x5010: "c", 0x5017: "c", 0x5018: "", 0: ""} {
		if got := im.Function(addr); got != want {
			t.Errorf("%#x is in %q, want %q", addr, got, want)
		}
	}
}

// TestVariable names variables of a program and their elements.
func TestVariable(t *testing.T) {
	im := &Image{variables: []elf.Symbol{{Name: "a", Value: 0x5000, Size: 4}, {Name: "b", Value: 0x5010, Size: 8}}}
	for addr, want := range map[uint64]string{0x4fff: " 0 0", 0x5000: "a 4 0", 0x5003: "a 4 3", 0x5004: " 0 0", 0x5017: "b 8 7", 0x5018: " 0 0"} {
		name, size, offset := im.Variable(addr)
		if got := fmt.Sprint(name, " ", size, " ", offset); got != want {
			t.Errorf("%#x is %q, want %q", addr, got, want)
		}
	}
}
