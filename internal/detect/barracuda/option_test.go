package barracuda

import (
	"testing"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestOptions selects options as users do.
func TestOptions(t *testing.T) {
	list := []detect.Spec{Spec, PlusSpec}
	for _, c := range []struct{ detector, stream, want string }{
		{"barracuda", "0 3 st x", ""},
		{"barracuda:same-value=report", "0 3 st x", "1-1 divergence"},
		{"barracuda+:same-value=report", "0 3 st x", "1-1 divergence"},
		{"barracuda", "0 1 st x; 0 1 ld x; 2 1 st x", "1-3 inter-block"},
		{"barracuda:prune=off", "0 1 st x; 0 1 ld x; 2 1 st x", "1-3 inter-block, 2-3 inter-block"},
	} {
		spec, err := detect.Choose(list, c.detector)
		if err != nil {
			t.Fatal(err)
		}
		if got := verdict(spec.New(detect.Config{}), parse(t, c.stream)); got != c.want {
			t.Errorf("%s says %q of %q, want %q", c.detector, got, c.stream, c.want)
		}
	}
}

// TestMemory checks that all metadata is counted, and that the metadata of a launch or a block is dropped when it ends.
func TestMemory(t *testing.T) {
	if n := unsafe.Sizeof(cell{}); n > 32 {
		t.Errorf("the metadata of a location takes %d bytes, in the paper 32", n)
	}
	d := newTest(true, "off")
	bytes := func(stream string) uint64 {
		b := parse(t, stream+"; 0 1 sync; 1 1 sync; 2 1 sync")
		b.Events = b.Events[:len(b.Events)-1]
		d.Events(b)
		return d.MemoryBytes()
	}
	plain := bytes("0 1 st x")
	for _, more := range []string{
		"0 1 st x; 2 1 st s",                           // a window
		"0 1 ld x; 1 1 ld x",                           // readers
		"0 1 st x; 0 1 fence.gl; 0 1 st y",             // S_x
		"0 1 st.release y; 1 1 ld.acquire y; 0 1 st x", // a clock that knows a thread
	} {
		if n := bytes(more); n <= plain {
			t.Errorf("%q takes %d bytes of metadata, a single store %d", more, n, plain)
		}
	}
	if n := bytes("0 1 st x"); n != plain {
		t.Errorf("metadata of a store is %d bytes, %d after other launches", plain, n)
	}
	begin := d.MemoryBytes()
	d.Events(&event.Batch{Events: []event.Event{
		{Kind: event.Store, Launch: 1, Warp: 2, Mask: 1, Size: 4, Space: event.Shared, Addr: 4, Place: 1, Flags: event.FlagWrite},
		{Kind: event.Exit, Launch: 1, Warp: 2, Mask: ^uint32(0)}, {Kind: event.Exit, Launch: 1, Warp: 3, Mask: 0xf}}})
	if n := d.MemoryBytes(); n > begin {
		t.Errorf("a block that has ended leaves %d bytes", n-begin)
	}
}

// TestHighPlaces uses large place numbers.
func TestHighPlaces(t *testing.T) {
	b := parse(t, "0 1 st x; 2 1 st x")
	for i := range b.Events {
		b.Events[i].Place *= 0x7000_0000
	}
	d := newTest(false, "on")
	d.Events(b)
	if f := d.Findings(); len(f) != 1 || f[0].Accesses[0].Place != 0x7000_0000 || f[0].Accesses[1].Place != 0xe000_0000 {
		t.Errorf("%+v", f)
	}
}
