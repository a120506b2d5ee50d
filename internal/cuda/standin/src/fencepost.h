// Switches for kernels of programs that detect races by themselves ("fencepost nvcc --instrument hirace", or "fencepost run --device emulated
// --instrument hirace"; docs/gpu.md). Elsewhere they do nothing.
#pragma once

#ifdef __CUDACC__
// From here on accesses of this thread are checked, or not.
extern "C" __device__ __attribute__((weak, noinline)) void fencepost_check_thread(int on) { asm volatile("" : : "r"(on)); }

// From here on accesses of anyone to this memory are checked, or not: global memory, or that which the block shares. What was done to it
// before is forgotten.
extern "C" __device__ __attribute__((weak, noinline)) void fencepost_check_memory(const void *address, unsigned long long bytes, int on) {
  asm volatile("" : : "l"(address), "l"(bytes), "r"(on));
}
#endif
