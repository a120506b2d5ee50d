package isa

import (
	"bytes"
	"errors"
	"slices"

	"fencepost.dev/fencepost/ptx"
)

// debugStrings is the .debug_str section of a module: function names that .loc refers to by label and offset.
type debugStrings struct {
	bytes  []byte
	labels map[string]int
	known  map[int64]string // by offset
}

func readDebugStrings(sections []*ptx.Section) *debugStrings {
	d := &debugStrings{labels: map[string]int{}, known: map[int64]string{}}
	for _, s := range sections {
		if s.Name != ".debug_str" {
			continue
		}
		d.labels[s.Name] = len(d.bytes)
		for _, line := range s.Lines {
			if line.Label != "" {
				d.labels[line.Label] = len(d.bytes)
			}
			if line.Type != "b8" {
				continue
			}
			for _, v := range line.Values {
				if l, err := ptx.ParseLiteral(v.Name); err == nil {
					d.bytes = append(d.bytes, byte(l.Bits))
				}
			}
		}
	}
	return d
}

// at returns the string at a label and offset; "" if there is none.
func (d *debugStrings) at(label string, off int64) string {
	base, ok := d.labels[label]
	from := int64(base) + off
	if !ok || from < 0 || from >= int64(len(d.bytes)) {
		return ""
	}
	s, ok := d.known[from]
	if !ok { // every inlined call of a function refers to it again
		rest := d.bytes[from:]
		if end := bytes.IndexByte(rest, 0); end >= 0 {
			rest = rest[:end]
		}
		s = string(rest)
		d.known[from] = s
	}
	return s
}

// place is a line of a .loc directive, by file number.
type place struct{ file, line, column int }

// locations builds the Locs of a function.
type locations struct {
	u     *unit
	known map[locKey]int32 // indices in locs
	of    string           // the name of the function
	last  map[place]*Loc   // the last .loc of each place, to which an inlined_at refers
	own   []*Loc           // by index
	now   int32
	made  bool // the last .loc has line 0
}

type locKey struct {
	place
	fn string
	at *Loc
}

func newLocations(u *unit, f *ptx.Func) *locations {
	return &locations{u: u, of: f.Name, known: map[locKey]int32{}, last: map[place]*Loc{}, now: -1}
}

// directive reads a .loc. An inlined place names the place of the call, which has an earlier .loc of its own and may
// itself be inlined. nvcc gives line 0 to blocks that it generates for one statement, such as the loop that copies a
// structure; they keep the place of the code before them.
func (ls *locations) directive(d *ptx.Loc) {
	ls.made = d.Line == 0
	if d.Line == 0 && ls.now >= 0 && ls.own[ls.now].File == ls.u.files[d.File] {
		return
	}
	p := place{d.File, d.Line, d.Column}
	k := locKey{place: p}
	if d.Inlined {
		at := place{d.AtFile, d.AtLine, d.AtColumn}
		if k.at = ls.last[at]; k.at == nil {
			k.at = ls.u.loc(at)
			ls.last[at] = k.at
		}
		// In Triton's PTX, inlined code has the name of the kernel.
		if k.fn = ls.u.strings.at(d.FunctionName, d.FunctionOff); k.fn == ls.of {
			k.fn = ""
		}
	}
	i, ok := ls.known[k]
	if !ok {
		loc := ls.u.loc(p)
		loc.Function, loc.At = k.fn, k.at
		i = int32(len(ls.own))
		ls.own = append(ls.own, loc)
		ls.known[k] = i
	}
	ls.last[p] = ls.own[i]
	if !d.Intermediate {
		ls.now = i
	}
}

func (u *unit) loc(p place) *Loc { return &Loc{File: u.files[p.file], Line: p.line, Column: p.column} }

// list returns the Locs by index.
func (ls *locations) list() []Loc {
	out := make([]Loc, len(ls.own))
	for i, l := range ls.own {
		out[i] = *l
	}
	return out
}

// Locate adds the source places to the errors of parsing m, for messages.
func Locate(m *ptx.Module, err error) {
	var errs ptx.ErrorList
	if !errors.As(err, &errs) {
		return
	}
	u := newUnit(m)
	for _, d := range m.Decls {
		if f, ok := d.(*ptx.Func); ok && f.Body != nil {
			u.locate(f, errs)
		}
	}
}

// locate adds the source places to those errors that are in the body of a function: the place in the last .loc before
// them.
func (u *unit) locate(f *ptx.Func, errs ptx.ErrorList) {
	within := func(e *ptx.Error) bool { return before(f.Body.Pos, e.Pos) && before(e.Pos, f.Body.End) }
	if !slices.ContainsFunc(errs, within) {
		return
	}
	ls := newLocations(u, f)
	var pos []ptx.Pos // of each .loc
	var at []int32
	ls.walk(f.Body, func(d *ptx.Loc) {
		pos, at = append(pos, d.Pos), append(at, ls.now)
	})
	for _, e := range errs {
		n, _ := slices.BinarySearchFunc(pos, e.Pos, func(p, e ptx.Pos) int {
			if before(p, e) {
				return -1
			}
			return 1
		})
		if within(e) && n > 0 && at[n-1] >= 0 {
			e.Source = ls.own[at[n-1]].source(f)
		}
	}
}

func before(a, b ptx.Pos) bool { return a.Line < b.Line || a.Line == b.Line && a.Col < b.Col }

// walk reads the .loc directives of a block, and calls f after each.
func (ls *locations) walk(b *ptx.Block, f func(*ptx.Loc)) {
	for _, st := range b.Stmts {
		switch st := st.(type) {
		case *ptx.File:
			ls.u.files[st.Index] = st.Name
		case *ptx.Block:
			ls.walk(st, f)
		case *ptx.Loc:
			ls.directive(st)
			f(st)
		}
	}
}

// source returns the places of l in a function of PTX, innermost first, and none if its file is not known.
func (l *Loc) source(f *ptx.Func) []ptx.Source {
	if l.File == "" || l.Line <= 0 {
		return nil
	}
	var out []ptx.Source
	for ; l != nil; l = l.At {
		s := ptx.Source{File: l.File, Line: l.Line, Column: l.Column, Function: l.Function}
		if l.At == nil {
			s.Function = f.Name
		}
		out = append(out, s)
	}
	return out
}
