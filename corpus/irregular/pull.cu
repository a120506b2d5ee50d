// Each vertex takes the greatest of its own value and its neighbours'. The results lie behind the values.
#include "graph.cuh"

template <class T, int unit, int bugs>
__global__ void pull(int n, const int *first, const int *edges, const T *, T *value, int *) {
  T *out = bugs & inplace ? value : value + n;
  for (int v = team<unit>(); bugs & bounds ? v <= n : v < n; v += teams<unit>()) {
    int end = first[v + 1];
    T x = 0;
    for (int e = first[v] + member<unit>(); e < end; e += members<unit>()) {
      T y = value[edges[e]];
      if (y > x) x = y;
    }
    x = largest<unit, bugs>(x);
    if (bugs & leader || member<unit>() == 0) {
      T y = value[v];
      out[v] = y > x ? y : x;
    }
  }
}

KERNELS(pull, int, float, thread, none)
KERNELS(pull, int, float, thread, inplace)
KERNELS(pull, int, float, thread, bounds)
KERNELS(pull, int, float, thread, inplace | bounds)
KERNELS(pull, int, float, warp, none)
KERNELS(pull, int, float, warp, inplace)
KERNELS(pull, int, float, warp, sync)
KERNELS(pull, int, float, warp, reuse)
KERNELS(pull, int, float, warp, leader)
KERNELS(pull, int, float, warp, bounds)
KERNELS(pull, int, float, warp, inplace | sync)
KERNELS(pull, int, float, warp, sync | bounds)
KERNELS(pull, int, float, block, none)
KERNELS(pull, int, float, block, inplace)
KERNELS(pull, int, float, block, sync)
KERNELS(pull, int, float, block, reuse)
KERNELS(pull, int, float, block, leader)
KERNELS(pull, int, float, block, bounds)
KERNELS(pull, int, float, block, inplace | sync)
KERNELS(pull, int, float, block, sync | bounds)
