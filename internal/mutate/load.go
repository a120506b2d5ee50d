package mutate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// source is a package to change.
type source struct {
	path    string // import path
	dir     string
	fset    *token.FileSet
	names   []string // of its files, sorted, without tests
	files   map[string]*ast.File
	texts   map[string][]byte
	exports map[string]string // import path to the compiled package, of what it imports
	info    *types.Info
	types   *types.Package
}

// load reads a package through the go command, and compiles its imports so that mutants can be type-checked.
func load(pattern string) (*source, error) {
	cmd := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export,DepOnly", pattern)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	s := &source{fset: token.NewFileSet(), files: map[string]*ast.File{}, texts: map[string][]byte{}, exports: map[string]string{}}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			DepOnly                 bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.DepOnly {
			s.exports[p.ImportPath] = p.Export
		} else if s.path != "" {
			return nil, fmt.Errorf("%s is more than one package: %s, %s", pattern, s.path, p.ImportPath)
		} else {
			s.path, s.dir, s.names = p.ImportPath, p.Dir, p.GoFiles
		}
	}
	slices.Sort(s.names)
	for _, name := range s.names {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return nil, err
		}
		s.texts[name] = text
		if s.files[name], err = s.parse(name, text); err != nil {
			return nil, err
		}
	}
	s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	s.types, err = s.check(s.files, s.info)
	return s, err
}

func (s *source) parse(name string, text []byte) (*ast.File, error) {
	return parser.ParseFile(s.fset, filepath.Join(s.dir, name), text, parser.SkipObjectResolution|parser.ParseComments)
}

func (s *source) check(files map[string]*ast.File, info *types.Info) (*types.Package, error) {
	conf := types.Config{
		Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(s.exports[path]) }),
		Sizes:    types.SizesFor("gc", runtime.GOARCH),
	}
	var list []*ast.File
	for _, name := range s.names {
		list = append(list, files[name])
	}
	return conf.Check(s.path, s.fset, list, info)
}

// mutants lists every mutant of the package, generated files left out, in the order of files and text.
func (s *source) mutants() []*Mutant {
	var all []*Mutant
	for _, name := range s.names {
		if ast.IsGenerated(s.files[name]) {
			continue
		}
		f := &finder{fset: s.fset, name: name, src: s.texts[name], info: s.info, pkg: s.types}
		all = append(all, f.find(s.files[name])...)
	}
	return all
}

// compiles reports whether the package with the mutant type-checks.
func (s *source) compiles(m *Mutant) bool {
	changed, err := s.parse(m.File, m.apply(s.texts[m.File]))
	if err != nil {
		return false
	}
	files := map[string]*ast.File{}
	for name, f := range s.files {
		files[name] = f
	}
	files[m.File] = changed
	_, err = s.check(files, nil)
	return err == nil
}
