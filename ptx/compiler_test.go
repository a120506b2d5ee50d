package ptx

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/compiler again with the compilers of this machine")

// outputs has, for each file of testdata/compiler, the command that makes it from the CUDA source with whose name it
// begins.
var outputs = []struct {
	name, tool string
	args       string
}{
	{"rich_O0", "nvcc", "-lineinfo -Xcicc -O0 -arch=compute_80"},
	{"rich_80", "nvcc", "-lineinfo -arch=compute_80"},
	{"rich_O0_100", "nvcc", "-lineinfo -Xcicc -O0 -arch=compute_100"},
	{"rich_G_120", "nvcc", "-G -arch=compute_120"},
	{"texture_O0", "nvcc", "-lineinfo -Xcicc -O0 -arch=compute_75"},
	{"texture_100", "nvcc", "-arch=compute_100"},
	{"cluster_90", "nvcc", "-lineinfo -arch=compute_90a"},
	{"cluster_O0_100", "nvcc", "-lineinfo -Xcicc -O0 -arch=compute_100a"},
	{"plain_O0", "clang++", "-O0 -gline-directives-only"},
	{"plain_O3", "clang++", "-O3"},
	{"plain_g", "clang++", "-O0 -g --cuda-noopt-device-debug"},
}

// TestCompilers compiles the sources with the available compilers and parses their output.
func TestCompilers(t *testing.T) {
	if testing.Short() && !*update {
		t.Skip("runs compilers")
	}
	for _, out := range outputs {
		t.Run(out.name, func(t *testing.T) {
			tool, err := exec.LookPath(out.tool)
			if err != nil {
				// Debian's name for a version that is not its default.
				tool, err = exec.LookPath(out.tool + "-19")
			}
			if err != nil {
				t.Skipf("no %s", out.tool)
			}
			text := compile(t, tool, out.name, strings.Fields(out.args))
			roundTrip(t, out.name, text)
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", "compiler", out.name+".ptx"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// compile returns the PTX of the source with whose name name begins, without paths of this machine.
func compile(t *testing.T, tool, name string, args []string) string {
	t.Helper()
	source, _, _ := strings.Cut(name, "_")
	code, err := os.ReadFile(filepath.Join("testdata", "compiler", source+".cu"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, source+".cu"), code, 0o644); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(filepath.Base(tool), "clang") {
		args = append(args, "-x", "cuda", "--cuda-device-only", "-S", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib")
	} else {
		args = append(args, "-ptx")
	}
	cmd := exec.Command(tool, append(args, source+".cu", "-o", "out.ptx")...)
	cmd.Dir = dir
	if log, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, log)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	return withoutPaths(string(text), dir, tool)
}

// withoutPaths replaces the folders of source and toolkit in .file lines, and the former in debug data, where it is a
// list of bytes, by text of the same length.
func withoutPaths(text, dir, tool string) string {
	kit := filepath.Dir(filepath.Dir(tool))
	text = strings.ReplaceAll(text, dir+"/", "")
	text = strings.ReplaceAll(text, kit+"/bin/../", "toolkit/")
	text = strings.ReplaceAll(text, kit+"/", "toolkit/")
	line := regexp.MustCompile(`(?m)^\s*\.b8 .*$`)
	number := regexp.MustCompile(`-?\b\d+\b`)
	var spans [][2]int
	var bytes strings.Builder
	for _, l := range line.FindAllStringIndex(text, -1) {
		data, _, _ := strings.Cut(text[l[0]:l[1]], "//")
		at := l[0] + strings.Index(data, ".b8") + len(".b8")
		for _, n := range number.FindAllStringIndex(text[at:l[0]+len(data)], -1) {
			v, _ := strconv.Atoi(text[at+n[0] : at+n[1]])
			bytes.WriteByte(byte(v))
			spans = append(spans, [2]int{at + n[0], at + n[1]})
		}
	}
	for from := strings.LastIndex(bytes.String(), dir); from >= 0; from = strings.LastIndex(bytes.String()[:from], dir) {
		for i := from + len(dir) - 1; i >= from; i-- {
			text = text[:spans[i][0]] + "120" + text[spans[i][1]:]
		}
	}
	return text
}
