# expect: exit 0
"""torch computes on one stream, and the other stream waits for it before a Triton kernel reads the result there."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i) * 2)


x = torch.ones(128, device="cuda")
out = torch.empty_like(x)
side = torch.cuda.Stream()

x.add_(1)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    double[(1,)](x, out, SIZE=128)
torch.cuda.synchronize()
assert out[0].item() == 4
