# expect: exit 0, warning missing-barrier
"""One program stores a block to memory and loads it reversed: each thread loads what another thread has stored."""

import torch
import triton
import triton.language as tl


@triton.jit
def reverse(scratch, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(scratch + i, i)  # race
    tl.store(out + i, tl.load(scratch + SIZE - 1 - i))  # race


scratch = torch.zeros(256, device="cuda", dtype=torch.int32)
out = torch.empty_like(scratch)
reverse[(1,)](scratch, out, SIZE=256)
print("first:", out[0].item())
