// Each vertex with a neighbour of a greater value than its own goes on a list, whose first word is its length.
#include "graph.cuh"

template <class T, int unit, int bugs>
__global__ void populate_worklist(int n, const int *first, const int *edges, const T *value, T *, int *list) {
  for (int v = team<unit>(); bugs & bounds ? v <= n : v < n; v += teams<unit>()) {
    int end = first[v + 1];
    T x = 0;
    for (int e = first[v] + member<unit>(); e < end; e += members<unit>()) {
      T y = value[edges[e]];
      if (y > x) x = y;
    }
    x = largest<unit, bugs>(x);
    if (member<unit>() != 0 || x <= value[v]) continue;
    if constexpr (bool(bugs & guard)) {
      if (*list >= n) continue; // full
    }
    int at;
    if constexpr (bool(bugs & atomic)) {
      at = *list;
      *list = at + 1;
    } else {
      at = atomicAdd(list, 1);
    }
    list[1 + at] = v;
  }
}

KERNELS(populate_worklist, int, float, thread, none)
KERNELS(populate_worklist, int, float, thread, atomic)
KERNELS(populate_worklist, int, float, thread, guard)
KERNELS(populate_worklist, int, float, thread, bounds)
KERNELS(populate_worklist, int, float, thread, atomic | bounds)
KERNELS(populate_worklist, int, float, thread, guard | bounds)
KERNELS(populate_worklist, int, float, warp, none)
KERNELS(populate_worklist, int, float, warp, atomic)
KERNELS(populate_worklist, int, float, warp, guard)
KERNELS(populate_worklist, int, float, warp, sync)
KERNELS(populate_worklist, int, float, warp, reuse)
KERNELS(populate_worklist, int, float, warp, bounds)
KERNELS(populate_worklist, int, float, warp, atomic | sync)
KERNELS(populate_worklist, int, float, warp, atomic | bounds)
KERNELS(populate_worklist, int, float, warp, sync | bounds)
KERNELS(populate_worklist, int, float, block, none)
KERNELS(populate_worklist, int, float, block, atomic)
KERNELS(populate_worklist, int, float, block, guard)
KERNELS(populate_worklist, int, float, block, sync)
KERNELS(populate_worklist, int, float, block, reuse)
KERNELS(populate_worklist, int, float, block, bounds)
KERNELS(populate_worklist, int, float, block, atomic | sync)
KERNELS(populate_worklist, int, float, block, atomic | bounds)
KERNELS(populate_worklist, int, float, block, sync | bounds)
