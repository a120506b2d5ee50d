# expect: exit 1, inter-kernel
"""torch computes on one stream while a Triton kernel reads the result on another."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i) * 2)  # race


x = torch.ones(128, device="cuda")
out = torch.empty_like(x)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())

x.add_(1)  # race
with torch.cuda.stream(side):
    double[(1,)](x, out, SIZE=128)
torch.cuda.synchronize()
print(out[0].item())
