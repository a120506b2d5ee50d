# A script outlives the device: what a kernel's access out of bounds has lost can be told of and freed.
import torch
import triton
import triton.language as tl


@triton.jit
def stray(x):
    tl.store(x + 100000, 1.0)


def launch():
    x = torch.zeros(4, device="cuda")
    stray[(1,)](x)
    torch.cuda.synchronize()


try:
    launch()
except Exception as error:
    print("caught", "illegal memory access" in str(error))
print("alive")
