package isa

import (
	"io"
	"slices"
	"strings"
)

// Spelling is one combination of the modifiers of a form that can change the value computed.
type Spelling struct {
	Row  *Row
	Form *Form
	Text string // "add.rn.ftz.f32"; "max.f32/3" if operands distinguish forms
	Mods []string
	// Dst and Src are the types of the operands. The condition code (u32, 0 or 1) comes last if the instruction has it.

	Dst, Src []Type
	proto    Inst
}

// Has reports whether the spelling has a modifier.
func (s *Spelling) Has(mod string) bool { return s.proto.Has(mod) }

// Inst returns the decoded modifiers, with the implementation bound and no operands.
func (s *Spelling) Inst() Inst { return s.proto }

// Spellings lists the spellings that the rows of the classes Pure, Atomic, Warp and Matrix accept, in the order of the
// table. Modifiers of memory that do not affect the value (order, scope, space, cache hints) are left out, and so are
// the forms of mov with vectors or 128 bits, whose operands are not one value each.
func Spellings() []Spelling {
	var out []Spelling
	t := theTable()
	for _, r := range t.rows {
		if r.Class != Pure && r.Class != Atomic && r.Class != Warp && r.Class != Matrix {
			continue
		}
		for _, f := range t.forms[r.Op] {
			if f.row == r {
				out = append(out, f.variants()...)
			}
		}
	}
	return out
}

// valueSlot reports whether a modifier can change the value.
func (f *form) valueSlot(s slot) bool {
	switch s.name {
	case "alayout", "blayout":
		return f.row.Op != "wmma"
	}
	if f.row.Class != Atomic && f.row.Class != Matrix {
		return true
	}
	switch s.name {
	case "sem", "scope", "space":
		return false
	}
	return s.toks[0] != "L2::cache_hint"
}

// variants lists the spellings of a form.
func (f *form) variants() []Spelling {
	for _, o := range f.ops {
		if o.vector {
			return nil
		}
	}
	var out []Spelling
	chosen := make([]string, len(f.slots))
	var walk func(i int)
	walk = func(i int) {
		if i == len(f.slots) {
			if s := f.spellingOf(chosen); s.proto.Type != B128 && !slices.Contains(s.Src, B128) {
				out = append(out, s)
			}
			return
		}
		s := f.slots[i]
		chosen[i] = ""
		if s.opt || !f.valueSlot(s) {
			walk(i + 1)
		}
		if !f.valueSlot(s) {
			return
		}
		for _, tok := range s.toks {
			chosen[i] = tok
			walk(i + 1)
		}
		chosen[i] = ""
	}
	walk(0)
	return out
}

func (f *form) spellingOf(chosen []string) Spelling {
	sp := f.spell(chosen)
	s := Spelling{Row: f.row, Form: f.decl, Mods: sp.proto.Mods, proto: sp.proto}
	s.Text = strings.Join(append([]string{f.row.Op}, s.Mods...), ".")
	if sp.proto.sources == 3 && (threeInput[f.row.Op] || f.ops[0].ways == 1) {
		s.Text += "/3"
	}
	for _, o := range sp.ops {
		switch {
		case o.addr, o.opt && f.row.Class == Atomic:
		case f.row.Class == Matrix:
			s.Dst, s.Src = slices.Repeat([]Type{o.typ}, max(o.count, int(sp.proto.Vec))), []Type{U64, U64} // a row
		case o.dst:
			s.Dst = append(s.Dst, slices.Repeat([]Type{o.typ}, max(o.count, 1))...)
			if o.pair != nil {
				s.Dst = append(s.Dst, o.pair.typ)
			}
		default:
			s.Src = append(s.Src, slices.Repeat([]Type{o.typ}, max(o.count, 1))...)
		}
		if !o.dst && o.selects() {
			s.Src = append(s.Src, U32)
		}
	}
	if f.row.Stack {
		stack := map[string][2][]Type{"stacksave": {nil, {U64}}, "stackrestore": {{U64}, nil}, "alloca": {{U64}, {U64, U64}}}[f.row.Op]
		s.Dst, s.Src = append(s.Dst, stack[0]...), append(s.Src, stack[1]...)
	}
	if sp.ops[0].selects() || sp.proto.CarryIn {
		s.Src = append(s.Src, U32)
	}
	if sp.proto.CarryOut {
		s.Dst = append(s.Dst, U32)
	}
	return s
}

// threeInput are the instructions whose spelling does not distinguish two operands from three.
var threeInput = map[string]bool{"min": true, "max": true}

// WriteMarkdown writes the table of supported instructions, one line a form.
func WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| instruction | accepted forms | notes |\n|---|---|---|\n")
	for _, r := range Rows() {
		section, _, _ := strings.Cut(r.Doc, ":")
		b.WriteString("| `" + r.Op + "` (" + section + ") | ")
		for i, f := range r.Forms {
			if i > 0 {
				b.WriteString("<br>")
			}
			b.WriteString("`" + strings.ReplaceAll(f.Display(r.Op), "|", "\\|") + "`")
			if f.Ulp > 0 {
				b.WriteString(" (approximate)")
			}
		}
		b.WriteString(" | " + r.Note + " |\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// selectorNames is the manual's notation for the selectors of operands.
var selectorNames = map[byte]string{'d': "{.mask}", 'a': "{.asel}", 'b': "{.bsel}"}

// Display returns the form for people: the manual's notation without the annotations of operands.
func (f *Form) Display(op string) string {
	head, defs, more := strings.Cut(f.Syntax, ";")
	mods, operands, _ := strings.Cut(head, " ")
	if !strings.HasPrefix(head, ".") && !strings.HasPrefix(head, "{.") {
		mods, operands = "", strings.TrimSpace(head)
	}
	var b strings.Builder
	b.WriteString(op + mods)
	if operands != "" {
		b.WriteByte(' ')
	}
	for i := 0; i < len(operands); i++ {
		switch c := operands[i]; c {
		case '~', '\'':
		case '*':
			i++
		case '^':
			i++
			if operands[i-2:i+1] == "d^1" {
				b.WriteString(".dsel")
			} else {
				b.WriteString(selectorNames[operands[i-2]])
			}
		case '-':
			b.WriteString("{-}")
		case '<':
			b.WriteByte('{')
		case '>':
			b.WriteByte('}')
		case ':':
			for i+1 < len(operands) && !strings.ContainsRune(",|}{]~", rune(operands[i+1])) {
				i++
			}
		default:
			b.WriteByte(c)
		}
	}
	if more {
		b.WriteString(";" + defs)
	}
	return b.String()
}
