# expect: exit 0
"""Each program moves its block by one element, from one tensor to another."""

import torch
import triton
import triton.language as tl


@triton.jit
def shift(x, out, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + i + 1, tl.load(x + i))


x = torch.arange(513, device="cuda", dtype=torch.float32)
out = x.clone()
shift[(4,)](x, out, SIZE=128)
assert out[:3].tolist() == [0, 0, 1]
