package isa

import (
	"strings"

	"fencepost.dev/fencepost/ptx"
)

// debugStrings is the .debug_str section of a module: function names that .loc refers to by label and offset.
type debugStrings struct {
	bytes  []byte
	labels map[string]int
}

func readDebugStrings(sections []*ptx.Section) *debugStrings {
	d := &debugStrings{labels: map[string]int{}}
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

// at gives the string at a label and offset; "" when there is none.
func (d *debugStrings) at(label string, off int64) string {
	base, ok := d.labels[label]
	from := int64(base) + off
	if !ok || from < 0 || from >= int64(len(d.bytes)) {
		return ""
	}
	s := string(d.bytes[from:])
	if end := strings.IndexByte(s, 0); end >= 0 {
		s = s[:end]
	}
	return s
}

// place is a line of a .loc directive, by file number.
type place struct{ file, line, column int }

// locations builds the Locs of a function.
type locations struct {
	u     *unit
	known map[locKey]int32 // to an index in locs
	last  map[place]*Loc   // the last .loc of each place: an inlined_at refers to it
	own   []*Loc           // by index
	now   int32
}

type locKey struct {
	place
	fn string
	at *Loc
}

func newLocations(u *unit) *locations {
	return &locations{u: u, known: map[locKey]int32{}, last: map[place]*Loc{}, now: -1}
}

// directive reads a .loc. What is inlined names the place of the call, whose own .loc stands before it and may be
// inlined in turn.
func (ls *locations) directive(d *ptx.Loc) {
	p := place{d.File, d.Line, d.Column}
	k := locKey{place: p}
	if d.Inlined {
		at := place{d.AtFile, d.AtLine, d.AtColumn}
		if k.at = ls.last[at]; k.at == nil {
			k.at = ls.u.loc(at)
			ls.last[at] = k.at
		}
		k.fn = ls.u.strings.at(d.FunctionName, d.FunctionOff)
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

// list gives the Locs by index.
func (ls *locations) list() []Loc {
	out := make([]Loc, len(ls.own))
	for i, l := range ls.own {
		out[i] = *l
	}
	return out
}
