package parsnip

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
)

// describe formats a reference as table 4.2 does. Threads are numbered from 1.
func describe(r ref) string {
	if r == none {
		return "-"
	}
	kind, next, index := "R", "F", "_"
	if r.write() {
		kind = "W"
	}
	if r.next() {
		next = "T"
	}
	if r.known() {
		index = fmt.Sprintf("[%d]", r.index())
	}
	return fmt.Sprintf("t%d,%s,%s,%s", r.thread()+1, kind, next, index)
}

// TestTable42 runs the trace of table 4.2 (section 4.2.9). After each step it compares the references, the table
// entries that they refer to, and the contents of software and buffers. It differs from the printed table in these
// steps. At step 6 the entry of t2 is 0, as in the text (the table prints 1). Step 6 leaves t1's read in the buffer, as
// in section 4.3.1. After a handler (steps 1, 9, 14) software is complete, where the table omits what the handler need
// not write. Step 11 does not erase t1's old read. Step 13 is resolved by the secondary reference.
func TestTable42(t *testing.T) {
	const x = 0
	var races []cpu.Race
	o := Thesis()
	o.Predict = false
	d := New(o, func(r cpu.Race) { races = append(races, r) })
	do := func(thread uint16, op cpu.Op, object uint32) {
		d.Events([]cpu.Event{{Thread: thread - 1, Op: op, Object: object}})
	}
	// t3 fills its table with the clocks 1 to 15. Then it advances to 16, which gets entry 4.
	const other = 1 << 10 // variables in other lines
	for i := range uint32(15) {
		do(3, cpu.Write, other+i)
		do(3, cpu.Release, 9)
	}
	do(3, cpu.Write, other+4)
	do(3, cpu.Write, other+20)
	count := func(thread, index int) string {
		in := &d.tables[thread-1]
		return fmt.Sprintf("(%d,%d)", in.clocks[index]>>12, in.counts[index])
	}
	if got := count(3, 4); got != "(16,1)" {
		t.Fatalf("t3's entry 4 is %s at first", got)
	}
	history := func() string {
		var out []string
		epoch := func(e order.Epoch) string { return fmt.Sprintf("%d@t%d", e>>12, e.Thread()+1) }
		if w := d.software.Written(x); w != 0 {
			out = append(out, "W "+epoch(w))
		}
		d.software.Reads(x, func(e order.Epoch) bool { out = append(out, "R "+epoch(e)); return true })
		for _, b := range d.buffers {
			for _, p := range b {
				if p.x == x {
					out = append(out, "buffer "+epoch(p.epoch))
				}
			}
		}
		return strings.Join(out, ", ")
	}
	for _, s := range []struct {
		step      int
		thread    uint16
		op        cpu.Op
		object    uint32
		primary   string
		secondary string
		entries   string // t1's 0 and 1, t2's 0, t3's 4
		software  string
		by        Source
		race      string
	}{
		{1, 1, cpu.Write, x, "t1,W,F,[0]", "-", "(1,1) (0,0) (0,0) (16,1)", "W 1@t1", Missing, ""},
		{2, 1, cpu.Read, x, "t1,W,F,[0]", "-", "(1,1) (0,0) (0,0) (16,1)", "W 1@t1", Local, ""},
		{3, 1, cpu.Release, 1, "t1,W,F,[0]", "-", "(1,1) (0,0) (0,0) (16,1)", "W 1@t1", 0, ""},
		{4, 1, cpu.Read, x, "t1,R,T,[1]", "t1,W,F,[0]", "(1,1) (2,1) (0,0) (16,1)", "W 1@t1", Local, ""},
		{5, 2, cpu.Acquire, 1, "t1,R,T,[1]", "t1,W,F,[0]", "(1,1) (2,1) (0,0) (16,1)", "W 1@t1", 0, ""},
		{6, 2, cpu.Read, x, "t2,R,T,[0]", "t1,W,T,[0]", "(1,1) (2,0) (1,1) (16,1)", "W 1@t1, buffer 2@t1", Remote, ""},
		{7, 2, cpu.Release, 1, "t2,R,T,[0]", "t1,W,T,[0]", "(1,1) (2,0) (1,1) (16,1)", "W 1@t1, buffer 2@t1", 0, ""},
		{8, 3, cpu.Acquire, 1, "t2,R,T,[0]", "t1,W,T,[0]", "(1,1) (2,0) (1,1) (16,1)", "W 1@t1, buffer 2@t1", 0, ""},
		{9, 3, cpu.Write, x, "t3,W,F,[4]", "-", "(1,0) (2,0) (1,0) (16,2)", "W 16@t3", Software, "t1 reads, t3 writes"},
		{10, 3, cpu.Release, 1, "t3,W,F,[4]", "-", "(1,0) (2,0) (1,0) (16,2)", "W 16@t3", 0, ""},
		{11, 3, cpu.Read, x, "t3,R,T,_", "t3,W,F,[4]", "(1,0) (2,0) (1,0) (16,2)", "W 16@t3, buffer 17@t3", Local, ""},
		{12, 3, cpu.Release, 2, "t3,R,T,_", "t3,W,F,[4]", "(1,0) (2,0) (1,0) (16,2)", "W 16@t3, buffer 17@t3", 0, ""},
		{13, 3, cpu.Write, x, "t3,W,F,_", "-", "(1,0) (2,0) (1,0) (16,1)", "W 16@t3, buffer 18@t3", Capability, ""},
		{14, 2, cpu.Read, x, "t2,R,T,[0]", "-", "(1,0) (2,0) (2,1) (16,1)", "W 18@t3, R 2@t2", Software, "t3 writes, t2 reads"},
	} {
		before := d.Counts.Resolved
		races = nil
		do(s.thread, s.op, s.object)
		first, second := none, none
		if l := d.content(primary, x); l != nil {
			first = l.get(x)
		}
		if l := d.content(secondary, x); l != nil {
			second = l.get(x)
		}
		if describe(first) != s.primary || describe(second) != s.secondary {
			t.Errorf("step %d: the references are %s and %s, not %s and %s", s.step, describe(first), describe(second), s.primary, s.secondary)
		}
		if got := strings.Join([]string{count(1, 0), count(1, 1), count(2, 0), count(3, 4)}, " "); got != s.entries {
			t.Errorf("step %d: the tables have %s, not %s", s.step, got, s.entries)
		}
		if got := history(); got != s.software {
			t.Errorf("step %d: software has %s, not %s", s.step, got, s.software)
		}
		if s.op == cpu.Read || s.op == cpu.Write {
			before[s.by]++
		}
		if before != d.Counts.Resolved {
			t.Errorf("step %d is not resolved by source %d", s.step, s.by)
		}
		var got []string
		word := map[bool]string{false: "reads", true: "writes"}
		for _, r := range races {
			got = append(got, fmt.Sprintf("t%d %s, t%d %s", r.Earlier+1, word[r.Wrote], r.Thread+1, word[r.Write]))
		}
		if want := slices.DeleteFunc([]string{s.race}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("step %d: the races are %v, not %v", s.step, got, want)
		}
	}
}
