package session

import (
	"regexp"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// dialect is the language in whose terms a finding is reported. Detectors and engine use those of CUDA C++ and PTX.
type dialect uint8

const (
	inCUDA dialect = iota
	inTriton
	inGluon
	inNumba
	inTorch // operators and tensors of PyTorch, without kernels
	inGraph // CUDA's graphs: races between two nodes of a graph
	dialects
)

// byNumba matches the linker names of Numba's kernels: their two ABI tags are a version, counted in the process, and
// coded flags.
var byNumba = regexp.MustCompile(`^_ZN\w+?B\d+v\d+B\d+cw`)

// dialectOf is the dialect of a kernel.
func dialectOf(l *event.Launch) dialect {
	switch {
	case l.Language == event.Triton:
		return inTriton
	case l.Language == event.Gluon:
		return inGluon
	case byNumba.MatchString(l.Kernel):
		return inNumba
	}
	return inCUDA
}

// dialectFor is the dialect of a finding: that of its first kernel, or PyTorch's if one of its operators takes part.
func dialectFor(f *detect.Finding) dialect {
	torch := false
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if a.Host == "" {
			return dialectOf(&a.Launch)
		}
		torch = torch || strings.HasPrefix(a.Host, "aten::")
	}
	if torch {
		return inTorch
	}
	return inCUDA
}

// nodesOfGraph reports whether a finding concerns two nodes that one launch of a graph executed.
func nodesOfGraph(f *report.Finding) bool {
	launch := func(a *report.Access) uint32 {
		for _, x := range slices.Concat(a.Caller, a.Frames) {
			if x.Graph != 0 {
				return x.Graph
			}
		}
		return 0
	}
	return len(f.Accesses) == 2 && launch(&f.Accesses[0]) != 0 && launch(&f.Accesses[0]) == launch(&f.Accesses[1])
}

// wording is a text that differs between dialects. A dialect that is not listed keeps the original. $1 in a text is the
// match of the first group of the pattern.
type wording struct {
	words *regexp.Regexp
	in    [dialects]string
}

// none stands for an empty text.
const none = "\x00"

func say(words string, in [dialects]string) wording { return wording{regexp.MustCompile(words), in} }

// wordings are replaced in this order: whole sentences before the names in them.
var wordings = []wording{
	// Nodes of a graph.
	say(`they are in different streams, and no event or synchronising call orders them`, [dialects]string{
		inGraph: "they are nodes of one graph, and no path of its edges leads from one to the other"}),
	say(`, and neither stream order, an event nor a synchronising call orders the two`, [dialects]string{
		inGraph: ": they are nodes of one graph, and no path of its edges leads from one to the other"}),
	say(`^put both (kernels )?into one stream, let .*`, [dialects]string{
		inGraph: "let one node depend on the other: by an edge, or where a capture makes the graph, by capturing both in one stream or with an event between the two streams (cudaEventRecord, cudaStreamWaitEvent)"}),

	// What to do within a block.
	say(`__syncthreads\(\) between the two, where all threads of the block reach it; between iterations of a loop, at the end of its body`, [dialects]string{
		inGluon: "gl.barrier() between the two; between partitions of gl.warp_specialize, mbarrier.arrive after the first and mbarrier.wait before the second"}),
	say(`__syncthreads\(\) between the last access to the buffer and the issue of the copy into it \(.*? of cuda::pipeline\)`, [dialects]string{
		inGluon: "gl.barrier() between the last access to the buffer and the issue of the copy into it; between partitions of gl.warp_specialize, mbarrier.arrive after the access and mbarrier.wait before the copy"}),

	// Fixes between blocks.
	say(`give each thread its own element, let one thread write,`, [dialects]string{
		inTriton: "give each program instance its own elements, let one instance write,",
		inGluon:  "give each program instance its own elements, let one instance write,"}),
	say(`let one thread write, or make the writes atomic`, [dialects]string{
		inTriton: "let one program instance write, or make the writes atomic",
		inGluon:  "let one program instance write, or make the writes atomic"}),
	say(`synchronise the grid between the two \(cooperative launch\), split the kernel there, or let the first thread release a flag after its access and the second acquire it before its own, at device scope`, [dialects]string{
		inTriton: `split the kernel there, or let the first program instance set a flag after its access (tl.debug_barrier(), then tl.atomic_xchg with sem="release") and the second wait for it before its own (tl.atomic_cas with sem="acquire" in a loop)`,
		inGluon:  `split the kernel there, or let the first program instance set a flag after its access (gl.barrier(), then gl.atomic_xchg with sem="release") and the second wait for it before its own (gl.atomic_cas with sem="acquire" in a loop)`,
		inNumba:  "synchronise the grid between the two (cuda.cg.this_grid().sync()), split the kernel there, or let the first thread set a flag after its access (cuda.threadfence(), then cuda.atomic.exch) and the second wait for it before its own (cuda.atomic.cas in a loop, then cuda.threadfence())"}),
	say(`do that before the launch \(cudaMemset\), in an earlier kernel or before a barrier of the grid`, [dialects]string{
		inTriton: "do that before the launch (torch.zeros, Tensor.zero_()) or in an earlier kernel",
		inGluon:  "do that before the launch (torch.zeros, Tensor.zero_()) or in an earlier kernel",
		inNumba:  "do that before the launch (cuda.to_device), in an earlier kernel or before a barrier of the grid (cuda.cg.this_grid().sync())"}),
	say(`before the fence of the signalling thread, where all threads of the block reach it; where one thread also waits for its whole block, put one after the wait too|before the fence of the signalling thread, where all threads of the block reach it`, [dialects]string{
		inTriton: "before the atomic operation that signals",
		inGluon:  "before the atomic operation that signals"}),
	say(`one thread of the first block signals for the whole block, but`, [dialects]string{
		inTriton: "one thread of the first block executes the atomic operation that signals, but",
		inGluon:  "one thread of the first block executes the atomic operation that signals, but"}),

	// Fences and scopes.
	say(`put __threadfence\w*\(\) before the variable is written and after it is read, or make that write a release and that read an acquire`, [dialects]string{
		inTriton: `write the variable by an atomic operation with sem="release" and read it by one with sem="acquire" (the default, "acq_rel", is both)`,
		inGluon:  `write the variable by an atomic operation with sem="release" and read it by one with sem="acquire" (the default, "acq_rel", is both)`}),
	say(`put __threadfence\w*\(\) before the write of the variable, or make that write a release`, [dialects]string{
		inTriton: `write the variable by an atomic operation with sem="release" or "acq_rel", the default`,
		inGluon:  `write the variable by an atomic operation with sem="release" or "acq_rel", the default`}),
	say(`put __threadfence\(\) between that read and that write, in the block that passes it on, or make the read an acquire and the write a release`, [dialects]string{
		inTriton: `read and write the two variables there by atomic operations with sem="acq_rel", the default`,
		inGluon:  `read and write the two variables there by atomic operations with sem="acq_rel", the default`}),
	say(`put __threadfence\w*\(\) after the read of the variable, or make that read an acquire`, [dialects]string{
		inTriton: `read the variable by an atomic operation with sem="acquire" or "acq_rel", the default`,
		inGluon:  `read the variable by an atomic operation with sem="acquire" or "acq_rel", the default`}),
	say(`, or make that write a release( and that read an acquire)?|, or make that read an acquire|, or access the variable that passes between them with release and acquire at (device|system) scope`, [dialects]string{
		inNumba: none}),
	say(`there is no fence before that variable is written, and none after it is read`, [dialects]string{
		inTriton: "neither that write releases nor that read acquires",
		inGluon:  "neither that write releases nor that read acquires"}),
	say(`there is no fence between the first access and the write of that variable`, [dialects]string{
		inTriton: "that write does not release",
		inGluon:  "that write does not release"}),
	say(`there is no fence between the read of that variable and the second access`, [dialects]string{
		inTriton: "that read does not acquire",
		inGluon:  "that read does not acquire"}),
	say(`use device scope for the accesses to that variable, and __threadfence\(\) for the fences next to them`, [dialects]string{
		inTriton: `access that variable with scope="gpu", the default of atomic operations`,
		inGluon:  `access that variable with scope="gpu", the default of atomic operations`}),
	say(`use system scope for the accesses to that variable \(.*?\), and __threadfence_system\(\) for the fences next to them|replace every __threadfence\(\) between the two by __threadfence_system\(\), or access .*? at system scope`, [dialects]string{
		inTriton: `access the variable that passes between the two by atomic operations with scope="sys"`,
		inGluon:  `access the variable that passes between the two by atomic operations with scope="sys"`}),
	say(`use system scope for the accesses to that variable \(.*?\), and`, [dialects]string{
		inNumba: "let the kernels follow each other, since atomic operations of Numba have device scope; or use"}),
	say(`replace every __threadfence_block\(\) between the two by __threadfence\(\), or access .*? at device scope`, [dialects]string{
		inTriton: `access the variable that passes between the two by atomic operations with scope="gpu", the default`,
		inGluon:  `access the variable that passes between the two by atomic operations with scope="gpu", the default`}),
	say(`use device scope for (both|the first|the second) \(atomicAdd, not atomicAdd_block; thread_scope_device\)`, [dialects]string{
		inTriton: `use scope="gpu", the default, for $1`,
		inGluon:  `use scope="gpu", the default, for $1`,
		inNumba:  "use device scope for $1"}),
	say(`use system scope for both \(atomicAdd_system, not atomicAdd; cuda::thread_scope_system\)`, [dialects]string{
		inTriton: `use scope="sys" for both`,
		inGluon:  `use scope="sys" for both`,
		inNumba:  "let the kernels follow each other: atomic operations of Numba have device scope"}),
	say(` \(__threadfence_system, atomicAdd_system, cuda::thread_scope_system\)`, [dialects]string{
		inTriton: ` (scope="sys")`,
		inGluon:  ` (scope="sys")`,
		inNumba:  " (cuda.threadfence_system())"}),
	say(`use cuda::atomic_ref or atomic functions instead of volatile`, [dialects]string{
		inTriton: "use atomic operations (tl.atomic_xchg, tl.atomic_add) instead of volatile=True",
		inGluon:  "use atomic operations (gl.atomic_xchg, gl.atomic_add) instead of volatile=True",
		inNumba:  "use functions of cuda.atomic instead of volatile"}),
	say(`volatile, which is not atomic in CUDA C\+\+`, [dialects]string{
		inTriton: "volatile, which is not atomic",
		inGluon:  "volatile, which is not atomic",
		inNumba:  "volatile, which is not atomic"}),
	say(`load by a plain load or __ldcg and drop const __restrict__`, [dialects]string{
		inTriton: "load without a cache modifier",
		inGluon:  "load without a cache modifier",
		inNumba:  "load by a plain load"}),
	say(` \(ld\.global\.nc: __ldg, or a const __restrict__ pointer\)`, [dialects]string{
		inTriton: " (ld.global.nc)",
		inGluon:  " (ld.global.nc)",
		inNumba:  " (ld.global.nc)"}),
	say(` \(cudaTriggerProgrammaticLaunchCompletion\)`, [dialects]string{
		inTriton: " (gdc_launch_dependents())",
		inGluon:  " (gdc_launch_dependents())"}),
	say(`call cudaGridDependencySynchronize \(griddepcontrol\.wait\) in the second kernel before the access, or launch it without the attribute`, [dialects]string{
		inTriton: "call tl.extra.cuda.gdc_wait() in the second kernel before the access, or launch it without launch_pdl",
		inGluon:  "call tl.extra.cuda.gdc_wait() in the second kernel before the access, or launch it without launch_pdl"}),

	// Asynchronous copies and the tensor cores, which only authors of Gluon kernels see.
	say(`cp\.async\.wait_group (\d+) or less \(.*?\)\)`, [dialects]string{inGluon: "async_copy.wait_group($1) or less"}),
	say(`cp\.async\.wait_group 0 \(.*? cooperative_groups::wait\)`, [dialects]string{inGluon: "async_copy.wait_group(0)"}),
	say(`cp\.async\.commit_group \(.*? producer_commit\(\)\)`, [dialects]string{inGluon: "async_copy.commit_group()"}),
	say(`for the group without \.read: cp\.async\.bulk\.wait_group 0`, [dialects]string{inGluon: "for the copy, and not only for what it reads: tma.store_wait(0, read_only=False)"}),
	say(`cp\.async\.bulk\.wait_group 0, or \.read if only the source is overwritten`, [dialects]string{inGluon: "tma.store_wait(0), with read_only=False where what the copy writes is used"}),
	say(`cp\.async\.bulk\.wait_group (\d+) or less`, [dialects]string{inGluon: "tma.store_wait($1) or less"}),
	say(`cp\.async\.bulk\.wait_group\.read 0 in the thread that copies from shared memory`, [dialects]string{inGluon: "tma.store_wait(0) for copies from shared memory"}),
	say(`wgmma\.wait_group (\d+)`, [dialects]string{inGluon: "warpgroup_mma_wait($1)"}),
	say(`wgmma\.commit_group and wgmma\.wait_group|wgmma\.commit_group, wgmma\.wait_group`, [dialects]string{inGluon: "warpgroup_mma_wait"}),
	say(`tcgen05\.commit`, [dialects]string{inGluon: "tcgen05_commit"}),
	say(`mbarrier\.try_wait\.parity with 0`, [dialects]string{inGluon: "mbarrier.wait with phase 0"}),
	say(`mbarrier\.try_wait, wait\(\) of cuda::barrier|wait\(\), or arrive_and_wait\(\), of cuda::barrier, .*? mbarrier\.test_wait|mbarrier\.try_wait`, [dialects]string{inGluon: "mbarrier.wait"}),
	say(`mbarrier\.arrive\.expect_tx`, [dialects]string{inGluon: "mbarrier.expect"}),
	say(`mbarrier\.inval\b`, [dialects]string{inGluon: "mbarrier.invalidate"}),
	say(`fence\.proxy\.async\.shared::cta \(cde::fence_proxy_async_shared_cta\(\)\)`, [dialects]string{inGluon: "fence_async_shared()"}),
	say(`fence\.proxy\.async\.global \(cuda::ptx::.*?space_global\)\)`, [dialects]string{
		inTriton: "fence.proxy.async.global (tl.inline_asm_elementwise)", inGluon: "fence.proxy.async.global (gl.inline_asm_elementwise)", inNumba: "fence.proxy.async.global"}),
	say(`no fence\.proxy\.async lies`, [dialects]string{inGluon: "no fence_async_shared() lies"}),
	say(`put a barrier of the cluster between the two \(.*?\), where all threads of the cluster reach it`, [dialects]string{
		inGluon: "put gl.barrier(cluster=True) between the two, outside gl.warp_specialize"}),
	say(`put a barrier of the cluster \(cluster\.sync\(\)\)`, [dialects]string{inGluon: "put gl.barrier(cluster=True)"}),
	say(`wgmma\.mma_async`, [dialects]string{inGluon: "warpgroup_mma"}),

	// The host.
	say(`let the stream of the second wait for an event recorded after the first \(cudaStreamWaitEvent\)`, [dialects]string{
		inTriton: "let the stream of the second wait for that of the first (Stream.wait_stream, or Event.record and Stream.wait_event)",
		inGluon:  "let the stream of the second wait for that of the first (Stream.wait_stream, or Event.record and Stream.wait_event)",
		inNumba:  "let the stream of the second wait for an event recorded after the first (event.record(), event.wait())",
		inTorch:  "let the stream of the second wait for that of the first (Stream.wait_stream, or Event.record and Stream.wait_event)"}),
	say(`cudaDeviceSynchronize, cudaStreamSynchronize, or cudaEventSynchronize of an event`, [dialects]string{
		inTriton: "torch.cuda.synchronize(), or synchronize() of the stream or of an event",
		inGluon:  "torch.cuda.synchronize(), or synchronize() of the stream or of an event",
		inNumba:  "cuda.synchronize(), or synchronize() of the stream or of an event",
		inTorch:  "torch.cuda.synchronize(), or synchronize() of the stream or of an event"}),
	say(`(memory that the device can reach) \(cudaMalloc, cudaMallocManaged, cudaHostAlloc\), and check`, [dialects]string{
		inTriton: `$1 (tensors with device="cuda"), and check`,
		inGluon:  `$1 (tensors with device="cuda"), and check`,
		inNumba:  "$1 (cuda.to_device, cuda.device_array, cuda.managed_array), and check"}),
	say(`, and check cudaGetLastError\(\) after the launch`, [dialects]string{
		inTriton: none,
		inGluon:  none,
		inNumba:  none}),

	// Names.
	say(`\(atomicAdd, atomicMax, \.\.\.\)`, [dialects]string{
		inTriton: "(tl.atomic_add, tl.atomic_max, ...)",
		inGluon:  "(gl.atomic_add, gl.atomic_max, ...)",
		inNumba:  "(cuda.atomic.add, cuda.atomic.max, ...)"}),
	say(`\batomicAdd\b`, [dialects]string{
		inTriton: "tl.atomic_add",
		inGluon:  "gl.atomic_add",
		inNumba:  "cuda.atomic.add"}),
	say(`__syncthreads\(\)`, [dialects]string{
		inTriton: "tl.debug_barrier()",
		inGluon:  "gl.barrier()",
		inNumba:  "cuda.syncthreads()"}),
	say(`__syncwarp\(\)`, [dialects]string{inNumba: "cuda.syncwarp()"}),
	say(`__ballot_sync`, [dialects]string{inNumba: "cuda.ballot_sync"}),
	say(`__threadfence`, [dialects]string{inNumba: "cuda.threadfence"}),
}

// sayIn translates a description or a fix to the terms of a dialect.
func sayIn(d dialect, text string) string {
	if d == inCUDA {
		return text
	}
	for i := range wordings {
		switch with := wordings[i].in[d]; with {
		case "":
		case none:
			text = wordings[i].words.ReplaceAllString(text, "")
		default:
			text = wordings[i].words.ReplaceAllString(text, with)
		}
	}
	return text
}

// tellIn translates a finding to the terms of a dialect.
func tellIn(d dialect, f *report.Finding) {
	f.Message, f.Fix = sayIn(d, f.Message), sayIn(d, f.Fix)
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if a.Sync != nil {
			a.Sync.What = sayIn(d, a.Sync.What)
		}
		if strings.HasPrefix(a.Host, "cudaFreeAsync") && f.Class == detect.Race && (d == inTriton || d == inGluon || d == inTorch) {
			f.Fix = "call record_stream of the tensor with the stream that also uses it, before it dies, or let the stream that it was made in wait for that stream (Stream.wait_stream): " +
				"where a tensor dies, its memory is free for the next one of its own stream"
		}
	}
}
