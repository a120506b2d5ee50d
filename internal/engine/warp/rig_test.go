package warp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// rig is a device with one module, for tests.
type rig struct {
	t      testing.TB
	mem    *devmem.Memory
	prog   *loader.Program
	places *places.Table
	bufs   int
	next   uint32
}

// prelude is the beginning of every test kernel: registers and a pointer parameter.
const prelude = `
.version 8.0
.target sm_80
.address_size 64
`

// kernel returns an entry "k" with a body and the parameters out (u64) and n (u32). The registers %out, %n, %tx, %ln,
// %bx and %gid are loaded. Free registers are %r<32>, %rd<32>, %f<16>, %fd<8>, %p<8>.
func kernel(body string) string {
	return prelude + entry("k", body)
}

func entry(name, body string) string {
	return `
.visible .entry ` + name + `(.param .u64 ` + name + `_out, .param .u32 ` + name + `_n)
{
	.reg .b16 %rs<8>;
	.reg .b32 %r<32>, %tx, %ln, %bx, %gid, %n, %nt;
	.reg .b64 %rd<32>, %out, %mine;
	.reg .f32 %f<16>;
	.reg .f64 %fd<8>;
	.reg .pred %p<8>;
	ld.param.u64 %out, [` + name + `_out];
	ld.param.u32 %n, [` + name + `_n];
	mov.u32 %tx, %tid.x;
	mov.u32 %ln, %laneid;
	mov.u32 %bx, %ctaid.x;
	mov.u32 %nt, %ntid.x;
	mad.lo.u32 %gid, %bx, %nt, %tx;
	mul.wide.u32 %mine, %gid, 4;
	add.u64 %mine, %out, %mine;
` + body + `
	ret;
}
`
}

func newRig(t testing.TB, src string) *rig {
	t.Helper()
	mod, err := ptx.Parse("test.ptx", src)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := isa.Decode(mod)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range dec.Kernels() {
		if err := dec.Check(k); err != nil {
			t.Fatal(err)
		}
	}
	mem := testMemory(t, 1<<32)
	prog, err := loader.Load(dec, mem)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, mem: mem, prog: prog, places: places.New()}
}

// buffer allocates n words.
func (g *rig) buffer(words int) uint64 {
	g.bufs++
	return testAlloc(g.t, g.mem, uint64(4*words), devmem.DeviceAlloc, fmt.Sprintf("buffer %d", g.bufs))
}

// words reads n words.
func (g *rig) words(addr uint64, n int) []uint32 {
	g.t.Helper()
	b, err := g.mem.Bytes(addr, uint64(4*n))
	if err != nil {
		g.t.Fatal(err)
	}
	w := make([]uint32, n)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// outcome is the result of a launch.
type outcome struct {
	stats  engine.Stats
	err    error
	faults []engine.Fault
	text   string
	rec    *recorder
}

// launch describes a launch of a rig. The zero value is one block of 32 threads.
type launch struct {
	kernel      string
	grid, block int
	out         uint64
	n           uint32
	dynamic     int
	set         func(l *engine.Launch)
	ctx         context.Context
}

func (g *rig) prepare(s launch) *engine.Launch {
	g.t.Helper()
	if s.kernel == "" {
		s.kernel = "k"
	}
	f := g.prog.Kernel(s.kernel)
	if f == nil {
		g.t.Fatalf("no kernel %s", s.kernel)
	}
	g.next++
	params := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, s.out), s.n)
	l := &engine.Launch{
		Launch: event.Launch{ID: g.next, Kernel: s.kernel, Grid: event.Dim3{X: uint32(max(s.grid, 1)), Y: 1, Z: 1},
			Block: event.Dim3{X: uint32(max(s.block, 1)), Y: 1, Z: 1}},
		Program: g.prog, Places: g.places, Func: f, Params: params, DynamicShared: s.dynamic,
	}
	if s.block == 0 {
		l.Block.X = 32
	}
	return l
}

// run launches and collects all results.
func (g *rig) run(s launch) *outcome {
	g.t.Helper()
	l := g.prepare(s)
	o := &outcome{rec: &recorder{}}
	l.Sink = o.rec
	l.Needs = event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch
	l.OnFault = func(f engine.Fault) { o.faults = append(o.faults, f) }
	l.Printf = func(b []byte) { o.text += string(b) }
	l.MaxSteps = 20_000_000
	if s.set != nil {
		s.set(l)
	}
	if err := engine.Check(l, engine.DefaultLimits()); err != nil {
		g.t.Fatal(err)
	}
	if s.ctx == nil {
		s.ctx = context.Background()
	}
	o.stats, o.err = g.engine().Run(s.ctx, l)
	return o
}

// mustRun is run for launches that must complete without faults.
func (g *rig) mustRun(s launch) *outcome {
	g.t.Helper()
	o := g.run(s)
	if o.err != nil {
		g.t.Errorf("run: %v", o.err)
	}
	for _, f := range o.faults {
		g.t.Errorf("fault: %s: %s %+v", f.Kind, f.Message, f.Stands)
	}
	return o
}

// recorder records events as text, one line each.
type recorder struct {
	lines []string
	count int
	quiet bool
}

func (r *recorder) Events(b *event.Batch) {
	r.count += len(b.Events)
	if r.quiet {
		return
	}
	for i := range b.Events {
		r.lines = append(r.lines, eventText(b, &b.Events[i]))
	}
}

// eventText returns an event as one line.
func eventText(b *event.Batch, e *event.Event) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v w%d %08x", e.Kind, e.Warp, e.Mask)
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		fmt.Fprintf(&s, " %v", e.Space)
		if e.Order != event.Weak {
			fmt.Fprintf(&s, " %v.%v", e.Order, e.Scope)
		}
		s.WriteByte(' ')
		if e.Flags&event.FlagRead != 0 {
			s.WriteByte('r')
		}
		if e.Flags&event.FlagWrite != 0 {
			s.WriteByte('w')
		}
		fmt.Fprintf(&s, "%d", e.Size)
		s.WriteString([]string{"", " cas", " exch"}[e.RMW])
		if !e.Affine() {
			s.WriteString(" scattered")
			for m := e.Mask; m != 0; m &= m - 1 {
				s.WriteString(" " + strconv.FormatUint(b.AddrOf(e, bits.TrailingZeros32(m)), 16))
			}
		} else {
			fmt.Fprintf(&s, " %x%+d", e.Addr, e.Stride)
		}
		lanes := func(title string, of func(*event.Event, int) []uint64) {
			s.WriteString(title)
			for m := e.Mask; m != 0; m &= m - 1 {
				sep := " ["
				for _, word := range of(e, bits.TrailingZeros32(m)) {
					s.WriteString(sep + strconv.FormatUint(word, 16))
					sep = " "
				}
				s.WriteByte(']')
			}
		}
		if e.Flags&event.FlagValues != 0 {
			lanes(" =", b.ValueOf)
		}
		if e.Flags&event.FlagOld != 0 {
			lanes(" over", b.OldOf)
		}
	case event.Fence:
		fmt.Fprintf(&s, " %v.%v", e.Order, e.Scope)
	case event.Arrive:
		fmt.Fprintf(&s, " bar%d", e.Barrier)
		if e.Aux != 0 {
			fmt.Fprintf(&s, "/%d", e.Aux)
		}
		if e.Flags&event.FlagWait != 0 {
			s.WriteString(" wait")
		}
		if e.Flags&event.FlagAligned != 0 {
			s.WriteString(" aligned")
		}
	case event.BarrierDone:
		fmt.Fprintf(&s, " bar%d", e.Barrier)
	case event.Branch:
		fmt.Fprintf(&s, " else %08x", e.Aux)
	}
	return s.String()
}

// wantEvents compares the recorded events with lines of text, in which addresses of buffer base are "out+n".
func (o *outcome) wantEvents(t *testing.T, base uint64, want string) {
	t.Helper()
	var got []string
	for _, l := range o.rec.lines {
		for _, f := range strings.Fields(l) {
			digits, rest, _ := strings.Cut(f, "+")
			var a uint64
			if n, err := fmt.Sscanf(digits, "%x", &a); err == nil && n == 1 && base != 0 && a >= base && a < base+1<<20 && len(digits) > 8 {
				l = strings.Replace(l, f, fmt.Sprintf("out%+d%s", a-base, strings.TrimSuffix(" +"+rest, " +")), 1)
			}
		}
		got = append(got, l)
	}
	var exp []string
	for _, l := range strings.Split(strings.TrimSpace(want), "\n") {
		exp = append(exp, strings.TrimSpace(l))
	}
	for i := range max(len(got), len(exp)) {
		g, e := "(nothing)", "(nothing)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(exp) {
			e = exp[i]
		}
		if g != e {
			t.Errorf("event %d: got %q, want %q", i, g, e)
		}
	}
	if t.Failed() {
		t.Logf("events:\n%s", strings.Join(got, "\n"))
	}
}

// wantFault requires exactly one fault of a kind, with a text in its message.
func (o *outcome) wantFault(t *testing.T, kind engine.FaultKind, text string) engine.Fault {
	t.Helper()
	if len(o.faults) != 1 {
		t.Fatalf("%d faults, want one: %+v", len(o.faults), o.faults)
	}
	f := o.faults[0]
	if f.Kind != kind || !strings.Contains(f.Message, text) {
		t.Errorf("fault %s %q, want %s with %q", f.Kind, f.Message, kind, text)
	}
	if may := kind == engine.BarrierDivergence || kind == engine.UndefinedShuffle || kind == engine.WarpDivergence; f.Warning && !may {
		t.Errorf("fault %s is a warning", kind)
	}
	return f
}

// engine is the engine under test: warp under TestWarp, ref elsewhere.
func (g *rig) engine() engine.Engine {
	if strings.HasPrefix(g.t.Name(), "TestWarp/") {
		return New()
	}
	return engine.NewRef()
}

func testMemory(t testing.TB, size uint64) *devmem.Memory {
	t.Helper()
	m, err := devmem.New(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func testAlloc(t testing.TB, m *devmem.Memory, size uint64, kind devmem.AllocKind, name string) uint64 {
	t.Helper()
	a, err := m.Alloc(size, 0, kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
