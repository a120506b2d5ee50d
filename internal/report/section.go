package report

import (
	"fmt"

	"fencepost.dev/fencepost/internal/event"
)

// Section is a critical section.
type Section struct {
	Lock     Access        // Space, Address and Object of the lock, Block and Thread of its holder
	From, To []event.Frame // of the acquire and of the release, innermost first; To is empty if it was not seen
}

// ends returns the start and end of a section, in the function that contains both: lock() may be a function of its own
// that is called there. Calls in the toolkit's headers do not count. ended is false if the end was not seen.
func (s *Section) ends() (from, to event.Frame, ended bool) {
	if len(s.From) == 0 || len(s.To) == 0 {
		return userFrame(s.From), event.Frame{}, false
	}
	x, y := s.From[userIndex(s.From):], s.To[userIndex(s.To):]
	i, j := len(x)-1, len(y)-1
	for i > 0 && j > 0 && x[i] == y[j] {
		i, j = i-1, j-1
	}
	return x[i], y[j], true
}

// span names the source lines of a section: "a.cu:17 to 19 in run".
func (t *Text) span(s *Section) string {
	from, to, ended := s.ends()
	switch {
	case !ended:
		return t.Where(from)
	case from.File == "" || from.Line == 0 || from.File != to.File || from.Function != to.Function:
		return t.Where(from) + " to " + t.Where(to)
	}
	at := t.Where(event.Frame{File: from.File, Line: from.Line})
	return fmt.Sprintf("%s to %d in %s", at, to.Line, ShortName(BareName(from.Function)))
}

// order describes two critical sections in their order.
func (t *Text) order(first, second *Section) string {
	return fmt.Sprintf("%s had lock %s at %s, before %s had it at %s; the other way round nothing orders the accesses",
		who(&first.Lock), t.address(&first.Lock), t.span(first), who(&second.Lock), t.span(second))
}

type jsonSection struct {
	Lock    string    `json:"lock"`
	Address string    `json:"address"`
	Block   [3]uint32 `json:"block"`
	Thread  [3]uint32 `json:"thread"`
	File    string    `json:"file"`
	Line    int       `json:"line"`
	EndLine int       `json:"end_line"`
}

func sectionJSON(s *Section) jsonSection {
	from, to, _ := s.ends()
	return jsonSection{Lock: variable(&s.Lock.Object), Address: fmt.Sprintf("%#x", s.Lock.Address), Block: dim(s.Lock.Block),
		Thread: dim(s.Lock.Thread), File: from.File, Line: from.Line, EndLine: to.Line}
}
