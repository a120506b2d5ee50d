package session

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Pos is a place in a launch file, counting from 1.
type Pos struct{ Line, Column int }

// FileError is an error in a launch file.
type FileError struct {
	File string
	Pos  Pos
	Msg  string
	Err  error // the error of another package that Msg quotes
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

func (e *FileError) Error() string {
	if e.Pos.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Pos.Line, e.Pos.Column, e.Msg)
}

// kind is the kind of a TOML value.
type kind uint8

const (
	aString kind = iota
	anInteger
	aFloat
	aBool
	anArray
	aTable
	somethingElse // dates and times
)

func (k kind) String() string {
	return [...]string{"a string", "an integer", "a number with a fraction", "true or false", "a list", "a table", "a date"}[k]
}

// value is a TOML value with its place, which go-toml's own decoding does not provide for values that it accepts.
type value struct {
	pos   Pos
	kind  kind
	text  string // as decoded (string) or as written (numbers)
	items []*value
	table *table
}

// table is a TOML table: entries in source order.
type table struct {
	pos     Pos
	entries []entry
}

type entry struct {
	name string
	pos  Pos
	val  *value
}

// maxDepth bounds the nesting of lists and tables. Nothing in a launch file needs more than four levels.
const maxDepth = 16

// parseTOML reads a document into tables: the root, with [[name]] as a list of tables and [name] as a table.
func parseTOML(name string, data []byte) (*table, error) {
	if err := checkTOML(name, data); err != nil {
		return nil, err
	}
	r := &tomlReader{file: name, lines: []uint32{0}}
	for i, c := range data {
		if c == '\n' {
			r.lines = append(r.lines, uint32(i)+1)
		}
	}
	r.p.Reset(data)
	root := &table{pos: Pos{1, 1}}
	at := root
	for r.p.NextExpression() {
		e := r.p.Expression()
		switch e.Kind {
		case unstable.KeyValue:
			en, err := r.entry(e, 0)
			if err != nil {
				return nil, err
			}
			at.entries = append(at.entries, en)
		case unstable.Table, unstable.ArrayTable:
			key, pos := r.key(e.Key())
			at = &table{pos: pos}
			root.add(key, pos, at, e.Kind == unstable.ArrayTable)
		}
	}
	if err := r.p.Error(); err != nil {
		return nil, &FileError{File: name, Msg: err.Error()}
	}
	return root, nil
}

// checkTOML makes go-toml check the document, including duplicate keys.
func checkTOML(name string, data []byte) error {
	var doc map[string]any
	err := toml.Unmarshal(data, &doc)
	var bad *toml.DecodeError
	switch {
	case errors.As(err, &bad):
		line, column := bad.Position()
		msg := strings.TrimPrefix(bad.Error(), "toml: ")
		if strings.Contains(msg, "too large to fit in a 64-bit signed integer") {
			msg += "; an argument may be given as { bytes = \"ff ff ff ff ff ff ff ff\" }"
		}
		return &FileError{File: name, Pos: Pos{line, column}, Msg: msg}
	case err != nil:
		return &FileError{File: name, Msg: strings.TrimPrefix(err.Error(), "toml: ")}
	}
	return nil
}

// add adds the table under key; if list is set, as another item of a list.
func (t *table) add(key string, pos Pos, sub *table, list bool) {
	v := &value{pos: pos, kind: aTable, table: sub}
	if !list {
		t.entries = append(t.entries, entry{key, pos, v})
		return
	}
	for i := len(t.entries) - 1; i >= 0; i-- { // usually it is the last
		if e := t.entries[i]; e.name == key && e.val.kind == anArray {
			e.val.items = append(e.val.items, v)
			return
		}
	}
	t.entries = append(t.entries, entry{key, pos, &value{pos: pos, kind: anArray, items: []*value{v}}})
}

type tomlReader struct {
	file  string
	lines []uint32 // the start of each line
	p     unstable.Parser
}

func (r *tomlReader) pos(n *unstable.Node) Pos {
	if n.Raw.Length == 0 {
		return Pos{}
	}
	// The parser's own Shape counts the lines from the start of the document each time.
	line := sort.Search(len(r.lines), func(i int) bool { return r.lines[i] > n.Raw.Offset })
	return Pos{line, int(n.Raw.Offset-r.lines[line-1]) + 1}
}

// key reads a key. Dotted keys become one name with dots, which no launch file uses.
func (r *tomlReader) key(it unstable.Iterator) (string, Pos) {
	var parts []string
	var pos Pos
	for it.Next() {
		if len(parts) == 0 {
			pos = r.pos(it.Node())
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), pos
}

func (r *tomlReader) entry(n *unstable.Node, depth int) (entry, error) {
	name, pos := r.key(n.Key())
	v, err := r.value(n.Value(), pos, depth)
	return entry{name, pos, v}, err
}

// value reads a value. near is its place if the parser does not provide one.
func (r *tomlReader) value(n *unstable.Node, near Pos, depth int) (*value, error) {
	v := &value{pos: r.pos(n), text: string(n.Data)}
	if v.pos.Line == 0 {
		v.pos = near
	}
	if depth > maxDepth {
		return nil, &FileError{File: r.file, Pos: v.pos, Msg: "lists and tables are nested too deep"}
	}
	switch n.Kind {
	case unstable.String:
		v.kind = aString
	case unstable.Integer:
		v.kind = anInteger
	case unstable.Float:
		v.kind = aFloat
	case unstable.Bool:
		v.kind = aBool
	case unstable.Array:
		v.kind = anArray
		for it := n.Children(); it.Next(); {
			item, err := r.value(it.Node(), v.pos, depth+1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
	case unstable.InlineTable:
		v.kind = aTable
		v.table = &table{pos: v.pos}
		for it := n.Children(); it.Next(); {
			e, err := r.entry(it.Node(), depth+1)
			if err != nil {
				return nil, err
			}
			v.table.entries = append(v.table.entries, e)
		}
	default:
		v.kind = somethingElse
	}
	return v, nil
}

// integer returns the value of a TOML integer.
func (v *value) integer() (int64, bool) {
	if v.kind != anInteger {
		return 0, false
	}
	i, err := strconv.ParseInt(strings.TrimPrefix(strings.ReplaceAll(v.text, "_", ""), "+"), 0, 64)
	return i, err == nil
}

// number returns the value of a TOML integer or float.
func (v *value) number() (float64, bool) {
	if i, ok := v.integer(); ok {
		return float64(i), true
	}
	if v.kind != aFloat {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(v.text, "_", ""), 64)
	return f, err == nil
}
