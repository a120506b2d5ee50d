// Connected components: each edge hooks the higher root of its ends under the lower one. Each block has a part of the edges, takes
// a batch at a time, and steals batches of other parts when its own is empty.
// plant 1: a block takes its own batches atomically for the block only
// plant 2: a block steals batches atomically for the block only
// plant 3: parents are read atomically for the block only
// plant 4: roots are hooked atomically for the block only
// plant 5: components are counted atomically for the block only
#include <cstdio>
#include <cstdlib>

const int BLOCKS = 3, BLOCK = 64, VERTICES = 256, EDGES = 384;

// end gives one of the two ends of an edge.
__host__ __device__ int end(int edge, int k) {
  unsigned h = (2 * edge + k + 1) * 2654435761u;
  return (h ^ h >> 15) % VERTICES;
}

template <int plant> __device__ int take(int *next, const int *limit, int *tail) {
  for (int i = 0; i < BLOCKS; i++) {
    int part = (blockIdx.x + i) % BLOCKS, at;
    *tail = limit[part];
    if (plant == 1 && i == 0 || plant == 2 && i > 0) at = atomicAdd_block(&next[part], BLOCK); // want error:insufficient-atomic-scope@1,2
    else at = atomicAdd(&next[part], BLOCK); // want error:insufficient-atomic-scope@1,2
    if (at < *tail) return at;
  }
  return -1;
}

template <int plant> __device__ int root(int *parent, int v) {
  for (;;) {
    int p;
    if constexpr (plant == 3) p = atomicAdd_block(&parent[v], 0); // want error:insufficient-atomic-scope@3
    else p = atomicAdd(&parent[v], 0); // want error:insufficient-atomic-scope@4
    if (p == v) return v;
    v = p;
  }
}

template <int plant> __device__ bool hook(int *parent, int high, int low) {
  if constexpr (plant == 4) return atomicCAS_block(&parent[high], high, low) == high; // want error:insufficient-atomic-scope@4
  else return atomicCAS(&parent[high], high, low) == high; // want error:insufficient-atomic-scope@3
}

template <int plant> __device__ void join(int *parent, int edge, int *components) {
  for (;;) {
    int a = root<plant>(parent, end(edge, 0)), b = root<plant>(parent, end(edge, 1));
    if (a == b) return;
    if (!hook<plant>(parent, max(a, b), min(a, b))) continue;
    if constexpr (plant == 5) atomicSub_block(components, 1); // want error:insufficient-atomic-scope@5
    else atomicSub(components, 1);
    return;
  }
}

// The parts are from next[b] to limit[b].
template <int plant> __global__ void connectivity(int *next, const int *limit, int *parent, int *components) {
  __shared__ int head, tail;
  for (;;) {
    if (threadIdx.x == 0) head = take<plant>(next, limit, &tail);
    __syncthreads();
    if (head < 0) break;
    int edge = head + threadIdx.x;
    if (edge < tail) join<plant>(parent, edge, components);
    __syncthreads();
  }
}

__device__ int top(const int *parent, int v) {
  while (parent[v] != v) v = parent[v];
  return v;
}

// check counts roots, and edges whose ends are of different components.
__global__ void check(const int *parent, int *roots, int *wrong) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < VERTICES && parent[i] == i) atomicAdd(roots, 1);
  if (top(parent, end(i, 0)) != top(parent, end(i, 1))) atomicAdd(wrong, 1);
}

int main(int argc, char **argv) {
  int *m;
  cudaMallocManaged(&m, 1024 * sizeof(int));
  for (int i = 0; i < 1024; i++) m[i] = 0;
  int *next = m, *limit = m + BLOCKS, *components = m + 2 * BLOCKS, *roots = components + 1, *wrong = components + 2, *parent = m + 64;
  next[1] = limit[0] = 64, next[2] = limit[1] = 128, limit[2] = EDGES, *components = VERTICES;
  for (int v = 0; v < VERTICES; v++) parent[v] = v;
  switch (argc > 1 ? atoi(argv[1]) : 0) {
  case 0: connectivity<0><<<BLOCKS, BLOCK>>>(next, limit, parent, components); break;
  case 1: connectivity<1><<<BLOCKS, BLOCK>>>(next, limit, parent, components); break;
  case 2: connectivity<2><<<BLOCKS, BLOCK>>>(next, limit, parent, components); break;
  case 3: connectivity<3><<<BLOCKS, BLOCK>>>(next, limit, parent, components); break;
  case 4: connectivity<4><<<BLOCKS, BLOCK>>>(next, limit, parent, components); break;
  case 5: connectivity<5><<<BLOCKS, BLOCK>>>(next, limit, parent, components); break;
  }
  check<<<EDGES / BLOCK, BLOCK>>>(parent, roots, wrong);
  cudaDeviceSynchronize();
  printf("%d components, %d wrong\n", *components, *wrong);
  return *components != *roots || *wrong != 0;
}
