package trace

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/oracle"
)

// readAll reads a trace in small steps. lines has the line of each event.
func readAll(from string) (events []cpu.Event, lines []int, names *Names, err error) {
	r, err := NewReader(iotest.OneByteReader(strings.NewReader(from)))
	if err != nil {
		return nil, nil, nil, err
	}
	buffer := make([]cpu.Event, 3)
	for {
		n, err := r.Next(buffer)
		events = append(events, buffer[:n]...)
		for i := range n {
			lines = append(lines, r.Line(i))
		}
		if errors.Is(err, io.EOF) {
			return events, lines, &r.Names, nil
		}
		if err != nil {
			return events, lines, &r.Names, err
		}
	}
}

const std = "main|begin()|0\n\n main | fork(T1) | a.c:1 \r\nT1|begin\nT1|acq(m)|a.c:2\nT1|w(x)|a.c:3\nmain|r(y)\nT1|rel(m)|a.c:2\nT1|end|9\nmain|join(T1)|a.c:1"

const csvText = "thread,op,object,location\nmain,begin,,0\nmain,fork,T1,a.c:1\nT1,begin,,\nT1,acquire,m,a.c:2\nT1,write,\"x\",a.c:3\nmain,read,y,\n" +
	"T1,release,m,a.c:2\nT1,end,,9\nmain,join,T1,a.c:1\n"

func TestTexts(t *testing.T) {
	const a, b = 0, 1
	want := []cpu.Event{
		{Op: cpu.Begin, Thread: a, Location: 1},
		{Op: cpu.Fork, Thread: a, Object: b, Location: 2},
		{Op: cpu.Begin, Thread: b},
		{Op: cpu.Acquire, Thread: b, Location: 3},
		{Op: cpu.Write, Thread: b, Location: 4},
		{Op: cpu.Read, Thread: a, Object: 1},
		{Op: cpu.Release, Thread: b, Location: 3},
		{Op: cpu.End, Thread: b, Location: 5},
		{Op: cpu.Join, Thread: a, Object: b, Location: 2},
	}
	for name, text := range map[string]string{"STD": std, "CSV": csvText, "STD with a byte order mark": "\ufeff" + std, "CSV with a byte order mark": "\ufeff" + csvText} {
		events, lines, names, err := readAll(text)
		if err != nil || !slices.Equal(events, want) {
			t.Errorf("%s: %v, %v", name, events, err)
			continue
		}
		first := map[string][]int{"STD": {1, 3, 4, 5}, "CSV": {2, 3, 4, 5}}[name[:3]]
		if !slices.Equal(lines[:4], first) {
			t.Errorf("%s: lines %v", name, lines)
		}
		if got := names.Of(cpu.Threads, b) + names.Of(cpu.Variables, 1) + names.Of(cpu.Syncs, 0) + names.Of(cpu.Locations, 4) + names.Of(cpu.Variables, 7); got != "T1yma.c:3V7" {
			t.Errorf("%s: names %q", name, got)
		}
		if !Looks([]byte(text)) {
			t.Errorf("%s: not recognised", name)
		}
	}
	for _, text := range []string{"", "PK\x03\x04", ".version 8.0\n", "a|b|c", "fencepost trace 4\n", "thread op object"} {
		if Looks([]byte(text)) {
			t.Errorf("%q is taken for a trace", text)
		}
	}
}

// TestWrongTexts checks that an error names the wrong line and a reason.
func TestWrongTexts(t *testing.T) {
	const head = "thread,op,object,location\n"
	for text, want := range map[string]string{
		"A|w(x)|1\nA|lock(x)|1\n":                           `line 2: unknown operation "lock"`,
		"A|w(x)|1\n\nA w(x)\n":                              `line 3: "thread|op(object)|location" is expected`,
		"A w(x)\n":                                          `line 1: "thread|op(object)|location" is expected, or the header "thread,op,object,location"`,
		"A|w(x|1\n":                                         "line 1: a ) is missing behind the object",
		"A|w()|1\n":                                         "line 1: write of what?",
		"A|w|1\n":                                           "line 1: write of what?",
		"|w(x)|1\n":                                         "line 1: the thread has no name",
		"A|w(" + strings.Repeat("x", 1<<17):                 "line 1: the line is longer than 65536 bytes",
		"A|acq(l)|1\nB|acq(l)|2\n":                          "line 2: the lock is held by another thread",
		"A|acq(l)|1\nB|rel(l)|2\n":                          "line 2: the lock is held by another thread",
		"A|w(x)|1\nB|fork(A)|2\n":                           "line 2: the thread that is forked has begun already",
		"A|fork(B)|1\nA|fork(B)|2\n":                        "line 2: the thread that is forked has begun already",
		"A|join(A)|1\n":                                     "line 1: a thread joins itself",
		"B|w(x)|1\nA|join(B)|1\nB|w(x)|1\n":                 "line 3: the thread acts after its end",
		"A|end|1\nA|w(x)|1\n":                               "line 2: the thread acts after its end",
		"thread,op,object\nA,write,x\n":                     "line 1: wrong number of fields",
		"thread,op,object,loc\nA,write,x,\n":                `line 1: the header is not "thread,op,object,location"`,
		head + "A,write,x,1\nA,w,x,1\n":                     `line 3: unknown operation "w"; known are read, write,`,
		head + "A,write,x\n":                                "line 2: wrong number of fields",
		head + "A,write,\"x,1\n":                            `line 2: extraneous or missing " in quoted-field`,
		head + "A,barrier-leave,b,1\n":                      "line 2: the thread leaves a barrier that it has not entered",
		head + "A,barrier-enter,b,1\nA,barrier-enter,b,1\n": "line 3: the thread has entered a barrier and not left it",
		head + "A,none,b,1\n":                               `line 2: unknown operation "none"`,
	} {
		_, _, _, err := readAll(text)
		if e := (*Error)(nil); !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// TestTooManyThreads checks that a text with more threads than events can name is an error.
func TestTooManyThreads(t *testing.T) {
	var b strings.Builder
	for i := range cpu.MaxThreads + 1 {
		b.WriteString(fmt.Sprintf("T%d|w(x)|1\n", i))
	}
	events, _, _, err := readAll(b.String())
	if err == nil || err.Error() != "line 4097: the trace has more than 4096 threads" || len(events) != cpu.MaxThreads {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// TestNestedLocks checks that inner acquires and releases of a lock order nothing, and that critical sections may
// overlap.
func TestNestedLocks(t *testing.T) {
	events, _, _, err := readAll("A|acq(l)\nA|acq(m)\nA|acq(l)\nA|rel(l)\nA|rel(l)\nB|acq(l)\nA|rel(m)\nA|rel(m)\n")
	var ops []cpu.Op
	for _, e := range events {
		ops = append(ops, e.Op)
	}
	if want := []cpu.Op{cpu.Acquire, cpu.Acquire, cpu.None, cpu.None, cpu.Release, cpu.Acquire, cpu.Release, cpu.Release}; err != nil || !slices.Equal(ops, want) {
		t.Errorf("%v, %v", ops, err)
	}
}

// inOrder renumbers the objects of a random trace in the order of first use.
func inOrder(events []cpu.Event) []cpu.Event {
	var ids [cpu.Tables]map[uint32]uint32
	number := func(t cpu.Table, x uint32) uint32 {
		if ids[t] == nil {
			ids[t] = map[uint32]uint32{}
		}
		id, ok := ids[t][x]
		if !ok {
			id = uint32(len(ids[t]))
			ids[t][x] = id
		}
		return id
	}
	var out []cpu.Event
	for _, e := range events {
		e.Thread = uint16(number(cpu.Threads, uint32(e.Thread)))
		if t := e.Op.Table(); t != cpu.NoObject {
			e.Object = number(t, e.Object)
		}
		out = append(out, e)
	}
	return out
}

func write(events []cpu.Event, names *Names) string {
	var b bytes.Buffer
	w := NewWriter(&b)
	w.Events(events[:len(events)/2])
	w.Events(events[len(events)/2:])
	if err := w.Close(names); err != nil {
		panic(err)
	}
	return b.String()
}

func TestBinary(t *testing.T) {
	for seed := range uint64(300) {
		events := inOrder(oracle.Random(rand.New(rand.NewPCG(seed, 3))))
		got, _, names, err := readAll(write(events, &Names{cpu.Variables: {"x", ""}, cpu.Locations: {"", "a.c:1"}}))
		if err != nil || !slices.Equal(got, events) {
			t.Fatalf("trace %d: %v\n%v\n%v", seed, err, events, got)
		}
		if names.Of(cpu.Variables, 0) != "x" || names.Of(cpu.Variables, 1) != "V1" || names.Of(cpu.Locations, 1) != "a.c:1" {
			t.Fatalf("names %v", names)
		}
	}
}

// TestWide checks events of both widths.
func TestWide(t *testing.T) {
	var events []cpu.Event
	for i := range uint32(1<<20 + 100) {
		events = append(events, cpu.Event{Op: cpu.Write, Location: i + 1})
	}
	events = append(events, cpu.Event{Op: cpu.Read, Location: 1}, cpu.Event{Op: cpu.Read, Location: 1<<20 + 5})
	from := write(events, &Names{})
	r, err := NewReader(strings.NewReader(from))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]cpu.Event, len(events))
	for n := 0; n < len(got); {
		k, err := r.Next(got[n:])
		if n += k; err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, events) {
		t.Error("other events come back")
	}
}

// TestOperations checks the operations of recorded programs, for which a narrow event has no room.
func TestOperations(t *testing.T) {
	var events []cpu.Event
	for op := cpu.ReadAtomic; op < cpu.Ops; op++ {
		e := cpu.Event{Op: op}
		if op == cpu.Part {
			e.Object = 1
		}
		events = append(events, cpu.Event{Op: cpu.Write}, e, cpu.Event{Op: cpu.Read, Thread: 1})
	}
	got, _, _, err := readAll(write(events, &Names{}))
	if err != nil || !slices.Equal(got, events) {
		t.Errorf("%v\n%v\n%v", err, events, got)
	}
}

// TestCSV checks that events written as CSV are read back unchanged, parts of variables and equal names included.
func TestCSV(t *testing.T) {
	whole := 0
	for seed := range uint64(300) {
		events := inOrder(oracle.Random(rand.New(rand.NewPCG(seed, 3))))
		in, err := NewReader(strings.NewReader(write(events, &Names{cpu.Variables: {"x", "x", "x"}, cpu.Locations: {"", "a.c:1"}})))
		if err != nil {
			t.Fatal(err)
		}
		var n int
		for got := make([]cpu.Event, 100); err == nil; {
			var k int
			k, err = in.Next(got)
			n += k
		}
		count := uint32(in.Count(cpu.Variables))
		last := events[n-1]
		if last.Op == cpu.End || count == 0 {
			continue // the thread has ended
		}
		events = append(events[:n:n], cpu.Event{Op: cpu.Forget, Thread: last.Thread}, cpu.Event{Op: cpu.Part, Thread: last.Thread, Object: count},
			cpu.Event{Op: cpu.Write, Thread: last.Thread, Object: count, Location: 1})
		in.check.number(cpu.Variables, count)
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if err := errors.Join(w.Write(CSVHeader), WriteCSV(w, in.Names.Distinct(in.Count), events)); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		got, _, _, err := readAll(b.String())
		if slices.ContainsFunc(events, func(e cpu.Event) bool { return e.Op == cpu.None }) {
			continue // omitted, so that the numbers differ
		}
		if err != nil || !slices.Equal(got, events) {
			t.Fatalf("trace %d: %v\n%v\n%v\n%s", seed, err, events, got, &b)
		}
		whole++
	}
	if whole < 20 {
		t.Errorf("%d traces have come back", whole)
	}
}

// TestInherited checks that a thread may reuse a number if it has joined the thread that joined the old one.
func TestInherited(t *testing.T) {
	for _, joined := range []bool{false, true} {
		events := []cpu.Event{{Op: cpu.Fork, Object: 1}, {Op: cpu.Fork, Thread: 1, Object: 2}, {Op: cpu.End, Thread: 2},
			{Op: cpu.Join, Thread: 1, Object: 2}, {Op: cpu.End, Thread: 1}}
		if joined {
			events = append(events, cpu.Event{Op: cpu.Join, Object: 1})
		}
		events = append(events, cpu.Event{Op: cpu.Fork, Object: 2})
		if _, _, _, err := readAll(write(events, &Names{})); (err == nil) != joined {
			t.Errorf("joined %t: %v", joined, err)
		}
	}
}

// TestDamage checks that every changed byte and every truncation is reported at the start of its block.
func TestDamage(t *testing.T) {
	whole := write(inOrder(oracle.Random(rand.New(rand.NewPCG(1, 3)))), &Names{cpu.Variables: {"x"}})
	for i := range whole {
		if _, _, _, err := readAll(whole[:i]); err == nil && i > 0 {
			t.Errorf("cut at byte %d of %d is not seen", i, len(whole))
		}
		b := []byte(whole)
		b[i] ^= 4
		if _, _, _, err := readAll(string(b)); err == nil {
			t.Errorf("byte %d of %d is changed, which is not seen", i, len(whole))
		}
	}
}

// block returns a block with a correct checksum.
func block(kind uint32, content []byte) string {
	var b bytes.Buffer
	(&Writer{to: &b}).block(kind, content)
	return b.String()
}

func TestWrongBinary(t *testing.T) {
	event := func(op cpu.Op, thread, object, location uint64) []byte {
		return binary.LittleEndian.AppendUint64(nil, uint64(op)|thread<<threadShift|location<<locationShift|object<<objectShift)
	}
	for text, want := range map[string]string{
		block('E', event(cpu.Write, 1, 0, 0)):                  "byte 16: event 0: number 1 is used before number 0",
		block('E', event(cpu.Write, 0, 1, 0)):                  "byte 16: event 0: number 1 is used before number 0",
		block('E', event(cpu.Write, 0, 0, 2)):                  "byte 16: event 0: number 1 is used before number 0",
		block('E', make([]byte, 9)):                            "byte 16: the block ends within an event",
		block('W', append([]byte{17, 1}, make([]byte, 10)...)): "byte 16: event 0: 255 is no operation",
		block('X', nil):                                        "byte 16: there is no block of type 88",
		block('N', nil):                                        "byte 16: the names are of no table",
		block('N', []byte{9, 1, 'x'}):                          "byte 16: the names are of no table",
		block('N', []byte{2, 9, 'x'}):                          "byte 16: a name is longer than its block",
		block('Z', make([]byte, 7)):                            "byte 16: the end is that of another trace",
		block('Z', []byte{1, 0, 0, 0, 0, 0, 0, 0}):             "byte 16: the end is that of another trace",
		block('E', event(cpu.Write, 0, 0, 0)) + "E":            "byte 36: the trace is cut off",
		"E\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00":        "byte 16: the block says that it has 4294967295 bytes, and 1048576 are allowed",
		"E\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07":    "byte 16: the trace is damaged",
	} {
		_, _, _, err := readAll(Magic + text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzReader checks that any file gives valid events or an error, and that the writer's output gives the same events
// again.
func FuzzReader(f *testing.F) {
	f.Add(std)
	f.Add(csvText)
	f.Add("A|acq(l)\nA|acq(l)\nA|w(x)|f:1\nA|rel(l)\nA|rel(l)\n")
	for seed := range uint64(4) {
		f.Add(write(inOrder(oracle.Random(rand.New(rand.NewPCG(seed, 3)))), &Names{cpu.Threads: {"main"}}))
	}
	// The checksum would keep the fuzzer from most of the decoder, so the corpus has valid blocks.
	f.Add(Magic + block('E', []byte{2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0}) + block('N', []byte{2, 1, 'x'}) + block('Z', []byte{2, 0, 0, 0, 0, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, text string) {
		events, _, names, err := readAll(text)
		var positioned *Error
		if err != nil && !errors.As(err, &positioned) {
			t.Fatalf("an error without a position: %v", err)
		}
		var known [cpu.Tables]uint32
		use := func(table cpu.Table, id uint32) {
			if id > known[table] {
				t.Fatalf("number %d of table %d comes after %d", id, table, known[table])
			}
			known[table] = max(known[table], id+1)
		}
		for _, e := range events {
			use(cpu.Threads, uint32(e.Thread))
			if tab := e.Op.Table(); tab != cpu.NoObject {
				use(tab, e.Object)
			}
			if e.Op == cpu.Part {
				use(cpu.Variables, e.Location)
			} else if e.Location > 0 {
				use(cpu.Locations, e.Location-1)
			}
		}
		if names == nil {
			return
		}
		if again, _, _, err := readAll(write(events, names)); err != nil || !slices.Equal(again, events) {
			t.Fatalf("%v\n%v\n%v", err, events, again)
		}
	})
}
