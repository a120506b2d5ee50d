# expect: exit 0
"""Four programs add to one counter by an atomic operation."""

import torch
import triton
import triton.language as tl


@triton.jit
def accumulate(total, value):
    tl.atomic_add(total, value)


total = torch.zeros(1, device="cuda")
accumulate[(4,)](total, 1.0)
assert total.item() == 4
