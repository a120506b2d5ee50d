package foreign

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

type nothing struct{}

func (nothing) Events(*event.Batch)        {}
func (nothing) Findings() []detect.Finding { return nil }

// places implements event.Places so that only place 9 loads no address.
type places struct{ event.Places }

func (places) Dereferences(place uint32) bool { return place != 9 }

const local, shared = 2<<56 + 16, 1<<56 + 16

// program returns the events of steps "WARP.LANE st|ld VARIABLE VALUE". Variables with capital letters are in shared
// memory, blocks have two warps, step i is at place i, counted from 1, and values have 8 bytes, except for "st4".
func program(t *testing.T, steps string) *event.Batch {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}},
		Events: []event.Event{{Kind: event.KernelBegin, Launch: 1}}}
	for i, step := range strings.Split(steps, "; ") {
		e := event.Event{Launch: 1, Place: uint32(i + 1), Size: 8, Space: event.Global}
		var lane int
		var op, at, value string
		if _, err := fmt.Sscanf(step+" 0", "%d.%d %s %s %s", &e.Warp, &lane, &op, &at, &value); err != nil {
			t.Fatal(step, err)
		}
		if e.Mask, e.Addr = 1<<lane, uint64(at[0])*64; at < "a" {
			e.Space = event.Shared
		}
		switch e.Kind, e.Flags = event.Store, event.FlagWrite|event.FlagValues; op {
		case "ld":
			e.Kind, e.Flags = event.Load, event.FlagRead
		case "exch":
			e.Kind, e.Flags = event.Atomic, e.Flags|event.FlagRead
		case "st4":
			e.Size = 4
		}
		if e.Flags&event.FlagValues != 0 {
			e.Val = uint32(len(b.Values))
			b.Values = append(b.Values, map[string]uint64{"local": local, "shared": shared, "peer": shared + 1<<event.PeerShift}[value])
		}
		b.Events = append(b.Events, e)
	}
	return b
}

// TestForeignPointers checks that loads of pointers to memory of another thread or block are found, and no others.
func TestForeignPointers(t *testing.T) {
	for _, tt := range []struct{ name, steps, want string }{
		{"another thread's local memory", "0.0 st x local; 0.1 ld x", "1-2"},
		{"the thread's own", "0.0 st x local; 0.0 ld x", ""},
		{"by way of shared memory", "0.0 st X local; 1.0 ld X", "1-2"},
		{"shared memory of another block", "0.0 st X local; 2.0 ld X", ""},
		{"a pointer to shared memory", "0.0 st x shared; 1.5 ld x", ""},
		{"a pointer to shared memory of another block", "0.0 st x shared; 2.5 ld x", "1-2"},
		{"a pointer to shared memory of a peer in a cluster", "0.0 st x peer; 2.5 ld x", ""},
		{"overwritten", "0.0 st x local; 0.0 st x 7; 0.1 ld x", ""},
		{"overwritten in part", "0.0 st x local; 0.0 st4 x 7; 0.1 ld x", ""},
		{"overwritten by the thread's own", "0.0 st x local; 0.1 st x local; 0.1 ld x", ""},
		{"passed on by a third thread, to the owner or not", "0.0 st x local; 0.1 ld x; 0.1 st y local; 0.0 ld y", "1-2"},
		{"exchanged", "0.0 exch x local; 0.1 exch x local", "1-2"},
		{"compared", "0.0 st x local; 0.0 ld y; 0.0 ld y; 0.0 ld y; 0.0 ld y; 0.0 ld y; 0.0 ld y; 0.0 ld y; 0.1 ld x", ""},
	} {
		c := Beside(nothing{}, "hb", detect.Config{Places: places{}})
		c.Events(program(t, tt.steps))
		got := ""
		for _, f := range c.Findings() {
			got += fmt.Sprintf("%d-%d", f.Accesses[0].Place, f.Accesses[1].Place)
		}
		if got != tt.want {
			t.Errorf("%s: %s: %q, not %q", tt.name, tt.steps, got, tt.want)
		}
	}
}

// TestBatches checks batches that name a launch that has begun earlier.
func TestBatches(t *testing.T) {
	c := Beside(nothing{}, "hb", detect.Config{Places: places{}})
	b := program(t, "0.0 st x local; 0.1 ld x")
	first, second := *b, *b
	first.Events, second.Events = b.Events[:2], b.Events[2:]
	c.Events(&first)
	c.Events(&second)
	if n := len(c.Findings()); n != 1 {
		t.Errorf("%d findings", n)
	}
}

// TestSeries checks that accesses in a series are examined.
func TestSeries(t *testing.T) {
	b := program(t, "0.0 st X local; 1.0 ld X")
	last := len(b.Events) - 1
	load := b.Events[last]
	load.Warp = 0
	b.Series = []*event.Series{{ID: 1, Events: []event.Event{load}}}
	b.Events[last] = event.Event{Kind: event.Again, Launch: 1, Warp: 1}
	c := Beside(nothing{}, "hb", detect.Config{Places: places{}})
	c.Events(b)
	if n := len(c.Findings()); n != 1 {
		t.Errorf("%d findings", n)
	}
}

// TestRoom checks that pointers beyond the limit are reported as not checked.
func TestRoom(t *testing.T) {
	c := Beside(nothing{}, "hb", detect.Config{Places: places{}}).(*checker)
	c.room = 1
	b := program(t, "0.0 st x local; 0.0 st y local; 0.1 ld y; 0.1 ld x")
	b.Events = append(b.Events, event.Event{Kind: event.KernelEnd, Launch: 1})
	c.Events(b)
	if n := len(c.Findings()); n != 1 || len(c.Notes()) != 1 || !strings.Contains(c.Notes()[0], "more than 1 pointers") {
		t.Errorf("%d findings, notes %q", n, c.Notes())
	}
}
