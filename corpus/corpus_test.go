package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"fencepost.dev/fencepost/corpus/internal/compile"
	"fencepost.dev/fencepost/internal/testsize"
)

func all(t *testing.T) []*Program {
	t.Helper()
	programs, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

func TestAll(t *testing.T) {
	programs := all(t)
	if len(programs) < 100 {
		t.Errorf("%d programs; there were more", len(programs))
	}
	if !slices.IsSortedFunc(programs, func(a, b *Program) int { return strings.Compare(a.Path(), b.Path()) }) {
		t.Error("not sorted by path")
	}
	most := make(map[string]int)
	for _, f := range Folders() {
		most[f.Name] = f.Lines
	}
	for _, p := range programs {
		if lines := strings.Count(p.Source, "\n"); lines > most[p.Dir] {
			t.Errorf("%s.cu: %d lines; a program of this folder has at most %d", p.Path(), lines, most[p.Dir])
		}
		if !strings.HasPrefix(p.Source, "// ") {
			t.Errorf("%s.cu: the first line says what the program shows", p.Path())
		}
	}
}

// TestPacked compares what is embedded with the folders.
func TestPacked(t *testing.T) {
	folders := Folders()
	if !slices.IsSortedFunc(folders, func(a, b Folder) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the folders are not sorted")
	}
	fsys, err := files()
	if err != nil {
		t.Fatal(err)
	}
	const remedy = `; "go run ./internal/build -pack" in the folder corpus packs them again`
	for _, f := range folders {
		onDisk, err := filepath.Glob(f.Name + "/*")
		if err != nil {
			t.Fatal(err)
		}
		embedded, err := fs.Glob(fsys, f.Name+"/*")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(onDisk, embedded) {
			t.Fatalf("%s: %d files on disk, %d embedded%s", f.Name, len(onDisk), len(embedded), remedy)
		}
		for _, name := range onDisk {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := fs.ReadFile(fsys, name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what is embedded (%v)%s", name, err, remedy)
			}
		}
	}
}

// TestRacyHasTwin keeps most programs in pairs.
func TestRacyHasTwin(t *testing.T) {
	programs := all(t)
	right := make(map[string]bool)
	for _, p := range programs {
		right[p.Name] = right[p.Name] || p.Dir == NoRace
	}
	var racy, pairs int
	for _, p := range programs {
		if p.Dir == Race {
			racy++
			if right[p.Name] {
				pairs++
			}
		}
	}
	if 2*pairs < racy {
		t.Errorf("%d of %d racy programs have a corrected twin; most should", pairs, racy)
	}
}

var (
	fileDirective = regexp.MustCompile(`(?m)^\t\.file\t(\d+) "(.*)"$`)
	locDirective  = regexp.MustCompile(`(?m)(?:\.loc\t|inlined_at )(\d+) (\d+) `)
)

// TestPlaces: the PTX knows its source by its bare name, knows nothing of the machine it was made on, and has
// instructions on every line that wants a finding.
func TestPlaces(t *testing.T) {
	for _, p := range all(t) {
		files := make(map[string]string)
		for _, m := range fileDirective.FindAllStringSubmatch(p.PTX, -1) {
			files[m[1]] = m[2]
			if filepath.IsAbs(m[2]) {
				t.Errorf("%s.ptx: absolute path %s", p.Path(), m[2])
			}
		}
		lines := make(map[string]bool)
		for _, m := range locDirective.FindAllStringSubmatch(p.PTX, -1) {
			if files[m[1]] == "" {
				t.Errorf("%s.ptx: .loc of file %s, which is not declared", p.Path(), m[1])
			}
			if files[m[1]] == path.Base(p.File()) {
				lines[m[2]] = true
			}
		}
		for _, w := range p.Wants {
			if !lines[fmt.Sprint(w.Line)] {
				t.Errorf("%s.cu:%d: a want, but no instruction of the PTX is from this line", p.Path(), w.Line)
			}
		}
	}
}

// TestFresh compiles one source in ten again, and one in a hundred in CI, which makes all PTX again and wants a clean tree.
func TestFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a part of the corpus")
	}
	nvcc, err := compile.FindNVCC()
	if errors.Is(err, compile.ErrNoCompiler) {
		t.Skip(err)
	}
	for i, p := range all(t) {
		if p.Suite || p.Plant > 0 || i%testsize.Of(10, 10, 100) != 0 {
			continue
		}
		t.Run(p.Path(), func(t *testing.T) {
			t.Parallel()
			ptx, err := compile.PTX(nvcc, p.File())
			if err != nil {
				t.Fatal(err)
			}
			if compiler(ptx) != compiler(p.PTX) {
				t.Skipf("made by another compiler: %s, now %s", compiler(p.PTX), compiler(ptx))
			}
			if ptx != p.PTX {
				t.Error("the PTX is not what nvcc makes of the source; run go generate ./corpus")
			}
		})
	}
}

// compiler returns the line of a PTX file's head that names the compiler's version.
func compiler(ptx string) string {
	for line := range strings.Lines(ptx) {
		if strings.HasPrefix(line, "// Cuda compilation tools") {
			return strings.TrimSpace(line)
		}
	}
	return "an unnamed compiler"
}

func TestLoadErrors(t *testing.T) {
	good := fstest.MapFS{
		"race/a.cu":   {Data: []byte("x; // want error:unordered\n")},
		"race/a.ptx":  {},
		"race/a.toml": {},
		"norace/b.cu": {Data: []byte("x;\n")}, "norace/b.ptx": {}, "norace/b.toml": {},
		"fault/c.cu": {Data: []byte("// want error:deadlock\n")}, "fault/c.ptx": {}, "fault/c.toml": {},
		"predict/d.cu": {Data: []byte("// gap error:unordered\n")}, "predict/d.ptx": {}, "predict/d.toml": {},
	}
	four := slices.DeleteFunc(Folders(), func(f Folder) bool { return !slices.Contains([]string{Fault, NoRace, Predict, Race}, f.Name) })
	programs, err := load(good, four)
	if err != nil || len(programs) != 4 {
		t.Fatalf("%d programs, error %v", len(programs), err)
	}
	for _, test := range []struct {
		add, remove string
		text        string
		want        string
	}{
		{add: "race/a.txt", want: "race/a.txt: belongs to no program"},
		{add: "race/sub/x.cu", want: "race/sub: belongs to no program"},
		{add: "race/z.ptx", want: "race/z.ptx: there is no z.cu"},
		{remove: "race/a.toml", want: "race/a.toml"},
		{remove: "race/a.ptx", want: "race/a.ptx"},
		{add: "norace/b.cu", text: "\n// want error:unordered\n", want: "norace/b.cu:2: a program of norace has no want"},
		{add: "race/a.cu", text: "x;", want: "race/a.cu: a program of race has at least one want"},
		{add: "fault/c.cu", text: "x; // want deadlock", want: "fault/c.cu:1: bad want"},
	} {
		fsys := make(fstest.MapFS)
		for name, f := range good {
			fsys[name] = f
		}
		if test.add != "" {
			fsys[test.add] = &fstest.MapFile{Data: []byte(test.text)}
		}
		delete(fsys, test.remove)
		if _, err := load(fsys, four); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %q without %q: error %v, want %q", test.add, test.remove, err, test.want)
		}
	}
}

// TestPlants loads a program with switches: each plant is a program with the launch file and the expectations of its own.
func TestPlants(t *testing.T) {
	folder := []Folder{{Name: "apps", Plants: true}}
	load := func(source string) ([]*Program, error) {
		return load(fstest.MapFS{"apps/a.cu": {Data: []byte(source)}, "apps/a.ptx": {},
			"apps/a.toml": {Data: []byte("kernel = \"a<0>\"\n[[expect]]\nbuffer = \"x\"\n")}}, folder)
	}
	programs, err := load("// plant 1: this\n// plant 2: that\nx; // want error:unordered@1,2 error:missing-lock@2\ny; // gap error:unordered@1\n")
	if err != nil || len(programs) != 3 {
		t.Fatalf("%d programs, error %v", len(programs), err)
	}
	lock, line := Want{3, "error", "missing-lock"}, Want{3, "error", "unordered"}
	for i, want := range []Program{
		{Name: "a", Launch: []byte("kernel = \"a<0>\"\n[[expect]]\nbuffer = \"x\"\n")},
		{Name: "a@1", Launch: []byte(`kernel = "a<1>"`), Wants: []Want{line}, Gaps: []Want{{4, "error", "unordered"}}},
		{Name: "a@2", Launch: []byte(`kernel = "a<2>"`), Wants: []Want{lock, line}},
	} {
		p := programs[i]
		if p.Name != want.Name || p.Plant != i || p.File() != "apps/a.cu" || string(p.Launch) != string(want.Launch) ||
			!slices.Equal(p.Wants, want.Wants) || !slices.Equal(p.Gaps, want.Gaps) {
			t.Errorf("got %+v, want %+v", p, want)
		}
	}
	for source, want := range map[string]string{
		"x;":              "apps/a.cu: a program of apps says what it can plant",
		"// plant 2: x\n": "apps/a.cu: plant 2 stands where 1 should",
		"// plant 1: x\n": "apps/a@1.cu: a program of apps has at least one want",
		"// plant 1: x\n// want error:unordered@2\n":                   `apps/a.cu:2: bad want "error:unordered@2": there is no plant 2`,
		"// plant 1: x\n// want error:unordered\n":                     "apps/a.cu:2: a program of apps has no want",
		"// plant 1: x\n// want error:unordered@1 error:unordered@1\n": "stands here twice",
	} {
		if _, err := load(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", source, err, want)
		}
	}
}

func TestParseWants(t *testing.T) {
	got, gaps, err := ParseWants("x.cu", "a;\nb; // want warning:volatile error:missing-barrier\n\nc; //want error:unordered\n// wanton\nd; // gap error:missing-lock\n")
	want := []Want{{2, "error", "missing-barrier"}, {2, "warning", "volatile"}, {4, "error", "unordered"}}
	if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gaps, []Want{{6, "error", "missing-lock"}}) {
		t.Errorf("got %v and gaps %v, error %v", got, gaps, err)
	}
	for _, test := range []struct{ source, want string }{
		{"// want", "x.cu:1: // want without"},
		{"\n// want missing-barrier", `x.cu:2: bad want "missing-barrier"`},
		{"// want fatal:unordered", `bad want "fatal:unordered"`},
		{"// want error:Unordered", `bad want "error:Unordered"`},
		{"// want error:", `bad want "error:"`},
		{"// want error:unordered here", `bad want "here"`},
		{"// want error:unordered error:unordered", `x.cu:1: want "error:unordered" stands here twice`},
		{"// gap a", `x.cu:1: bad gap "a"`},
		{"// want a\n// want b", `x.cu:2: bad want "b"`},
	} {
		if _, _, err := ParseWants("x.cu", test.source); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, want %q", test.source, err, test.want)
		}
	}
}

func TestMatch(t *testing.T) {
	p := &Program{Wants: []Want{
		{3, "error", "missing-barrier"},
		{5, "error", "missing-barrier"},
		{5, "warning", "volatile"},
		{7, "error", "deadlock"},
	}}
	race := Found{"error", "missing-barrier", []int{3, 5}}
	own := Found{"warning", "volatile", []int{5, 5}}
	dead := Found{"error", "deadlock", []int{7}}
	for _, test := range []struct {
		name       string
		found      []Found
		missing    []Want
		unexpected []Found
	}{
		{"all", []Found{dead, race, own}, nil, nil},
		{"none", nil, p.Wants, nil},
		{"one missing", []Found{race, own}, p.Wants[3:], nil},
		{"twice is as good", []Found{race, race, own, dead}, nil, nil},
		{"other severity", []Found{race, dead, {"error", "volatile", []int{5}}}, p.Wants[2:3], []Found{{"error", "volatile", []int{5}}}},
		{"other kind", []Found{race, own, {"error", "unordered", []int{7}}}, p.Wants[3:], []Found{{"error", "unordered", []int{7}}}},
		{"one side elsewhere", []Found{own, dead, {"error", "missing-barrier", []int{3, 4}}}, p.Wants[:2], []Found{{"error", "missing-barrier", []int{3, 4}}}},
		{"nowhere", []Found{race, own, dead, {"error", "unordered", nil}}, nil, []Found{{"error", "unordered", nil}}},
	} {
		missing, unexpected := p.Match(test.found)
		if !reflect.DeepEqual(missing, test.missing) || !reflect.DeepEqual(unexpected, test.unexpected) {
			t.Errorf("%s: missing %v, unexpected %v", test.name, missing, unexpected)
		}
	}
}
