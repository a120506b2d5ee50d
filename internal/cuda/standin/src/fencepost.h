// Switches for kernels of programs that detect races by themselves ("fencepost nvcc --instrument hirace", or "fencepost run --device emulated
// --instrument hirace"; docs/gpu.md). Elsewhere they do nothing.
#pragma once

#ifdef __CUDACC__
// From here on accesses of this thread are checked, or not.
extern "C" __device__ __attribute__((weak, noinline)) void fencepost_check_thread(int on) { asm volatile("" : : "r"(on)); }

// From here on, accesses of all threads to this memory, global or shared, are checked (on = 1) or not (0). Earlier accesses to it are
// forgotten.
extern "C" __device__ __attribute__((weak, noinline)) void fencepost_check_memory(const void *address, unsigned long long bytes, int on) {
  asm volatile("" : : "l"(address), "l"(bytes), "r"(on));
}
#endif
