package detect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/event"
)

// Watch selects the races that are reported: those between two watched threads, on watched memory. All accesses are
// executed and judged nevertheless, since accesses that are not watched may order those that are. (Detector hirace
// skips those of other threads, because accesses order nothing there.) A nil Watch selects all races.
type Watch struct { // numbers within the grid; none: all blocks
	Blocks  []Range // numbers within a block; none: all threads
	Threads []Range // of a block, by number; none: all
	// Object says whether memory is watched; nil: all is. It is called while the racing operation is being judged.
	Object func(space event.Space, launch uint32, address uint64) bool
}

// Range is the numbers from First to Last, both included.
type Range struct{ First, Last uint64 }

// Within reports whether a number is in one of the ranges, or that the list is empty.
func Within(list []Range, n uint64) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(r Range) bool { return r.First <= n && n <= r.Last })
}

// Thread reports whether a thread of a launch is watched.
func (w *Watch) Thread(l *event.Launch, warp uint32, lane int) bool {
	per := max(l.WarpsPerBlock(), 1)
	return Within(w.Blocks, uint64(warp/per)) && Within(w.Threads, uint64(warp%per*32)+uint64(lane))
}

// Races reports whether a race of two accesses is reported. For a host operation only the memory decides.
func (w *Watch) Races(earlier, later *Access) bool {
	if w == nil {
		return true
	}
	for _, a := range []*Access{earlier, later} {
		if a.Host == "" && !w.Thread(&a.Launch, a.Warp, a.Lane) {
			return false
		}
	}
	a := later
	if a.Host != "" {
		a = earlier
	}
	return w.Object == nil || w.Object(a.Space, a.Launch.ID, max(earlier.Address, later.Address))
}

// Text formats the range as "3" or "0-3". With the prefix "0x" the numbers are hexadecimal.
func (r Range) Text(prefix string) string {
	base := 10
	if prefix == "0x" {
		base = 16
	}
	text := prefix + strconv.FormatUint(r.First, base)
	if r.First != r.Last {
		text += "-" + prefix + strconv.FormatUint(r.Last, base)
	}
	return text
}

// ParseRanges parses numbers and ranges separated by commas: "0-3,8", or "0x100-0x1ff". Numbers have at most the given
// number of bits.
func ParseRanges(text string, bits int) ([]Range, error) {
	var list []Range
	for _, word := range strings.Split(text, ",") {
		first, last, several := strings.Cut(word, "-")
		if !several {
			last = first
		}
		from, err := parse(first, bits)
		to, err2 := parse(last, bits)
		if err != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("%q is no number and no range of numbers, such as 0-3", word)
		}
		list = append(list, Range{from, to})
	}
	return list, nil
}

// parse parses a number, hexadecimal after 0x.
func parse(text string, bits int) (uint64, error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		return strconv.ParseUint(digits, 16, bits)
	}
	return strconv.ParseUint(text, 10, bits)
}
