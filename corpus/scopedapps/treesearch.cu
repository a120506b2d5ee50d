// Search of an unbalanced tree: each block has a stack of its own under a lock of block scope, and one that all may take nodes from
// under a lock of device scope. The first thread of each warp works.
// plant 1: locks of shared stacks are taken and given back atomically for the block only
// plant 2: locks of shared stacks have fences of block scope
// plant 3: locks of shared stacks are given back without a fence
// plant 4: locks of the blocks' own stacks are given back without a fence
// plant 5: nodes that are still to do are counted atomically for the block only
// plant 6: visited nodes are counted atomically for the block only
#include <cstdio>
#include <cstdlib>

const int BLOCKS = 4, BLOCK = 64, ROOM = 64, LEVELS = 5;

struct Stack {
  int mutex, size, nodes[ROOM - 2];
};

// A node is its level and a random number; children says how many it has, child makes one of them.
__host__ __device__ unsigned child(unsigned node, int k) {
  unsigned h = (node + k + 1) * 2654435761u;
  return ((node >> 24) + 1) << 24 | (h ^ h >> 15) >> 8;
}
__host__ __device__ int children(unsigned node) { return node >> 24 == LEVELS ? 0 : node >> 24 == 1 ? 3 : node % 4; }

template <int plant> __device__ void lock(Stack *s, bool own) {
  if (own) {
    while (atomicCAS_block(&s->mutex, 0, 1) != 0) {}
    __threadfence_block();
    return;
  }
  if constexpr (plant == 1) {
    while (atomicCAS_block(&s->mutex, 0, 1) != 0) {} // want error:insufficient-atomic-scope@1
  } else {
    while (atomicCAS(&s->mutex, 0, 1) != 0) {}
  }
  if constexpr (plant == 2) __threadfence_block();
  else __threadfence();
}

template <int plant> __device__ void unlock(Stack *s, bool own) {
  if (own) {
    if constexpr (plant != 4) __threadfence_block();
    atomicExch_block(&s->mutex, 0);
    return;
  }
  if constexpr (plant == 2) __threadfence_block();
  else if constexpr (plant != 3) __threadfence();
  if constexpr (plant == 1) atomicExch_block(&s->mutex, 0); // want error:insufficient-atomic-scope@1
  else atomicExch(&s->mutex, 0);
}

template <int plant> __device__ void push(Stack *s, bool own, unsigned node) {
  volatile int *size = &s->size, *nodes = s->nodes;
  lock<plant>(s, own);
  int n = *size; // want warning:volatile@1 error:insufficient-lock-scope@1,2 error:missing-fence@3,4
  nodes[n] = node; // want warning:volatile@1 error:insufficient-lock-scope@1,2 error:missing-fence@3,4
  *size = n + 1; // want warning:volatile@1,4 error:insufficient-lock-scope@1,2 error:missing-fence@3,4
  unlock<plant>(s, own);
}

// pop gives 0 when there is no node.
template <int plant> __device__ unsigned pop(Stack *s, bool own) {
  volatile int *size = &s->size, *nodes = s->nodes;
  unsigned node = 0;
  lock<plant>(s, own);
  int n = *size; // want error:insufficient-lock-scope@1,2 error:missing-fence@3,4
  if (n > 0) {
    node = nodes[n - 1]; // want error:insufficient-lock-scope@1,2 error:missing-fence@3,4
    *size = n - 1; // want warning:volatile@4 error:insufficient-lock-scope@1,2 error:missing-fence@3,4
  }
  unlock<plant>(s, own);
  return node;
}

template <int plant> __device__ int add(int *todo, int n) {
  if constexpr (plant == 5) return atomicAdd_block(todo, n); // want error:insufficient-atomic-scope@5
  else return atomicAdd(todo, n);
}

// Each block puts the root of a tree on its shared stack; todo says how many nodes are not searched yet.
template <int plant> __global__ void treesearch(Stack *own, Stack *shared, int *todo, int *visited) {
  int b = blockIdx.x, searched = 0;
  if (threadIdx.x % 32 != 0) return;
  if (threadIdx.x == 0) push<plant>(&shared[b], false, child(0, b));
  while (add<plant>(todo, 0) > 0) {
    unsigned node = pop<plant>(&own[b], true);
    for (int i = 0; node == 0 && i < BLOCKS; i++) node = pop<plant>(&shared[(b + i) % BLOCKS], false);
    if (node == 0) continue;
    searched++;
    add<plant>(todo, children(node) - 1);
    for (int k = 0; k < children(node); k++) push<plant>(k % 2 == 0 ? &own[b] : &shared[b], k % 2 == 0, child(node, k));
  }
  if constexpr (plant == 6) atomicAdd_block(visited, searched); // want error:insufficient-atomic-scope@6
  else atomicAdd(visited, searched);
}

int count(unsigned node) {
  int n = 1;
  for (int k = 0; k < children(node); k++) n += count(child(node, k));
  return n;
}

int main(int argc, char **argv) {
  Stack *stacks;
  int *m, nodes = 0;
  cudaMallocManaged(&stacks, 2 * BLOCKS * sizeof(Stack));
  cudaMallocManaged(&m, 2 * sizeof(int));
  for (int b = 0; b < 2 * BLOCKS; b++) stacks[b].mutex = stacks[b].size = 0;
  m[0] = BLOCKS, m[1] = 0;
  switch (argc > 1 ? atoi(argv[1]) : 0) {
  case 0: treesearch<0><<<BLOCKS, BLOCK>>>(stacks, stacks + BLOCKS, m, m + 1); break;
  case 1: treesearch<1><<<BLOCKS, BLOCK>>>(stacks, stacks + BLOCKS, m, m + 1); break;
  case 2: treesearch<2><<<BLOCKS, BLOCK>>>(stacks, stacks + BLOCKS, m, m + 1); break;
  case 3: treesearch<3><<<BLOCKS, BLOCK>>>(stacks, stacks + BLOCKS, m, m + 1); break;
  case 4: treesearch<4><<<BLOCKS, BLOCK>>>(stacks, stacks + BLOCKS, m, m + 1); break;
  case 5: treesearch<5><<<BLOCKS, BLOCK>>>(stacks, stacks + BLOCKS, m, m + 1); break;
  case 6: treesearch<6><<<BLOCKS, BLOCK>>>(stacks, stacks + BLOCKS, m, m + 1); break;
  }
  cudaDeviceSynchronize();
  for (int b = 0; b < BLOCKS; b++) nodes += count(child(0, b));
  printf("%d nodes visited of %d\n", m[1], nodes);
  return m[1] != nodes;
}
