// Each vertex with a neighbour of a greater value than its own raises one word of memory that all share to the greatest of
// its neighbours' values.
#include "graph.cuh"

template <class T, int unit, int bugs>
__global__ void conditional_vertex(int n, const int *first, const int *edges, const T *value, T *out, int *) {
  for (int v = team<unit>(); bugs & bounds ? v <= n : v < n; v += teams<unit>()) {
    int end = first[v + 1];
    T x = 0;
    for (int e = first[v] + member<unit>(); e < end; e += members<unit>()) {
      T y = value[edges[e]];
      if (y > x) x = y;
    }
    x = largest<unit, bugs>(x);
    if (member<unit>() == 0 && x > value[v]) raise<bugs>(out, x);
  }
}

KERNELS(conditional_vertex, int, float, thread, none)
KERNELS(conditional_vertex, int, float, thread, atomic)
KERNELS(conditional_vertex, int, float, thread, guard)
KERNELS(conditional_vertex, int, float, thread, bounds)
KERNELS(conditional_vertex, int, float, thread, atomic | bounds)
KERNELS(conditional_vertex, int, float, thread, guard | bounds)
KERNELS(conditional_vertex, int, float, warp, none)
KERNELS(conditional_vertex, int, float, warp, atomic)
KERNELS(conditional_vertex, int, float, warp, guard)
KERNELS(conditional_vertex, int, float, warp, sync)
KERNELS(conditional_vertex, int, float, warp, reuse)
KERNELS(conditional_vertex, int, float, warp, bounds)
KERNELS(conditional_vertex, int, float, warp, atomic | sync)
KERNELS(conditional_vertex, int, float, warp, atomic | bounds)
KERNELS(conditional_vertex, int, float, warp, sync | bounds)
KERNELS(conditional_vertex, int, float, block, none)
KERNELS(conditional_vertex, int, float, block, atomic)
KERNELS(conditional_vertex, int, float, block, guard)
KERNELS(conditional_vertex, int, float, block, sync)
KERNELS(conditional_vertex, int, float, block, reuse)
KERNELS(conditional_vertex, int, float, block, bounds)
KERNELS(conditional_vertex, int, float, block, atomic | sync)
KERNELS(conditional_vertex, int, float, block, atomic | bounds)
KERNELS(conditional_vertex, int, float, block, sync | bounds)
