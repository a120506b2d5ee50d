// Package ptx reads and writes NVIDIA's PTX assembly language, ISA versions 1.0 to 9.5.
//
// It knows the grammar and no opcodes, except that the parentheses of a call are lists. A statement is `[label:]
// [@[!]p] op{.mod} operands;`, so a module with an unknown instruction can still be parsed and printed, and its
// positions are known. The meaning of the words is left to other packages.
//
// Names in the tree are substrings of the source text passed to Parse; keeping a Module keeps that text.
package ptx

// Pos is a place in the source text. Line and Col count from 1; Col counts bytes. The zero Pos means "no place".
type Pos struct {
	Line int32
	Col  int32
}

// Module is one parsed PTX file.
type Module struct {
	Name        string // the name of the file in messages
	Version     Version
	Targets     []string // as written: "sm_80", "debug", ...
	AddressSize int      // 32 or 64; 0 if the directive is absent
	Decls       []Decl   // in source order
}

// Version is the argument of the .version directive.
type Version struct{ Major, Minor int }

// Decl is anything that can be at module level: *Func, *Var, *File, *Section, *Dwarf, *Alias, *Directive, *Loc.
type Decl interface {
	Position() Pos
	decl()
}

// Stmt is anything that can be in a function body:
// *Inst, *Label, *Block, *Var, *Loc, *Directive, *Prototype, *TargetList, *File, *Section, *Dwarf.
type Stmt interface {
	Position() Pos
	stmt()
}

// Linkage is a set of linking directives.
type Linkage uint8

// The linking directives (PTX ISA, "Linking Directives").
const (
	Extern Linkage = 1 << iota
	Visible
	Weak
	Common
)

// Func is an .entry or a .func. Body is nil for a declaration without body. Pos is the place of its first directive.
type Func struct {
	Pos        Pos
	Linkage    Linkage
	Entry      bool
	Attributes []*Directive // .attribute(...) and the like, before the name
	Name       string
	Rets       []*Var // .func only
	Params     []*Var
	Directives []*Directive // .maxntid, .reqntid, .minnctapersm, .noreturn, .pragma, ... between header and body
	Body       *Block
	// ParamList is false if the parameter list is absent (not merely empty): `.entry k { ... }`.
	ParamList bool
}

// Var is a declaration of variables, registers or parameters: state space, type, and one or more names.
type Var struct {
	Pos        Pos
	Linkage    Linkage
	Space      string       // "reg", "sreg", "const", "global", "local", "param", "shared", "tex" (without the dot)
	Bank       int          // n of `.const[n]`, ISA 2.1 and before; 0 if not given
	Attributes []*Directive // .attribute(.managed), ...
	Align      int          // bytes; 0 if not given
	Vector     int          // 1, 2, 4, 8
	Type       string       // "b32", "f64", "pred", "texref", ... (without the dot)
	// Ptr describes `.ptr{.space}{.align N}` on a kernel parameter.
	Ptr   *PtrAttr
	Names []VarName
}

// PtrAttr is the .ptr attribute of a kernel parameter.
type PtrAttr struct {
	Space string // "" if not given
	Align int    // 0 if not given
}

// VarName is one declared name.
type VarName struct {
	Pos  Pos
	Name string
	// Range is n for the parameterised form `%r<n>` and -1 otherwise.
	Range int
	Dims  []int64 // array dimensions; -1 for an empty bracket pair
	Init  *Init   // nil if not initialised
}

// Init is an initialiser: a list, or one value.
type Init struct {
	Pos  Pos
	Key  string  // "filter_mode" in `{ filter_mode = nearest }`, the initialisers of samplers and textures; else ""
	List []*Init // if IsList
	// IsList distinguishes `{}` from a single value.
	IsList bool
	Value  Operand // OperandImm, OperandIdent, OperandAddrOf or OperandMask; valid when !IsList
}

// File is `.file index "name" {, timestamp, size}`.
type File struct {
	Pos       Pos
	Index     int
	Name      string // as written between the quotes
	HasStat   bool
	Timestamp uint64
	Size      uint64
}

// Loc is `.loc file line column {, function_name label{+off}, inlined_at file line column}`,
// or .loc_intermediate with the same arguments.
type Loc struct {
	Pos          Pos
	Intermediate bool
	File         int
	Line         int
	Column       int
	FunctionName string // label in .debug_str; "" if absent
	FunctionOff  int64
	Inlined      bool
	AtFile       int
	AtLine       int
	AtColumn     int
}

// Section is `.section name { ... }`: labels and .b8/.b16/.b32/.b64 lines.
type Section struct {
	Pos   Pos
	Name  string // with its dots: ".debug_str"
	Lines []SectionLine
}

// Dwarf is one `@@DWARF ...` line, the form of debug data before ISA 2.0.
type Dwarf struct {
	Pos  Pos
	Text string // the rest of the line as written, without surrounding blanks and comment
}

// SectionLine is a label (Label != "") or one data line.
type SectionLine struct {
	Pos    Pos
	Label  string
	Type   string    // "b8", "b16", "b32", "b64"
	Values []Operand // OperandImm, OperandIdent, OperandAddrOf, OperandDir (a section, with Off), OperandDiff
}

// Alias is `.alias new, old;`.
type Alias struct {
	Pos      Pos
	New, Old string
}

// Directive is any other directive, with its arguments as written:
// `.pragma "nounroll";`, `.maxntid 32, 1, 1`, `.noreturn`, `.attribute(.managed)`.
type Directive struct {
	Pos  Pos
	Name string // without the dot
	Args []Operand
	// Paren says that the arguments are in parentheses.
	Paren bool
}

// Block is `{ ... }`, a naming scope.
type Block struct {
	Pos   Pos
	Stmts []Stmt
	End   Pos // of the closing brace
}

// Label is `name:`.
type Label struct {
	Pos  Pos
	Name string
}

// Prototype is `name: .callprototype (rets) _ (params) {directives};`.
type Prototype struct {
	Pos        Pos
	Name       string
	Rets       []*Var
	Params     []*Var
	Directives []*Directive
}

// TargetList is `name: .branchtargets a, b;` or `name: .calltargets f, g;`. Of `a<2>` the targets are a0 and a1.
type TargetList struct {
	Pos     Pos
	Name    string
	Calls   bool
	Targets []string
}

// Inst is one instruction. Pos is the place of the guard if there is one, else of the opcode.
type Inst struct {
	Pos      Pos
	Pred     string // guard register; "" if there is none
	PredNot  bool   // @!p
	Op       string // up to the first dot: "ld"
	Mods     string // the rest as written, leading dot included: ".global.v4.f32"; "" if there is none
	Operands []Operand
}

// OperandKind is the form in which an operand is written.
type OperandKind uint8

// The operand forms.
const (
	OperandIdent  OperandKind = iota // register, variable, label, function, special register: Name, with .x parts ("%tid.x")
	OperandImm                       // literal, or a constant expression folded to one: Name is the text, sign included
	OperandAddr                      // [base], [base+off], [imm], [base, {vector}]: Args[0] is the base; Off when HasOff; Args[1:] the rest; Name the suffix of `[a].unified`
	OperandVector                    // {a, b, ...}: Args
	OperandList                      // (a, b, ...): Args; call operands
	OperandPair                      // a|b: Args[0], Args[1]
	OperandNot                       // !p: Args[0]
	OperandNeg                       // -a, where a is not a literal: Args[0]
	OperandAddrOf                    // generic(sym)+off, sym+off in initialisers and operands: Name the symbol, Generic, Off
	OperandString                    // "text": Name without the quotes, as written
	OperandMask                      // the byte mask of initialisers, `0xFF00(sym)`: Name the mask literal, Args[0] the symbol operand
	OperandDir                       // .word used as an argument: Name without the dot; `.unified(1, 2)` has Args; in sections Off when HasOff
	OperandIndex                     // name[index]: Name the array, Args[0] the index (OperandImm, OperandIdent, or OperandAddrOf for reg+imm)
	OperandDiff                      // a-b, two labels of a debug section: Args[0], Args[1]
)

// Operand is one operand. Args is nil for the leaf kinds.
type Operand struct {
	Kind    OperandKind
	Generic bool
	HasOff  bool
	Pos     Pos
	Name    string
	Off     int64
	Args    []Operand
}

// Position returns the start of the declaration.
func (f *Func) Position() Pos       { return f.Pos }
func (v *Var) Position() Pos        { return v.Pos }
func (f *File) Position() Pos       { return f.Pos }
func (d *Dwarf) Position() Pos      { return d.Pos }
func (l *Loc) Position() Pos        { return l.Pos }
func (s *Section) Position() Pos    { return s.Pos }
func (a *Alias) Position() Pos      { return a.Pos }
func (d *Directive) Position() Pos  { return d.Pos }
func (b *Block) Position() Pos      { return b.Pos }
func (l *Label) Position() Pos      { return l.Pos }
func (p *Prototype) Position() Pos  { return p.Pos }
func (t *TargetList) Position() Pos { return t.Pos }
func (in *Inst) Position() Pos      { return in.Pos }

func (*Func) decl()      {}
func (*Var) decl()       {}
func (*File) decl()      {}
func (*Section) decl()   {}
func (*Dwarf) decl()     {}
func (*Alias) decl()     {}
func (*Directive) decl() {}
func (*Loc) decl()       {}

func (*Inst) stmt()       {}
func (*Label) stmt()      {}
func (*Block) stmt()      {}
func (*Var) stmt()        {}
func (*Loc) stmt()        {}
func (*Directive) stmt()  {}
func (*Prototype) stmt()  {}
func (*TargetList) stmt() {}
func (*Section) stmt()    {}
func (*Dwarf) stmt()      {}
func (*File) stmt()       {}
