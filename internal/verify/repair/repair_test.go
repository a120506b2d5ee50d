package repair

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/model"
)

func TestEditPTX(t *testing.T) {
	for _, c := range []struct {
		line   string
		change Change
		want   string // "" for a change that cannot be written
	}{
		{"\tld.global.u32 %r0, [x];", Change{Order: model.Acquire, Scope: model.GPU, Atomic: true}, "\tld.acquire.gpu.global.u32 %r0, [x];"},
		{"L: @%p0 st.volatile.u8 [x], 1; // a", Change{Order: model.Release, Scope: model.CTA}, "L: @%p0 st.release.cta.u8 [x], 1; // a"},
		{"\tatom.global.cas.b32 %r0, [x], 0, 1;", Change{Order: model.Acquire}, "\tatom.acquire.gpu.global.cas.b32 %r0, [x], 0, 1;"},
		{"\tatom.acquire.cta.add.u32 %r0, [x], 1;", Change{Order: model.Release, Scope: model.Sys}, "\tatom.acq_rel.sys.add.u32 %r0, [x], 1;"},
		{"\tmembar.cta;", Change{Scope: model.GPU}, "\tmembar.gl;"},
		{"\tld.global.v2.u32 {%r0, %r1}, [x];", Change{Order: model.Relaxed, Scope: model.GPU}, ""},
		{"\tld.global.u32 %r0, [x];", Change{Order: model.SC, Scope: model.GPU}, ""},
		{"\ta; b;", Change{Scope: model.GPU}, ""},
		{"L:\tst.u32 [x], 1;", Change{Before: Fence{model.AcqRel, model.GPU}, After: Fence{model.SC, model.CTA}},
			"L:\tfence.acq_rel.gpu;\n\tst.u32 [x], 1;\n\tfence.sc.cta;"},
		{"\tret;", Change{Barrier: true}, "\tbar.sync 0;\n\tret;"},
		{"L:\t@%p0 bar.sync 0;", Change{Drop: true}, "L:\t"},
	} {
		got, err := EditPTX(c.line, map[int]Change{1: c.change})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.line, got, err, c.want)
		}
	}
}

func TestEditCUDA(t *testing.T) {
	relaxed := Change{Order: model.Relaxed, Scope: model.GPU, Atomic: true}
	for _, c := range []struct {
		src    string // the last line is changed
		change CUDA
		want   string
	}{
		{"  x[i] = 1;", CUDA{relaxed, false, true}, "  atomicExch(&x[i], 1);"},
		{"  *x = y;", CUDA{relaxed, false, true}, "  atomicExch(x, y);"},
		{"f(volatile int *flag, volatile unsigned *x) {\n  flag[i] = 1;", CUDA{relaxed, false, true}, "f(volatile int *flag, volatile unsigned *x) {\n  atomicExch((int *)&flag[i], 1);"},
		{"f(volatile float *x) {\n  *x = 1;", CUDA{relaxed, false, true}, "f(volatile float *x) {\n  atomicExch((float *)x, 1);"},
		{"volatile unsigned long long n;\n  n++;", CUDA{relaxed, true, true}, "volatile unsigned long long n;\n  atomicAdd((unsigned long long *)&n, 1);"},
		{"f(volatile int *x);\ng(float *x) {\n  *x = 1;", CUDA{relaxed, false, true}, ""},
		{"f(volatile int *flag, int *x) {\n  *x = 1;", CUDA{relaxed, false, true}, "f(volatile int *flag, int *x) {\n  atomicExch(x, 1);"},
		{"  int a = x[i + 1];", CUDA{relaxed, true, false}, "  int a = atomicAdd(&x[i + 1], 0);"},
		{"  x[i] += f(2);", CUDA{relaxed, true, true}, "  atomicAdd(&x[i], f(2));"},
		{"  *x = *x + 1;", CUDA{relaxed, true, true}, "  atomicAdd(x, 1);"},
		{"  n++;", CUDA{relaxed, true, true}, "  atomicAdd(&n, 1);"},
		{"  n = n + 1 & 7;", CUDA{relaxed, true, true}, ""},
		{"  n = n + a ? b : c;", CUDA{relaxed, true, true}, ""},
		{"  for (int i = 0; i < n; i++) s += x[i];", CUDA{relaxed, true, false}, ""},
		{"  for (int i = a; i < n; i++) s += x[i];", CUDA{relaxed, true, false}, ""},
		{"  int a = 5; b = x[i];", CUDA{relaxed, true, false}, ""},
		{"  int a = x[i]; // one; two", CUDA{relaxed, true, false}, "  int a = atomicAdd(&x[i], 0); // one; two"},
		{"  int a = 5;", CUDA{relaxed, true, false}, ""},
		{"  f(x[i]);", CUDA{relaxed, true, false}, ""},
		{"  int a = x[i] + x[j];", CUDA{relaxed, true, false}, ""},
		{"  atomicCAS_block(&x, 0, 1);", CUDA{Change: Change{Scope: model.GPU}}, "  atomicCAS(&x, 0, 1);"},
		{"  atomicAdd(&x, 1);", CUDA{Change: Change{Scope: model.Sys}}, "  atomicAdd_system(&x, 1);"},
		{"  __threadfence_block();", CUDA{Change: Change{Order: model.AcqRel, Scope: model.GPU}}, "  __threadfence();"},
		{"  a.store(1, cuda::memory_order_relaxed);", CUDA{Change: Change{Order: model.Release}}, "  a.store(1, cuda::memory_order_release);"},
		{"cuda::atomic_ref<int, cuda::thread_scope_block> a(x);\na.store(1);", CUDA{Change: Change{Scope: model.GPU}},
			"cuda::atomic_ref<int, cuda::thread_scope_device> a(x);\na.store(1);"},
		{"  while (atomicCAS(x, 0, 1) != 0);", CUDA{Change: Change{After: Fence{model.AcqRel, model.GPU}}},
			"  while (atomicCAS(x, 0, 1) != 0);\n  __threadfence();"},
		{"  while (a.exchange(1) && (b)) { } // so", CUDA{Change: Change{After: Fence{model.AcqRel, model.GPU}}},
			"  while (a.exchange(1) && (b)) { } // so\n  __threadfence();"},
		{"  while (atomicCAS(x, 0, 1) != 0) {", CUDA{Change: Change{After: Fence{model.AcqRel, model.GPU}}}, ""},
		{"if (a)\n  x = 1;", CUDA{Change: Change{Before: Fence{model.AcqRel, model.Sys}}}, "if (a)\n  { __threadfence_system(); x = 1; }"},
		{"if (a &&\n    b) // so;\n  x = 1;", CUDA{Change: Change{Before: Fence{model.AcqRel, model.GPU}}},
			"if (a &&\n    b) // so;\n  { __threadfence(); x = 1; }"},
		{"} else if (a) /* so; */\n  x = 1;", CUDA{Change: Change{Barrier: true}}, "} else if (a) /* so; */\n  { __syncthreads(); x = 1; }"},
		{"if (a &&\n    b)\n  __syncthreads();", CUDA{Change: Change{Drop: true}}, "if (a &&\n    b)\n  ;"},
		{"else\n  x = 1; // a;", CUDA{Change: Change{Barrier: true}}, "else\n  { __syncthreads(); x = 1; } // a;"},
		{"f(a)\n}", CUDA{Change: Change{Barrier: true}}, "f(a)\n  __syncthreads();\n}"},
		{"y;\r\n  x = 1;", CUDA{Change: Change{Barrier: true}}, "y;\r\n  __syncthreads();\r\n  x = 1;"},
		{"x =\n  y;", CUDA{Change: Change{After: Fence{model.AcqRel, model.GPU}}}, ""},
		{"  if (a) x = 1;", CUDA{Change: Change{Barrier: true}}, "  __syncthreads();\n  if (a) x = 1;"},
		{"  if (a) x = 1;", CUDA{Change: Change{After: Fence{model.AcqRel, model.GPU}}}, ""},
		{"else\n  if (a)", CUDA{Change: Change{Barrier: true}}, ""},
		{"  for (; a; )", CUDA{Change: Change{Barrier: true}}, ""},
		{"  x = 1;", CUDA{Change: Change{Barrier: true}}, "  __syncthreads();\n  x = 1;"},
		{"a;\n  __syncthreads();", CUDA{Change: Change{Drop: true}}, "a;"},
		{"if (a)\n  __syncthreads();", CUDA{Change: Change{Drop: true}}, "if (a)\n  ;"},
	} {
		got, err := EditCUDA(c.src, map[int]CUDA{strings.Count(c.src, "\n") + 1: c.change})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.src, got, err, c.want)
		}
	}
}

// TestEditCUDALoop inserts a fence after a loop of several lines, by the line of its condition.
func TestEditCUDALoop(t *testing.T) {
	for _, c := range []struct{ before, src, want string }{
		{"", "  while (a != 0)\n    ;\n  b;", "  while (a != 0)\n    ;\n  __threadfence();\n  b;"},
		{"f();\n", "\twhile (f(a)) { // }\n\t\tif (b) { c; }\n\t}\n\tb;", "\twhile (f(a)) { // }\n\t\tif (b) { c; }\n\t}\n\t__threadfence();\n\tb;"},
		{"", "while (a) /* 1\n2 */ ;\nb;", "while (a) /* 1\n2 */ ;\n__threadfence();\nb;"},
		{"", "while (a)\n  b;\n", ""},
		{"", "while (a &&\n    b)\n  ;\n", ""},
		{"", "while (a)\n  ; b;\n", ""},
		{"", "while (a) {\n  b;\n", ""},
		{"if (c)\n", "  while (a)\n    ;\n", ""},
		{"else ", "while (a)\n    ;\n", ""},
	} {
		fence := CUDA{Change: Change{After: Fence{model.AcqRel, model.GPU}}}
		got, err := EditCUDA(c.before+c.src, map[int]CUDA{strings.Count(c.before, "\n") + 1: fence})
		if (err == nil) != (c.want != "") || err == nil && got != c.before+c.want {
			t.Errorf("%s: %q, %v; want %q", c.before+c.src, got, err, c.want)
		}
		fence.Change.Before = fence.After
		if got, err := EditCUDA(c.before+c.src, map[int]CUDA{strings.Count(c.before, "\n") + 1: fence}); err == nil {
			t.Errorf("%s: %q with a fence before it too", c.before+c.src, got)
		}
	}
}
