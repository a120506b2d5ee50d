// Graph colouring: a vertex takes the least colour that no neighbour of a lower number has, when all of these have one. Each
// block has a part of the vertices, takes a batch at a time, and steals batches of other parts when its own is empty.
// plant 1: a block takes its own batches atomically for the block only
// plant 2: a block steals batches atomically for the block only
// plant 3: a vertex gets its colour atomically for the block only
// plant 4: colours of neighbours are read atomically for the block only
// plant 5: the highest colour is found atomically for the block only
// plant 6: coloured vertices are counted atomically for the block only
#include <cstdio>
#include <cstdlib>

const int BLOCKS = 3, BLOCK = 64, VERTICES = 384, DEGREE = 2;

// neighbour gives one of a vertex's neighbours of lower number; vertex 0 has none.
__host__ __device__ int neighbour(int v, int k) { return (v * 2654435761u + k * 40503u) / 97 % v; }

template <int plant> __device__ int take(int *next, const int *end, int *tail) {
  for (int i = 0; i < BLOCKS; i++) {
    int part = (blockIdx.x + i) % BLOCKS, at;
    *tail = end[part];
    if (plant == 1 && i == 0 || plant == 2 && i > 0) at = atomicAdd_block(&next[part], BLOCK); // want error:insufficient-atomic-scope@1,2
    else at = atomicAdd(&next[part], BLOCK); // want error:insufficient-atomic-scope@1,2
    if (at < *tail) return at;
  }
  return -1;
}

// read gives a vertex's colour, 0 when it has none yet.
template <int plant> __device__ int read(int *colour, int v) {
  if constexpr (plant == 4) return atomicAdd_block(&colour[v], 0); // want error:insufficient-atomic-scope@4
  else return atomicAdd(&colour[v], 0); // want error:insufficient-atomic-scope@3
}

template <int plant> __device__ void give(int *colour, int v, int c, int *highest, int *coloured) {
  if constexpr (plant == 3) atomicExch_block(&colour[v], c); // want error:insufficient-atomic-scope@3
  else atomicExch(&colour[v], c); // want error:insufficient-atomic-scope@4
  if constexpr (plant == 5) atomicMax_block(highest, c); // want error:insufficient-atomic-scope@5
  else atomicMax(highest, c);
  if constexpr (plant == 6) atomicAdd_block(coloured, 1); // want error:insufficient-atomic-scope@6
  else atomicAdd(coloured, 1);
}

// The parts are from next[b] to end[b].
template <int plant> __global__ void colouring(int *next, const int *end, int *colour, int *highest, int *coloured) {
  __shared__ int head, tail;
  for (;;) {
    if (threadIdx.x == 0) head = take<plant>(next, end, &tail);
    __syncthreads();
    if (head < 0) break;
    int v = head + threadIdx.x;
    bool waits = v < tail;
    while (waits) {
      unsigned used = 1;
      bool ready = true;
      for (int k = 0; v > 0 && k < DEGREE; k++) {
        int c = read<plant>(colour, neighbour(v, k));
        ready &= c != 0;
        used |= 1u << c;
      }
      if (ready) {
        give<plant>(colour, v, __ffs(~used) - 1, highest, coloured);
        waits = false;
      }
    }
    __syncthreads();
  }
}

// check counts the vertices that have no colour, and the edges whose ends have the same.
__global__ void check(const int *colour, int *wrong) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (colour[v] == 0) atomicAdd(wrong, 1);
  for (int k = 0; v > 0 && k < DEGREE; k++)
    if (colour[v] == colour[neighbour(v, k)]) atomicAdd(wrong, 1);
}

int main(int argc, char **argv) {
  int *m;
  cudaMallocManaged(&m, 1024 * sizeof(int));
  for (int i = 0; i < 1024; i++) m[i] = 0;
  int *next = m, *end = m + BLOCKS, *highest = m + 2 * BLOCKS, *coloured = highest + 1, *wrong = highest + 2, *colour = m + 64;
  next[1] = end[0] = 64, next[2] = end[1] = 128, end[2] = VERTICES;
  switch (argc > 1 ? atoi(argv[1]) : 0) {
  case 0: colouring<0><<<BLOCKS, BLOCK>>>(next, end, colour, highest, coloured); break;
  case 1: colouring<1><<<BLOCKS, BLOCK>>>(next, end, colour, highest, coloured); break;
  case 2: colouring<2><<<BLOCKS, BLOCK>>>(next, end, colour, highest, coloured); break;
  case 3: colouring<3><<<BLOCKS, BLOCK>>>(next, end, colour, highest, coloured); break;
  case 4: colouring<4><<<BLOCKS, BLOCK>>>(next, end, colour, highest, coloured); break;
  case 5: colouring<5><<<BLOCKS, BLOCK>>>(next, end, colour, highest, coloured); break;
  case 6: colouring<6><<<BLOCKS, BLOCK>>>(next, end, colour, highest, coloured); break;
  }
  check<<<VERTICES / BLOCK, BLOCK>>>(colour, wrong);
  cudaDeviceSynchronize();
  printf("%d colours, %d wrong\n", *highest, *wrong);
  return *coloured != VERTICES || *wrong != 0;
}
