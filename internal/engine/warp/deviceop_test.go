package warp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

const deviceFunctions = `
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 (.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2_ptsz (.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags (.param .b64 s, .param .b32 f);
.extern .func (.param .b32 r) __cudaCDP2MemsetAsync (.param .b64 p, .param .b32 v, .param .b64 n, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2GetLastError ();
.visible .entry child(.param .u64 p, .param .u32 n) { ret; }
`

// launchOf returns code that launches a function with grid (2,3,n) and parameters out and 7 into the stream %rd5. %r9
// is the error.
func launchOf(function string) string {
	return `
	{
	.param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 r;
	mov.u64 %rd1, child;
	st.param.b64 [f], %rd1;
	st.param.b32 [g], 2; st.param.b32 [g+4], 3; st.param.b32 [g+8], %n;
	st.param.b32 [b], 64; st.param.b32 [b+4], 1; st.param.b32 [b+8], %gid;
	st.param.b32 [s], 128;
	call (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
	ld.param.b64 %rd2, [r];
	}
	st.b64 [%rd2], %out;
	mov.u32 %r2, 7;
	st.b32 [%rd2+8], %r2;
	{
	.param .b64 p; .param .b64 s; .param .b32 r;
	st.param.b64 [p], %rd2;
	st.param.b64 [s], %rd5;
	call (r), ` + function + `, (p, s);
	ld.param.b32 %r9, [r];
	}
`
}

// TestDeviceOps checks on both engines the operations that threads enqueue into streams of the device.
func TestDeviceOps(t *testing.T) {
	body := `
	setp.ge.u32 %p1, %gid, 2;
	@%p1 ret;
	mov.u64 %rd5, 0;` + launchOf("__cudaCDP2LaunchDeviceV2") + launchOf("__cudaCDP2LaunchDeviceV2_ptsz") + `
	mov.u64 %rd5, 4;` + launchOf("__cudaCDP2LaunchDeviceV2") + `
	mov.u64 %rd5, 3;` + launchOf("__cudaCDP2LaunchDeviceV2") + `
	mov.u64 %rd5, 99;` + launchOf("__cudaCDP2LaunchDeviceV2") + `
	st.global.u32 [%mine], %r9;
	{ .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 %r9, [r]; }
	st.global.u32 [%mine+8], %r9;
	{ .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 %r9, [r]; }
	st.global.u32 [%mine+16], %r9;
	.local .align 8 .b8 box[8];
	{
	.param .b64 s; .param .b32 f; .param .b32 r;
	mov.u64 %rd3, box;
	cvta.local.u64 %rd3, %rd3;
	st.param.b64 [s], %rd3;
	st.param.b32 [f], 1;
	call (r), __cudaCDP2StreamCreateWithFlags, (s, f);
	}
	{
	.param .b64 p; .param .b32 v; .param .b64 n; .param .b64 s; .param .b32 r;
	ld.local.u64 %rd3, [box];
	st.param.b64 [p], %out;
	st.param.b32 [v], 0x1ff;
	mov.u64 %rd4, 12;
	st.param.b64 [n], %rd4;
	st.param.b64 [s], %rd3;
	call (r), __cudaCDP2MemsetAsync, (p, v, n, s);
	ld.param.b32 %r9, [r];
	}
	st.global.u32 [%mine+24], %r9;`
	want := `launch 0 {0 0} (2,3,5) (64,1,0) 128 7
launch 1 {1 0} (2,3,5) (64,1,0) 128 7
launch 2 {3 2} (2,3,5) (64,1,0) 128 7
launch 3 {4 0} (2,3,5) (64,1,0) 128 7
set {2 65536} 12 255
launch 0 {0 0} (2,3,5) (64,1,1) 128 7
launch 1 {1 1} (2,3,5) (64,1,1) 128 7
launch 2 {3 2} (2,3,5) (64,1,1) 128 7
launch 3 {4 0} (2,3,5) (64,1,1) 128 7
set {2 65537} 12 255
`
	for name, emulator := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New(), "raw": runner{raw: true}} {
		g := newRig(t, prelude+deviceFunctions+entry("k", body))
		out := g.buffer(16)
		l := g.prepare(launch{out: out, n: 5})
		byThread := map[uint32]string{} // by the y coordinate of the block
		told, last := 0, uint32(0)
		l.Needs, l.Sink = event.NeedSync, eachEvent(func(_ *event.Batch, e *event.Event) {
			if e.Kind == event.DeviceOp {
				if told++; e.Aux != uint32(told) || e.Mask&(e.Mask-1) != 0 {
					t.Errorf("%s: event %+v, which is number %d", name, e, told)
				}
			}
		})
		sets := uint32(0)
		l.Queue = queueFunc(func(op *engine.DeviceOp) (uint32, string) {
			if op.Number != last+1 {
				t.Errorf("%s: operation %d after %d", name, op.Number, last)
			}
			last = op.Number
			switch op.Kind {
			case engine.DeviceLaunch:
				thread := op.Block.Z
				if op.Func.Name != "child" || len(op.Params) != 12 || devmem.Uint(op.Params, 8) != out {
					t.Errorf("%s: %s with parameters %x", name, op.Func.Name, op.Params)
				}
				n := strings.Count(byThread[thread], "\n")
				id := op.Stream
				if id.Kind == engine.FireAndForget {
					id.ID = 2 // the number depends on the order of threads
				}
				byThread[thread] += fmt.Sprintf("launch %d %v %v %v %d %d\n", n, id, op.Grid, op.Block, op.Shared, devmem.Uint(op.Params[8:], 4))
			case engine.DeviceSet:
				byThread[sets] += fmt.Sprintf("set %v %d %d\n", op.Stream, op.Size, op.Value)
				sets++
			}
			return 0, ""
		})
		if _, err := emulator.Run(context.Background(), l); err != nil {
			t.Fatal(err)
		}
		if got := byThread[0] + byThread[1]; got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
		if w := g.words(out, 8); w[0] != 400 || w[1] != 400 || w[2] != 400 || w[3] != 400 || w[4]|w[5]|w[6]|w[7] != 0 {
			t.Errorf("%s: the error codes are %d", name, w)
		}
		if told != 10 || int(last) != told {
			t.Errorf("%s: %d events, %d operations", name, told, last)
		}
		for _, a := range g.mem.Known() {
			if a.Name == engine.DeviceParameters && !a.Freed {
				t.Errorf("%s: parameters are left", name)
			}
		}
	}
}

// queueFunc is a function that implements a queue.
type queueFunc func(op *engine.DeviceOp) (uint32, string)

func (f queueFunc) Put(op *engine.DeviceOp) (uint32, string) { return f(op) }
func (f queueFunc) ErrorText(uint32) (name, text string)     { return "name", "text" }

func (f queueFunc) Attribute(uint32) (int32, uint32) { return 0, 0 }

func (f queueFunc) FuncAttributes(*isa.Func) (engine.FuncAttributes, uint32) {
	return engine.FuncAttributes{}, 0
}

func (f queueFunc) Occupancy(*isa.Func, uint64, uint64) (int, uint32) { return 0, 0 }

// TestDeviceOpsRefused checks programs with wrong declarations or arguments, and launches that are not performed.
func TestDeviceOpsRefused(t *testing.T) {
	for _, c := range []struct{ functions, body, want string }{
		{deviceFunctions, "mov.u64 %rd5, 0;" + launchOf("__cudaCDP2LaunchDeviceV2"), "kernels that launch kernels cannot be executed here"},
		{".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 ();", "{ .param .b64 r; call (r), __cudaCDP2GetParameterBufferV2, (); }", "which is no kernel"},
		{".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 ();", "{ .param .b32 r; call (r), __cudaCDP2LaunchDeviceV2, (); }", ""},
		{".extern .func cudaStreamCreateWithFlags (.param .b64 a);", "{ .param .b64 a; st.param.b64 [a], 16; call cudaStreamCreateWithFlags, (a); }", ""},
		{".extern .func __cudaCDP2MemcpyAsync (.param .b32 a, .param .align 4 .b8 b[12]);", "{ .param .b32 a; .param .align 4 .b8 b[12]; call __cudaCDP2MemcpyAsync, (a, b); }", ""},
	} {
		for name, emulator := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": New()} {
			g := newRig(t, prelude+c.functions+entry("k", c.body))
			l := g.prepare(launch{out: g.buffer(64)})
			got := ""
			l.OnFault = func(f engine.Fault) { got += f.Message }
			if _, err := emulator.Run(context.Background(), l); err != nil {
				t.Fatal(err)
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: %s\n%q, want %q", name, c.body, got, c.want)
			}
		}
	}
}

// TestDeviceRuntime checks that the functions of the device runtime that package isa knows are those that exist.
func TestDeviceRuntime(t *testing.T) {
	for _, name := range isa.DeviceRuntimeCalls() {
		g := newRig(t, prelude+".extern .func __cudaCDP2"+name+"_ptsz ();"+".extern .func cuda"+name+" ();"+entry("k", "call cuda"+name+"; call __cudaCDP2"+name+"_ptsz;"))
		if !g.prog.Kernel("k").LaunchesKernels() {
			t.Errorf("%s is not known", name)
		}
	}
}
