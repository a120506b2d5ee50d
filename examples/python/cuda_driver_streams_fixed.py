# expect: exit 0
"""The driver API by cuda-python: one stream writes what the kernel of another reads, which waits for it by an event."""

import ctypes

from cuda.bindings import driver, nvrtc

SOURCE = rb"""
extern "C" __global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void twice(int *x, int *out) { out[threadIdx.x] = 2 * x[threadIdx.x]; }
"""


def check(result):
    error, *values = result
    if int(error):
        raise RuntimeError(error)
    return values[0] if len(values) == 1 else values


program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"streams.cu", 0, [], []))
check(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"]))
ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
check(nvrtc.nvrtcGetPTX(program, ptx))

check(driver.cuInit(0))
context = check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))
check(driver.cuCtxSetCurrent(context))
module = check(driver.cuModuleLoadData(ptx))
fill, twice = (check(driver.cuModuleGetFunction(module, name)) for name in (b"fill", b"twice"))
x, out = (check(driver.cuMemAlloc(64 * 4)) for _ in range(2))
first, second = (check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)) for _ in range(2))


def launch(kernel, stream, *pointers):
    arguments = tuple(int(p) for p in pointers), (ctypes.c_void_p,) * len(pointers)
    check(driver.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, stream, arguments, 0))


launch(fill, first, x)
written = check(driver.cuEventCreate(0))
check(driver.cuEventRecord(written, first))
check(driver.cuStreamWaitEvent(second, written, 0))
launch(twice, second, x, out)
check(driver.cuCtxSynchronize())
