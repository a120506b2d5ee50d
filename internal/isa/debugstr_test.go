package isa

import (
	"fmt"
	"strings"
	"testing"
)

// TestDebugStrings checks that a name of .debug_str is found by its offset, in time proportional to its own length and
// not to that of the section, however often it is looked up.
func TestDebugStrings(t *testing.T) {
	const names = 2000
	var all strings.Builder
	var from []int64
	for i := range names {
		from = append(from, int64(all.Len()))
		fmt.Fprintf(&all, "function_%d\x00", i)
	}
	d := &debugStrings{bytes: []byte(all.String()), labels: map[string]int{"info": 0, "second": int(from[1])}, known: map[int64]string{}}
	got := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			d.known = map[int64]string{}
			for range 10 {
				for i, at := range from {
					if s := d.at("info", at); s != fmt.Sprintf("function_%d", i) {
						b.Fatalf("at %d is %q", at, s)
					}
				}
			}
		}
	})
	if bytes := got.AllocedBytesPerOp(); bytes > 100*int64(all.Len()) {
		t.Errorf("%d names of %d bytes, ten times each, took %d bytes", names, all.Len(), bytes)
	}
	for _, c := range []struct {
		label string
		off   int64
		want  string
	}{{"second", 0, "function_1"}, {"second", 9, "1"}, {"second", -12, ""}, {"info", -1, ""}, {"info", int64(all.Len()), ""}, {"none", 0, ""}} {
		if s := d.at(c.label, c.off); s != c.want {
			t.Errorf("%s%+d is %q, want %q", c.label, c.off, s, c.want)
		}
	}
}
