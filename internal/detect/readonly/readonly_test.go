package readonly

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/event"
)

// none is a detector that finds nothing.
type none struct{}

func (none) Events(*event.Batch)        {}
func (none) Findings() []detect.Finding { return nil }

// stream returns a launch whose kernel has read-only loads, with the operations of a line. The loads at the places in
// nc are read-only.
func stream(line string, nc ...uint32) *event.Batch {
	b := litmus.Launch(2)
	b.Launches[0].NonCoherent = true
	litmus.Do(b, line)
	for i := range b.Events {
		for _, place := range nc {
			if b.Events[i].Place == place {
				b.Events[i].Flags |= event.FlagNonCoherent
			}
		}
	}
	return b
}

// TestBatches checks batches that name a launch that has begun earlier.
func TestBatches(t *testing.T) {
	d, b := Beside(none{}, "x", detect.Config{}), stream("0 st; 2 ld", 2)
	for i := range b.Events {
		part := *b
		part.Events = b.Events[i : i+1]
		d.Events(&part)
	}
	if n := len(d.Findings()); n != 1 {
		t.Errorf("%d findings", n)
	}
}

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		line  string
		nc    []uint32
		found int
	}{
		{"0 st; 2 ld", []uint32{2}, 1},
		{"0 st; 2 ld", nil, 0},
		{"0 st; 0 ld", []uint32{2}, 1},          // its own
		{"0 st; 0 bar; 1 ld", []uint32{3}, 1},   // synchronised
		{"0 ld; 0 bar; 1 st", []uint32{1}, 1},   // the load first
		{"0 add; 2 ld", []uint32{2}, 1},         // an atomic
		{"0 cas; 2 ld", []uint32{2}, 1},         //
		{"0 st 1; 2 ld 2", []uint32{2}, 0},      // another word
		{"0 sts; 1 ld", []uint32{2}, 0},         // shared memory
		{"0 ld; 2 ld", []uint32{1, 2}, 0},       // nobody writes
		{"0 st; 2 ld; 2 ld", []uint32{2, 3}, 2}, // two places
		{"0 st 1; 0 st 1025; 2 ld 1025", []uint32{3}, 1},
	} {
		d := Beside(none{}, "x", detect.Config{})
		d.Events(stream(c.line, c.nc...))
		got := d.Findings()
		if len(got) != c.found {
			t.Errorf("%q: %d findings, want %d", c.line, len(got), c.found)
		}
		for _, f := range got {
			if f.Kind != detect.ReadOnlyLoad || f.Severity != detect.Error || f.Detector != "x" || len(f.Accesses) != 2 {
				t.Errorf("%q: %+v", c.line, f)
			}
		}
	}
}

// TestFetches checks that a texture fetch or a surface read conflicts with writes before it, and not with those after.
func TestFetches(t *testing.T) {
	for line, found := range map[string]int{
		"0 st; 2 ld":               1,
		"0 st; 0 ld":               1, // its own
		"0 st; 0 bar; 1 bar; 1 ld": 1,
		"0 add; 2 ld":              1,
		"2 ld; 0 st":               0,
		"0 ld; 0 st; 0 ld":         1,
		"0 st 1; 2 ld 2":           0,
		"0 st 1; 2 ld 1025":        0,
	} {
		b := stream(line)
		for i := range b.Events {
			if b.Events[i].Kind == event.Load {
				b.Events[i].Flags |= event.FlagNonCoherent | event.FlagTexture
			}
		}
		d := Beside(none{}, "x", detect.Config{})
		d.Events(b)
		got := d.Findings()
		if len(got) != found {
			t.Errorf("%q: %d findings, want %d", line, len(got), found)
		}
		for _, f := range got {
			if f.Kind != detect.ReadOnlyLoad || !strings.Contains(f.Message, "the second is a texture fetch or a surface read") {
				t.Errorf("%q: %+v", line, f)
			}
		}
	}
}

// TestThreads checks that a finding names the threads that accessed the byte, even if others accessed neighbouring
// bytes.
func TestThreads(t *testing.T) {
	b := stream("0 st; 0 st; 2 ld", 3)
	b.Events[1].Mask, b.Events[1].Size, b.Events[1].Stride = 0b1111, 1, 1 // lane l writes byte l
	b.Events[2].Warp, b.Events[2].Mask, b.Events[2].Addr = 1, 1, litmus.Base+64
	b.Events[3].Size, b.Events[3].Addr = 2, litmus.Base+2
	d := Beside(none{}, "x", detect.Config{})
	d.Events(b)
	found := d.Findings()
	if len(found) != 1 {
		t.Fatalf("%d findings", len(found))
	}
	w, r := found[0].Accesses[0], found[0].Accesses[1]
	if w.Place != 1 || w.Warp != 0 || w.Lane != 2 || w.Address != litmus.Base+2 || w.Size != 1 || w.Op != detect.Write {
		t.Errorf("the write is %+v", w)
	}
	if r.Place != 3 || r.Warp != 2 || r.Address != litmus.Base+2 || r.Size != 2 || r.Op != detect.Read {
		t.Errorf("the load is %+v", r)
	}
	if found[0].Addresses != 1 || !strings.Contains(found[0].Message, "the second is a load through the read-only cache") {
		t.Errorf("%d bytes: %s", found[0].Addresses, found[0].Message)
	}
}

// TestNextLaunch checks that another launch may write.
func TestNextLaunch(t *testing.T) {
	d := Beside(none{}, "x", detect.Config{})
	b := stream("0 ld", 1)
	litmus.Add(b, event.Event{Kind: event.KernelEnd})
	d.Events(b)
	if n := d.(detect.Metered).MemoryBytes(); n != 0 {
		t.Errorf("%d bytes are kept of a launch that has ended", n)
	}
	d.Events(stream("0 st"))
	if n := len(d.Findings()); n != 0 {
		t.Errorf("%d findings", n)
	}
}

// TestRoom checks that accesses beyond the limit are reported as not checked.
func TestRoom(t *testing.T) {
	d := Beside(none{}, "x", detect.Config{}).(*checker)
	d.room = 8 << 10
	b := stream("0 st; 2 ld; 0 st 4096; 2 ld 4096", 2, 4)
	litmus.Add(b, event.Event{Kind: event.KernelEnd})
	d.Events(b)
	if notes := d.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "not all of it was checked") {
		t.Errorf("notes %q", notes)
	}
}
