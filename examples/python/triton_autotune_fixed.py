# expect: exit 0
"""Autotuning tries blocks of two sizes, and programs are apart by the size of a block."""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"SIZE": 64}), triton.Config({"SIZE": 128})], key=["n"])
@triton.jit
def number(out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + i, tl.program_id(0), mask=i < n)


out = torch.empty(256, device="cuda", dtype=torch.int32)
number[lambda options: (triton.cdiv(256, options["SIZE"]),)](out, 256)
print("sizes tried: 64, 128; chosen:", number.best_config.kwargs["SIZE"])
