// Each edge to a vertex of a higher number raises one word of memory that all share.
#include "graph.cuh"

template <class T, int unit, int bugs>
__global__ void conditional_edge(int n, const int *first, const int *edges, const T *value, T *out, int *) {
  for (int v = team<unit>(); bugs & bounds ? v <= n : v < n; v += teams<unit>()) {
    int end = first[v + 1];
    for (int e = first[v] + member<unit>(); e < end; e += members<unit>()) {
      int w = edges[e];
      if (v < w) raise<bugs>(out, value[v] + value[w]);
    }
  }
}

KERNELS(conditional_edge, int, float, thread, none)
KERNELS(conditional_edge, int, float, thread, atomic)
KERNELS(conditional_edge, int, float, thread, guard)
KERNELS(conditional_edge, int, float, thread, bounds)
KERNELS(conditional_edge, int, float, thread, atomic | bounds)
KERNELS(conditional_edge, int, float, thread, guard | bounds)
KERNELS(conditional_edge, int, float, warp, none)
KERNELS(conditional_edge, int, float, warp, atomic)
KERNELS(conditional_edge, int, float, warp, guard)
KERNELS(conditional_edge, int, float, warp, bounds)
KERNELS(conditional_edge, int, float, warp, atomic | bounds)
KERNELS(conditional_edge, int, float, warp, guard | bounds)
KERNELS(conditional_edge, int, float, block, none)
KERNELS(conditional_edge, int, float, block, atomic)
KERNELS(conditional_edge, int, float, block, guard)
KERNELS(conditional_edge, int, float, block, bounds)
KERNELS(conditional_edge, int, float, block, atomic | bounds)
KERNELS(conditional_edge, int, float, block, guard | bounds)
