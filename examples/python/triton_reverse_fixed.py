# expect: exit 0
"""One program stores a block to memory and, after a barrier of its threads, loads it reversed."""

import torch
import triton
import triton.language as tl


@triton.jit
def reverse(scratch, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(scratch + i, i)
    tl.debug_barrier()
    tl.store(out + i, tl.load(scratch + SIZE - 1 - i))


scratch = torch.zeros(256, device="cuda", dtype=torch.int32)
out = torch.empty_like(scratch)
reverse[(1,)](scratch, out, SIZE=256)
assert out[0].item() == 255
