package ptx

import (
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// FuzzParse checks that no text makes Parse panic or lose itself, that errors lie in the text and in order, and that
// what parses is the same after printing.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"hand", "errors"} {
		for _, src := range files(f, dir) {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src string) { checkAny(t, src) })
}

func checkAny(t *testing.T, src string) {
	m, err := Parse("fuzz", src)
	if err == nil {
		roundTrip(t, "fuzz", src)
		return
	}
	var l ErrorList
	if !errors.As(err, &l) || len(l) == 0 || m == nil {
		t.Fatalf("error %#v, module %v", err, m)
	}
	if len(l) > len(src)+8 {
		t.Fatalf("%d errors in %d bytes", len(l), len(src))
	}
	for i, e := range l {
		if e.Pos.Line < 1 || e.Pos.Col < 1 {
			t.Fatalf("error %v has no place", e)
		}
		if i > 0 && e.Pos == l[i-1].Pos && e.Msg == l[i-1].Msg {
			t.Fatalf("reported twice: %v", e)
		}
	}
	// What could be parsed of a broken module can be printed, and is read back without error but for what the module
	// lacks as a whole.
	text := printed(t, m)
	_, err = Parse("fuzz", text)
	if err != nil && len(m.Targets) > 0 && m.Version != (Version{}) {
		t.Fatalf("what was read of a broken module does not parse: %v\n%s", err, text)
	}
}

// TestShuffled combines pieces of the hand-written modules at random. The results are closer to the grammar than those
// of the fuzzer.
func TestShuffled(t *testing.T) {
	word := regexp.MustCompile(`[\w$%.]+|\s+|"[^"\n]*"|[^\w\s]`)
	var words []string
	for _, dir := range []string{"hand", "errors"} {
		sources := files(t, dir)
		for _, path := range slices.Sorted(maps.Keys(sources)) {
			words = append(words, word.FindAllString(sources[path], -1)...)
		}
	}
	rounds := 20000
	if testing.Short() {
		rounds = 500
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		var b strings.Builder
		b.WriteString(".version 1.0\n.target sm_10\n")
		for range 1 + r.IntN(12) {
			from := r.IntN(len(words))
			for i := range 1 + r.IntN(30) {
				if r.IntN(40) > 0 {
					b.WriteString(words[(from+i)%len(words)])
				}
			}
		}
		if checkAny(t, b.String()); t.Failed() {
			t.Fatalf("round %d:\n%s", round, b.String())
		}
	}
}
