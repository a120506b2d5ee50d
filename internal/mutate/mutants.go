package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// Mutant is one change of one place in a package.
type Mutant struct {
	File string `json:"file"` // its base name
	Line int    `json:"line"`
	Func string `json:"func"` // as in "(*Detector).fence", or "outside functions"
	Op   string `json:"op"`   // what kind of change it is
	Old  string `json:"old"`  // the lines that change, on one line
	New  string `json:"new"`

	from, to int // the bytes of the file that text replaces
	text     string
}

// String is the mutant as the report prints it, without its outcome.
func (m *Mutant) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)\n    - %s\n    + %s", m.File, m.Line, m.Func, m.Op, m.Old, m.New)
}

// apply returns the file with the change.
func (m *Mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.from], []byte(m.text), src[m.to:])
}

// swapped maps operators to their replacements.
var swapped = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.AND}, token.AND_NOT: {token.AND},
	token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN}, token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.AND_ASSIGN: {token.OR_ASSIGN}, token.OR_ASSIGN: {token.AND_ASSIGN}, token.XOR_ASSIGN: {token.AND_ASSIGN}, token.AND_NOT_ASSIGN: {token.OR_ASSIGN},
	token.SHL_ASSIGN: {token.SHR_ASSIGN}, token.SHR_ASSIGN: {token.SHL_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC}, token.BREAK: {token.CONTINUE}, token.CONTINUE: {token.BREAK},
}

// renamed maps functions and constants to their replacements.
var renamed = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

// finder collects the mutants of one file.
type finder struct {
	fset    *token.FileSet
	name    string
	src     []byte
	info    *types.Info
	pkg     *types.Package
	fn      string
	results *types.Tuple // of the function around
	found   []*Mutant
}

// find lists the mutants of a file, in the order of the text. It leaves out code that only an assertion needs: a
// correct program never takes a branch that panics, so no test can detect whether it is there.
func (f *finder) find(file *ast.File) []*Mutant {
	for _, d := range file.Decls {
		f.fn, f.results = "outside functions", nil
		if fn, ok := d.(*ast.FuncDecl); ok {
			f.fn = functionName(fn)
			if s, ok := f.info.Defs[fn.Name].(*types.Func); ok {
				f.results = s.Signature().Results()
			}
		}
		f.walk(d)
	}
	slices.SortStableFunc(f.found, func(a, b *Mutant) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return slices.CompactFunc(f.found, func(a, b *Mutant) bool { return a.from == b.from && a.to == b.to && a.text == b.text })
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	x := d.Recv.List[0].Type
	if s, ok := x.(*ast.StarExpr); ok {
		return fmt.Sprintf("(*%s).%s", types.ExprString(generic(s.X)), d.Name.Name)
	}
	return types.ExprString(generic(x)) + "." + d.Name.Name
}

// generic returns a type without its parameters.
func generic(x ast.Expr) ast.Expr {
	switch g := x.(type) {
	case *ast.IndexExpr:
		return g.X
	case *ast.IndexListExpr:
		return g.X
	}
	return x
}

func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.closure(n)
			return false
		case *ast.IfStmt:
			if panics(n.Body) && n.Else == nil {
				return false
			}
			f.condition(n.Cond)
		case *ast.ForStmt:
			f.insert("skip loop", n.Body.Lbrace+1, " break;")
			if n.Cond != nil {
				f.condition(n.Cond)
			}
		case *ast.RangeStmt:
			f.insert("skip loop", n.Body.Lbrace+1, " break;")
		case *ast.CaseClause:
			if len(n.Body) > 0 {
				f.insert("skip case", n.Colon+1, " break;")
			}
		case *ast.ExprStmt:
			if isPanic(n) {
				return false
			}
			f.drop(n)
		case *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
			f.drop(n)
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				f.drop(n)
			}
			f.swap(n.TokPos, n.Tok)
		case *ast.IncDecStmt:
			f.drop(n)
			f.swap(n.TokPos, n.Tok)
		case *ast.BranchStmt:
			f.swap(n.TokPos, n.Tok)
		case *ast.ReturnStmt:
			f.returned(n)
		case ast.Expr:
			return f.expression(n)
		case *ast.ImportSpec, *ast.TypeSpec:
			return false
		}
		return true
	})
}

// closure walks a function literal with its own results.
func (f *finder) closure(n *ast.FuncLit) {
	outer := f.results
	if s, ok := f.info.TypeOf(n).(*types.Signature); ok {
		f.results = s.Results()
	}
	f.walk(n.Body)
	f.results = outer
}

// expression lists the mutants of an expression itself and reports whether to descend into it.
func (f *finder) expression(n ast.Expr) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.swap(n.OpPos, n.Op)
		if n.Op == token.LAND || n.Op == token.LOR {
			f.replace("drop operand", n, f.textOf(n.X))
			f.replace("drop operand", n, f.textOf(n.Y))
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB || n.Op == token.XOR {
			f.replace("drop operator", n, f.textOf(n.X))
		}
	case *ast.BasicLit:
		if v, err := strconv.ParseUint(n.Value, 0, 64); n.Kind == token.INT && err == nil {
			f.replace("constant", n, strconv.FormatUint(v+1, 10))
			if v > 0 {
				f.replace("constant", n, strconv.FormatUint(v-1, 10))
			}
		}
	case *ast.Ident:
		if to, ok := renamed[n.Name]; ok && f.info.Uses[n] != nil && f.info.Uses[n].Parent() == types.Universe {
			f.replace("swap", n, to)
		}
	case *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.InterfaceType:
		return false
	}
	return true
}

func panics(b *ast.BlockStmt) bool { return len(b.List) == 1 && isPanic(b.List[0]) }

func isPanic(s ast.Stmt) bool {
	x, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

// condition makes a branch always or never taken. The condition is still evaluated.
func (f *finder) condition(x ast.Expr) {
	text := f.textOf(x)
	f.replace("never", x, "("+text+") && false")
	f.replace("always", x, "("+text+") || true")
}

// returned replaces results by the zero value, and Boolean results also by true.
func (f *finder) returned(n *ast.ReturnStmt) {
	if f.results == nil || len(n.Results) != f.results.Len() {
		return
	}
	for i, x := range n.Results {
		if t := f.results.At(i).Type(); types.Identical(t.Underlying(), types.Typ[types.Bool]) {
			if renamed[f.textOf(x)] == "" {
				f.replace("return", x, "!("+f.textOf(x)+")")
			}
		} else if zero := f.zero(t); zero != "" && zero != f.textOf(x) {
			f.replace("return", x, zero)
		}
	}
}

// zero spells the zero value of a type.
func (f *finder) zero(t types.Type) string {
	if _, ok := t.(*types.TypeParam); ok {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsString != 0:
			return `""`
		case u.Info()&types.IsNumeric != 0:
			return "0"
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Signature, *types.Interface:
		return "nil"
	case *types.Struct, *types.Array:
		return types.TypeString(t, func(p *types.Package) string {
			if p == f.pkg {
				return ""
			}
			return p.Name()
		}) + "{}"
	}
	return ""
}

func (f *finder) swap(at token.Pos, op token.Token) {
	for _, to := range swapped[op] {
		from := f.fset.Position(at).Offset
		f.add("swap", from, from+len(op.String()), to.String())
	}
}

func (f *finder) drop(n ast.Node) { f.replace("drop statement", n, "") }

func (f *finder) insert(op string, at token.Pos, text string) {
	from := f.fset.Position(at).Offset
	f.add(op, from, from, text)
}

func (f *finder) replace(op string, n ast.Node, text string) {
	f.add(op, f.fset.Position(n.Pos()).Offset, f.fset.Position(n.End()).Offset, text)
}

func (f *finder) textOf(n ast.Node) string {
	return string(f.src[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

func (f *finder) add(op string, from, to int, text string) {
	m := &Mutant{File: f.name, Func: f.fn, Op: op, from: from, to: to, text: text}
	m.Line = 1 + strings.Count(string(f.src[:from]), "\n")
	begin := strings.LastIndexByte(string(f.src[:from]), '\n') + 1
	end := to + strings.IndexByte(string(f.src[to:])+"\n", '\n')
	m.Old = oneLine(string(f.src[begin:end]))
	m.New = oneLine(string(f.src[begin:from]) + text + string(f.src[to:end]))
	f.found = append(f.found, m)
}

// oneLine is a text with single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
