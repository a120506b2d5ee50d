#line 2 "fencepost/intrinsics.h"
// The dot products of bytes and halves as instructions. If it does not optimise, the device compiler refuses those of its own header
// ("unsupported operation"). nvcc includes this file after cuda_runtime.h, so the names below mean these functions in all sources.
#if defined(__CUDACC__) && defined(__cplusplus) && !defined(FENCEPOST_INTRINSICS)
#define FENCEPOST_INTRINSICS
#define FENCEPOST_DOT(name, op, result, a_type, b_type)                                                    \
  static __device__ __inline__ __attribute__((unused)) result name(a_type a, b_type b, result c) {         \
    result d;                                                                                              \
    asm(op " %0, %1, %2, %3;" : "=r"(d) : "r"(*(unsigned *)&a), "r"(*(unsigned *)&b), "r"(c));             \
    return d;                                                                                              \
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 610
FENCEPOST_DOT(fencepost_dp4a, "dp4a.s32.s32", int, int, int)
FENCEPOST_DOT(fencepost_dp4a, "dp4a.u32.u32", unsigned, unsigned, unsigned)
FENCEPOST_DOT(fencepost_dp4a, "dp4a.s32.s32", int, char4, char4)
FENCEPOST_DOT(fencepost_dp4a, "dp4a.u32.u32", unsigned, uchar4, uchar4)
FENCEPOST_DOT(fencepost_dp2a_lo, "dp2a.lo.s32.s32", int, int, int)
FENCEPOST_DOT(fencepost_dp2a_lo, "dp2a.lo.u32.u32", unsigned, unsigned, unsigned)
FENCEPOST_DOT(fencepost_dp2a_lo, "dp2a.lo.s32.s32", int, short2, char4)
FENCEPOST_DOT(fencepost_dp2a_lo, "dp2a.lo.u32.u32", unsigned, ushort2, uchar4)
FENCEPOST_DOT(fencepost_dp2a_hi, "dp2a.hi.s32.s32", int, int, int)
FENCEPOST_DOT(fencepost_dp2a_hi, "dp2a.hi.u32.u32", unsigned, unsigned, unsigned)
FENCEPOST_DOT(fencepost_dp2a_hi, "dp2a.hi.s32.s32", int, short2, char4)
FENCEPOST_DOT(fencepost_dp2a_hi, "dp2a.hi.u32.u32", unsigned, ushort2, uchar4)
#define __dp4a fencepost_dp4a
#define __dp2a_lo fencepost_dp2a_lo
#define __dp2a_hi fencepost_dp2a_hi
#endif
#undef FENCEPOST_DOT
#endif
