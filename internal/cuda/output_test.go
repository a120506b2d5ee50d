package cuda

import (
	"context"
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
)

// TestOutputKeepsWholeLines fills the buffer of kernel output up to its limit and past it.
func TestOutputKeepsWholeLines(t *testing.T) {
	for _, c := range []struct {
		writes []string
		want   string
		lost   uint64
	}{
		{[]string{"one\n", "two\n"}, "one\ntwo\n", 0},
		{[]string{"12345678\n", "abcdef\n"}, "12345678\nabcdef\n", 0}, // 16 bytes, the limit
		{[]string{"12345678\n", "abcdefg\n"}, "abcdefg\n", 1},
		{[]string{"12345678\n", "abcdef\n", "last"}, "abcdef\nlast", 1},
		{[]string{"1\n", "2\n", "3\n", "4\n", "fifth and long\n"}, "fifth and long\n", 4},
		{[]string{"1\n", "2\n", "3\n", "4\n", "fifth and lon\n"}, "4\nfifth and lon\n", 3},
		{[]string{"1\n", "a line longer than that\n"}, "", 2},
		{[]string{"1\n", "a line without an end"}, "", 2},
		{[]string{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "a\nb\nc\nd\ne\nf\ng\nh\n", "i\nj\n"}, "c\nd\ne\nf\ng\nh\ni\nj\n", 11},
	} {
		o := output{limit: 16}
		for _, w := range c.writes {
			if n, err := fmt.Fprint(&o, w); n != len(w) || err != nil {
				t.Errorf("%q: wrote %d, %v", w, n, err)
			}
			if len(o.text) > 32 {
				t.Errorf("%q: the buffer holds %d bytes", w, len(o.text))
			}
		}
		if got := string(o.take()); got != c.want || o.lost != c.lost {
			t.Errorf("%q gives %q and %d lost, want %q and %d", c.writes, got, o.lost, c.want, c.lost)
		}
		if again := o.take(); len(again) != 0 {
			t.Errorf("%q stays", again)
		}
	}
}

// TestOutputLimit asks a process for its output, under the limit it begins with and those it sets.
func TestOutputLimit(t *testing.T) {
	d, _ := newTestDevice(t)
	p := newProcess(context.Background(), 1)
	p.open(d)
	line := fmt.Appendf(nil, "%01023d\n", 7)
	lost := uint64(0)
	for _, c := range []struct{ limit, value, kept uint64 }{
		{0, 0, 16 << 10},
		{2, 64 << 20, 16 << 10}, // another limit
		{1, 1 << 20, 16 << 10},  // never less than at first
		{1, 18 << 20, 18 << 10},
		{1, 1 << 40, 20 << 10},
	} {
		p.handle(context.Background(), &request{op: calls.SetLimit, args: []uint64{c.limit, c.value}})
		for range 20 << 10 {
			p.ctx.printf.Write(line)
		}
		r := p.handle(context.Background(), &request{op: calls.StreamSynchronize, args: []uint64{0}})
		if want := int(c.kept) * len(line); r.waiting != want {
			t.Errorf("limit %d: %d bytes wait, want %d", c.value, r.waiting, want)
		}
		if r = p.handle(context.Background(), &request{op: calls.Output}); len(r.blob) != int(c.kept)*len(line) || r.waiting != 0 {
			t.Errorf("limit %d: %d bytes, %d wait", c.value, len(r.blob), r.waiting)
		}
		lost += 20<<10 - c.kept
		if d.LostOutput() != lost {
			t.Errorf("limit %d: %d lines lost, want %d", c.value, d.LostOutput(), lost)
		}
	}
	if p.out.limit != outputMost {
		t.Errorf("the limit is %d", p.out.limit)
	}
}
