# expect: exit 1, unordered
"""Triton without torch, on the memory of NumPy arrays: programs store halves that overlap."""

import numpy as np
import triton
import triton.language as tl
from cuda.bindings import driver


def check(result):
    error, *values = result
    if int(error):
        raise RuntimeError(error)
    return values[0] if values else None


class Array:
    """What Triton asks of a tensor, for an array that the device is given access to."""

    def __init__(self, array):
        self.array, self.dtype = array, str(array.dtype)
        check(driver.cuMemHostRegister(array.ctypes.data, array.nbytes, driver.CU_MEMHOSTREGISTER_DEVICEMAP))

    def data_ptr(self):
        return int(check(driver.cuMemHostGetDevicePointer(self.array.ctypes.data, 0)))


@triton.jit
def double(x, out, SIZE: tl.constexpr):
    i = tl.program_id(0) * (SIZE // 2) + tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i) * tl.num_programs(0) + tl.program_id(0))  # race


check(driver.cuInit(0))
check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))
x, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
double[(2,)](Array(x), Array(out), SIZE=128)
check(driver.cuCtxSynchronize())
print(out[:4])
