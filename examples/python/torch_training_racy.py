# expect: exit 1, unordered
"""A training loop whose layer adds up the gradient of its bias by a load and a store in each program."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_bias(x, bias, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    row = tl.program_id(0) * SIZE
    tl.store(out + row + i, tl.load(x + row + i) + tl.load(bias + i))


@triton.jit
def bias_gradient(grad, total, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    row = tl.load(grad + tl.program_id(0) * SIZE + i)
    tl.store(total + i, tl.load(total + i) + row)  # race


class Bias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        out = torch.empty_like(x)
        add_bias[(x.shape[0],)](x, bias, out, SIZE=x.shape[1])
        return out

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        total = torch.zeros(grad.shape[1], device="cuda")
        bias_gradient[(grad.shape[0],)](grad, total, SIZE=grad.shape[1])
        return grad, total


torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(8, 16, device="cuda") * 0.1)
bias = torch.nn.Parameter(torch.zeros(16, device="cuda"))
x = torch.randn(32, 8, device="cuda")
wanted = x @ torch.randn(8, 16, device="cuda") + 1

for step in range(3):
    loss = torch.nn.functional.mse_loss(Bias.apply(x @ weight, bias), wanted)
    loss.backward()
    with torch.no_grad():
        for parameter in (weight, bias):
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    print(f"step {step}: loss {loss.item():.4f}")
