package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"fencepost.dev/fencepost/internal/cpu"
)

// maxLine is the maximum length of a line in a text, in bytes.
const maxLine = 1 << 16

// interner assigns numbers to names.
type interner struct {
	*Reader
	ids [cpu.Tables]map[string]uint32
}

func newInterner(r *Reader) interner {
	in := interner{Reader: r}
	for t := range in.ids {
		in.ids[t] = map[string]uint32{}
	}
	in.Names[cpu.Locations] = []string{""} // locations are numbered from 1
	return in
}

func (in *interner) id(t cpu.Table, name []byte) uint32 {
	id, ok := in.ids[t][string(name)]
	if !ok {
		id = uint32(len(in.Names[t]))
		in.ids[t][string(name)] = id
		in.Names[t] = append(in.Names[t], string(name))
	}
	return id
}

// event returns the event with the given fields.
func (in *interner) event(line int, thread []byte, op cpu.Op, object, location []byte) (cpu.Event, error) {
	if len(thread) == 0 {
		return cpu.Event{}, &Error{Line: line, Text: "the thread has no name"}
	}
	e := cpu.Event{Op: op}
	id := in.id(cpu.Threads, thread)
	if id < cpu.MaxThreads { // otherwise the checker reports it
		e.Thread = uint16(id)
	} else {
		e.Thread = cpu.MaxThreads
	}
	if t := op.Table(); t != cpu.NoObject {
		if len(object) == 0 {
			return e, &Error{Line: line, Text: fmt.Sprintf("%s of what?", op)}
		}
		e.Object = in.id(t, object)
	}
	if op == cpu.Part {
		if len(location) == 0 {
			return e, &Error{Line: line, Text: "part of what? The location names the variable"}
		}
		e.Location = in.id(cpu.Variables, location)
	} else if len(location) > 0 {
		e.Location = in.id(cpu.Locations, location)
	}
	if !in.check.event(&e) {
		return e, &Error{Line: line, Text: in.check.problem}
	}
	in.lines = append(in.lines, line)
	return e, nil
}

var stdOps = map[string]cpu.Op{"acq": cpu.Acquire, "rel": cpu.Release, "r": cpu.Read, "w": cpu.Write, "fork": cpu.Fork, "join": cpu.Join,
	"begin": cpu.Begin, "end": cpu.End}

type stdReader struct {
	interner
	from *bufio.Reader
	line int
}

func (s *stdReader) next(to []cpu.Event) (n int, err error) {
	for n < len(to) {
		line, err := s.from.ReadSlice('\n')
		s.line++
		if err != nil && (err != io.EOF || len(line) == 0) {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = &Error{Line: s.line, Text: fmt.Sprintf("the line is longer than %d bytes", maxLine)}
			}
			return n, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if to[n], err = s.parse(line); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (s *stdReader) parse(line []byte) (cpu.Event, error) {
	wrong := func(text string) (cpu.Event, error) {
		return cpu.Event{}, &Error{Line: s.line, Text: text}
	}
	thread, rest, ok := bytes.Cut(line, []byte("|"))
	if !ok {
		if s.check.known[cpu.Threads] == 0 {
			return wrong(`"thread|op(object)|location" is expected, or the header "thread,op,object,location"`)
		}
		return wrong(`"thread|op(object)|location" is expected`)
	}
	what, location, _ := bytes.Cut(rest, []byte("|"))
	name, object, call := bytes.Cut(bytes.TrimSpace(what), []byte("("))
	op, ok := stdOps[string(bytes.TrimSpace(name))]
	if !ok {
		return wrong(fmt.Sprintf("unknown operation %q; acq, rel, r, w, fork, join, begin and end are known", clip(name)))
	}
	if call {
		if object, ok = bytes.CutSuffix(object, []byte(")")); !ok {
			return wrong("a ) is missing behind the object")
		}
	}
	return s.event(s.line, bytes.TrimSpace(thread), op, bytes.TrimSpace(object), bytes.TrimSpace(location))
}

// clip shortens the text that an error quotes.
func clip(s []byte) []byte { return s[:min(len(s), 40)] }

type csvReader struct {
	interner
	csv *csv.Reader
}

// begin reads the header.
func (c *csvReader) begin() error {
	c.csv.ReuseRecord, c.csv.FieldsPerRecord = true, 4
	row, err := c.csv.Read()
	if err == nil && (row[0] != "thread" || row[1] != "op" || row[2] != "object" || row[3] != "location") {
		err = &Error{Line: 1, Text: `the header is not "thread,op,object,location"`}
	}
	return positioned(err)
}

// positioned converts errors of the CSV reader to those of this package.
func positioned(err error) error {
	if p := (*csv.ParseError)(nil); errors.As(err, &p) {
		return &Error{Line: max(p.Line, 1), Text: p.Err.Error()}
	}
	return err
}

func (c *csvReader) next(to []cpu.Event) (n int, err error) {
	for n < len(to) {
		row, err := c.csv.Read()
		if err != nil {
			return n, positioned(err)
		}
		line, _ := c.csv.FieldPos(0)
		op, ok := cpu.ParseOp(row[1])
		if !ok {
			return n, &Error{Line: line, Text: fmt.Sprintf("unknown operation %q; known are %s", clip([]byte(row[1])), strings.Join(cpu.OpNames(), ", "))}
		}
		if to[n], err = c.event(line, []byte(row[0]), op, []byte(row[2]), []byte(row[3])); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// WriteCSV writes events as CSV. It omits events that order nothing.
func WriteCSV(to *csv.Writer, names *Names, events []cpu.Event) error {
	for _, e := range events {
		row := []string{names.Of(cpu.Threads, uint32(e.Thread)), e.Op.String(), "", ""}
		if t := e.Op.Table(); t != cpu.NoObject {
			row[2] = names.Of(t, e.Object)
		}
		switch {
		case e.Op == cpu.None:
			continue
		case e.Op == cpu.Part:
			row[3] = names.Of(cpu.Variables, e.Location)
		case e.Location != 0:
			row[3] = names.Of(cpu.Locations, e.Location)
		}
		if err := to.Write(row); err != nil {
			return err
		}
	}
	return nil
}

// CSVHeader is the first line of a trace in CSV.
var CSVHeader = []string{"thread", "op", "object", "location"}
