package docs

// Page is what `fencepost explain` adds to the section of a kind.
type Page struct {
	Rule    string // that the program breaks, one sentence
	Corpus  string // the program of the corpus that has the finding; "" if it is Program
	Program string
	Fix     string // the lines that change, mended
	Manual  string // the sections that state the rule
}

// The manuals, by the names of their sections, which change less than the numbers.
const (
	morally   = "PTX ISA, Memory Consistency Model: Morally strong operations; Data-race"
	causality = "PTX ISA, Memory Consistency Model: Causality order; Release and acquire patterns"
	scopes    = "PTX ISA, Memory Consistency Model: Scope; CUDA C++ Programming Guide: Atomic Functions"
	fences    = "CUDA C++ Programming Guide: Memory Fence Functions; PTX ISA: membar / fence"
	barriers  = "CUDA C++ Programming Guide: Synchronization Functions; PTX ISA: bar, barrier"
	warps     = "CUDA C++ Programming Guide: Independent Thread Scheduling; Warp Shuffle Functions; Synchronization Functions"
	copies    = "PTX ISA: cp.async, cp.async.wait_group; CUDA C++ Programming Guide: Asynchronous Data Copies"
	freeing   = "CUDA Runtime API: Memory Management (cudaMalloc, cudaFree, cudaMemcpy)"
	deviceErr = "CUDA C++ Programming Guide: Error Checking; Compute Sanitizer: memcheck"
)

// Pages gives the page of each kind.
func Pages() map[string]Page { return pages }

var pages = map[string]Page{
	"missing-barrier": {Rule: "Threads of a block that exchange data have a barrier between the write and the other access.",
		Corpus: "bugs/global_warps_barrier_missing", Manual: barriers + "; " + morally,
		Fix: "x[t] = t;\n__syncthreads();\nout[t] = x[63 - t];"},
	"missing-fence": {Rule: "A flag or a lock hands data over only with a fence between the data and the flag, on both sides.",
		Corpus: "bugs/global_blocks_lock_no_release", Manual: causality + "; " + fences,
		Fix: "*x += 1;\n__threadfence();\natomicExch(lock, 0);"},
	"insufficient-atomic-scope": {Rule: "The scope of an atomic operation includes all threads that access the variable.",
		Corpus: "bugs/global_blocks_atomic_block", Manual: scopes, Fix: "atomicAdd(x, 1);"},
	"insufficient-fence-scope": {Rule: "The scope of a fence includes the thread that the data are handed to.",
		Corpus: "bugs/global_blocks_flag_release_cta", Manual: fences + "; " + causality,
		Fix: "*data = 42;\n__threadfence();\natomicExch(flag, 1);"},
	"insufficient-lock-scope": {Rule: "A lock is taken and given back at a scope that includes all threads that take it.",
		Corpus: "bugs/global_blocks_lock_taken_cta", Manual: scopes + "; " + causality,
		Fix: "while (atomicCAS(lock, 0, 1) != 0) {}\n__threadfence();\n*x += 1;\n__threadfence();\natomicExch(lock, 0);"},
	"missing-lock": {Rule: "All accesses to what a lock protects are made with that lock held.",
		Corpus: "bugs/global_blocks_needle_lock", Manual: morally,
		Fix: "int mine = blockIdx.x % 4, held = mine;"},
	"atomic-mixed-with-plain": {Rule: "A variable that is accessed atomically is accessed only so, or the accesses are ordered.",
		Corpus: "bugs/global_blocks_atomic_plain_read", Manual: morally, Fix: "*out = atomicAdd(x, 0);"},
	"mixed-size": {Rule: "Atomic accesses that overlap have one size and one address.",
		Corpus: "bugs/global_blocks_atomic_half", Manual: "PTX ISA, Memory Consistency Model: Overlap; Morally strong operations",
		Fix: "atomicAdd(x, 1ull << 32);  // in all blocks"},
	"warp-synchronous": {Rule: "Lanes of a warp need not run in lockstep; __syncwarp() orders their accesses.",
		Corpus: "bugs/shared_lanes_branch_after", Manual: warps,
		Fix: "if (t < 16) s[t] = t;\n__syncwarp();\nout[t] = s[t % 16];"},
	"same-value": {Rule: "Plain writes of different threads to one location race, whatever values they write.",
		Corpus: "race/found", Manual: morally, Fix: "if (in[i] % 10 == 7) atomicExch(out, 1);"},
	"volatile": {Rule: "volatile orders no accesses.", Corpus: "bugs/shared_warps_volatile", Manual: "CUDA C++ Programming Guide: volatile qualifier; " + fences,
		Fix: "s[t] = t;\n__syncthreads();\nout[t] = s[63 - t];"},
	"unordered": {Rule: "Two accesses of different threads to one location, one of them a write, are ordered or both atomic.",
		Corpus: "bugs/global_blocks_plain_ww", Manual: morally, Fix: "x[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x;"},
	"inter-kernel": {Rule: "Work on different streams is ordered by an event, a synchronise call or the default stream only.",
		Corpus: "race/streams", Manual: "CUDA C++ Programming Guide: Asynchronous Concurrent Execution, Streams, Events",
		Fix: "cudaEvent_t filled;\ncudaEventCreate(&filled);\nfill<<<N / BLOCK, BLOCK, 0, a>>>(data, 1);\ncudaEventRecord(filled, a);\ncudaStreamWaitEvent(b, filled);\nincrement<<<N / BLOCK, BLOCK, 0, b>>>(data);"},
	"copy-not-awaited": {Rule: "What an asynchronous copy writes may be accessed only after the thread that issued it has waited for it.",
		Corpus: "async/own", Manual: copies, Fix: "__pipeline_commit();\n__pipeline_wait_prior(0);\nout[t] = tile[t];"},
	"missing-proxy-fence": {Rule: "Between an ordinary access of shared memory and a bulk copy of it there is a fence.proxy.async, beside what orders them.",
		Corpus: "async/bulk_fence", Manual: "PTX ISA: membar / fence (fence.proxy); Async proxy; CUDA C++ Programming Guide: Asynchronous Data Copies using the Tensor Memory Accelerator",
		Fix: "tile[t] = in[t] * 2;\nasm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n__syncthreads();"},
	"wait-before-commit": {Rule: "Copies are committed to a group before the wait for that group.", Corpus: "async/commit", Manual: copies,
		Fix: "__pipeline_commit();\n__pipeline_wait_prior(0);"},
	"group-pending": {Rule: "The wait leaves no more groups pending than those whose copies are not used yet.", Corpus: "async/pending", Manual: copies,
		Fix: "__pipeline_wait_prior(1);"},
	"source-wait": {Rule: "What a bulk copy writes is used after a wait for its group without .read.", Corpus: "async/bulk_read",
		Manual: "PTX ISA: cp.async.bulk.wait_group", Fix: "cp.async.bulk.wait_group 0;"},
	"wrong-phase": {Rule: "A thread waits for the phase of the mbarrier with which the copy completes.", Corpus: "async/bulk_phase",
		Manual: "PTX ISA: mbarrier.test_wait, mbarrier.try_wait; Phase of the mbarrier object", Fix: "wait(b, i & 1);"},
	"stage-reuse": {Rule: "A copy into a buffer is issued after all threads have finished with what the buffer held.",
		Corpus: "async/reuse", Manual: copies + "; " + barriers, Fix: "  sum += buffer[(t + 32) % BLOCK];\n  __syncthreads();\n}"},
	"read-only-load": {Rule: "Memory that is loaded through the read-only cache is not written while the kernel runs.",
		Corpus: "race/ldg", Manual: "PTX ISA: ld.global.nc; CUDA C++ Programming Guide: Read-Only Data Cache Load Function",
		Fix: "out[t] = tile[BLOCK - 1 - t];"},
	"texture-object": {Rule: "The functions for textures and surfaces are given an object of their kind and dimensions.", Manual: "CUDA C++ Programming Guide: Texture and Surface Memory",
		Program: "__global__ void read(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0.5f); }\n\nint main() {\n  float *in, *out;\n  cudaMalloc(&in, 128);\n  cudaMalloc(&out, 128);\n  cudaMemset(in, 0, 128);\n  cudaResourceDesc what = {};\n  what.resType = cudaResourceTypeLinear;\n  what.res.linear.devPtr = in;\n  what.res.linear.desc = cudaCreateChannelDesc<float>();\n  what.res.linear.sizeInBytes = 128;\n  cudaTextureDesc how = {};\n  cudaTextureObject_t t;\n  cudaCreateTextureObject(&t, &what, &how, nullptr);\n  read<<<1, 32>>>(t, out);\n  cudaDeviceSynchronize();\n}",
		Fix:     "__global__ void read(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }"},
	"out-of-bounds": {Rule: "An access lies within one allocation.", Corpus: "fault/off_by_one", Manual: deviceErr, Fix: "if (i < n) {"},
	"misaligned": {Rule: "The address of an access is a multiple of its size.", Corpus: "fault/misaligned",
		Manual: "CUDA C++ Programming Guide: Device Memory Accesses, Size and Alignment Requirement", Fix: "const float4 *p = reinterpret_cast<const float4 *>(in);"},
	"use-after-free": {Rule: "Freed memory is not accessed.", Manual: freeing,
		Program: "__global__ void add(int *x) { *x += 1; }\n\nint main() {\n  int *x;\n  cudaMalloc(&x, sizeof(int));\n  cudaFree(x);\n  add<<<1, 1>>>(x);\n  cudaDeviceSynchronize();\n}",
		Fix:     "add<<<1, 1>>>(x);\ncudaDeviceSynchronize();\ncudaFree(x);"},
	"write-to-constant": {Rule: "Kernels do not write constant memory.", Manual: "CUDA C++ Programming Guide: __constant__; PTX ISA: Constant State Space",
		Program: "__constant__ int table[4];\n\n__global__ void set(const int *p) { *const_cast<int *>(p) = 1; }\n\nint main() {\n  void *p;\n  cudaGetSymbolAddress(&p, table);\n  set<<<1, 1>>>((const int *)p);\n  cudaDeviceSynchronize();\n}",
		Fix:     "__device__ int table[4];"},
	"stack-overflow": {Rule: "The calls of a thread need no more than its stack (cudaLimitStackSize).", Manual: "CUDA Runtime API: cudaDeviceSetLimit",
		Program: "__device__ int sum(int n) {\n  int big[256];\n  big[n % 256] = n;\n  return n == 0 ? 0 : big[n % 256] + sum(n - 1);\n}\n__global__ void run(int *out) { *out = sum(100000); }",
		Fix:     "__global__ void run(int *out) {\n  int s = 0;\n  for (int n = 1; n <= 100000; n++) s += n;\n  *out = s;\n}"},
	"bad-call": {Rule: "A call through a pointer goes to a function of the module.", Manual: "PTX ISA: call, .callprototype",
		Program: "typedef int (*op)(int);\n__global__ void apply(op f, int *x) { *x = f(*x); }\n\nint main() {\n  int *x;\n  cudaMalloc(&x, sizeof(int));\n  apply<<<1, 1>>>((op)nullptr, x);\n  cudaDeviceSynchronize();\n}",
		Fix:     "__device__ int twice(int x) { return 2 * x; }\n__device__ op chosen = twice;  // the host copies it with cudaMemcpyFromSymbol"},
	"device-heap": {Rule: "free() in device code gets what malloc() in device code gave, once.", Manual: "CUDA C++ Programming Guide: Dynamic Global Memory Allocation and Operations",
		Program: "__global__ void twice() {\n  int *p = (int *)malloc(4);\n  free(p);\n  free(p);\n}", Fix: "free(p);  // once"},
	"barrier-divergence": {Rule: "All threads of a block reach the same barrier.", Corpus: "fault/barrier_in_branch", Manual: barriers,
		Fix: "tile[t] = t % 2 == 0 ? in[t] : -in[t];\n__syncthreads();"},
	"member-mask": {Rule: "The mask of a warp-level function names the lane that calls it.", Corpus: "fault/mask_without_caller", Manual: warps,
		Fix: "unsigned odd = __ballot_sync(0xffffffff, in[lane] % 2);\nout[lane] = __popc(odd & ((1u << lane) - 1));"},
	"warp-divergence": {Rule: "All lanes that a mask names execute the same warp-level function.", Corpus: "fault/shuffle_two_places", Manual: warps,
		Fix: "if (lane >= 16) x = -x;\nx = __shfl_xor_sync(0xffffffff, x, 16);"},
	"undefined-shuffle": {Rule: "A shuffle reads from a lane that takes part in it.", Corpus: "fault/shuffle_early_return", Manual: warps,
		Fix: "int x = i < n ? in[i] : 0;\nfor (int half = 16; half > 0; half /= 2) x += __shfl_down_sync(0xffffffff, x, half);"},
	"mbarrier-misuse": {Rule: "A barrier in shared memory is initialised once before its first use, and used by its contract.",
		Corpus: "async/mbarrier_init", Manual: "PTX ISA: mbarrier", Fix: "if (t == BLOCK - 1) /* mbarrier.init */;\n__syncthreads();\nif (t < 32) arrive(m);"},
	"wgmma-no-fence": {Rule: "A wgmma.fence stands before the first wgmma.mma_async of a warpgroup.", Corpus: "async/wgmma_fence",
		Manual: "PTX ISA: wgmma.fence", Fix: "wgmma.fence.sync.aligned;\nwgmma.mma_async...;"},
	"accumulators-not-awaited": {Rule: "Accumulators of a wgmma.mma_async are accessed after a wgmma.wait_group that waits for it.", Corpus: "async/wgmma_wait",
		Manual: "PTX ISA: wgmma.mma_async; wgmma.wait_group", Fix: "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nadd.f32 s, d0, d1;"},
	"peer-gone": {Rule: "The shared memory of a block is accessed by others of its cluster while the block runs.", Corpus: "fault/cluster_gone", Manual: "CUDA C++ Programming Guide: Distributed Shared Memory",
		Fix: "out[...] = ...;\nc.sync();  // nobody ends while others read"},
	"cluster-misuse": {Rule: "Each thread arrives once at the barrier of its cluster, and waits once, for each phase.", Manual: "PTX ISA: barrier.cluster",
		Program: "cg::cluster_group c = cg::this_cluster();\nc.barrier_arrive();\nif (threadIdx.x == 0) c.barrier_arrive();\nc.barrier_wait();", Fix: "c.barrier_arrive();\nc.barrier_wait();"},
	"tensor-map": {Rule: "A CUtensorMap describes a tensor and a box of it by the rules of cuTensorMapEncodeTiled.", Manual: "CUDA Driver API: Tensor Map Object Management; PTX ISA: cp.async.bulk.tensor",
		Program: "CUtensorMap map;\nconst uint64_t sizes[] = {64, 64}, strides[] = {100};  // bytes, no multiple of 16\nconst uint32_t box[] = {32, 8}, steps[] = {1, 1};\ncuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, x, sizes, strides, box, steps,\n  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);",
		Fix:     "const uint64_t strides[] = {256};  // 64 floats"},
	"deadlock": {Rule: "Some thread can always make progress.", Corpus: "fault/lock_kept", Manual: "CUDA C++ Programming Guide: Independent Thread Scheduling; " + barriers,
		Fix: "if (!taken[i]) taken[i] = 1;\n__threadfence();\natomicExch(lock, 0);"},
	"assertion": {Rule: "What assert() states holds.", Corpus: "fault/assertion", Manual: "CUDA C++ Programming Guide: Assertion", Fix: "// The data or the statement is wrong; the message of the assertion names it."},
	"trap":      {Rule: "No thread executes a trap.", Corpus: "fault/trap", Manual: "CUDA C++ Programming Guide: Trap function; PTX ISA: trap", Fix: "// The program traps on purpose; look at the condition before it."},
	"launch-refused": {Rule: "A launch keeps the limits of the device.", Manual: "CUDA C++ Programming Guide: Compute Capabilities, Technical Specifications",
		Program: "__global__ void k() {}\n\nint main() { k<<<1, 2048>>>(); }", Fix: "k<<<2, 1024>>>();"},
	"double-free": {Rule: "Memory is freed once.", Manual: freeing, Program: "int main() {\n  int *x;\n  cudaMalloc(&x, 4);\n  cudaFree(x);\n  cudaFree(x);\n}", Fix: "cudaFree(x);  // once"},
	"invalid-free": {Rule: "cudaFree gets the address that an allocation gave.", Manual: freeing,
		Program: "int main() {\n  int *x;\n  cudaMalloc(&x, 8);\n  cudaFree(x + 1);\n}", Fix: "cudaFree(x);"},
	"leak": {Rule: "Memory that is allocated is freed (--leaks).", Manual: freeing,
		Program: "int main() {\n  int *x;\n  cudaMalloc(&x, 4);\n  cudaMemset(x, 0, 4);\n}", Fix: "cudaMemset(x, 0, 4);\ncudaFree(x);"},
	"freed-memory": {Rule: "A copy or memset names memory that is not freed.", Manual: freeing,
		Program: "int main() {\n  int *x;\n  cudaMalloc(&x, 4);\n  cudaFree(x);\n  cudaMemset(x, 0, 4);\n}", Fix: "cudaMemset(x, 0, 4);\ncudaFree(x);"},
	"call-out-of-bounds": {Rule: "The range of a copy or memset lies within one allocation.", Manual: freeing,
		Program: "int main() {\n  int *x;\n  cudaMalloc(&x, 4);\n  cudaMemset(x, 0, 8);\n}", Fix: "cudaMemset(x, 0, 4);"},
	"invalid-pointer": {Rule: "The addresses of a copy belong to the device or to the program.", Manual: freeing,
		Program: "int main() { cudaMemset((void *)64, 0, 4); }", Fix: "void *x;\ncudaMalloc(&x, 4);\ncudaMemset(x, 0, 4);"},
	"wrong-direction": {Rule: "The direction of a copy matches its addresses.", Manual: freeing,
		Program: "int main() {\n  int *x, y = 1;\n  cudaMalloc(&x, 4);\n  cudaMemcpy(x, &y, 4, cudaMemcpyDeviceToHost);\n}", Fix: "cudaMemcpy(x, &y, 4, cudaMemcpyHostToDevice);"},
	"invalid-handle": {Rule: "A call gets a stream or an event that exists.", Manual: "CUDA Runtime API: Stream Management, Event Management",
		Program: "int main() {\n  cudaStream_t s;\n  cudaStreamCreate(&s);\n  cudaStreamDestroy(s);\n  cudaStreamSynchronize(s);\n}", Fix: "cudaStreamSynchronize(s);\ncudaStreamDestroy(s);"},
	"error-ignored": {Rule: "A program looks at the errors of its calls.", Manual: "CUDA C++ Programming Guide: Error Checking",
		Program: "int main() { cudaSetDevice(99); }", Fix: "if (cudaError_t e = cudaSetDevice(99)) {\n  fprintf(stderr, \"%s\\n\", cudaGetErrorString(e));\n  return 1;\n}"},
}
