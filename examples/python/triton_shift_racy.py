# expect: exit 1, unordered
"""Each program moves its block by one element in place: its last store is what the next program loads first."""

import torch
import triton
import triton.language as tl


@triton.jit
def shift(x, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    value = tl.load(x + i)  # race
    tl.debug_barrier()
    tl.store(x + i + 1, value)  # race


x = torch.arange(513, device="cuda", dtype=torch.float32)
shift[(4,)](x, SIZE=128)
print(x[:3].tolist())
