package cuda

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/event"
)

// TestLeaks compares the leaks of a process with what it allocates and frees.
func TestLeaks(t *testing.T) {
	for _, x := range []struct {
		name string
		off  bool // leaks are not looked for
		end  func(p *process)
		want string
	}{
		{name: "end", want: "cudaMalloc #1 (100 bytes):7 2/300; cudaMallocAsync #5 (16 bytes):10 1/16; cudaHostAlloc #4 (8 bytes):9 1/8; "},
		{name: "reset", end: func(p *process) { p.ctx.Reset() },
			want: "cudaMalloc #1 (100 bytes):7 2/300; cudaMallocAsync #5 (16 bytes):10 1/16; cudaHostAlloc #4 (8 bytes):9 1/8; "},
		{name: "lost", end: func(p *process) { p.ctx.sticky = &Error{Code: IllegalAddress} }},
		{name: "off", off: true},
	} {
		s := newTestServer(t)
		s.dev.cfg.Leaks = !x.off
		p := newProcess(context.Background(), 1<<30)
		p.open(s.dev)
		at := func(line int, args ...uint64) *request {
			return &request{args: args, script: []event.Frame{{File: "prog.cu", Line: line, Function: "main"}}}
		}
		alloc := func(r *request) uint64 {
			results, _, err := p.malloc(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			return results[0]
		}
		alloc(at(7, 100, calls.KindDevice))
		alloc(at(7, 200, calls.KindDevice))
		freed := alloc(at(8, 4, calls.KindManaged))
		alloc(at(9, 8, calls.KindPinned))
		if _, _, err := p.mallocAsync(context.Background(), at(10, 16, 0, 0)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.free(context.Background(), at(11, freed, calls.KindDevice)); err != nil {
			t.Fatal(err)
		}
		if x.end != nil {
			x.end(p)
		}
		s.finish(p)
		var got strings.Builder
		for _, f := range s.dev.Failures() {
			if f.Kind != Leak || !strings.HasPrefix(f.Msg, f.Call+" #") {
				t.Errorf("%s: failure %+v", x.name, f)
			}
			fmt.Fprintf(&got, "%s:%d %d/%d; ", f.Msg, f.Frames[0].Line, f.Count, f.Bytes)
		}
		if got.String() != x.want {
			t.Errorf("%s: leaks\n%s\nwant\n%s", x.name, got.String(), x.want)
		}
	}
}
