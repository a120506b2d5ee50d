// Switches for kernels of instrumented programs ("fencepost nvcc --instrument MODE", or "fencepost run --device emulated"; docs/gpu.md).
// Elsewhere they do nothing.
//
// In mode log, atomics and strong accesses are checked all the same, because they may order what is checked.
#pragma once

#ifdef __CUDACC__
// From here on accesses of this thread are checked, or not.
extern "C" __device__ __attribute__((weak, noinline)) void fencepost_check_thread(int on) { asm volatile("" : : "r"(on)); }

// From here on, accesses of all threads to this memory, global or shared, are checked (on = 1) or not (0). In mode hirace
// earlier accesses to it are forgotten. Call it where no other thread accesses the memory.
extern "C" __device__ __attribute__((weak, noinline)) void fencepost_check_memory(const void *address, unsigned long long bytes, int on) {
  asm volatile("" : : "l"(address), "l"(bytes), "r"(on));
}
#endif
