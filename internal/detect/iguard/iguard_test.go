package iguard

import (
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
)

// notesOf are the classes of races that a detector finds on a litmus line, sorted.
func notesOf(d detect.Detector, line string) string {
	b := litmus.Launch(2)
	litmus.Do(b, line)
	d.Events(b)
	var out []string
	for _, f := range d.Findings() {
		at := strings.LastIndex(f.Message, "(iguard: ")
		out = append(out, strings.TrimSuffix(f.Message[at+9:], ")"))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestRules(t *testing.T) {
	for _, c := range []struct{ what, line, want string }{
		{"first accesses", "0 st; 1 st 1", ""},
		{"program order", "0 st; 0 ld; 0 st", ""},
		{"barrier", "0 st; 0 bar; 1 ld; 0 bar; 0 st", ""},
		{"shared memory, barrier", "0 sts; 0 bar; 1 lds", ""},
		{"shared memory", "0 sts; 1 lds", "missing block fence"},
		{"shared memory of two blocks", "0 sts; 2 lds", ""},
		{"reads alone", "0 ld; 1 ld; 2 ld", ""},
		{"block fence missing", "0 stv; 1 ldv", "missing block fence"},
		{"block fence", "0 stv; 0 fenceb; 1 ldv", ""},
		{"device fence missing", "0 stv; 0 fenceb; 2 ldv", "missing device fence"},
		{"device fence", "0 stv; 0 fence; 2 ldv", ""},
		{"weak", "0 st; 0 fence; 2 ldv", "not strong access"},
		{"scoped atomic", "0 addb; 2 add", "scoped atomic"},
		{"atomics", "0 add; 2 add; 1 addb", ""},
		{"write after read by another", "0 ldv; 1 stv", "missing block fence"},
		{"one reader: the first is forgotten", "0 ldv; 1 ldv; 1 stv", ""},
		{"lock", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 stv; 2 fence; 2 exch 9", ""},
		{"no lock", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 stv", "missing common lock"},
		{"PreDataR, figure 10", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 stv; 2 fence; 2 exch 9; 2 stv", ""},
		{"PreDataR, figure 10, the other order", "2 stv; 2 fence; 0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9", "missing common lock"},
		{"lanes that parted", "0.0 st; 0.1 ld", "lanes that had parted"},
		{"lanes that met", "0.0 st; 0 sync; 0.1 ld", ""},
		{"lanes of a barrier", "0.0 st; 0 bar; 0.1 ld", ""},
		{"lanes with atomics", "0.0 add; 0.1 add", ""},
	} {
		if got := notesOf(Spec.New(detect.Config{}), c.line); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.what, c.line, got, c.want)
		}
	}
	off, err := detect.Choose([]detect.Spec{Spec}, "iguard:its=off")
	if err != nil {
		t.Fatal(err)
	}
	if got := notesOf(off.New(detect.Config{}), "0.0 st; 0.1 ld"); got != "" {
		t.Errorf("without thread scheduling lanes race: %s", got)
	}
}
