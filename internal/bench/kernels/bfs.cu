// Breadth-first search with a launch for each level. Each thread takes a vertex of the frontier, claims unseen neighbours
// by compare-and-swap, and appends them to the next frontier. Scattered reads and atomics, divergent loops.

extern "C" __global__ void bfs(int size, int level, const int *first, const int *edges, const int *frontier,
                               int *dist, int *next, int *count)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= size)
        return;
    int v = frontier[t];
    for (int e = first[v]; e < first[v + 1]; e++) {
        int w = edges[e];
        if (atomicCAS(&dist[w], -1, level) == -1)
            next[atomicAdd(count, 1)] = w;
    }
}
