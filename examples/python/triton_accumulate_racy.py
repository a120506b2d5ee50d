# expect: exit 1, unordered
"""Four programs add to one counter by a load and a store: what one adds, another overwrites."""

import torch
import triton
import triton.language as tl


@triton.jit
def accumulate(total, value):
    tl.store(total, tl.load(total) + value)  # race


total = torch.zeros(1, device="cuda")
accumulate[(4,)](total, 1.0)
print("total:", total.item())
