package instrument_test

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
)

// randomKernel writes kernels whose threads race. The operations of a thread depend only on its number and its block's,
// and never on a value that it reads. So they do not depend on the schedule.
type randomKernel struct {
	*rand.Rand
	b        strings.Builder
	labels   int
	inFunc   bool
	switches bool // with calls of the functions of fencepost.h
}

const bufferBytes = 512 // size of the buffer and of the shared array

func (k *randomKernel) line(format string, args ...any) { fmt.Fprintf(&k.b, format+"\n", args...) }

func (k *randomKernel) pick(words ...string) string { return words[k.IntN(len(words))] }

func (k *randomKernel) label() string {
	k.labels++
	return fmt.Sprintf("L%d", k.labels)
}

// index writes code that sets %r5 to an index. The index decides which threads access the same location.
func (k *randomKernel) index() {
	switch k.IntN(7) {
	case 0:
		k.line("mov.u32 %%r5, %d;", k.IntN(16))
	case 1:
		k.line("mov.u32 %%r5, %%r1;")
	case 2:
		k.line("shr.u32 %%r5, %%r1, %d;", 1+k.IntN(5))
	case 3:
		k.line("xor.b32 %%r5, %%r1, %d;", k.IntN(64))
	case 4:
		k.line("mad.lo.u32 %%r5, %%r2, 64, %%r1;")
	case 5:
		k.line("mad.lo.u32 %%r5, %%r1, %d, %%r2;", k.IntN(9))
	case 6:
		k.line("add.u32 %%r5, %%r2, %d;", k.IntN(16))
	}
}

// access writes an access to the address in %rd2.
func (k *randomKernel) access() {
	size := 1 << []int{0, 1, 2, 2, 2, 3, 4}[k.IntN(7)]
	space := k.pick(".global", ".global", ".shared", "")
	k.index()
	k.line("and.b32 %%r5, %%r5, %d; mul.wide.u32 %%rd2, %%r5, %d;", bufferBytes/size-1, size)
	base := "%rd1"
	switch {
	case k.inFunc:
		base, space = "%rd4", ""
	case space == ".shared":
		base = "%rd5"
	case space == "":
		base = k.pick("%rd1", "%rd6")
	}
	k.line("add.s64 %%rd2, %s, %%rd2;", base)
	guard := k.pick("", "", "", "@%p1 ", "@!%p2 ")
	at := fmt.Sprintf("[%%rd2%s]", k.pick("", "", "+0"))
	typ := fmt.Sprintf("u%d", 8*min(size, 8))
	value := map[int]string{1: "%h1", 2: "%h1", 4: "%r6", 8: "%rd3", 16: "{%rd3, %rd7}"}[size]
	vec := ""
	if size == 16 {
		vec = ".v2"
	}
	kind := k.IntN(10)
	switch {
	case kind < 3:
		k.line("%sld%s%s.%s %s, %s;", guard, space, vec, strings.Replace(typ, "u", "b", 1), value, at)
	case kind < 6:
		k.line("%sst%s%s.%s %s, %s;", guard, space, vec, strings.Replace(typ, "u", "b", 1), at, value)
	case kind == 6 && size < 16:
		k.line("%sld%s%s.%s %s, %s;", guard, k.pick(".relaxed.cta", ".relaxed.gpu", ".acquire.gpu", ".volatile"), space, typ, value, at)
	case kind == 7 && size < 16:
		k.line("%sst%s%s.%s %s, %s;", guard, k.pick(".relaxed.cta", ".relaxed.gpu", ".release.gpu", ".volatile"), space, typ, at, value)
	case size == 4 || size == 8:
		scope := k.pick("", ".cta", ".gpu", ".sys")
		b := fmt.Sprintf("b%d", 8*size)
		k.line("%s%s;", guard, k.pick("atom"+scope+space+".add."+typ+" "+value+", "+at+", "+value, "red"+scope+space+".max."+typ+" "+at+", "+value,
			"atom"+scope+space+".cas."+b+" "+value+", "+at+", "+value+", "+value, "atom"+scope+space+".exch."+b+" _, "+at+", "+value))
	default:
		k.line("%sst%s.u32 [%s], %%r1;", guard, space, base)
	}
}

// toggle switches the checking of a thread or of memory on or off.
func (k *randomKernel) toggle() {
	if k.IntN(3) == 0 {
		k.line("{ .param .b32 a; st.param.b32 [a], %d; call fencepost_check_thread, (a); }", k.IntN(2))
		return
	}
	base := k.pick("%rd1", "%rd6")
	if k.inFunc {
		base = "%rd4"
	}
	k.line("add.s64 %%rd2, %s, %d;", base, k.IntN(bufferBytes))
	k.line("{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %%rd2; st.param.b64 [b], %d; st.param.b32 [c], %d; call fencepost_check_memory, (a, b, c); }",
		k.IntN(40), k.IntN(2))
}

// body writes a few statements. A nested statement never waits for threads that may not arrive.
func (k *randomKernel) body(depth int) {
	for range 1 + k.IntN(4) {
		switch n := k.IntN(12); {
		case k.switches && k.IntN(4) == 0:
			k.toggle()
		case n < 6:
			k.access()
		case n == 6:
			k.line("%s;", k.pick("membar.gl", "membar.cta", "fence.acq_rel.gpu", "fence.sc.cta"))
		case n == 7 && depth == 0:
			k.line("%s;", k.pick("bar.sync 0", "bar.sync 1, 64", "bar.red.popc.u32 %r7, 0, %p1", "bar.arrive 2, 128; bar.sync 2, 128"))
		case n == 8 && depth == 0:
			k.line("bar.warp.sync 0xffffffff;")
		case n == 9 && depth < 3:
			p, alt, end := k.pick("%p1", "!%p2"), k.label(), k.label()
			k.line("@%s bra %s;", p, alt)
			k.body(depth + 1)
			k.line("bra %s;\n%s:", end, alt)
			k.body(depth + 1)
			k.line("%s:", end)
		case n == 10 && depth < 3:
			head := k.label()
			k.line("mov.u32 %%c%d, %d;\n%s:", depth, 1+k.IntN(3), head)
			k.body(depth + 1)
			k.line("sub.u32 %%c%d, %%c%d, 1; setp.ne.u32 %%p3, %%c%d, 0; @%%p3 bra %s;", depth, depth, depth, head)
		case n == 11 && !k.inFunc:
			k.line("{ .param .b64 a; st.param.b64 [a], %s; call f, (a); }", k.pick("%rd1", "%rd6"))
		default:
			k.access()
		}
	}
}

// registers declares the registers, and sets those that depend on the thread.
const registers = `.reg .b16 %h<3>; .reg .b32 %r<9>, %c<4>; .reg .b64 %rd<9>; .reg .pred %p<4>;
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u16 %h1, 1; mov.u32 %r6, 1; mov.u64 %rd3, 1; mov.u64 %rd7, 1;
`

// arms writes predicates that differ between threads.
func (k *randomKernel) arms() {
	k.line("and.b32 %%r3, %%r1, %d; setp.ne.u32 %%p1, %%r3, 0;", 1<<k.IntN(6))
	k.line("setp.%s.u32 %%p2, %s, %d;", k.pick("lt", "eq"), k.pick("%r1", "%r2"), k.IntN(33))
}

// program returns a program with one kernel, which has 64 threads in a block and calls a function.
func (k *randomKernel) program(seed uint64) *corpus.Program {
	k.line(".version 7.0\n.target sm_80\n.address_size 64\n.weak .func fencepost_check_thread(.param .b32 q) { ret; }\n"+
		".weak .func fencepost_check_memory(.param .b64 q, .param .b64 r, .param .b32 s) { ret; }\n.func f(.param .b64 q)\n{\n%sld.param.u64 %%rd4, [q];", registers)
	k.inFunc = true
	k.arms()
	k.body(1)
	k.inFunc = false
	k.line("ret;\n}\n.visible .entry k(.param .u64 p)\n{\n.shared .align 16 .b8 s[%d];\n%sld.param.u64 %%rd1, [p];", bufferBytes, registers)
	k.line("mov.u64 %%rd5, s; cvta.shared.u64 %%rd6, %%rd5;")
	k.arms()
	for range 1 + k.IntN(3) {
		k.body(0)
	}
	k.line("ret;\n}")
	launch := fmt.Appendf(nil, "kernel = \"k\"\ngrid = %d\nblock = 64\nargs = [{ buffer = \"x\", type = \"i32\", shape = [%d], fill = 0 }]\n", 1+k.IntN(4), bufferBytes/4)
	return &corpus.Program{Name: fmt.Sprintf("random%d", seed), Dir: "race", PTX: k.b.String(), Launch: launch}
}

func randomProgram(seed uint64, switches bool) *corpus.Program {
	k := &randomKernel{Rand: rand.New(rand.NewPCG(seed, 17)), switches: switches}
	return k.program(seed)
}

// kernels returns the number of random kernels of a test.
func kernels() uint64 { return uint64(testsize.Of(20, 20, 300)) }

// TestRandomHiRace checks that random kernels that check themselves find what detector hirace finds on the same
// schedule, with any selection.
func TestRandomHiRace(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range kernels() {
		p, w := randomProgram(seed, false), session.Watch{}
		if n := int(seed) % (2 * len(watches())); n < len(watches()) {
			w = watches()[n]
		}
		var options map[string]string
		if seed%5 == 4 {
			options = map[string]string{"granularity": "4"}
		}
		got, want, ok := onBoth(t, p, w, options)
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v: the device found\n%s\nbut detector hirace\n%s\n%s", seed, w, strings.Join(got, "\n"), strings.Join(want, "\n"), p.PTX)
		}
		found += len(got)
	}
	t.Logf("%d findings", found)
	if found < int(kernels()) {
		t.Errorf("%d findings only", found)
	}
}

// watched executes instrumented programs. hb judges them, including the device code.
type watched struct {
	engine.Engine
	launches int
	found    []string // findings with an access in the device code
}

// Run implements engine.Engine.
func (o *watched) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	w := *l
	d := hb.Spec.New(detect.Config{Places: l.Places})
	w.Sink, w.Needs = d, hb.Spec.Needs
	stats, err := o.Engine.Run(ctx, &w)
	o.launches++
	for _, f := range d.Findings() {
		for _, a := range f.Accesses {
			if frames := l.Places.Frames(a.Place); len(frames) > 0 && instrument.Ours(frames[0].Function) {
				o.found = append(o.found, fmt.Sprintf("%s:%d: %s: %s", frames[0].Function, frames[0].PTXLine, f.Kind, f.Message))
			}
		}
	}
	return stats, err
}

// TestRandomOrdered checks by hb that the device code itself has no races. The instrumented random kernels also switch
// checking off and on.
func TestRandomOrdered(t *testing.T) {
	t.Parallel()
	for seed := range kernels() / 10 {
		p := randomProgram(seed, true)
		for mode, d := range []detect.Spec{instrument.Log: hb.Spec, instrument.HiRace: hirace.Spec} {
			o := &watched{Engine: warp.New()}
			r := session.CheckCorpus(context.Background(), &session.Options{Seeds: 1, Jobs: 1, Logged: true, Mode: instrument.Mode(mode), Detectors: []detect.Spec{d},
				Engine: func() engine.Engine { return o }, Timeout: time.Minute}, []*corpus.Program{p})[0]
			if r.Err != nil || o.launches != 1 || len(o.found) > 0 {
				t.Fatalf("seed %d, mode %d: %v, %d launches, found\n%s\n%s", seed, mode, r.Err, o.launches, strings.Join(o.found, "\n"), p.PTX)
			}
		}
	}
}

// stream is a detector that records the operations of each thread and of each barrier of a block.
type stream struct {
	values bool // the events of stores must have values
	places event.Places
	launch event.Launch
	did    map[[2]uint32][]string // by warp and lane; for barriers by block and 32 plus the barrier
}

func (s *stream) Findings() []detect.Finding { return nil }

func (s *stream) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		where := ""
		for _, f := range s.places.Frames(e.Place) {
			where += fmt.Sprintf(" %s:%d", f.Function, f.PTXLine)
		}
		switch e.Kind {
		case event.KernelBegin:
			s.launch = b.Launches[e.Side]
			continue
		case event.KernelEnd:
			continue
		case event.BarrierDone:
			at := [2]uint32{e.Warp / s.launch.WarpsPerBlock(), 32 + uint32(e.Barrier)}
			s.did[at] = append(s.did[at], "done")
			continue
		}
		flags := e.Flags & (event.FlagWait | event.FlagAligned)
		if e.Kind <= event.Atomic {
			flags = e.Flags & (event.FlagRead | event.FlagWrite | event.FlagRed | event.FlagVector)
			if e.RMW == event.CompareAndSwap {
				flags &^= event.FlagWrite // whether it swaps depends on the schedule
			}
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := uint64(0)
			if e.Kind <= event.Atomic {
				addr = b.AddrOf(e, lane) % bufferBytes // variables of the device code move the buffer
			}
			at := [2]uint32{e.Warp, uint32(lane)}
			s.did[at] = append(s.did[at], fmt.Sprintf("kind %d at%s, addr %#x size %d space %d order %d scope %d aux %d barrier %d rmw %d flags %#x",
				e.Kind, where, addr, e.Size, e.Space, e.Order, e.Scope, e.Aux, e.Barrier, e.RMW, flags)+s.stored(b, e, lane))
		}
	}
}

// stored returns the value that a lane stores, if values is set.
func (s *stream) stored(b *event.Batch, e *event.Event, lane int) string {
	if !s.values || e.Kind != event.Store {
		return ""
	}
	return fmt.Sprintf(" %#x", b.ValueOf(e, lane))
}

// streamOf returns the operations of a program's threads, from the emulator or, if logged is set, from its log.
func streamOf(t *testing.T, p *corpus.Program, logged, values bool) *stream {
	t.Helper()
	s := &stream{did: map[[2]uint32][]string{}, values: values}
	needs := event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch
	if values {
		needs |= event.NeedValues
	}
	spec := detect.Spec{Name: "stream", Needs: needs,
		New: func(c detect.Config) detect.Detector { s.places = c.Places; return s }}
	r := session.CheckCorpus(context.Background(), &session.Options{Seeds: 1, Jobs: 1, Logged: logged, Mode: instrument.Log, Detectors: []detect.Spec{spec},
		Timeout: time.Minute}, []*corpus.Program{p})[0]
	if r.Err != nil || r.Report.Skipped != nil {
		t.Fatalf("%v, %+v\n%s", r.Err, r.Report, p.PTX)
	}
	return s
}

// TestStoredValues checks that the log has the stored values for each form of store.
func TestStoredValues(t *testing.T) {
	t.Parallel()
	p := &corpus.Program{Name: "stores", Dir: "race", PTX: `.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b16 %h<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<3>; .reg .f64 %fd<3>; .reg .pred %p;
.shared .align 16 .b8 s[512];
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.lo.u32 %r2, %r1, %r1;
mul.lo.u32 %r3, %r2, 0x9E3779B1;
mul.wide.u32 %rd2, %r3, %r3;
cvt.u16.u32 %h1, %r3;
cvt.rn.f32.u32 %f1, %r3;
cvt.rn.f64.u32 %fd1, %r3;
mul.wide.u32 %rd3, %r1, 32;
add.s64 %rd4, %rd1, %rd3;
setp.gt.u32 %p, %r1, 9;
st.global.u8 [%rd4], %r3;
st.global.u8 [%rd4+1], %h1;
st.global.u8 [%rd4+2], -1;
st.global.s16 [%rd4+4], %h1;
st.global.u16 [%rd4+6], %r3;
st.global.u16 [%rd4+8], -2;
st.global.u32 [%rd4], %r1;
st.global.u32 [%rd4], -7;
st.global.f32 [%rd4], %f1;
st.global.f32 [%rd4], 0f3F800000;
st.global.f64 [%rd4], %fd1;
st.global.f64 [%rd4], 0d3FF0000000000000;
st.global.u64 [%rd4], %rd2;
st.global.v2.u8 [%rd4], {%r1, %r3};
st.global.v4.u8 [%rd4], {%h1, %r1, %r3, %h1};
st.global.v4.u16 [%rd4], {%h1, %h1, 3, %h1};
st.global.v2.f32 [%rd4], {%f1, 0f00000000};
st.global.v4.u32 [%rd4], {%r1, %r2, %r3, 5};
st.global.v2.b64 [%rd4], {%rd2, %rd3};
st.global.v8.b32 [%rd4], {%r1, %r2, %r3, %r1, %r1, %r2, %r3, %r2};
st.global.v4.b64 [%rd4], {%rd2, 1, %rd3, 0};
@%p st.v2.u64 [%rd4], {%rd2, 4};
@!%p st.u64 [%rd4], %rd2;
@%p st.volatile.global.v2.u64 [%rd4], {%rd2, %rd3};
st.release.gpu.global.u32 [%rd4], %r3;
mul.lo.u32 %r4, %r2, 4;
and.b32 %r4, %r4, 508;
cvt.u64.u32 %rd5, %r4;
mov.u64 %rd6, s;
add.s64 %rd6, %rd6, %rd5;
st.shared.u32 [%rd6], %r3;
@%p st.shared.u32 [%rd6], %r1;
cvta.shared.u64 %rd6, %rd6;
@!%p mov.u64 %rd6, %rd4;
st.u32 [%rd6], %r2;
@%p st.u32 [%rd6], 1;
ret;
}
`, Launch: []byte("kernel = \"k\"\ngrid = 1\nblock = 40\nargs = [{ buffer = \"x\", type = \"i32\", shape = [512], fill = 0 }]\n")}
	plain, logged := streamOf(t, p, false, true), streamOf(t, p, true, true)
	if len(plain.did) < 40 {
		t.Fatalf("%d threads", len(plain.did))
	}
	for k, did := range plain.did {
		for i, want := range did {
			if got := logged.did[k]; i >= len(got) || got[i] != want {
				t.Fatalf("%v did\n%s\nand logged\n%s", k, strings.Join(did, "\n"), strings.Join(got, "\n"))
			}
		}
	}
}

// TestRandomLog checks that the log of random kernels has the same operations of each thread and of each barrier as the
// emulator, in the same order.
func TestRandomLog(t *testing.T) {
	t.Parallel()
	operations := 0
	for seed := range kernels() {
		p := randomProgram(seed, false)
		plain, logged := streamOf(t, p, false, false), streamOf(t, p, true, false)
		if len(plain.did) != len(logged.did) {
			t.Errorf("seed %d: %d threads and barriers, logged %d\n%s", seed, len(plain.did), len(logged.did), p.PTX)
		}
		for k, did := range plain.did {
			if operations += len(did); !slices.Equal(did, logged.did[k]) {
				t.Fatalf("seed %d: %v did\n%s\nand logged\n%s\n%s", seed, k, strings.Join(did, "\n"), strings.Join(logged.did[k], "\n"), p.PTX)
			}
		}
	}
	t.Logf("%d operations", operations)
}
