// What the patterns share: who works on a vertex, where a bug may be planted, and the steps that a bug can spoil.
#pragma once

// Who works on a vertex: its team.
enum { thread, warp, block };

// The bugs.
enum {
  none = 0,
  atomic = 1,   // a read and a write where an atomic is needed
  guard = 2,    // a plain look at what others change with atomics, to save an atomic
  sync = 4,     // no barrier between what the team writes to shared memory and what its leader reads there
  reuse = 8,    // no barrier before the shared memory is used for the next vertex
  bounds = 16,  // one vertex too many
  leader = 32,  // all of the team write what is its leader's to write
  inplace = 64, // results are written over what others still read
};

constexpr int most = 64; // threads of a block

#define KERNELS(pattern, T, U, unit, bugs)                                                                    \
  template __global__ void pattern<T, unit, bugs>(int, const int *, const int *, const T *, T *, int *);     \
  template __global__ void pattern<U, unit, bugs>(int, const int *, const int *, const U *, U *, int *);

// The number of a thread's team, and how many there are.
template <int unit> __device__ int team() {
  if constexpr (unit == block) return blockIdx.x;
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  return unit == warp ? t / 32 : t;
}

template <int unit> __device__ int teams() {
  if constexpr (unit == block) return gridDim.x;
  int threads = gridDim.x * blockDim.x;
  return unit == warp ? threads / 32 : threads;
}

// The number of a thread in its team, and how many there are.
template <int unit> __device__ int member() {
  return unit == block ? threadIdx.x : unit == warp ? threadIdx.x % 32 : 0;
}

template <int unit> __device__ int members() {
  return unit == block ? blockDim.x : unit == warp ? 32 : 1;
}

template <int unit> __device__ void meet() {
  if constexpr (unit == block) __syncthreads();
  if constexpr (unit == warp) __syncwarp();
}

// The largest x of the team, for its leader.
template <int unit, int bugs, class T> __device__ T largest(T x) {
  if constexpr (unit != thread) {
    __shared__ T of[most];
    of[threadIdx.x] = x;
    if constexpr (!(bugs & sync)) meet<unit>();
    if (bugs & leader || member<unit>() == 0) {
      int base = threadIdx.x - member<unit>();
      for (int i = 1; i < members<unit>(); i++) {
        T y = of[base + i];
        if (y > x) x = y;
      }
    }
    if constexpr (!(bugs & reuse)) meet<unit>();
  }
  return x;
}

// Raises *at to x.
__device__ inline void highest(int *at, int x) { atomicMax(at, x); }

__device__ inline void highest(float *at, float x) { // right for what is not negative
  atomicMax((int *)at, __float_as_int(x));
}

template <int bugs, class T> __device__ void raise(T *at, T x) {
  if constexpr (bool(bugs & guard)) {
    if (*at >= x) return;
  }
  if constexpr (bool(bugs & atomic)) {
    if (*at < x) *at = x;
  } else {
    highest(at, x);
  }
}
