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

// ReadSource reads the lines of a source file from disk; nil if it is not a regular file or is too large.
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

// Sources are texts from which code was compiled and that are in no file. A nil *Sources has none.
type Sources struct {
	mu    sync.Mutex
	texts map[string]string
}

// Add adds a text. If two texts with one name differ, as for notebooks whose cells have the same number, neither is
// shown.
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

// Read returns the lines of a source: of an added text, or else of the file with that name.
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

// Name returns the name under which a text was added if a compiler prefixes it with a folder, and otherwise file
// itself.
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

// CachedSource caches the results of read.
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

// line returns a source line, "" if it is not available.
func (t *Text) line(file string, n int) string {
	return strings.TrimRight(line(t.Source, file, n), " \t\r")
}

// excerpt returns a source line ready to print, the spaces before its caret, and the caret. The caret is as long as the
// part of the line from byte from to byte to, and at least one character. Tabs become four spaces, control characters
// become ?, long lines are truncated.
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

// clean makes external text safe for a terminal.
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
