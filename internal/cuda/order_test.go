package cuda

import (
	"context"
	"maps"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

const emptyKernel = `.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { ret; }
.visible .entry half(.param .u8 a, .param .u64 b) { ret; }
`

// causality follows the signals and waits of a device, and knows for each launch which launches came before it.
type causality struct {
	seen   map[uint32]map[uint32]bool // agent: launches it is ordered after
	tokens map[uint64]map[uint32]bool
	before map[uint32]map[uint32]bool // launch: launches before it

	devices []uint8 // of the launches
}

func newCausality() *causality {
	return &causality{seen: map[uint32]map[uint32]bool{}, tokens: map[uint64]map[uint32]bool{}, before: map[uint32]map[uint32]bool{}}
}

func (c *causality) agent(a uint32) map[uint32]bool {
	if c.seen[a] == nil {
		c.seen[a] = map[uint32]bool{}
	}
	return c.seen[a]
}

func (c *causality) Events(b *event.Batch) {
	for _, e := range b.Events {
		if e.Kind != event.Host {
			continue
		}
		switch h := b.Hosts[e.Side]; h.Kind {
		case event.HostSignal:
			c.tokens[h.Token] = maps.Clone(c.agent(h.Agent))
		case event.HostWait:
			maps.Copy(c.agent(h.Agent), c.tokens[h.Token])
		}
	}
}

// Run implements engine.Engine: a launch does nothing but take its place in the order.
func (c *causality) Run(_ context.Context, l *engine.Launch) (engine.Stats, error) {
	a := c.agent(l.Agent)
	c.before[l.ID] = maps.Clone(a)
	a[l.ID] = true
	c.devices = append(c.devices, l.Device)
	return engine.Stats{}, nil
}

// script drives a context; every launch gets the next number from 1.
type script struct {
	*testing.T
	c   *Context
	k   *Kernel
	log *causality
}

func newScript(t *testing.T) *script {
	t.Helper()
	log := newCausality()
	d, err := NewDevice(Config{Engine: log, Sink: log, Needs: event.NeedHost, MemorySize: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	c := d.NewContext()
	m, err := c.LoadModule(Image{"k.ptx", emptyKernel})
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	return &script{t, c, k, log}
}

func (s *script) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *script) stream(flags uint64) StreamID {
	s.Helper()
	id, err := s.c.CreateStream(flags, 0)
	s.must(err)
	return id
}

// hostFunction puts a function into a stream and executes it in a thread that acquires what others have closed.
func (s *script) hostFunction(id StreamID, thread uint32, acquires ...Closed) {
	s.Helper()
	const runs, number = 99, 9
	agent, err := s.c.HostFunction(id, thread)
	s.must(err)
	was := s.c.host
	s.c.Learn(runs, number, true, 0, nil)
	s.c.speak(runs)
	s.must(s.c.RunsHostFunction(agent, false))
	s.c.Learn(runs, number, true, 0, acquires)
	s.must(s.c.RunsHostFunction(agent, true))
	s.c.host = was
}

func (s *script) event() EventID {
	s.Helper()
	id, err := s.c.CreateEvent(0)
	s.must(err)
	return id
}

func (s *script) launch(id StreamID, thread ...uint32) {
	s.Helper()
	cfg := LaunchConfig{Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}, Stream: id}
	if len(thread) > 0 {
		cfg.Thread = thread[0]
	}
	s.must(s.c.Launch(context.Background(), s.k, cfg, nil))
}

// TestStreamOrder checks what orders two or three launches and what does not. Each case says which launches come before the last.
func TestStreamOrder(t *testing.T) {
	cases := []struct {
		name   string
		do     func(s *script)
		before []uint32
	}{
		{"one stream", func(s *script) { a := s.stream(0); s.launch(a); s.launch(a) }, []uint32{1}},
		{"two streams", func(s *script) { a, b := s.stream(0), s.stream(0); s.launch(a); s.launch(b) }, nil},
		{"two non-blocking streams", func(s *script) { a, b := s.stream(1), s.stream(1); s.launch(a); s.launch(b) }, nil},
		{"legacy after blocking", func(s *script) { a := s.stream(0); s.launch(a); s.launch(0) }, []uint32{1}},
		{"blocking after legacy", func(s *script) { a := s.stream(0); s.launch(0); s.launch(a) }, []uint32{1}},
		{"legacy between blocking", func(s *script) { a, b := s.stream(0), s.stream(0); s.launch(a); s.launch(0); s.launch(b) }, []uint32{1, 2}},
		{"legacy event record between blocking", func(s *script) {
			a, b := s.stream(0), s.stream(0)
			s.launch(a)
			s.must(s.c.RecordEvent(s.event(), 0, 0))
			s.launch(b)
		}, []uint32{1}},
		{"legacy and non-blocking", func(s *script) { a := s.stream(1); s.launch(0); s.launch(a) }, nil},
		{"non-blocking and legacy", func(s *script) { a := s.stream(1); s.launch(a); s.launch(0) }, nil},
		{"legacy after destroyed blocking", func(s *script) {
			a := s.stream(0)
			s.launch(a)
			s.must(s.c.DestroyStream(a))
			s.launch(0)
		}, []uint32{1}},
		{"legacy after destroyed non-blocking", func(s *script) {
			a := s.stream(1)
			s.launch(a)
			s.must(s.c.DestroyStream(a))
			s.launch(0)
		}, nil},
		{"per-thread streams of two threads", func(s *script) { s.launch(StreamPerThread, 1); s.launch(StreamPerThread, 2) }, nil},
		{"per-thread stream of one thread", func(s *script) { s.launch(StreamPerThread, 1); s.launch(StreamPerThread, 1) }, []uint32{1}},
		{"per-thread and legacy", func(s *script) { s.launch(StreamPerThread, 1); s.launch(StreamLegacy) }, []uint32{1}},
		{"event", func(s *script) {
			a, b, e := s.stream(1), s.stream(1), s.event()
			s.launch(a)
			s.must(s.c.RecordEvent(e, a, 0))
			s.must(s.c.WaitEvent(b, 0, e))
			s.launch(b)
		}, []uint32{1}},
		{"event before the launch", func(s *script) {
			a, b, e := s.stream(1), s.stream(1), s.event()
			s.must(s.c.RecordEvent(e, a, 0))
			s.launch(a)
			s.must(s.c.WaitEvent(b, 0, e))
			s.launch(b)
		}, nil},
		{"event recorded again", func(s *script) {
			a, b, c, e := s.stream(1), s.stream(1), s.stream(1), s.event()
			s.launch(a)
			s.must(s.c.RecordEvent(e, a, 0))
			s.must(s.c.RecordEvent(e, b, 0)) // replaces: a is forgotten
			s.must(s.c.WaitEvent(c, 0, e))
			s.launch(c)
		}, nil},
		{"event never recorded", func(s *script) {
			a, b, e := s.stream(1), s.stream(1), s.event()
			s.launch(a)
			s.must(s.c.WaitEvent(b, 0, e))
			s.launch(b)
		}, nil},
		{"event synchronise", func(s *script) {
			a, b, e := s.stream(1), s.stream(1), s.event()
			s.launch(a)
			s.must(s.c.RecordEvent(e, a, 0))
			s.must(s.c.SynchronizeEvent(e))
			s.launch(b)
		}, []uint32{1}},
		{"stream synchronise", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			s.launch(a)
			s.must(s.c.SynchronizeStream(a, 0))
			s.launch(b)
		}, []uint32{1}},
		{"other stream synchronise", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			s.launch(a)
			s.must(s.c.SynchronizeStream(b, 0))
			s.launch(b)
		}, nil},
		{"device synchronise", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			s.launch(a)
			s.must(s.c.Synchronize())
			s.launch(b)
		}, []uint32{1}},
		{"device synchronise after destroy", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			s.launch(a)
			s.must(s.c.DestroyStream(a))
			s.must(s.c.Synchronize())
			s.launch(b)
		}, []uint32{1}},
		{"cudaFree", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			p, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
			s.launch(a)
			s.must(s.c.Free(p))
			s.launch(b)
		}, []uint32{1}},
		{"cudaMalloc orders nothing", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			s.launch(a)
			_, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
			s.launch(b)
		}, nil},
		{"copy to the host", func(s *script) {
			b := s.stream(1)
			p, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
			s.launch(0)
			s.must(s.c.Read(p, make([]byte, 16)))
			s.launch(b)
		}, []uint32{1}},
		{"copy from pageable memory", func(s *script) {
			b := s.stream(1)
			p, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
			s.launch(0)
			s.must(s.c.Write(p, make([]byte, 16)))
			s.launch(b)
		}, []uint32{1}},
		{"asynchronous copy from pageable memory", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			p, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
			s.launch(a)
			s.must(s.c.OrderCopy(Copy{Dst: p, Src: 4096, Width: 16, Height: 1, Depth: 1, Kind: HostToDevice, Async: true}, a, 0))
			s.launch(b)
		}, nil},
		{"memset is asynchronous", func(s *script) {
			b := s.stream(1)
			p, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
			s.launch(0)
			s.must(s.c.OrderFill(Copy{Dst: p, Width: 16, Height: 1, Depth: 1}, 0, 0))
			s.launch(b)
		}, nil},
		{"memset of managed memory waits", func(s *script) {
			b := s.stream(1)
			p, err := s.c.Malloc(16, devmem.ManagedAlloc)
			s.must(err)
			s.launch(0)
			s.must(s.c.OrderFill(Copy{Dst: p, Width: 16, Height: 1, Depth: 1}, 0, 0))
			s.launch(b)
		}, []uint32{1}},
		{"host function", func(s *script) {
			a, b := s.stream(1), s.stream(1)
			s.launch(a)
			s.hostFunction(a, 0)
			s.launch(b)
		}, nil},
		{"host function and later work of its stream", func(s *script) {
			a := s.stream(1)
			s.launch(a)
			s.hostFunction(a, 0)
			s.launch(a)
		}, []uint32{1}},
		{"host function that acquires what another thread has released", func(s *script) {
			s.c.dev.cfg.Sink = certain{s.log}
			a, b := s.stream(1), s.stream(1)
			s.c.Learn(1, 0, false, 0, nil)
			s.c.Learn(2, 1, false, 0, nil)
			s.c.speak(2)
			s.launch(b, 2)
			s.must(s.c.SynchronizeStream(b, 2))
			s.c.speak(1)
			s.hostFunction(a, 1, Closed{1, 1})
			s.launch(a, 1)
		}, []uint32{1}},
		{"host function that another thread acquires from", func(s *script) {
			s.c.dev.cfg.Sink = certain{s.log}
			a, b := s.stream(1), s.stream(1)
			s.launch(a)
			s.hostFunction(a, 0)
			s.launch(a)
			s.c.Learn(2, 1, false, 0, []Closed{{9, 1}})
			s.c.speak(2)
			s.launch(b, 2)
		}, []uint32{1}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript(t)
			tc.do(s)
			last := uint32(len(s.log.before))
			want := map[uint32]bool{}
			for _, l := range tc.before {
				want[l] = true
			}
			if got := s.log.before[last]; !maps.Equal(got, want) {
				t.Errorf("launches before launch %d: %v, want %v", last, got, want)
			}
		})
	}
}

// TestAccessesOfCopies checks that copies and fills tell what they touch.
func TestAccessesOfCopies(t *testing.T) {
	d, l := newTestDevice(t)
	c := d.NewContext()
	p, err := c.Malloc(4096, devmem.DeviceAlloc)
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Malloc(4096, devmem.PinnedAlloc)
	if err != nil {
		t.Fatal(err)
	}
	l.hosts = nil
	box := Copy{Dst: p, DstPitch: 64, Src: h, SrcPitch: 16, Width: 16, Height: 3, Depth: 1, Kind: HostToDevice}
	if err := c.OrderCopy(box, 0, 0); err != nil {
		t.Fatal(err)
	}
	var got []event.HostOp
	for _, o := range l.hosts {
		if o.Kind == event.HostRead || o.Kind == event.HostWrite {
			got = append(got, o)
		}
	}
	name := "cudaMemcpy2D (default stream)"
	agent := c.gpu.legacy.agent
	want := []event.HostOp{
		{Kind: event.HostRead, Agent: agent, Addr: h, Size: 48, Name: name},
		{Kind: event.HostWrite, Agent: agent, Addr: p, Size: 16, Name: name},
		{Kind: event.HostWrite, Agent: agent, Addr: p + 64, Size: 16, Name: name},
		{Kind: event.HostWrite, Agent: agent, Addr: p + 128, Size: 16, Name: name},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("access %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestStreamAllocations checks that memory of a stream is told as written where it begins and ends in stream order: what other
// streams do with it before or after is a race.
func TestStreamAllocations(t *testing.T) {
	d, l := newTestDevice(t)
	c := d.NewContext()
	a, err := c.CreateStream(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.MallocAsync(1000, a, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.FreeAsync(p, 0, 0); err != nil {
		t.Fatal(err)
	}
	if zero, err := c.MallocAsync(0, a, 0); zero != 0 || err != nil {
		t.Errorf("0 bytes at %#x, %v", zero, err)
	}
	var got []event.HostOp
	for _, o := range l.hosts {
		if o.Kind >= event.HostRead {
			got = append(got, o)
		}
	}
	s := c.streams[a]
	alloc, free := "cudaMallocAsync ("+s.name+")", "cudaFreeAsync (default stream)"
	want := []event.HostOp{
		{Kind: event.HostAlloc, Agent: s.agent, Addr: p, Size: 1000, Name: "cudaMallocAsync"},
		{Kind: event.HostWrite, Agent: s.agent, Addr: p, Size: 1000, Name: alloc},
		{Kind: event.HostWrite, Agent: c.gpu.legacy.agent, Addr: p, Size: 1000, Name: free},
		{Kind: event.HostFree, Agent: c.gpu.legacy.agent, Addr: p, Size: 1000, Name: free},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
