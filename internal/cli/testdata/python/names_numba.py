"""Two blocks store to one element each of arrays of several kinds, by numba."""

# named: plain[3]; plain + 12 bytes of int32[8]
# named: strided + 24 bytes; strided + 24 bytes of int32[4]
# named: reversed_ + 48 bytes; reversed_ + 48 bytes of int64[8]
# named: pair[0][1]; pair[0] + 4 bytes of float32[2, 2]
# named: pair[1][5]; pair[1] + 10 bytes of int16[6]

import numpy as np
from numba import cuda


@cuda.jit
def kernel(n, plain, strided, reversed_, pair):
    block = cuda.blockIdx.x
    plain[n] = block
    strided[n] = block
    reversed_[1] = block
    pair[0][0, 1] = block
    pair[1][5] = block  # an array of the host's, which numba copies


plain = cuda.to_device(np.zeros(8, np.int32))
strided = cuda.to_device(np.zeros(12, np.int32))[4::2]
reversed_ = cuda.to_device(np.zeros(8, np.int64))[::-1]
pair = cuda.to_device(np.zeros((2, 2), np.float32)), np.zeros(6, np.int16)
kernel[2, 1](3, plain, strided, reversed_, pair)
