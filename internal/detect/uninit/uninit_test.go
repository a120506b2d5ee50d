package uninit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestWritten compares the record of random writes with a flag for each byte.
func TestWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		size := 1 + rng.Uint64N(4*pageBytes)
		w, plain := written{size: size}, make([]bool, size)
		for range 60 {
			at := rng.Uint64N(size)
			n := 1 + rng.Uint64N([]uint64{8, 200, 2 * pageBytes}[rng.IntN(3)])
			want := true
			for i := at; i < min(at+n, size); i++ {
				want = want && plain[i]
			}
			if got := w.all(at, n); got != want {
				t.Fatalf("of %d bytes, %d at %d: %v, want %v", size, n, at, got, want)
			}
			if rng.IntN(2) == 0 {
				w.set(at, n)
				for i := at; i < min(at+n, size); i++ {
					plain[i] = true
				}
			}
		}
	}
}

// TestUndefined checks that uses of local variables without a value become findings, by place, with the line of the
// load, and that a note says what an engine does not track.
func TestUndefined(t *testing.T) {
	d := Spec.New(detect.Config{})
	use := func(place, origin, why, mask uint32) event.Event {
		return event.Event{Kind: event.Undefined, Launch: 1, Place: place, Side: origin, Aux: why, Mask: mask, Space: event.Local}
	}
	d.Events(&event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Block: event.Dim3{X: 32, Y: 1, Z: 1}}}, Events: []event.Event{
		{Kind: event.KernelBegin, Launch: 1}, use(3, 0, 0, 6), use(3, 0, 0, 1), use(5, 4, 2, 8), use(0, 0, 0, 0), use(0, 0, 0, 0)}})
	f := d.Findings()
	if len(f) != 2 || f[0].Count != 3 || len(f[0].Accesses) != 1 || f[0].Accesses[0].Lane != 1 || f[0].Severity != detect.Warning ||
		!strings.HasPrefix(f[0].Message, "a condition") || len(f[1].Accesses) != 2 || f[1].Accesses[1].Place != 4 || !strings.HasPrefix(f[1].Message, "the value") {
		t.Errorf("%+v", f)
	}
	if notes := d.(detect.Noted).Notes(); len(notes) != 1 || !strings.Contains(notes[0], "in 2 launches") {
		t.Errorf("notes %q", notes)
	}
}

// TestUninit gives the detector short executions.
func TestUninit(t *testing.T) {
	const memory = 0x1000
	warp := func(kind event.Kind, flags event.Flags, space event.Space, addr uint64, stride int64, mask uint32) event.Event {
		return event.Event{Kind: kind, Flags: flags, Space: space, Addr: addr, Stride: stride, Size: 4, Mask: mask, Launch: 1, Place: uint32(addr%97) + 1}
	}
	load := func(addr uint64, stride int64) event.Event {
		return warp(event.Load, event.FlagRead, event.Global, addr, stride, 0xffffffff)
	}
	store := func(addr uint64, stride int64, mask uint32) event.Event {
		return warp(event.Store, event.FlagWrite, event.Global, addr, stride, mask)
	}
	shared := func(e event.Event) event.Event { e.Space = event.Shared; return e }
	second := func(e event.Event) event.Event { e.Warp = 1; return e } // of the second block
	copied := load(memory, 4)
	copied.Flags |= event.FlagCopied
	adds := warp(event.Atomic, event.FlagRead|event.FlagWrite, event.Global, memory, 0, 1)
	for _, c := range []struct {
		name   string
		hosts  []event.HostOp
		events []event.Event
		want   int // number of threads
	}{
		{"nothing written", nil, []event.Event{load(memory, 4)}, 32},
		{"all written", nil, []event.Event{store(memory, 4, 0xffffffff), load(memory, 4)}, 0},
		{"half written", nil, []event.Event{store(memory, 4, 0xffff), load(memory, 4)}, 16},
		{"one byte missing", []event.HostOp{{Kind: event.HostWrite, Addr: memory, Size: 127}}, []event.Event{load(memory, 4)}, 1},
		{"copied", []event.HostOp{{Kind: event.HostWrite, Addr: memory, Size: 128}}, []event.Event{load(memory, 4)}, 0},
		{"written in columns", nil, []event.Event{store(memory, 8, 0xffffffff), load(memory, 8), load(memory+4, 8)}, 32},
		{"a structure is copied", nil, []event.Event{copied}, 0},
		{"read-modify-write", nil, []event.Event{adds, adds}, 1},
		{"allocated anew", []event.HostOp{{Kind: event.HostWrite, Addr: memory, Size: 4096}, {Kind: event.HostFree, Addr: memory, Size: 4096},
			{Kind: event.HostAlloc, Addr: memory, Size: 4096, Name: "cudaMallocAsync"}, {Kind: event.HostWrite, Addr: memory, Size: 4096, Name: "cudaMallocAsync (stream 1)"}},
			[]event.Event{load(memory, 4)}, 32},
		{"managed", []event.HostOp{{Kind: event.HostFree, Addr: memory, Size: 4096}, {Kind: event.HostAlloc, Addr: memory, Size: 4096, Name: "cudaMallocManaged"}},
			[]event.Event{load(memory, 4)}, 0},
		{"memory that is not known", nil, []event.Event{load(1<<40, 4)}, 0},
		{"shared", nil, []event.Event{shared(load(0, 4))}, 32},
		{"shared and written", nil, []event.Event{shared(store(0, 4, 0xffffffff)), shared(load(0, 4))}, 0},
		{"another block's", nil, []event.Event{shared(store(0, 4, 0xffffffff)), second(shared(load(0, 4)))}, 32},
		{"a block after another", nil, []event.Event{shared(store(0, 4, 0xffffffff)), {Kind: event.Exit, Launch: 1, Mask: 0xffffffff}, shared(load(0, 4))}, 32},
		{"a bulk copy", nil, []event.Event{{Kind: event.Bulk, Flags: event.FlagWrite, Space: event.Shared, Launch: 1, Mask: 1, Aux: 128}, shared(load(0, 4))}, 0},
	} {
		d := Spec.New(detect.Config{Options: map[string]string{"report": "error"}})
		b := event.Batch{Launches: []event.Launch{{ID: 1, Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}}}
		for _, h := range append([]event.HostOp{{Kind: event.HostAlloc, Addr: memory, Size: 4096, Name: "cudaMalloc"}}, c.hosts...) {
			b.Events = append(b.Events, event.Event{Kind: event.Host, Side: uint32(len(b.Hosts))})
			b.Hosts = append(b.Hosts, h)
		}
		b.Events = append(append(b.Events, event.Event{Kind: event.KernelBegin, Launch: 1}), c.events...)
		d.Events(&b)
		got := 0
		for _, f := range d.Findings() {
			got += f.Count
			if f.Kind != detect.UninitialisedRead || f.Severity != detect.Error || len(f.Accesses) != 1 || !strings.HasPrefix(f.Message, "nothing has written") {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if got != c.want {
			t.Errorf("%s: %d threads read what was not written, want %d", c.name, got, c.want)
		}
	}
}
