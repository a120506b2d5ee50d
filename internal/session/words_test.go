package session

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// TestWords checks explanations and fixes in other languages.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		text string
		in   [dialects]string
	}{
		{"waiting for that phase orders the two, __syncthreads() does not", [dialects]string{
			inGluon: "waiting for that phase orders the two, gl.barrier() does not"}},
		{"the mbarrier that tcgen05.commit names", [dialects]string{inTriton: "the mbarrier that tcgen05.commit names", inGluon: "the mbarrier that tcgen05_commit names"}},
		{"a write of bytes that a wgmma.mma_async reads", [dialects]string{inGluon: "a write of bytes that a warpgroup_mma reads"}},
		{"no fence.proxy.async lies between", [dialects]string{inGluon: "no fence_async_shared() lies between"}},
		{"put a barrier of the cluster (cluster.sync()) between the two", [dialects]string{inGluon: "put gl.barrier(cluster=True) between the two"}},
		{"put a barrier of the cluster between the two (cluster.sync(); barrier.cluster.arrive.release and barrier.cluster.wait.acquire), where all threads of the cluster reach it",
			[dialects]string{inGluon: "put gl.barrier(cluster=True) between the two, outside gl.warp_specialize"}},
		{"put __syncthreads() between the two, where all threads of the block reach it; between iterations of a loop, at the end of its body", [dialects]string{
			inNumba: "put cuda.syncthreads() between the two, where all threads of the block reach it; between iterations of a loop, at the end of its body"}},
		{"put __syncwarp() between the two; between iterations of a loop, at the end of its body", [dialects]string{
			inNumba: "put cuda.syncwarp() between the two; between iterations of a loop, at the end of its body"}},
		{"give each thread its own element, let one thread write, or make the whole update one atomic operation (atomicAdd, atomicMax, ...)", [dialects]string{
			inTriton: "give each program instance its own elements, let one instance write, or make the whole update one atomic operation (tl.atomic_add, tl.atomic_max, ...)",
			inNumba:  "give each thread its own element, let one thread write, or make the whole update one atomic operation (cuda.atomic.add, cuda.atomic.max, ...)"}},
		{"put __threadfence() before the write of the variable, or make that write a release", [dialects]string{
			inTriton: `write the variable by an atomic operation with sem="release" or "acq_rel", the default`,
			inNumba:  "put cuda.threadfence() before the write of the variable"}},
		{"replace every __threadfence_block() between the two by __threadfence(), or access the variable that passes between them with release and acquire at device scope", [dialects]string{
			inGluon: `access the variable that passes between the two by atomic operations with scope="gpu", the default`,
			inNumba: "replace every cuda.threadfence_block() between the two by cuda.threadfence()"}},
		{"fence.sc.cta (__threadfence_block)", [dialects]string{inNumba: "fence.sc.cta (cuda.threadfence_block)"}},
		{"let the host wait before it touches the memory: cudaDeviceSynchronize, cudaStreamSynchronize, or cudaEventSynchronize of an event recorded after the other access", [dialects]string{
			inTorch: "let the host wait before it touches the memory: torch.cuda.synchronize(), or synchronize() of the stream or of an event recorded after the other access"}},
	} {
		if got := sayIn(inCUDA, c.text); got != c.text {
			t.Errorf("CUDA: %q, want %q", got, c.text)
		}
		for d, want := range c.in {
			if got := sayIn(dialect(d), c.text); want != "" && got != want {
				t.Errorf("dialect %d: %q, want %q", d, got, want)
			}
		}
	}
}

// TestWordsAreTotal searches all texts about races and faults for names of CUDA C++, because other languages have their
// own.
func TestWordsAreTotal(t *testing.T) {
	names := regexp.MustCompile(`\b__[a-z]\w+|cuda::|\bcuda[A-Z]\w+|\batomic[A-Z]\w*|thread_scope_|\bcde::|cooperative_groups`)
	// Texts of what there is not in these languages, and parts of texts that are put together.
	never := regexp.MustCompile(`^(__threadfence(_block|_system)?(\(\))?|execute fence\.proxy\.async\.shared::cta \(|call cudaStreamSynchronize after the copy$|bar\.|fence\.sc|host code$)|` +
		`cudaStreamTailLaunch|cudaStreamFireAndForget|cudaStreamNonBlocking|__grid_constant__|cuTensorMap|cudaCreateTextureObject|cudaDeviceEnablePeerAccess|__device__ variable|` +
		`array of TempStorage|give the __syncwarp\(\) between|__syncwarp\(\) there whose mask|memcpy_async|\.map_shared_rank|^cudaMallocAsync|^cudaFreeAsync|aten::`)
	inGluonOnly := regexp.MustCompile(`cp\.async|mbarrier|wgmma|tcgen05|cuda::pipeline|cuda::barrier|\(cde::|__syncthreads\(\) does not`)
	warps := regexp.MustCompile(`__syncwarp|__ballot_sync`)
	n := 0
	for _, file := range []string{"../detect/message.go", "../detect/copy.go", "resolve.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			lit, ok := node.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil || !names.MatchString(text) || never.MatchString(text) {
				return true
			}
			n++
			for d := inTriton; d < inTorch; d++ {
				if d == inNumba && strings.Contains(text, "griddepcontrol") || d != inGluon && inGluonOnly.MatchString(text) || d != inNumba && warps.MatchString(text) {
					continue
				}
				if got := sayIn(d, strings.NewReplacer("the %s", "the first", "%d", "1").Replace(text)); names.MatchString(got) {
					t.Errorf("%s, in dialect %d: %s", file, d, got)
				}
			}
			return true
		})
	}
	if n < 30 {
		t.Errorf("only %d texts were found", n)
	}
}

// TestDialects checks the languages of findings.
func TestDialects(t *testing.T) {
	kernel := func(l event.Language, name string) detect.Access {
		return detect.Access{Launch: event.Launch{Language: l, Kernel: name}}
	}
	host := detect.Access{Host: "aten::add.Tensor (stream 5) at a.py:3"}
	for _, c := range []struct {
		accesses []detect.Access
		want     dialect
	}{
		{[]detect.Access{kernel(event.Threads, "_ZN3gpu1kB2v1Ei")}, inCUDA},
		{[]detect.Access{kernel(event.Threads, "_ZN8__main__6k_rev2B2v1B108cw51cXTLSUwv1sDUaKthoaNgoKmjgMVuW1E5ArrayIiLi1E1C7mutable7alignedE")}, inNumba},
		{[]detect.Access{host, kernel(event.Gluon, "k")}, inGluon},
		{[]detect.Access{kernel(event.Triton, "k"), host}, inTriton},
		{[]detect.Access{{Host: "cudaMallocAsync (stream 3)"}, host}, inTorch},
		{[]detect.Access{{Host: "cudaMallocAsync (stream 3)"}}, inCUDA},
		{nil, inCUDA},
	} {
		if got := dialectFor(&detect.Finding{Accesses: c.accesses}); got != c.want {
			t.Errorf("%v: dialect %d, want %d", c.accesses, got, c.want)
		}
	}
	freed := report.Finding{Class: detect.Race, Accesses: []report.Access{{Host: "cudaFreeAsync (stream 9)"}, {Host: "aten::mul.Tensor (default stream)"}}}
	if tellIn(inTorch, &freed); !strings.Contains(freed.Fix, "record_stream") {
		t.Errorf("a tensor that dies too early: %q", freed.Fix)
	}
}
