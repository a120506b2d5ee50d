// Each edge joins the trees of its two vertices. Parents have smaller numbers than their children, roots are their own
// parents, and paths become shorter as they are walked.
#include "graph.cuh"

template <class T> __device__ T look(T *at) {
  return __nv_atomic_load_n(at, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

template <int bugs, class T> __device__ T root(T *parent, T x) {
  for (;;) {
    T up = bugs & guard ? parent[x] : look(parent + x);
    if (up == x) return x;
    T above = bugs & guard ? parent[up] : look(parent + up);
    if (above < up) {
      if constexpr (bool(bugs & atomic)) {
        parent[x] = above;
      } else {
        atomicMin(parent + x, above);
      }
    }
    x = above;
  }
}

__device__ inline bool swap(int *at, int old, int x) { return atomicCAS(at, old, x) == old; }

__device__ inline bool swap(long long *at, long long old, long long x) {
  return atomicCAS((unsigned long long *)at, old, x) == old;
}

template <int bugs, class T> __device__ void join(T *parent, T a, T b) {
  for (;;) {
    a = root<bugs>(parent, a);
    b = root<bugs>(parent, b);
    if (a == b) return;
    T low = a < b ? a : b, high = a < b ? b : a;
    if constexpr (bool(bugs & atomic)) {
      parent[high] = low;
      return;
    } else {
      if (swap(parent + high, high, low)) return;
    }
  }
}

template <class T, int unit, int bugs>
__global__ void path_compression(int n, const int *first, const int *edges, const T *, T *parent, int *) {
  for (int v = team<unit>(); bugs & bounds ? v <= n : v < n; v += teams<unit>()) {
    int end = first[v + 1];
    for (int e = first[v] + member<unit>(); e < end; e += members<unit>()) join<bugs, T>(parent, v, edges[e]);
  }
}

KERNELS(path_compression, int, long long, thread, none)
KERNELS(path_compression, int, long long, thread, atomic)
KERNELS(path_compression, int, long long, thread, guard)
KERNELS(path_compression, int, long long, thread, bounds)
KERNELS(path_compression, int, long long, thread, atomic | bounds)
KERNELS(path_compression, int, long long, thread, guard | bounds)
KERNELS(path_compression, int, long long, warp, none)
KERNELS(path_compression, int, long long, warp, atomic)
KERNELS(path_compression, int, long long, warp, guard)
KERNELS(path_compression, int, long long, warp, bounds)
KERNELS(path_compression, int, long long, warp, atomic | bounds)
KERNELS(path_compression, int, long long, warp, guard | bounds)
KERNELS(path_compression, int, long long, block, none)
KERNELS(path_compression, int, long long, block, atomic)
KERNELS(path_compression, int, long long, block, guard)
KERNELS(path_compression, int, long long, block, bounds)
KERNELS(path_compression, int, long long, block, atomic | bounds)
KERNELS(path_compression, int, long long, block, guard | bounds)
