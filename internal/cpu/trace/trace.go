// Package trace reads traces of CPU programs in three formats, and writes two of them. It trusts no file: a Reader
// returns events that a program can have made, as far as detectors depend on that, or an error with a position.
//
// # STD
//
// The text format of RAPID, one event a line: "thread|op(object)|location", where op is acq, rel, r, w, fork, join,
// begin or end. The location may be missing, and so may the object of begin and end. Blank lines are ignored.
//
// # CSV
//
// Comma-separated values (RFC 4180) with the header "thread,op,object,location". The operations have the names that
// cpu.ParseOp accepts. Object is empty for begin and end. Location is empty if it is unknown.
//
// # Binary, version 1
//
// The file consists of the line "fencepost cpu 1\n" and blocks. A block is a header and a content of at most 1 MiB. The
// header is three little-endian numbers of 4 bytes: the type, the length of the content, and the CRC-32C of the
// content. The types are:
//
//	E  events of 8 bytes: from the lowest bit on the operation (4 bits), the thread (12), the location (20) and the object (28)
//	W  events with larger numbers, of 12 bytes: operation (2 bytes), thread (2), location (4), object (4)
//	N  names: a byte for the table, and for each of the next numbers of that table the length of its name (uvarint) and the name
//	Z  the end: the number of events (8 bytes); a file without it is incomplete
//
// Operations and tables are numbered as in package cpu. Threads, variables, synchronisation objects and locations are
// numbered in the order of first use: the largest valid number in an event is the next unused one. So the size of what
// was read bounds the memory.
package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"

	"fencepost.dev/fencepost/internal/cpu"
)

// Magic is the start of a binary trace.
const Magic = "fencepost cpu 1\n"

// Error is an error in a trace, with its place.
type Error struct {
	Line   int   // from 1; 0 in a binary trace
	Offset int64 // of the block, if the trace is binary
	Text   string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Text)
	}
	return fmt.Sprintf("byte %d: %s", e.Offset, e.Text)
}

// Names are the names of numbers, by table and number.
type Names [cpu.Tables][]string

// Of returns the name of a number, or a description if it has none. Locations are numbered from 1.
func (n *Names) Of(t cpu.Table, id uint32) string {
	if int(id) < len(n[t]) && n[t][id] != "" {
		return n[t][id]
	}
	return fmt.Sprintf("%s%d", [cpu.Tables]string{"", "T", "V", "L", "location_"}[t], id)
}

// Distinct returns names that are unique within each table, except for locations. count returns the number of objects
// in a table.
func (n *Names) Distinct(count func(cpu.Table) int) *Names {
	out := &Names{cpu.Locations: n[cpu.Locations]}
	for t := cpu.Threads; t < cpu.Locations; t++ {
		taken := map[string]bool{}
		for id := range uint32(count(t)) {
			name := n.Of(t, id)
			for taken[name] {
				name = fmt.Sprintf("%s#%d", name, id)
			}
			taken[name] = true
			out[t] = append(out[t], name)
		}
	}
	return out
}

// Reader reads a trace.
type Reader struct {
	// Names are the names read so far.
	Names  Names
	decode func([]cpu.Event) (int, error)
	lines  []int // lines of the events of the last Next; nil if the trace is binary
	check  checker
	count  uint64
}

// Looks reports whether a file with these first bytes may be a trace of a CPU program.
func Looks(begin []byte) bool {
	if bytes.HasPrefix(begin, []byte(Magic)) {
		return true
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(bytes.TrimPrefix(begin, byteOrder), " \t\r\n"), []byte("\n"))
	return isHeader(line) || isSTD(line)
}

// byteOrder is the byte order mark that may precede a text in UTF-8.
var byteOrder = []byte("\ufeff")

func isHeader(line []byte) bool { return bytes.HasPrefix(line, []byte("thread,op,object")) }

// isSTD reports whether a line has the form of an event.
func isSTD(line []byte) bool {
	_, rest, ok := bytes.Cut(line, []byte("|"))
	op, _, _ := bytes.Cut(rest, []byte("|"))
	op, _, _ = bytes.Cut(op, []byte("("))
	_, known := stdOps[string(bytes.TrimSpace(op))]
	return ok && known
}

// NewReader returns a Reader for a trace in any of the formats.
func NewReader(from io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(from, maxLine)
	begin, err := in.Peek(4096)
	if err != nil && err != io.EOF && len(begin) == 0 {
		return nil, err
	}
	if rest, ok := bytes.CutPrefix(begin, byteOrder); ok {
		begin = rest
		if _, err := in.Discard(len(byteOrder)); err != nil {
			return nil, err
		}
	}
	r := &Reader{}
	switch {
	case bytes.HasPrefix(begin, []byte(Magic)):
		b := &binaryReader{Reader: r, from: in}
		r.decode = b.next
		return r, b.begin()
	case isHeader(bytes.TrimLeft(begin, " \t\r\n")):
		c := &csvReader{interner: newInterner(r), csv: csv.NewReader(in)}
		r.decode = c.next
		return r, c.begin()
	}
	s := &stdReader{interner: newInterner(r), from: in}
	r.decode = s.next
	return r, nil
}

// Next stores the next events in to and returns their number. The error is io.EOF at the end of the trace, an *Error,
// or one of the underlying reader. The events before the error are valid.
func (r *Reader) Next(to []cpu.Event) (int, error) {
	r.lines = r.lines[:0]
	n, err := r.decode(to)
	r.count += uint64(n)
	return n, err
}

// Line returns the line of event i of the last Next, or 0 if the trace is binary.
func (r *Reader) Line(i int) int {
	if i < len(r.lines) {
		return r.lines[i]
	}
	return 0
}

// Events is the number of events read so far.
func (r *Reader) Events() uint64 { return r.count }

// Count is the number of objects of a table in the events so far.
func (r *Reader) Count(t cpu.Table) int { return int(r.check.known[t]) }
