package cuda

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// follower follows signals and waits, and knows what of "launch" and "copy" comes before each agent's next operation.
type follower struct {
	agents map[uint32]string
	tokens map[uint64]string
	// before is what came before the launch of each number.
	before []string
}

func (f *follower) learn(agent uint32, what string) {
	for w := range strings.FieldsSeq(what) {
		if !strings.Contains(f.agents[agent], w) {
			f.agents[agent] += " " + w
		}
	}
}

func (f *follower) Events(b *event.Batch) {
	for _, e := range b.Events {
		if e.Kind != event.Host {
			continue
		}
		switch h := b.Hosts[e.Side]; h.Kind {
		case event.HostSignal:
			f.tokens[h.Token] = f.agents[h.Agent]
		case event.HostWait:
			f.learn(h.Agent, f.tokens[h.Token])
		case event.HostRead, event.HostWrite:
			f.learn(h.Agent, "copy")
		}
	}
}

// Run implements engine.Engine.
func (f *follower) Run(_ context.Context, l *engine.Launch) (engine.Stats, error) {
	f.before = append(f.before, f.agents[l.Agent])
	f.learn(l.Agent, "launch")
	return engine.Stats{}, nil
}

// copyRules is what comes before a launch in a stream of its own that follows a copy, by the two ends and whether the copy
// is asynchronous: the copy, and a launch before it in its stream. It is what "API synchronization behavior" of the CUDA Runtime
// API promises, and nothing of what drivers do beyond that:
//   - synchronous, pageable memory to the device: the stream is waited for, and the copy may come after the call;
//   - synchronous, pinned memory to the device, the device to any host memory, any host memory to any: the copy is waited for;
//   - synchronous, within the device: nothing is waited for;
//   - asynchronous, any host memory to any: the copy is waited for;
//   - asynchronous, the device to pageable memory: the copy is waited for. The manual has said so up to CUDA 11 and says now
//     that it may be; the copy cannot be left running, for its bytes belong to the host's caller;
//   - asynchronous, the others: nothing is waited for.
//
// Managed memory counts as memory of the device, registered memory as pinned.
var copyRules = []struct{ dst, src, sync, async string }{
	{"device", "device", "", ""},
	{"device", "managed", "", ""},
	{"device", "pinned", "launch copy", ""},
	{"device", "pageable", "launch", ""},
	{"managed", "device", "", ""},
	{"managed", "managed", "", ""},
	{"managed", "pinned", "launch copy", ""},
	{"managed", "pageable", "launch", ""},
	{"pinned", "device", "launch copy", ""},
	{"pinned", "managed", "launch copy", ""},
	{"pinned", "pinned", "launch copy", "launch copy"},
	{"pinned", "pageable", "launch copy", "launch copy"},
	{"pageable", "device", "launch copy", "launch copy"},
	{"pageable", "managed", "launch copy", "launch copy"},
	{"pageable", "pinned", "launch copy", "launch copy"},
	{"pageable", "pageable", "launch", "launch"}, // of which the device sees no access
	{"device", "registered", "launch copy", ""},
	{"registered", "device", "launch copy", ""},
	{"registered", "registered", "launch copy", "launch copy"},
}

// fillRules is the same of memset: it waits where its target is pinned or managed memory and it is synchronous.
var fillRules = []struct{ dst, sync, async string }{
	{"device", "", ""}, {"managed", "launch copy", ""}, {"pinned", "launch copy", ""}, {"registered", "launch copy", ""},
}

// memories are the kinds of memory that a copy tells apart, each large enough for the copies here.
func (s *script) memories() map[string]uint64 {
	const size = 1 << 20
	m := map[string]uint64{"pageable": 1 << 20}
	for name, kind := range map[string]devmem.AllocKind{"device": devmem.DeviceAlloc, "managed": devmem.ManagedAlloc, "pinned": devmem.PinnedAlloc} {
		addr, err := s.c.Malloc(size, kind)
		s.must(err)
		m[name] = addr
	}
	m["registered"] = 1 << 30
	_, err := s.c.Register(m["registered"], size)
	s.must(err)
	return m
}

// after returns what comes before a launch in a new non-blocking stream that follows do, which follows a launch in a
// stream.
func after(t *testing.T, stream string, do func(s *script, id StreamID, thread uint32, at map[string]uint64)) string {
	t.Helper()
	f := &follower{agents: map[uint32]string{}, tokens: map[uint64]string{}}
	d, err := NewDevice(Config{Engine: f, Sink: f, Needs: event.NeedHost, MemorySize: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := &script{T: t, c: d.NewContext()}
	m, err := s.c.LoadModule(Image{"k.ptx", emptyKernel})
	s.must(err)
	s.k, err = m.Kernel("k")
	s.must(err)
	at := s.memories()
	id, thread := StreamLegacy, uint32(7)
	switch stream {
	case "per-thread":
		id = StreamPerThread
	case "blocking":
		id = s.stream(0)
	case "non-blocking":
		id = s.stream(StreamNonBlocking)
	}
	s.launch(id, thread)
	do(s, id, thread, at)
	s.launch(s.stream(StreamNonBlocking))
	return strings.TrimSpace(f.before[1])
}

var (
	allStreams = []string{"default", "per-thread", "blocking", "non-blocking"}
	copySizes  = []uint64{1, 64 << 10, 64<<10 + 1, 1 << 20} // the manual of old had rules for copies of at most 64 KB
)

func TestCopyRules(t *testing.T) {
	for _, r := range copyRules {
		for _, stream := range allStreams {
			for i, size := range copySizes {
				async := i%2 == 0
				for range 2 {
					want := r.sync
					if async {
						want = r.async
					}
					got := after(t, stream, func(s *script, id StreamID, thread uint32, at map[string]uint64) {
						k := Copy{Dst: at[r.dst], Src: at[r.src], Width: size, Height: 1, Depth: 1, Kind: Default, Async: async}
						if r.dst == r.src {
							k.Width = min(size, 1<<19)
							k.Src += 1 << 19
						}
						s.must(s.c.OrderCopy(k, id, thread))
					})
					if got != want {
						t.Errorf("%d bytes from %s to %s, async %v, %s stream: before a launch of another stream: %q, want %q", size, r.src, r.dst, async, stream, got, want)
					}
					async = !async
				}
			}
		}
	}
}

func TestFillRules(t *testing.T) {
	for _, r := range fillRules {
		for _, stream := range allStreams {
			for _, async := range []bool{false, true} {
				want := r.sync
				if async {
					want = r.async
				}
				got := after(t, stream, func(s *script, id StreamID, thread uint32, at map[string]uint64) {
					s.must(s.c.OrderFill(Copy{Dst: at[r.dst], Width: 4096, Height: 1, Depth: 1, Async: async}, id, thread))
				})
				if got != want {
					t.Errorf("memset of %s memory, async %v, %s stream: before a launch of another stream: %q, want %q", r.dst, async, stream, got, want)
				}
			}
		}
	}
}

// TestCallRules checks which other calls make the host wait for the launch before them, whose stream they name where they name one.
func TestCallRules(t *testing.T) {
	for _, r := range []struct {
		call string
		want string // "all": for a launch in any stream; otherwise the streams it waits for
		do   func(s *script, id StreamID, thread uint32, at map[string]uint64)
	}{
		{"cudaFree", "all", func(s *script, _ StreamID, _ uint32, at map[string]uint64) { s.must(s.c.Free(at["device"])) }},
		{"cudaFree of managed memory", "all", func(s *script, _ StreamID, _ uint32, at map[string]uint64) { s.must(s.c.Free(at["managed"])) }},
		{"cudaFree(0)", "", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) { s.must(s.c.Free(0)) }},
		{"cudaFreeHost", "all", func(s *script, _ StreamID, _ uint32, at map[string]uint64) { s.must(s.c.FreeHost(at["pinned"])) }},
		{"cudaHostUnregister", "all", func(s *script, _ StreamID, _ uint32, at map[string]uint64) {
			_, _, err := s.c.Unregister(at["registered"])
			s.must(err)
		}},
		{"cudaMalloc", "", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) {
			_, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
		}},
		{"cudaFreeAsync", "", func(s *script, id StreamID, thread uint32, at map[string]uint64) {
			s.must(s.c.FreeAsync(at["device"], id, thread))
		}},
		{"cudaMallocAsync", "", func(s *script, id StreamID, thread uint32, _ map[string]uint64) {
			_, err := s.c.MallocAsync(16, id, thread)
			s.must(err)
		}},
		{"cudaDeviceSynchronize", "all", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) { s.must(s.c.Synchronize()) }},
		{"cudaStreamSynchronize", "all", func(s *script, id StreamID, thread uint32, _ map[string]uint64) {
			s.must(s.c.SynchronizeStream(id, thread))
		}},
		{"cudaStreamSynchronize(0)", "default per-thread blocking", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) {
			s.must(s.c.SynchronizeStream(0, 1))
		}},
		{"cudaStreamSynchronize of another stream", "", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) {
			s.must(s.c.SynchronizeStream(s.stream(0), 1))
		}},
		{"cudaStreamSynchronize of another thread's stream", "", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) {
			s.must(s.c.SynchronizeStream(StreamPerThread, 8))
		}},
		{"cudaLaunchHostFunc", "", func(s *script, id StreamID, thread uint32, _ map[string]uint64) { s.hostFunction(id, thread) }},
		{"cudaEventSynchronize", "all", func(s *script, id StreamID, thread uint32, _ map[string]uint64) {
			e := s.event()
			s.must(s.c.RecordEvent(e, id, thread))
			s.must(s.c.SynchronizeEvent(e))
		}},
		{"cudaEventRecord", "", func(s *script, id StreamID, thread uint32, _ map[string]uint64) {
			s.must(s.c.RecordEvent(s.event(), id, thread))
		}},
		{"cudaEventSynchronize of one in the default stream", "default per-thread blocking", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) {
			e := s.event()
			s.must(s.c.RecordEvent(e, 0, 1))
			s.must(s.c.SynchronizeEvent(e))
		}},
		{"cudaStreamDestroy", "", func(s *script, id StreamID, _ uint32, _ map[string]uint64) { _ = s.c.DestroyStream(id) }},
		{"cudaDeviceReset", "all", func(s *script, _ StreamID, _ uint32, _ map[string]uint64) {
			s.must(s.c.Reset())
			m, err := s.c.LoadModule(Image{"k.ptx", emptyKernel})
			s.must(err)
			s.k, err = m.Kernel("k")
			s.must(err)
		}},
	} {
		for _, stream := range allStreams {
			want := ""
			if r.want == "all" || strings.Contains(" "+r.want+" ", " "+stream+" ") {
				want = "launch"
			}
			got := after(t, stream, r.do)
			if !strings.Contains(got, "launch") {
				got = ""
			} else {
				got = "launch"
			}
			if got != want {
				t.Errorf("%s after a launch in a %s stream: the host has waited for %q, want %q", r.call, stream, got, want)
			}
		}
	}
}

// TestCopyNames checks what a copy is called in reports.
func TestCopyNames(t *testing.T) {
	for _, c := range []struct {
		k    Copy
		want string
	}{
		{Copy{Height: 1, Depth: 1}, "cudaMemcpy"}, {Copy{Height: 2, Depth: 1}, "cudaMemcpy2D"}, {Copy{Height: 2, Depth: 2}, "cudaMemcpy3D"},
		{Copy{Height: 1, Depth: 2, Async: true}, "cudaMemcpy3DAsync"}, {Copy{Height: 1, Depth: 1, Async: true}, "cudaMemcpyAsync"},
	} {
		if got := copyName(&c.k); got != c.want {
			t.Errorf("%+v is called %s, want %s", c.k, got, c.want)
		}
	}
}

// TestStreamNames checks what streams are called in reports, and what their priorities become.
func TestStreamNames(t *testing.T) {
	s := newScript(t)
	for i, priority := range []int32{0, -5, -6, 1, -1} {
		id, err := s.c.CreateStream(StreamNonBlocking, priority)
		s.must(err)
		flags, got, _, _, err := s.c.StreamInfo(id, 0)
		s.must(err)
		if name := s.c.streams[id].name; name != fmt.Sprintf("stream %d", i+1) || flags != 1 || got != []int32{0, -5, -5, 0, -1}[i] {
			t.Errorf("stream %d is called %s, with flags %d and priority %d", i, name, flags, got)
		}
	}
}

// TestExtents checks boxes whose numbers overflow or whose rows overlap.
func TestExtents(t *testing.T) {
	const max = 1<<64 - 1
	for _, c := range []struct {
		pitch, slice, w, h, d uint64
		n                     uint64
		ok                    bool
	}{
		{0, 0, 5, 1, 1, 5, true}, {8, 0, 5, 3, 1, 21, true}, {5, 0, 5, 3, 1, 15, true}, {4, 0, 5, 2, 1, 0, false},
		{8, 24, 5, 3, 2, 45, true}, {8, 21, 5, 3, 2, 42, true}, {8, 20, 5, 3, 2, 0, false},
		{1 << 47, 0, 1, 2, 1, 0, false}, {1 << 46, 0, 1, 2, 1, 1<<46 + 1, true}, {1 << 46, 0, 1, 3, 1, 0, false},
		{max, 0, 5, 2, 1, 0, false}, {max, 0, 5, 3, 1, 0, false}, {1 << 63, 0, 5, 3, 1, 0, false}, {max, max, 5, 1, 1, 5, true},
		{max, 0, 1, 2, 1, 0, false}, {8, max, 1, 1, 2, 0, false}, {8, 0, max, 1, 1, 0, false}, {1, 0, 1, max, 1, 0, false}, {1, 1, 1, 1, max, 0, false},
		{0, 0, 1 << 47, 1, 1, 1 << 47, true}, {0, 0, 1<<47 + 1, 1, 1, 0, false}, {1 << 20, 0, 1, 1 << 28, 1, 0, false},
		{1, 1 << 40, 1, 1, 1 << 7, 127<<40 + 1, true}, {1, 1 << 40, 1, 1, 1<<7 + 1, 0, false},
	} {
		n, ok := extent(c.pitch, c.slice, c.w, c.h, c.d)
		if ok != c.ok || n != c.n {
			t.Errorf("extent(%d, %d, %d, %d, %d) = %d, %v, want %d, %v", c.pitch, c.slice, c.w, c.h, c.d, n, ok, c.n, c.ok)
		}
	}
}

// TestFirstFit compares the set of free ranges with a plain one.
func TestFirstFit(t *testing.T) {
	const room = 40
	for seed := range 300 {
		var s spans
		s.add(0, room)
		var taken []span
		at := seed
		pick := func(n int) int {
			at = at*1103515245 + 12345
			return (at >> 8 & 0xffff) % n
		}
		for range 40 {
			if len(taken) > 0 && pick(2) == 0 {
				i := pick(len(taken))
				s.add(taken[i].at, taken[i].size)
				taken = append(taken[:i], taken[i+1:]...)
				continue
			}
			size := uint64(1 + pick(9))
			got, ok := s.take(size)
			if want, fits := firstFit(taken, room, size); ok != fits || ok && got != want {
				t.Fatalf("seed %d: %d bytes at %d, %v, want %d, %v; taken %v", seed, size, got, ok, want, fits, taken)
			}
			if ok {
				taken = append(taken, span{got, size})
			}
		}
		for _, x := range taken {
			s.add(x.at, x.size)
		}
		if len(s.free) != 1 || s.free[0] != (span{0, room}) {
			t.Fatalf("seed %d: free at the end: %v", seed, s.free)
		}
	}
}

// firstFit finds the first free place byte by byte.
func firstFit(taken []span, room, size uint64) (uint64, bool) {
	free := func(b uint64) bool {
		for _, x := range taken {
			if b >= x.at && b < x.at+x.size {
				return false
			}
		}
		return b < room
	}
search:
	for at := uint64(0); at+size <= room; at++ {
		for b := at; b < at+size; b++ {
			if !free(b) {
				continue search
			}
		}
		return at, true
	}
	return 0, false
}
