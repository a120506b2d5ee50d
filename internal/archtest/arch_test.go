package archtest

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "fencepost.dev/fencepost"

// pkg is a package of the module.
type pkg struct {
	dir     string // "internal/engine"; "." at the root
	imports []string
	files   []*ast.File
	names   []string // of the files, from the root
}

// load parses every package of the module. Tests are kept apart from the imports: they may look upwards.
func load(t *testing.T) (map[string]*pkg, *token.FileSet) {
	t.Helper()
	root := filepath.Join("..", "..")
	fset := token.NewFileSet()
	pkgs := map[string]*pkg{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(rel))
		p := pkgs[dir]
		if p == nil {
			p = &pkg{dir: dir}
			pkgs[dir] = p
		}
		p.files, p.names = append(p.files, f), append(p.names, filepath.ToSlash(rel))
		if !strings.HasSuffix(name, "_test.go") {
			p.addImports(f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pkgs, fset
}

func (p *pkg) addImports(f *ast.File) {
	for _, im := range f.Imports {
		to, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			continue // the compiler complains
		}
		if rel, ok := strings.CutPrefix(to, module+"/"); ok && !slices.Contains(p.imports, rel) {
			p.imports = append(p.imports, rel)
		}
	}
	slices.Sort(p.imports)
}

// arrow is a line of the page: a package and what it imports.
type arrow struct {
	from string
	to   []string
}

// readArrows reads the block of docs/ARCHITECTURE.md that begins with "```arrows".
func readArrows(t *testing.T) []arrow {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(page), "```arrows\n")
	block, _, ok2 := strings.Cut(block, "```")
	if !ok || !ok2 {
		t.Fatal("docs/ARCHITECTURE.md has no ```arrows block")
	}
	var arrows []arrow
	for line := range strings.Lines(block) {
		from, to, ok := strings.Cut(line, "->")
		if !ok {
			t.Fatalf("docs/ARCHITECTURE.md: no arrow in line %q", line)
		}
		arrows = append(arrows, arrow{strings.TrimSpace(from), strings.Fields(to)})
	}
	return arrows
}

// TestArrows compares the imports with docs/ARCHITECTURE.md. There a package is below everything it imports, so
// that the page read downwards is the order in which the code can be understood.
func TestArrows(t *testing.T) {
	pkgs, _ := load(t)
	above := map[string]bool{}
	for _, a := range readArrows(t) {
		p := pkgs[a.from]
		if p == nil {
			t.Errorf("docs/ARCHITECTURE.md names %s, which is no package", a.from)
			continue
		}
		for _, to := range a.to {
			if !above[to] {
				t.Errorf("docs/ARCHITECTURE.md: %s -> %s points the wrong way: a package imports only what stands above it", a.from, to)
			}
			if !slices.Contains(p.imports, to) {
				t.Errorf("docs/ARCHITECTURE.md: %s does not import %s any more; take the arrow out", a.from, to)
			}
		}
		for _, to := range p.imports {
			if !slices.Contains(a.to, to) {
				t.Errorf("%s imports %s, and docs/ARCHITECTURE.md does not allow it. Producers of events know no consumer, "+
					"detectors know no engine, and whoever is imported knows nothing of who imports it; if the arrow is right, draw it there", a.from, to)
			}
		}
		above[a.from] = true
	}
	for dir := range pkgs {
		if !above[dir] {
			t.Errorf("package %s does not stand in docs/ARCHITECTURE.md", dir)
		}
	}
}

// TestNames forbids package names that say nothing.
func TestNames(t *testing.T) {
	pkgs, _ := load(t)
	for dir := range pkgs {
		for part := range strings.SplitSeq(dir, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "api"}, part) {
				t.Errorf("package %s: %q says nothing about what is in it; packages are nouns of the domain", dir, part)
			}
		}
	}
}

// TestFormat checks that gofmt changes no file.
func TestFormat(t *testing.T) {
	pkgs, _ := load(t)
	for _, p := range pkgs {
		for _, name := range p.names {
			text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			want, err := format.Source(text)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if !bytes.Equal(text, want) {
				t.Errorf("%s is not formatted: run gofmt -w %s", name, name)
			}
		}
	}
}

// TestDocumented checks that every package has a package comment and every exported declaration a doc comment.
func TestDocumented(t *testing.T) {
	pkgs, fset := load(t)
	for _, p := range pkgs {
		documented := false
		for i, f := range p.files {
			if strings.HasSuffix(p.names[i], "_test.go") {
				documented = documented || strings.HasSuffix(f.Name.Name, "_test")
				continue
			}
			documented = documented || f.Doc != nil
			for _, d := range f.Decls {
				if name := undocumented(d); name != "" {
					t.Errorf("%s: %s is exported and has no comment", fset.Position(d.Pos()), name)
				}
			}
		}
		if !documented {
			t.Errorf("package %s has no package comment", p.dir)
		}
	}
}

// undocumented names what a declaration exports without a comment. Methods of unexported types and the methods that
// everybody knows need none.
func undocumented(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		known := d.Recv != nil && (slices.Contains([]string{"String", "Error", "Unwrap", "Position"}, d.Name.Name) || !exportedReceiver(d))
		if d.Name.IsExported() && d.Doc == nil && !known {
			return d.Name.Name
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return ""
		}
		for _, s := range d.Specs {
			if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() && s.Doc == nil {
				return s.Name.Name
			}
			if s, ok := s.(*ast.ValueSpec); ok && s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil {
				return s.Names[0].Name
			}
		}
	}
	return ""
}

func exportedReceiver(d *ast.FuncDecl) bool {
	x := d.Recv.List[0].Type
	if s, ok := x.(*ast.StarExpr); ok {
		x = s.X
	}
	if g, ok := x.(*ast.IndexExpr); ok {
		x = g.X
	}
	id, ok := x.(*ast.Ident)
	return ok && id.IsExported()
}

// TestDependenciesAreArgued checks that docs/RATIONALE.md has a line for each module that the code imports.
func TestDependenciesAreArgued(t *testing.T) {
	rationale, err := os.ReadFile(filepath.Join("..", "..", "docs", "RATIONALE.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	pkgs, _ := load(t)
	for _, p := range pkgs {
		for _, f := range p.files {
			for _, im := range f.Imports {
				to, err := strconv.Unquote(im.Path.Value)
				first, _, _ := strings.Cut(to, "/")
				if err != nil || !strings.Contains(first, ".") || strings.HasPrefix(to, module) {
					continue
				}
				parts := strings.Split(to, "/")
				name := strings.Join(parts[:min(3, len(parts))], "/")
				if !seen[name] && !strings.Contains(string(rationale), "`"+name) {
					t.Errorf("%s imports %s, and docs/RATIONALE.md does not say why", p.dir, name)
				}
				seen[name] = true
			}
		}
	}
}

// TestMainIsOneLine keeps what can be tested out of main.
func TestMainIsOneLine(t *testing.T) {
	pkgs, fset := load(t)
	for _, f := range pkgs["cmd/fencepost"].files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fset.Position(fn.End()).Line != fset.Position(fn.Pos()).Line {
				t.Errorf("cmd/fencepost: %s has more than one line; everything else belongs to internal/cli", fn.Name.Name)
			}
		}
	}
}

// TestPanics wants a panic to say that it is a bug: bad input is an error, a finding is a value.
func TestPanics(t *testing.T) {
	pkgs, fset := load(t)
	for _, p := range pkgs {
		for i, f := range p.files {
			if strings.HasSuffix(p.names[i], "_test.go") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					return true
				}
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" && !saysBug(call.Args[0]) {
					t.Errorf(`%s: a panic begins with "BUG: " and gives the facts`, fset.Position(call.Pos()))
				}
				return true
			})
		}
	}
}

// saysBug looks for the first string of an expression. A panic that passes on what was recovered is let through.
func saysBug(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return strings.HasPrefix(x.Value, `"BUG: `)
	case *ast.BinaryExpr:
		return saysBug(x.X)
	case *ast.CallExpr:
		return len(x.Args) > 0 && saysBug(x.Args[0])
	case *ast.Ident:
		return true
	}
	return false
}

// TestDetectorsAreListed wants every detector in the list that the command line and the reports read, but for the one that
// docs/detectors.md shows.
func TestDetectorsAreListed(t *testing.T) {
	pkgs, _ := load(t)
	for dir, p := range pkgs {
		if path.Dir(dir) == "internal/detect" && path.Base(dir) != "example" && declares(p, "Spec") && !slices.Contains(pkgs["internal/detect/all"].imports, dir) {
			t.Errorf("%s declares a Spec and internal/detect/all does not list it", dir)
		}
	}
}

func declares(p *pkg, name string) bool {
	for _, f := range p.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				if s, ok := s.(*ast.ValueSpec); ok && s.Names[0].Name == name {
					return true
				}
			}
		}
	}
	return false
}
