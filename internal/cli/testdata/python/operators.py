"""torch alone, on two streams. What the interpreter frees at its end races with nothing."""

import torch

x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x + 1
assert torch.cuda.memory_allocated() >= 32
