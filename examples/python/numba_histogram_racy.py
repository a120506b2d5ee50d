# expect: exit 1, unordered
"""Threads count values in common bins by plain additions."""

import numpy as np
from numba import cuda


@cuda.jit
def histogram(values, counts):
    i = cuda.grid(1)
    if i < values.size:
        counts[values[i]] += 1  # race


values = np.random.default_rng(0).integers(0, 16, 256)
counts = cuda.to_device(np.zeros(16, np.int32))
histogram[4, 64](cuda.to_device(values), counts)
print("counted:", counts.copy_to_host().sum())
