package cuda

import (
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// TestOperationNames checks the names under which operations of streams are reported.
func TestOperationNames(t *testing.T) {
	d, l := newTestDevice(t)
	s := &script{T: t, c: d.NewContext()}
	m, err := s.c.LoadModule(Image{"k.ptx", emptyKernel})
	s.must(err)
	s.k, err = m.Kernel("k")
	s.must(err)
	own, ev := s.stream(0), s.event()
	for _, r := range []struct {
		want string // names, each once, in order
		do   func()
	}{
		{"launch of k (stream 1)", func() { s.launch(own) }},
		{"launch of k (default stream)", func() { s.launch(0) }},
		{"launch of k (default stream)", func() { s.launch(StreamLegacy) }},
		{"launch of k (per-thread default stream 1)", func() { s.launch(StreamPerThread, 9) }},
		{"launch of k (per-thread default stream 2)", func() { s.launch(StreamPerThread, 4) }},
		{"launch of k (per-thread default stream 1)", func() { s.launch(StreamPerThread, 9) }},
		{"cudaEventRecord (stream 1)", func() { s.must(s.c.RecordEvent(ev, own, 0)) }},
		{"cudaStreamWaitEvent (default stream)", func() { s.must(s.c.WaitEvent(0, 0, ev)) }},
		{"cudaEventSynchronize", func() { s.must(s.c.SynchronizeEvent(ev)) }},
		{"cudaLaunchHostFunc (stream 1), the order of the calls, a host function", func() { s.hostFunction(own, 0) }},
		{"cudaStreamSynchronize (stream 1)", func() { s.must(s.c.SynchronizeStream(own, 0)) }},
		{"cudaStreamSynchronize (default stream)", func() { s.must(s.c.SynchronizeStream(0, 0)) }},
		{"cudaDeviceSynchronize", func() { s.must(s.c.Synchronize()) }},
		{"module unload", func() { s.must(m.Unload()) }},
		{"cudaStreamDestroy", func() { s.must(s.c.DestroyStream(own)) }},
		{"context end", func() { s.must(s.c.Reset()) }},
	} {
		l.hosts = nil
		r.do()
		var names []string
		for _, o := range l.hosts {
			names = append(names, o.Name)
		}
		if got := strings.Join(slices.Compact(names), ", "); got != r.want {
			t.Errorf("told as %q, want %q", got, r.want)
		}
	}
}

// TestTokens checks that the signals of events and agents never meet, in one context or in two.
func TestTokens(t *testing.T) {
	d, l := newTestDevice(t)
	signals := map[uint64]bool{}
	for range 2 {
		s := &script{T: t, c: d.NewContext()}
		for range 40 {
			id, ev := s.stream(1), s.event()
			l.hosts = nil
			s.must(s.c.RecordEvent(ev, id, 0))
			last := l.hosts[len(l.hosts)-1]
			agent := uint64(s.c.streams[id].agent)
			if last.Kind != event.HostSignal || last.Agent != uint32(agent) || signals[last.Token] || signals[agent] {
				t.Fatalf("an event of agent %d is told as %+v", agent, last)
			}
			signals[last.Token], signals[agent] = true, true
			l.hosts = nil
			s.must(s.c.SynchronizeEvent(ev))
			if want := (event.HostOp{Kind: event.HostWait, Agent: s.c.host, Token: last.Token, Name: "cudaEventSynchronize"}); len(l.hosts) != 1 || l.hosts[0] != want {
				t.Fatalf("waited for with %+v, want %+v", l.hosts, want)
			}
		}
	}
}

// TestContextsApart checks that what one context does orders nothing in another.
func TestContextsApart(t *testing.T) {
	s := newScript(t)
	other := &script{T: t, c: s.c.dev.NewContext()}
	m, err := other.c.LoadModule(Image{"k.ptx", emptyKernel})
	s.must(err)
	other.k, err = m.Kernel("k")
	s.must(err)
	s.launch(0)
	s.must(s.c.Synchronize())
	other.must(other.c.Synchronize())
	other.launch(0)
	if got := s.log.before[2]; len(got) != 0 {
		t.Errorf("before a launch of another context: %v", got)
	}
	s.launch(StreamPerThread, 1)
	if got := s.log.before[3]; !got[1] || got[2] {
		t.Errorf("before a launch of the first context: %v", got)
	}
}

// TestReset checks that a reset takes the streams, events and modules of a context, and leaves its error.
func TestReset(t *testing.T) {
	s := newScript(t)
	m := s.k.module
	id, ev := s.stream(0), s.event()
	s.launch(StreamPerThread, 1)
	p, err := s.c.Malloc(1000, devmem.DeviceAlloc)
	s.must(err)
	s.must(s.c.Reset())
	if len(s.c.streams) != 0 || len(s.c.gpu.perThread) != 0 || len(s.c.events) != 0 || len(s.c.modules) != 0 || len(s.c.allocs) != 0 {
		t.Errorf("left: %+v", s.c)
	}
	if _, ok := s.c.Find(p); ok {
		t.Error("memory is left")
	}
	for _, err := range []error{s.c.SynchronizeStream(id, 0), s.c.SynchronizeEvent(ev), s.c.DestroyStream(id), s.c.DestroyEvent(ev)} {
		if code(err) != InvalidResourceHandle {
			t.Errorf("%v", err)
		}
	}
	s.must(m.Unload())
	if next := s.stream(0); next == id || next == StreamID(ev) {
		t.Errorf("stream %d is given again", next)
	}
	s.c.sticky = fail(IllegalAddress, "lost")
	if code(s.c.Reset()) != IllegalAddress || code(s.c.Synchronize()) != IllegalAddress {
		t.Error("a reset takes the error")
	}
}

// TestNeedsOfSink checks that host operations are passed only to sinks that request them, at the end of each call.
func TestNeedsOfSink(t *testing.T) {
	for needs, want := range map[event.Needs]bool{event.NeedHost: true, event.NeedHost | event.NeedGlobal: true, event.NeedGlobal: false, 0: false} {
		l := &log{}
		d, err := NewDevice(Config{Engine: &player{}, Sink: l, Needs: needs, MemorySize: 1 << 24})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		p, err := d.NewContext().Malloc(1000, devmem.DeviceAlloc)
		if err != nil || (len(l.hosts) == 1) != want {
			t.Errorf("needs %v: told %+v, %v", needs, l.hosts, err)
		}
		if want && l.hosts[0] != (event.HostOp{Kind: event.HostAlloc, Agent: l.hosts[0].Agent, Addr: p, Size: 1000, Name: "cudaMalloc"}) {
			t.Errorf("told %+v", l.hosts)
		}
	}
}
