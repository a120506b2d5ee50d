package ptx

import (
	"fmt"
	"sort"
	"strings"
)

// Error is an error in a PTX text.
type Error struct {
	File string
	Pos  Pos
	Msg  string
	// Source is the place in the source language, and the calls and inlined calls that lead to it, innermost first. It
	// is empty without debugging information, and until something that reads that information has set it.
	Source []Source
}

// Source is a place in the source language, from debugging information.
type Source struct {
	File         string
	Line, Column int    // Column is 0 if it is not known
	Function     string // "" if it is not known
}

func (e *Error) Error() string {
	at := fmt.Sprintf("%s:%d:%d", e.File, e.Pos.Line, e.Pos.Col)
	if len(e.Source) == 0 {
		return at + ": " + e.Msg
	}
	places := make([]string, len(e.Source))
	for i, s := range e.Source {
		places[i] = s.String()
	}
	return fmt.Sprintf("%s: %s (%s)", strings.Join(places, ", called from "), e.Msg, at)
}

// String returns "reduce.cu:12:7 in reduce".
func (s Source) String() string {
	text := fmt.Sprintf("%s:%d", s.File, s.Line)
	if s.Column > 0 {
		text += fmt.Sprintf(":%d", s.Column)
	}
	if s.Function != "" {
		text += " in " + s.Function
	}
	return text
}

// ErrorList is all errors of a text, by place.
type ErrorList []*Error

func (l ErrorList) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the list by file and place.
func (l ErrorList) Sort() {
	sort.SliceStable(l, func(i, j int) bool {
		a, b := l[i], l[j]
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line < b.Pos.Line
		}
		return a.Pos.Col < b.Pos.Col
	})
}

// Err returns the list as an error, nil if it is empty.
func (l ErrorList) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
