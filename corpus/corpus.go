// Package corpus contains CUDA programs with the findings that a correct checker must report for them, and must not.
//
// Each program consists of four things with one name in one folder: the source (.cu), the PTX that nvcc made of it
// (.ptx), the description of its launches (.toml), and its expectations, which are comments in the source on the lines
// that they refer to:
//
//	tile[t] = in[i]; // want error:missing-barrier
//
// The folder race contains programs with data races, norace programs without any finding, fault programs with other
// errors, and predict programs whose races the order of this run hides from many detectors. The other folders are
// suites that papers describe (Folders lists them). A race that exists and that Fencepost is known to miss is a gap
// rather than a want:
//
//	*x = 3; // gap error:missing-lock
//
// README.md in this folder describes how to write a program.
package corpus

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"fencepost.dev/fencepost/corpus/internal/compile"
)

//go:generate go run ./internal/build

// packed contains the folders as a ZIP file without compression of its own, compressed as a whole. Programs resemble
// each other, and a ZIP file, which compresses each file separately, would be five times as large. "go generate
// ./corpus" writes it, and a test compares it with the folders.
//
//go:embed programs.zip.zst
var packed []byte

// files returns the folders.
var files = sync.OnceValues(func() (fs.FS, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	plain, err := d.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(plain), int64(len(plain)))
})

// The folders against which the others are measured.
const (
	Bugs    = "bugs"    // the concurrency-bug suite
	Race    = "race"    // at least one data race
	NoRace  = "norace"  // no finding of any kind
	Predict = "predict" // races that only another order of the same critical sections shows
	Fault   = "fault"   // a finding that is not a race: memory, divergence, deadlock, assertion
)

// Folder is a folder of programs.
type Folder struct {
	Name   string
	Wants  Wanting
	Lines  int  // the greatest number of lines of a source
	Plants bool // sources have switches that plant races, and are clean without them: see Program.Plant
	Suite  bool // programs that a paper describes, or that no paper mentions; testdata/NAME.txt of package session contains the verdict of each detector on them
}

// Wanting says which programs of a folder have expectations.
type Wanting uint8

// All programs of a folder have wants, none has, or some have.
const (
	Each Wanting = iota
	None
	Some
)

// Folders returns every folder of the corpus, sorted by name.
func Folders() []Folder {
	return []Folder{
		{Name: "async", Wants: Each, Lines: 95, Suite: true},
		{Name: "async_norace", Wants: None, Lines: 95, Suite: true},
		{Name: Bugs, Wants: Some, Lines: 60, Suite: true},
		{Name: Fault, Wants: Each, Lines: 60},
		{Name: NoRace, Wants: None, Lines: 60},
		{Name: Predict, Wants: Each, Lines: 60, Suite: true},
		{Name: "predict_dynamic", Wants: Each, Lines: 60, Suite: true},
		{Name: "predict_norace", Wants: None, Lines: 60, Suite: true},
		{Name: Race, Wants: Each, Lines: 60},
		{Name: "scoped", Wants: Some, Lines: 60, Suite: true},
		{Name: "scopedapps", Wants: Each, Lines: 130, Plants: true, Suite: true},
	}
}

// Program is one program of the corpus.
type Program struct {
	Name   string // "transpose"; "search@3" is search with its plant 3
	Plant  int    // number of the enabled switch of its source; 0: none
	Dir    string // its folder's name
	Suite  bool   // as Folder.Suite
	Source string // CUDA C++, as in Dir/Name.cu
	PTX    string // output of nvcc -lineinfo -Xcicc -O0; its .file entry for the source is "Name.cu"
	Launch []byte // launch file, TOML
	Wants  []Want // sorted by line, then severity, then kind
	Gaps   []Want // races that exist and are known to be missed, in the same order
}

// Racy reports whether a race is expected, or known to exist.
func (p *Program) Racy() bool { return p.Dir != Fault && len(p.Wants)+len(p.Gaps) > 0 }

// Arch is the architecture for which the source must be compiled, as an argument of nvcc's -arch.
func (p *Program) Arch() string { return compile.Arch(p.Source) }

// File is the path of its source within the corpus: "race/transpose.cu". Programs that differ only in their plant share
// it.
func (p *Program) File() string {
	name, _, _ := strings.Cut(p.Name, "@")
	return p.Dir + "/" + name + ".cu"
}

// Path is the program's name within the corpus: "race/transpose". Names alone are not unique: a racy program and its
// corrected version share one.
func (p *Program) Path() string { return p.Dir + "/" + p.Name }

// Want is an expected finding: one of its accesses or threads is on Line.
type Want struct {
	Line     int    // from 1
	Severity string // "error", "warning" or "info"
	Kind     string // the stable identifier of the finding's kind
}

func (w Want) String() string { return fmt.Sprintf("line %d: %s:%s", w.Line, w.Severity, w.Kind) }

// All returns every program of the corpus, sorted by Path. The error names each invalid file.
func All() ([]*Program, error) { return loadPacked(func(Folder) bool { return true }) }

// Core returns the programs of the folders that are not suites, as All does.
func Core() ([]*Program, error) {
	return loadPacked(func(f Folder) bool { return !f.Suite })
}

// Suite returns the programs of one folder, as All does. If there is no such folder it returns none.
func Suite(name string) ([]*Program, error) {
	return loadPacked(func(f Folder) bool { return f.Name == name })
}

// loadPacked reads the folders for which want returns true.
func loadPacked(want func(Folder) bool) ([]*Program, error) {
	fsys, err := files()
	if err != nil {
		return nil, fmt.Errorf("the embedded corpus: %w", err)
	}
	return load(fsys, slices.DeleteFunc(Folders(), func(f Folder) bool { return !want(f) }))
}

// load reads folders of a corpus from the root of fsys.
func load(fsys fs.FS, folders []Folder) ([]*Program, error) {
	var programs []*Program
	var errs []error
	for _, folder := range folders {
		dir := folder.Name
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name, ext := splitExt(e.Name())
			if e.IsDir() || (ext != ".cu" && ext != ".ptx" && ext != ".toml") {
				errs = append(errs, fmt.Errorf("%s/%s: belongs to no program", dir, e.Name()))
				continue
			}
			if ext != ".cu" {
				if _, err := fs.Stat(fsys, path.Join(dir, name+".cu")); err != nil {
					errs = append(errs, fmt.Errorf("%s/%s: there is no %s.cu", dir, e.Name(), name))
				}
				continue
			}
			loaded, err := loadPrograms(fsys, folder, name)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			programs = append(programs, loaded...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return programs, nil
}

// splitExt splits a file name at its last dot.
func splitExt(file string) (name, ext string) {
	ext = path.Ext(file)
	return strings.TrimSuffix(file, ext), ext
}

// loadPrograms reads the program with a name in a folder, and its variants with each of its plants.
func loadPrograms(fsys fs.FS, folder Folder, name string) ([]*Program, error) {
	dir := folder.Name
	var text [3][]byte
	var errs []error
	for i, ext := range []string{".cu", ".ptx", ".toml"} {
		b, err := fs.ReadFile(fsys, path.Join(dir, name+ext))
		if err != nil {
			errs = append(errs, err)
		}
		text[i] = b
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p := &Program{Name: name, Dir: dir, Suite: folder.Suite, Source: string(text[0]), PTX: string(text[1]), Launch: text[2]}
	plants := 0
	if folder.Plants {
		for i, m := range plantMark.FindAllStringSubmatch(p.Source, -1) {
			if plants = i + 1; m[1] != strconv.Itoa(plants) {
				return nil, fmt.Errorf("%s: plant %s stands where %d should", p.File(), m[1], plants)
			}
		}
		if plants == 0 {
			return nil, fmt.Errorf("%s: a program of %s says what it can plant (// plant 1: what)", p.File(), dir)
		}
	}
	programs := []*Program{p}
	for n := 1; n <= plants; n++ {
		q := *p
		q.Name, q.Plant, q.Launch = fmt.Sprintf("%s@%d", name, n), n, planted(p.Launch, n)
		programs = append(programs, &q)
	}
	for _, p := range programs {
		errs = append(errs, p.expect(folder, plants))
	}
	return programs, errors.Join(errs...)
}

// planted is a launch file with plant n: a kernel with template argument <0> gets <n> instead. The final memory is then
// not specified.
func planted(launch []byte, n int) []byte {
	launch, _, _ = bytes.Cut(launch, []byte("\n[[expect]]"))
	return bytes.ReplaceAll(launch, []byte(`<0>"`), fmt.Appendf(nil, `<%d>"`, n))
}

// expect reads the expectations of the program in the source.
func (p *Program) expect(folder Folder, plants int) error {
	var err error
	if p.Wants, p.Gaps, err = parseWants(p.File(), p.Source, p.Plant, plants); err != nil {
		return err
	}
	wants, clean := slices.Concat(p.Wants, p.Gaps), folder.Wants == None || folder.Plants && p.Plant == 0
	switch {
	case clean && len(wants) > 0:
		return fmt.Errorf("%s:%d: a program of %s has no want", p.File(), wants[0].Line, p.Dir)
	case folder.Wants == Each && !clean && len(wants) == 0:
		return fmt.Errorf("%s.cu: a program of %s has at least one want", p.Path(), p.Dir)
	}
	return nil
}

// plantMark describes what a switch plants.
var plantMark = regexp.MustCompile(`(?m)^// plant (\d+): \S`)

// wantMark introduces expectations. With tabs or more spaces around it nobody would read the want, so ParseWants
// refuses every other spelling that begins like it.
var (
	wantMark = regexp.MustCompile(`//\s*(want|gap)\b(.*)`)
	wantWord = regexp.MustCompile(`^(error|warning|info):([a-z]+(?:-[a-z]+)*)(?:@(\d+(?:,\d+)*))?$`)
)

// ParseWants reads the expectations of a source. On any line, an expectation is `// want` or `// gap` and one or more
// SEVERITY:KIND, separated by spaces, to the end of the line. It returns all errors, each with name and line.
func ParseWants(name, source string) (wants, gaps []Want, err error) {
	return parseWants(name, source, 0, 0)
}

// parseWants reads the expectations for one of the plants. Those of a plant have the form
// SEVERITY:KIND@PLANT[,PLANT...].
func parseWants(name, source string, plant, plants int) (wants, gaps []Want, err error) {
	var errs []error
	for i, line := range strings.Split(source, "\n") {
		m := wantMark.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		list := &wants
		if m[1] == "gap" {
			list = &gaps
		}
		words := strings.Fields(m[2])
		if len(words) == 0 {
			errs = append(errs, fmt.Errorf("%s:%d: // %s without SEVERITY:KIND", name, i+1, m[1]))
		}
		for _, word := range words {
			f := wantWord.FindStringSubmatch(word)
			if f == nil {
				errs = append(errs, fmt.Errorf("%s:%d: bad "+m[1]+" %q: it reads SEVERITY:KIND, the severity error, warning or info", name, i+1, word))
				continue
			}
			if f[3] != "" {
				here, err := plantsOf(f[3], plants)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s:%d: bad "+m[1]+" %q: %w", name, i+1, word, err))
				}
				if !slices.Contains(here, plant) {
					continue
				}
			}
			w := Want{Line: i + 1, Severity: f[1], Kind: f[2]}
			if slices.Contains(*list, w) {
				errs = append(errs, fmt.Errorf("%s:%d: %s %q stands here twice", name, i+1, m[1], word))
				continue
			}
			*list = append(*list, w)
		}
	}
	slices.SortFunc(wants, compareWants)
	slices.SortFunc(gaps, compareWants)
	return wants, gaps, errors.Join(errs...)
}

// plantsOf reads a list of plants.
func plantsOf(list string, plants int) (out []int, err error) {
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > plants {
			return nil, fmt.Errorf("there is no plant %s", word)
		}
		out = append(out, n)
	}
	return out, nil
}

func compareWants(a, b Want) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	if c := strings.Compare(a.Severity, b.Severity); c != 0 {
		return c
	}
	return strings.Compare(a.Kind, b.Kind)
}

// Found is a finding in the terms of expectations.
type Found struct {
	Severity string
	Kind     string
	Lines    []int // of those accesses or threads whose innermost user frame is in the program's source
}

func (f Found) String() string { return fmt.Sprintf("lines %v: %s:%s", f.Lines, f.Severity, f.Kind) }

// Match compares findings with the wants of the program's source. A finding is expected if it has a line in the source
// and each of its lines has a want of its severity and kind; any other is unexpected. A want is missing if no expected
// finding has its line, severity and kind.
func (p *Program) Match(found []Found) (missing []Want, unexpected []Found) {
	claimed := make(map[Want]bool)
	for _, f := range found {
		wants := make([]Want, len(f.Lines))
		for i, line := range f.Lines {
			wants[i] = Want{line, f.Severity, f.Kind}
		}
		if len(wants) == 0 || slices.ContainsFunc(wants, func(w Want) bool { return !slices.Contains(p.Wants, w) }) {
			unexpected = append(unexpected, f)
			continue
		}
		for _, w := range wants {
			claimed[w] = true
		}
	}
	for _, w := range p.Wants {
		if !claimed[w] {
			missing = append(missing, w)
		}
	}
	return missing, unexpected
}
