package repair

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Edit replaces bytes of a source by a text.
type Edit struct {
	At, Len int
	Text    string
}

// Apply makes edits. Edits at one place are made in their order. It is an error if two overlap.
func Apply(src string, edits []Edit) (string, error) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int { return cmp.Compare(a.At, b.At) })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.At < at {
			return "", errors.New("two changes overlap")
		}
		b.WriteString(src[at:e.At])
		b.WriteString(e.Text)
		at = e.At + e.Len
	}
	b.WriteString(src[at:])
	return b.String(), nil
}
