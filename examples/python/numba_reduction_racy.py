# expect: exit 1, missing-barrier
"""A sum in shared memory without a barrier between its steps."""

import numpy as np
from numba import cuda, float32

SIZE = 128


@cuda.jit
def total(values, out):
    part = cuda.shared.array(SIZE, float32)
    t = cuda.threadIdx.x
    part[t] = values[t]  # race
    step = SIZE // 2
    while step > 0:
        if t < step:
            part[t] += part[t + step]  # race
        step //= 2
    if t == 0:
        out[0] = part[0]


out = cuda.to_device(np.zeros(1, np.float32))
total[1, SIZE](cuda.to_device(np.ones(SIZE, np.float32)), out)
print("total:", out.copy_to_host()[0])
