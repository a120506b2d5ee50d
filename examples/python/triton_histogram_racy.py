# expect: exit 1, unordered
"""Each program counts its block, and adds its counts to the common ones by a load and a store."""

import torch
import triton
import triton.language as tl


@triton.jit
def histogram(values, counts, SIZE: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    own = tl.histogram(tl.load(values + i), BINS)
    at = counts + tl.arange(0, BINS)
    tl.store(at, tl.load(at) + own)  # race


values = torch.randint(0, 16, (512,), device="cuda", dtype=torch.int32)
counts = torch.zeros(16, device="cuda", dtype=torch.int32)
histogram[(4,)](values, counts, SIZE=128, BINS=16)
print("counted:", counts.sum().item())
