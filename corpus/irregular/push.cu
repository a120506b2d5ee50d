// Each vertex raises the results of its neighbours to its own value, which its team's leader reads for all.
#include "graph.cuh"

template <class T, int unit, int bugs>
__global__ void push(int n, const int *first, const int *edges, const T *value, T *out, int *) {
  __shared__ T of[most];
  for (int v = team<unit>(); bugs & bounds ? v <= n : v < n; v += teams<unit>()) {
    int end = first[v + 1];
    T x;
    if constexpr (unit == thread) {
      x = value[v];
    } else {
      int leaders = threadIdx.x - member<unit>();
      if (member<unit>() == 0) of[leaders] = value[v];
      if constexpr (!(bugs & sync)) meet<unit>();
      x = of[leaders];
      if constexpr (!(bugs & reuse)) meet<unit>();
    }
    for (int e = first[v] + member<unit>(); e < end; e += members<unit>()) raise<bugs>(out + edges[e], x);
  }
}

KERNELS(push, int, float, thread, none)
KERNELS(push, int, float, thread, atomic)
KERNELS(push, int, float, thread, guard)
KERNELS(push, int, float, thread, bounds)
KERNELS(push, int, float, thread, atomic | bounds)
KERNELS(push, int, float, thread, guard | bounds)
KERNELS(push, int, float, warp, none)
KERNELS(push, int, float, warp, atomic)
KERNELS(push, int, float, warp, guard)
KERNELS(push, int, float, warp, sync)
KERNELS(push, int, float, warp, reuse)
KERNELS(push, int, float, warp, bounds)
KERNELS(push, int, float, warp, atomic | sync)
KERNELS(push, int, float, warp, atomic | bounds)
KERNELS(push, int, float, warp, guard | bounds)
KERNELS(push, int, float, block, none)
KERNELS(push, int, float, block, atomic)
KERNELS(push, int, float, block, guard)
KERNELS(push, int, float, block, sync)
KERNELS(push, int, float, block, reuse)
KERNELS(push, int, float, block, bounds)
KERNELS(push, int, float, block, atomic | sync)
KERNELS(push, int, float, block, atomic | bounds)
KERNELS(push, int, float, block, guard | bounds)
