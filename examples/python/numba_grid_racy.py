# expect: exit 1, unordered
"""Every thread reads what another block has written, with nothing between."""

import numpy
from numba import cuda


@cuda.jit
def turn(values, turned):
    i = cuda.grid(1)
    values[i] = i  # race
    turned[i] = values[values.size - 1 - i]  # race


values = cuda.device_array(128, numpy.int32)
turned = cuda.device_array(128, numpy.int32)
turn[4, 32](values, turned)
print(turned.copy_to_host()[:3])
