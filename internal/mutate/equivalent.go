package mutate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ListName is the file in a package's folder that lists its equivalent mutants: those that change nothing a test may ask
// for, each with the argument. An entry is a function, the lines before, the lines after, and the argument:
//
//	(*Detector).fence
//	- if n < len(s) {
//	+ if n <= len(s) {
//	Past the end lies a sentinel, which matches nothing.
//
// Entries are separated by empty lines; lines that begin with # are comments. What is declared outside functions is under
// "outside functions".
const ListName = "testdata/equivalent.txt"

// entry is an argued mutant. It names no line number, so that it stays true while the file around it changes.
type entry struct {
	fn, before, after string
	why               string
	line              int // in the list
}

func (m *Mutant) entry() entry { return entry{fn: m.Func, before: m.Old, after: m.New} }

// readList reads a package's list; a package without one has none.
func readList(dir string) ([]entry, error) {
	name := filepath.Join(dir, ListName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []entry
	e := entry{}
	flush := func() error {
		if e != (entry{}) && (e.fn == "" || e.before == e.after || e.why == "") {
			return fmt.Errorf(`%s:%d: an entry is a function, "- before", "+ after" and the argument`, name, e.line)
		} else if e != (entry{}) {
			list = append(list, e)
		}
		e = entry{}
		return nil
	}
	for i, line := range strings.Split(string(text), "\n") {
		before, isBefore := strings.CutPrefix(line, "- ")
		after, isAfter := strings.CutPrefix(line, "+")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			if err := flush(); err != nil {
				return nil, err
			}
		case isBefore && e.before == "":
			e.before = oneLine(before)
		case isAfter && e.after == "":
			e.after = oneLine(after)
		case e.fn == "":
			e.fn, e.line = line, i+1
		default:
			e.why = strings.TrimSpace(e.why + " " + line)
		}
	}
	return list, flush()
}

// argued reports whether the list holds the mutant.
func argued(list []entry, m *Mutant) bool {
	for _, e := range list {
		if e.fn == m.Func && e.before == m.Old && e.after == m.New {
			return true
		}
	}
	return false
}
