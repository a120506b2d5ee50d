# expect: exit 1, inter-kernel
"""A tensor of one stream is dropped while a kernel of another stream may still read it."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i) * 2)  # race


out = torch.empty(128, device="cuda")
side = torch.cuda.Stream()

for _ in range(2):
    x = torch.ones(128, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        double[(1,)](x, out, SIZE=128)
    del x  # race
torch.cuda.synchronize()
print(out[0].item())
