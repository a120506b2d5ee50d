package report

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxSource bounds the source files that are shown.
const maxSource = 16 << 20

// ReadSource reads the lines of a source file from disk; nil when it is not a regular file of bearable size.
func ReadSource(name string) []string {
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSource {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// Sources are texts that code was compiled from and that are in no file. A nil *Sources has none.
type Sources struct {
	mu    sync.Mutex
	texts map[string]string
}

// Add adds a text. Where two differ under one name, as of notebooks whose cells have the same number, neither is shown.
func (s *Sources) Add(name, text string) {
	if s == nil || len(text) > maxSource {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = map[string]string{}
	}
	if old, ok := s.texts[name]; ok && old != text {
		text = ""
	}
	s.texts[name] = text
}

// Read gives the lines of a source: what was added, else what the file of that name holds.
func (s *Sources) Read(name string) []string {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if text, ok := s.texts[name]; ok {
			return strings.Split(text, "\n")
		}
	}
	return ReadSource(name)
}

// Name gives the name under which a text was added that a compiler calls by it with a folder before it, else the name itself.
func (s *Sources) Name(file string) string {
	if s == nil {
		return file
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.texts[filepath.Base(file)]; ok {
		return filepath.Base(file)
	}
	return file
}

// CachedSource remembers what read gave for each file.
func CachedSource(read func(name string) []string) func(name string) []string {
	if read == nil {
		return nil
	}
	cache := make(map[string][]string)
	return func(name string) []string {
		lines, ok := cache[name]
		if !ok {
			lines = read(name)
			cache[name] = lines
		}
		return lines
	}
}

// line gives a source line, "" when it is not to be had.
func (t *Text) line(file string, n int) string {
	return strings.TrimRight(line(t.Source, file, n), " \t\r")
}

// excerpt gives a source line ready to print, the spaces before its caret, and the caret, as long as the part of the line from byte
// from to byte to, and at least one character. Tabs become four spaces, control characters become ?, long lines are cut.
func excerpt(line string, from, to int) (shown, space, caret string) {
	const width = 96
	var text []rune
	at, behind := -1, -1
	for i, r := range line {
		if at < 0 && i >= from {
			at = len(text)
		}
		if behind < 0 && i >= to {
			behind = len(text)
		}
		switch {
		case r == '\t':
			text = append(text, ' ', ' ', ' ', ' ')
		case unicode.IsPrint(r):
			text = append(text, r)
		default:
			text = append(text, '?')
		}
	}
	if at < 0 {
		at = len(text)
	}
	if behind < 0 {
		behind = len(text)
	}
	cut := 0
	if at > width-20 {
		cut = at - width/2
	}
	end := min(len(text), cut+width)
	shown = string(text[cut:end])
	caret = "^" + strings.Repeat("~", max(min(behind, end)-at-1, 0))
	if cut > 0 {
		shown, at = "..."+shown, at+3
	}
	if end < len(text) {
		shown += "..."
	}
	return shown, strings.Repeat(" ", at-cut), caret
}

// clean makes text that came from outside safe for a terminal.
func clean(s string) string {
	ok := utf8.ValidString(s)
	for _, r := range s {
		ok = ok && (unicode.IsPrint(r) || r == '\n' || r == '\t')
	}
	if ok {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '?'
	}, s)
}
