"""PyTorch on the emulated device. Run with: fencepost run python3 -m pytest python/tests/test_torch.py

Unless a test says otherwise, results on the device are compared with the CPU's bit for bit.
"""

import copy
import itertools
import os
import random
import resource
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from fencepost import _torch

CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def on_device(value):
    """The same value with tensors and modules on the device."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(CUDA).requires_grad_(value.requires_grad)
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).to(CUDA)
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(v) for v in value)
    return value


def assert_same(got, want):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert_same(g, w)
    elif isinstance(want, torch.Tensor):
        assert got.is_cuda
        assert (got.dtype, got.shape, got.layout) == (want.dtype, want.shape, want.layout)
        if want.layout is torch.strided:
            assert got.stride() == want.stride()
        torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0, equal_nan=True)
    else:
        assert got == want


def same(operation, *arguments):
    """Asserts that an operation gives the same on the device, for its results and its arguments."""
    moved = on_device(arguments)
    assert_same(operation(*moved), operation(*arguments))
    assert_same(moved, arguments)


def same_gradients(operation, *arguments):
    """Asserts that an operation's results and gradients are the same on the device."""
    moved = on_device(arguments)
    for values in (moved, arguments):
        result = operation(*values)
        result = result[0] if isinstance(result, tuple) else result
        (result * torch.linspace(-1, 1, result.numel()).view(result.shape).to(result)).sum().backward()
        if values is moved:
            given = result
    assert_same(given.detach(), result.detach())
    for got, want in zip(moved, arguments):
        pairs = zip(got.parameters(), want.parameters()) if isinstance(want, torch.nn.Module) else [(got, want)]
        for g, w in pairs:
            if isinstance(w, torch.Tensor) and w.requires_grad:
                assert_same(g.grad, w.grad)


class Recorder:
    """A device that keeps what it is told."""

    def __init__(self, device):
        self.host_address = device.host_address
        self.calls, self.names = [], []

    def operator(self, name, stream, accesses):
        self.calls.append((name, stream, list(accesses)))

    def unsupported(self, name):
        self.names.append(name)


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder(_torch._device)
    monkeypatch.setattr(_torch, "_device", recorder)
    return recorder


def range_of(tensor, write):
    return (write, tensor.data_ptr(), 0, 0, tensor.nbytes, 1, 1)


def test_device_is_there():
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() >= 1
    assert torch.cuda.get_device_capability() >= (7, 5)
    assert torch.cuda.get_device_name()


# Values


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.zeros(3, 4, device=device),
        lambda device: torch.ones(5, dtype=torch.int8, device=device),
        lambda device: torch.full((2, 3), 7.5, device=device),
        lambda device: torch.arange(3, 20, 2, device=device),
        lambda device: torch.linspace(0, 1, 7, device=device),
        lambda device: torch.logspace(0, 2, 5, device=device),
        lambda device: torch.eye(4, 3, device=device),
        lambda device: torch.tensor([[1.5, 2], [3, 4]], device=device),
        lambda device: torch.tril_indices(4, 4, device=device),
        lambda device: torch.hann_window(8, device=device),
        lambda device: torch.zeros(0, 3, device=device),
        lambda device: torch.complex(torch.ones(3, device=device), torch.ones(3, device=device)),
    ],
)
def test_creation(make):
    assert_same(make("cuda"), make("cpu"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64])
def test_elementwise(dtype):
    x, y = (torch.randn(5, 7) * 4).to(dtype), (torch.rand(5, 7) * 3 + 1).to(dtype)
    same(lambda a, b: [a + b, a - b, a * b, a / b, a // b, a % b, a > b, torch.where(a > 0, a, b)], x, y)
    same(lambda a: [-a, abs(a), a.clamp(-1, 1)], x)
    same(lambda a: [a + 1, 2 - a, a * 0.5, a % 3, a**2, a.remainder(2.5), torch.where(a > 0, a, 1)], x)
    if dtype.is_floating_point:
        same(lambda a: [a.exp(), a.sin(), a.sigmoid(), a.tanh(), F.gelu(a), F.silu(a), a.erf(), torch.lerp(a, a, 0.3)], x)


def test_numbers_promote_as_on_the_host():
    one = torch.tensor(3)
    same(lambda a: [a % 2.5, a.remainder(2), torch.fmod(a, 2.5), torch.maximum(a, a) + 1.5], one)
    same(lambda a: [torch.where(a > 0, 1, 2.5), torch.where(a > 0, a, 2.5)], torch.arange(-2, 3))


def test_reductions():
    x = torch.randn(6, 7, 8)
    same(lambda a: [a.sum(), a.mean(1), a.amax((0, 2)), a.argmin(1), a.prod(2), a.std(0), a.norm(), a.logsumexp(1)], x)
    same(lambda a: [a.max(1), a.median(0), torch.var_mean(a, 2), (a > 0).any(1), (a > 0).all(), a.count_nonzero()], x)
    assert on_device(x).sum().item() == x.sum().item()


def test_matrix_products():
    a, b, c = torch.randn(4, 5), torch.randn(5, 6), torch.randn(4, 6)
    same(lambda a, b, c: [a @ b, torch.addmm(c, a, b, beta=0.5), a.t() @ c, b.t() @ a.t()], a, b, c)
    same(lambda a, b: [torch.bmm(a, b), torch.einsum("bij,bjk->ik", a, b)], torch.randn(3, 4, 5), torch.randn(3, 5, 2))
    same(lambda a: [torch.linalg.inv(a), torch.linalg.qr(a), torch.linalg.svdvals(a), torch.linalg.det(a)], torch.randn(4, 4))
    same(lambda a, b: [a @ b, F.linear(a, b.t())], a.half(), b.half())


def test_indexing():
    x, i = torch.randn(6, 5), torch.tensor([4, 0, 2])
    same(lambda a, i: [a[i], a[:, i], a[1:4, ::2], a[a > 0]], x, i)
    same(lambda a, i: [a.gather(0, i.view(1, 3)), a.index_select(1, i), a.take(i)], x, i)

    def write(a, i):
        a[i, 1] = 5
        a[a < -1] = 0
        a[2, ::2] += 1
        a.scatter_(1, i.view(1, 3), 9.0)
        a.index_add_(0, i, torch.ones_like(a[:3]))
        return a.scatter_add(0, i.view(1, 3), torch.ones_like(a[:1, :3]))

    same(write, x, i)
    assert torch.equal(on_device(x)[i].cpu(), x[i])  # indices of the host
    same(lambda a: [a.nonzero(), a.unique(), a.masked_select(a > 1), torch.repeat_interleave(a, a)], torch.tensor([2, 0, 3, 2]))


def test_views_share_memory():
    x = torch.zeros(4, 6, device=CUDA)
    views = x[1], x.t(), x.view(2, 12), x[:, 1:3], x.expand(2, 4, 6), x.unfold(0, 2, 1), x.diagonal(), x.view(torch.int32)
    for view in views:
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.t()[2].add_(3)
    x[1:3, ::2].fill_(7)
    want = torch.zeros(4, 6)
    want.t()[2].add_(3)
    want[1:3, ::2].fill_(7)
    assert_same(x, want)


def test_in_place_operators_return_their_argument():
    x = torch.randn(3, 4)

    def change(a):
        assert a.add_(1) is a and a.mul_(a) is a and a.zero_() is a
        assert a.copy_(torch.ones_like(a)) is a and a.clamp_(0, 0.5) is a
        return torch._foreach_add([a, a], 1)

    same(change, x)


def test_out_arguments():
    x = torch.randn(4, 5)

    def fill(a):
        right, empty, wrong = a.new_empty(4, 5), a.new_empty(0), a.new_empty(20)[:20:2]
        assert torch.add(a, 1, out=right) is right
        torch.mul(a, 2, out=empty)
        with pytest.warns(UserWarning, match="resized"):
            torch.exp(a, out=wrong)
        values, indices = a.new_empty(0), a.new_empty(0, dtype=torch.int64)
        torch.max(a, 1, out=(values, indices))
        strided = a.new_zeros(5, 8)[:, ::2]
        torch.neg(a.t(), out=strided)
        return [right, empty, wrong, values, indices, strided]

    same(fill, x)


def test_out_of_wrong_size_leaves_neighbours_alone():
    memory = torch.zeros(64, device=CUDA)
    with pytest.warns(UserWarning, match="resized"):
        torch.ones(16, device=CUDA).mul(2)
        torch.mul(torch.ones(16, device=CUDA), 2, out=(small := memory[8:12]))
    assert small.sum().item() == 32
    assert memory[:8].sum().item() == 0


def test_conversions():
    x = torch.randn(5, 6) * 10
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.bool, torch.complex64):
        same(lambda a: [a.to(dtype), a.t().to(dtype), a.to(dtype).float() if not dtype.is_complex else a], x.abs())
    assert_same(x.to(CUDA, torch.float16), x.half())
    assert torch.equal(on_device(x).to("cpu", torch.int64), x.long())


def test_sorting_and_scanning():
    x = torch.randint(0, 9, (5, 40)).float()
    same(lambda a: [a.sort(dim=1, stable=True), a.argsort(dim=0, stable=True), a.topk(7), a.kthvalue(3)], x)
    same(lambda a: [a.cumsum(1), a.cumprod(0)], x)
    same(lambda a: [a.cummax(1), a.flip(0), a.roll(3), a.tril(), a.histc(5), a.logcumsumexp(1)], x)
    same(lambda a: [torch.bincount(a), torch.searchsorted(a.sort()[0], a), torch.isin(a, a[:3])], torch.randint(0, 50, (30,)))


def test_complex_numbers():
    z = torch.randn(4, 5, dtype=torch.complex64)
    same(lambda a: [a * a, a.abs(), a.angle(), a.real, a.imag + 1, a @ a.t()], z)
    same(lambda a: [a.conj() @ a.t(), (a.conj() + 1).resolve_conj(), a.conj().imag.neg(), torch.view_as_real(a)], z)
    same(lambda a: [torch.fft.fft(a), torch.fft.rfft2(a.real), torch.fft.ifftn(a)], z)
    assert torch.equal(on_device(z).conj().cpu(), z.conj())
    target = torch.zeros(4, 5, dtype=torch.complex64, device=CUDA)
    target.conj().copy_(z)
    assert_same(target, z.conj().resolve_conj())


def test_memory_formats():
    x = torch.randn(2, 3, 6, 7).contiguous(memory_format=torch.channels_last)
    conv = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    same(lambda a: [a + 1, a.relu(), F.max_pool2d(a, 2), a.clone(), a.contiguous()], x)
    assert_same(on_device(conv)(on_device(x)).detach(), conv(x).detach())
    assert on_device(x).is_contiguous(memory_format=torch.channels_last)


def test_zero_dimensional_tensors_of_the_host_mix():
    x, half = torch.randn(4), torch.tensor(0.5, dtype=torch.float64)
    assert_same(on_device(x) * half, x * half)
    assert_same(half - on_device(x), half - x)
    with pytest.raises(RuntimeError, match="same device"):
        on_device(x) + x
    with pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2, device=CUDA))


def test_sparse_tensors():
    x = torch.tensor([[0, 1.0, 0], [2, 0, 3]])
    device = on_device(x).to_sparse()
    assert device.is_cuda and torch.equal(device.to_dense().cpu(), x)
    assert torch.equal(torch.sparse.mm(device, on_device(x).t()).cpu(), torch.sparse.mm(x.to_sparse(), x.t()))
    assert torch.equal((device + device).to_dense().cpu(), x * 2)
    assert torch.equal(on_device(x).to_sparse_csr().matmul(torch.ones(3, device=CUDA)).cpu(), x.sum(1))


# Copies and streams


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("pinned", [False, True])
def test_copies_both_ways(non_blocking, pinned):
    x = torch.randn(50, 60)
    host = x.pin_memory() if pinned else x
    assert host.is_pinned() == pinned
    device = host.to(CUDA, non_blocking=non_blocking)
    back = torch.zeros(50, 60, pin_memory=pinned)
    back.copy_(device, non_blocking=non_blocking)
    torch.cuda.synchronize()
    assert torch.equal(back, x)
    for change in (lambda t: t.t(), lambda t: t[:, ::3], lambda t: t[::2].half(), lambda t: t[:, :1].expand(50, 60)):
        assert torch.equal(change(x.to(CUDA)).cpu(), change(x))
        target = torch.zeros_like(change(device), memory_format=torch.contiguous_format)
        assert_same(target.copy_(change(x), non_blocking=non_blocking), change(x).contiguous())
    strided = torch.zeros(50, 120, device=CUDA)
    strided[:, ::2] = x
    assert torch.equal(strided[:, ::2].cpu(), x) and strided[:, 1::2].abs().sum().item() == 0


def test_streams_and_events():
    x = torch.ones(1000, device=CUDA)
    side = torch.cuda.Stream()
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    before.record()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 3
        x.record_stream(side)
        after.record()
    torch.cuda.current_stream().wait_event(after)
    after.synchronize()
    assert (y + x).sum().item() == 4000
    assert before.elapsed_time(after) >= 0 and side.query()
    torch.cuda._sleep(1000)


def test_allocator():
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, dtype=torch.uint8, device=CUDA)
    assert torch.cuda.memory_allocated() - before >= 1 << 20
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
    del x
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == before


# Autograd and modules


def test_mlp():
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))
    same_gradients(lambda m, a: m(a), net, torch.randn(5, 8, requires_grad=True))


def test_convolution_and_batch_norm():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.MaxPool2d(2), torch.nn.ConvTranspose2d(8, 2, 2, stride=2), torch.nn.GroupNorm(2, 2),
    )
    moved = on_device(net)
    x = torch.randn(2, 3, 10, 10, requires_grad=True)
    y = on_device(x)
    want, got = net(x), moved(y)
    want.square().sum().backward()
    got.square().sum().backward()
    assert_same(got.detach(), want.detach())
    assert_same([y.grad, *(p.grad for p in moved.parameters())], [x.grad, *(p.grad for p in net.parameters())])
    assert_same(list(moved.buffers()), list(net.buffers()))
    same_gradients(lambda m, a: m(a), torch.nn.Conv1d(2, 3, 3), torch.randn(2, 2, 9, requires_grad=True))
    same_gradients(lambda m, a: m(a), torch.nn.Conv3d(1, 2, 2), torch.randn(1, 1, 4, 4, 4, requires_grad=True))


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_networks(kind):
    """The CUDA cells add the biases in an order of their own: equal up to rounding."""
    net, x = kind(5, 6, num_layers=2, bidirectional=True), torch.randn(7, 3, 5)
    moved = on_device(net)
    want, got = net(x)[0], moved(on_device(x))[0]
    torch.testing.assert_close(got.cpu(), want)
    want.square().sum().backward()
    got.square().sum().backward()
    for g, w in zip(moved.parameters(), net.parameters()):
        torch.testing.assert_close(g.grad.cpu(), w.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", ["plain", "causal", "mask"])
def test_attention(dtype, mode):
    arguments = [torch.randn(2, 4, 8, 16).to(dtype).requires_grad_() for _ in range(3)]
    mask = torch.rand(8, 8).add(torch.eye(8)) > 0.4 if mode == "mask" else None
    moved = on_device(arguments)
    want = F.scaled_dot_product_attention(*arguments, attn_mask=mask, is_causal=mode == "causal")
    got = F.scaled_dot_product_attention(*moved, attn_mask=on_device(mask), is_causal=mode == "causal")
    want.sum().backward()
    got.sum().backward()
    assert torch.equal(got.cpu(), want)
    for g, w in zip(moved, arguments):
        assert torch.equal(g.grad.cpu(), w.grad)


def test_attention_with_dropout_and_bias():
    """Checked against autograd of the plain formula, with the mask that the operator drew."""
    q, k, v = (torch.randn(1, 2, 8, 8, device=CUDA, requires_grad=True) for _ in range(3))
    ones = torch.eye(8, device=CUDA).expand(1, 2, 8, 8)
    bias = torch.randn(8, 8, device=CUDA, requires_grad=True)
    torch.manual_seed(5)
    weights = F.scaled_dot_product_attention(q, k, ones, attn_mask=bias, dropout_p=0.5).detach()
    torch.manual_seed(5)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=0.5)
    kept = (weights > 0) * 2.0
    want = (torch.softmax(q @ k.transpose(-2, -1) / 8**0.5 + bias, -1) * kept) @ v
    torch.testing.assert_close(out, want)
    got = torch.autograd.grad(out.square().sum(), (q, k, v, bias))
    torch.testing.assert_close(got, torch.autograd.grad(want.square().sum(), (q, k, v, bias)))
    assert 0.2 < (kept > 0).float().mean().item() < 0.8


def test_transformer_layer():
    net = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    same_gradients(lambda m, a: m(a), net, torch.randn(2, 5, 16, requires_grad=True))
    net.eval()
    with torch.no_grad():
        x = torch.randn(2, 5, 16)
        torch.testing.assert_close(on_device(net)(on_device(x)).cpu(), net(x))


def test_embedding_and_losses():
    labels = torch.randint(0, 6, (5,))
    same_gradients(lambda m, i: m(i), torch.nn.Embedding(6, 3), labels)
    same_gradients(lambda m, i: m(i.view(1, 5)), torch.nn.EmbeddingBag(6, 3, mode="sum"), labels)
    same_gradients(lambda a, y: F.cross_entropy(a, y, label_smoothing=0.1), torch.randn(5, 6, requires_grad=True), labels)
    for loss in (F.mse_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits):
        same_gradients(loss, torch.randn(5, 6, requires_grad=True), torch.rand(5, 6))
    scores = torch.randn(9, 2, 5).log_softmax(-1).requires_grad_()
    lengths = torch.tensor([9, 8]), torch.tensor([3, 2])
    same_gradients(lambda a, y: F.ctc_loss(a, y, *lengths), scores, torch.randint(1, 5, (2, 3)))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.SGD(p, lr=0.1, foreach=True),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
        lambda p: torch.optim.Adam(p, foreach=True),
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.AdamW(p, foreach=False),
        lambda p: torch.optim.AdamW(p, fused=True),
        lambda p: torch.optim.AdamW(p, capturable=False, amsgrad=True),
        lambda p: torch.optim.RMSprop(p),
    ],
)
def test_optimisers(make):
    net, x = torch.nn.Linear(4, 3), torch.randn(6, 4)
    moved, y = on_device(net), on_device(x)
    fused = make(net.parameters()).defaults.get("fused")
    for model, data in ((net, x), (moved, y)):
        optimiser = make(model.parameters())
        if model is net and not fused and make(moved.parameters()).defaults.get("foreach") is None:
            optimiser.param_groups[0]["foreach"] = True  # what torch chooses for parameters of the device
        for _ in range(3):
            optimiser.zero_grad()
            model(data).square().sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
    assert_same([p.detach() for p in moved.parameters()], [p.detach() for p in net.parameters()])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    net, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)), torch.randn(4, 8)
    moved = on_device(net)
    with torch.autocast("cuda", dtype=dtype):
        got = moved(on_device(x))
    assert got.dtype == dtype
    half = copy.deepcopy(net).to(dtype)
    assert_same(got.detach(), half(x.to(dtype)).detach())
    scaler = torch.amp.GradScaler("cuda", init_scale=64.0)
    optimiser = torch.optim.SGD(moved.parameters(), lr=0.1)
    before = moved[0].weight.detach().clone()
    scaler.scale(got.float().square().sum()).backward()
    scaler.step(optimiser)
    scaler.update()
    assert not torch.equal(before, moved[0].weight)


def test_backward_in_threads_and_checkpoints():
    x = torch.randn(4, 4, device=CUDA, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda a: (a @ a).tanh(), x, use_reentrant=False)
    gradient = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
    gradient.square().sum().backward()
    z = x.detach().cpu().requires_grad_()
    torch.autograd.grad((z @ z).tanh().sum(), z, create_graph=True)[0].square().sum().backward()
    assert_same(x.grad, z.grad)


def test_function_transforms():
    a, b = torch.randn(3, 4, 4), torch.randn(3, 4)
    same(lambda m, v: torch.vmap(torch.mv)(m, v), a, b)
    same(lambda v: torch.func.grad(lambda t: t.sin().sum())(v), b)


# Random numbers


def test_seeds_repeat():
    draws = (
        lambda: torch.rand(5, device=CUDA),
        lambda: torch.randn(5, device=CUDA),
        lambda: torch.randint(0, 100, (5,), device=CUDA),
        lambda: torch.randperm(9, device=CUDA),
        lambda: torch.empty(5, device=CUDA).exponential_(),
        lambda: torch.multinomial(torch.ones(9, device=CUDA), 4),
        lambda: torch.normal(torch.zeros(5, device=CUDA), 2.0),
        lambda: torch.bernoulli(torch.full((50,), 0.5, device=CUDA)),
        lambda: torch.poisson(torch.full((50,), 4.0, device=CUDA)),
        lambda: F.dropout(torch.ones(50, device=CUDA), 0.5),
    )
    for draw in draws:
        torch.manual_seed(7)
        first, second = draw(), draw()
        torch.cuda.manual_seed(7)
        assert torch.equal(draw(), first)
        assert not torch.equal(first, second) and torch.equal(draw(), second)


def test_generator_state():
    state = torch.cuda.get_rng_state()
    first = torch.rand(4, device=CUDA)
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(4, device=CUDA), first)
    with torch.random.fork_rng(devices=[0]):
        inner = torch.rand(4, device=CUDA)
    assert torch.equal(torch.rand(4, device=CUDA), inner)
    own = torch.Generator(device=CUDA).manual_seed(3)
    one = torch.randn(4, device=CUDA, generator=own)
    assert torch.equal(torch.randn(4, device=CUDA, generator=own.manual_seed(3)), one)


def test_random_operators_leave_the_host_generator_alone():
    torch.manual_seed(4)
    want = torch.rand(3)
    torch.manual_seed(4)
    F.dropout(torch.ones(50, device=CUDA), 0.5)
    torch.randn(9, device=CUDA)
    assert torch.equal(torch.rand(3), want)


def test_dropout_scales_and_has_its_gradient():
    x = torch.ones(1000, device=CUDA, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert torch.equal(y.detach(), x.grad)
    assert y.detach().unique().tolist() == pytest.approx([0, 4 / 3])
    assert 650 < (y > 0).sum().item() < 850


# What the checker is told


def covered(access):
    _, address, pitch, slice_, width, height, depth = access
    for z, y in itertools.product(range(depth), range(height)):
        start = address + z * slice_ + y * pitch
        yield from range(start, start + width)


def test_boxes_cover_exactly_the_elements():
    generator = random.Random(2)
    for _ in range(300):
        shape = [generator.randint(1, 4) for _ in range(generator.randint(0, 5))]
        base = torch.empty([n + generator.randint(0, 2) for n in shape])
        view = base[tuple(slice(0, n) for n in shape)]
        order = list(range(view.dim()))
        generator.shuffle(order)
        view = view.permute(order)
        if view.dim() and generator.random() < 0.3:
            view = view[::2]
        if generator.random() < 0.3:
            view = view.expand(3, *view.shape)
        itemsize = generator.choice([1, 2, 4, 8])
        want = {
            sum(i * s for i, s in zip(index, view.stride())) * itemsize + b
            for index in itertools.product(*map(range, view.shape))
            for b in range(itemsize)
        }
        got = [b for box in _torch.boxes(view.shape, view.stride(), itemsize) for b in covered((False, *box))]
        assert len(got) == len(want) and set(got) == want


def test_operators_tell_what_they_touch(recorder):
    x, y = torch.empty(100, device=CUDA), torch.empty(10, 10, device=CUDA)
    stream = torch.cuda.current_stream().cuda_stream
    z = x + x[:1]
    assert recorder.calls == [("aten::add.Tensor", stream, [range_of(x, False), range_of(x[:1], False), range_of(z, True)])]
    recorder.calls.clear()
    y[:, 2:5].mul_(2)
    assert recorder.calls == [("aten::mul_.Tensor", stream, [(True, y.data_ptr() + 8, 40, 0, 12, 10, 1)])]
    recorder.calls.clear()
    torch.add(x, 1, out=z)
    assert recorder.calls == [("aten::add.out", stream, [range_of(x, False), range_of(z, True)])]
    recorder.calls.clear()
    torch.empty(0, device=CUDA).add_(1)
    x.view(10, 10).t()
    assert recorder.calls == []


ROWS = [3, 0, 3, 4]
INDEXED = {
    # name: (an operator on x, the elements of x that it touches: the same operator on the numbers of the elements)
    "gather": (lambda x: x.gather(1, at([[0, 2], [1, 1]])), None),
    "gather backwards": (lambda x: x.gather(-2, at([[4, 2, 0]])), None),
    "gather out": (lambda x: torch.gather(x, 0, at([[1]]), out=x.new_empty(1, 1)), lambda x: x.gather(0, at([[1]]))),
    "index_select": (lambda x: x.index_select(0, at(ROWS)), None),
    "index_select columns": (lambda x: x.index_select(1, at([2])), None),
    "index": (lambda x: x[at(ROWS)], None),
    "index from the end": (lambda x: x[at([-1, 2])], None),
    "index by two": (lambda x: x[at(ROWS), at([2])], None),
    "index behind": (lambda x: x[:, at([0, 2])], None),
    "index by a mask": (lambda x: x[at([True, False, True, False, False])], None),
    "index by a mask of all": (lambda x: x[(x.cpu() % 2 == 1).to(x.device)], None),
    "embedding": (lambda x: F.embedding(at([[1, 3]]), x), lambda x: x[at([1, 3])]),
    "embedding_bag": (lambda x: F.embedding_bag(at([[1, 3]]), x, padding_idx=3), lambda x: x[at([1])]),
    "take": (lambda x: x.take(at([0, -1, 7])), None),
    "masked_select": (lambda x: x.masked_select(at([True, False, True])), None),
    "nothing": (lambda x: x[at([], torch.int64)], None),
    "scatter_": (lambda x: x.scatter_(1, at([[0, 2]]), 1.0), lambda x: x.gather(1, at([[0, 2]]))),
    "scatter_ src": (lambda x: x.scatter_(0, at([[0], [2]]), at([[1.0], [2.0]])), lambda x: x.gather(0, at([[0], [2]]))),
    "scatter_add_": (lambda x: x.scatter_add_(0, at([[4, 2]]), at([[1.0, 2.0]])), lambda x: x.gather(0, at([[4, 2]]))),
    "scatter_reduce_": (lambda x: x.scatter_reduce_(0, at([[4]]), at([[1.0]]), "amax"), lambda x: x.gather(0, at([[4]]))),
    "index_add_": (lambda x: x.index_add_(0, at(ROWS), torch.ones(4, 3, device=CUDA)), lambda x: x[at(ROWS)]),
    "index_copy_": (lambda x: x.index_copy_(1, at([1]), torch.ones(5, 1, device=CUDA)), lambda x: x[:, at([1])]),
    "index_fill_": (lambda x: x.index_fill_(-1, at([0]), 2.0), lambda x: x[:, at([0])]),
    "index_reduce_": (lambda x: x.index_reduce_(0, at([1]), torch.ones(1, 3, device=CUDA), "prod"), lambda x: x[at([1])]),
    "index_put_": (lambda x: x.index_put_((at(ROWS),), at([1.0])), lambda x: x[at(ROWS)]),
    "index_put_ by a mask": (
        lambda x: x.index_put_((at([False, True] * 2 + [False]),), at([1.0, 2.0, 3.0])),
        lambda x: x[at([1, 3])],
    ),
    "index_put_ as masked_fill_": (lambda x: x.index_put_((at([True] + [False] * 4),), at(1.0)), lambda x: x),
    "masked_fill_": (lambda x: x.masked_fill_(at([True, False, False]), 1.0), lambda x: x),
    "put_": (lambda x: x.put_(at([3, -2]), at([1.0, 2.0])), lambda x: x.take(at([3, -2]))),
}


def at(values, dtype=None):
    return torch.tensor(values, dtype=dtype, device=CUDA)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", INDEXED)
def test_indices_tell_exactly_what_they_touch(recorder, name, transposed):
    operation, elements = INDEXED[name]
    numbers = torch.arange(15.0, device=CUDA)
    numbers = numbers.view(3, 5).t() if transposed else numbers.view(5, 3)
    x = torch.arange(15.0, device=CUDA).as_strided(numbers.shape, numbers.stride())
    want = {int(i) for i in (elements or operation)(numbers.clone()).flatten().tolist()}
    recorder.calls.clear()
    operation(x)
    begin = x.data_ptr()
    got = {
        byte // 4
        for _, _, accesses in recorder.calls
        for box in accesses
        for byte in covered((box[0], box[1] - begin, *box[2:]))
        if 0 <= byte < x.nbytes
    }
    assert got == want


def test_scattered_pieces_beyond_the_bound_are_named(recorder, monkeypatch):
    x, i = torch.zeros(100, device=CUDA), torch.tensor([n * (n + 1) for n in range(9, -1, -1)], device=CUDA)
    monkeypatch.setattr(_torch, "_MOST_RUNS", 9)
    recorder.calls.clear()
    x[i]
    assert len(recorder.calls[-1][2]) == 9 + 2  # index and result
    text = "torch operator aten::index.Tensor: of 10 pieces of memory that indices choose only 9 are checked"
    assert recorder.names == [text]


def test_batch_norm_tells_of_its_running_statistics(recorder):
    mean, x = torch.zeros(3, device=CUDA), torch.randn(4, 3, device=CUDA)
    recorder.calls.clear()
    F.batch_norm(x, mean, torch.ones(3, device=CUDA), training=True)
    assert any(range_of(mean, True) in accesses for _, _, accesses in recorder.calls)


def test_operators_are_told_in_their_stream(recorder):
    side = torch.cuda.Stream()
    x = torch.empty(4, device=CUDA)
    with torch.cuda.stream(side):
        x.zero_()
    assert recorder.calls == [("aten::zero_", side.cuda_stream, [range_of(x, True)])]
    assert side.cuda_stream != torch.cuda.current_stream().cuda_stream


def test_a_torch_operator_that_races_is_reported(tmp_path):
    """One of two streams waits for nothing: "fencepost run" of such a script fails, and names both operators."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\n"
        "x, side = torch.zeros(100, device='cuda'), torch.cuda.Stream()\n"
        "torch.cuda.synchronize()\n"
        "with torch.cuda.stream(side):\n"
        "    x.add_(1)\n"
        "if sys.argv[1:]: torch.cuda.current_stream().wait_stream(side)\n"
        "y = x * 2\n"
    )
    tool = os.environ["FENCEPOST_EXECUTABLE"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FENCEPOST")}
    options = {"capture_output": True, "text": True, "env": environment}
    racy = subprocess.run([tool, "run", sys.executable, script], **options)
    assert "aten::add_.Tensor" in racy.stderr and "aten::mul.Tensor" in racy.stderr and racy.returncode == 1
    fixed = subprocess.run([tool, "run", sys.executable, script, "wait"], **options)
    assert "aten::" not in fixed.stderr


@pytest.mark.parametrize("setting", ["expandable_segments:True", "max_split_size_mb:64", "backend:native"])
def test_allocator_settings_of_a_script(setting):
    """A script may configure torch's allocator: tensors come from the device each by itself all the same."""
    script = (
        f"import os; os.environ['PYTORCH_CUDA_ALLOC_CONF'] = os.environ['PYTORCH_ALLOC_CONF'] = '{setting}'\n"
        "import torch\n"
        "x = torch.ones(100, device='cuda')\n"
        "assert x.sum().item() == 100 and torch.cuda.get_allocator_backend() == 'cudaMallocAsync'\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=100).returncode == 0


def test_rows_on_two_streams(tmp_path):
    """Operators of two streams that nothing orders race on rows that both touch, and on no others."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\n"
        "x, side = torch.zeros(100, 10, device='cuda'), torch.cuda.Stream()\n"
        "first, second = (torch.tensor([int(n) for n in a.split(',')]).cuda() for a in sys.argv[1:])\n"
        "ones = torch.ones(len(first), 10, device='cuda')\n"
        "torch.cuda.synchronize()\n"
        "with torch.cuda.stream(side):\n"
        "    x.index_add_(0, first, ones)\n"
        "y = x[second]\n"
    )
    tool = os.environ["FENCEPOST_EXECUTABLE"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FENCEPOST")}
    options = {"capture_output": True, "text": True, "env": environment}
    apart = subprocess.run([tool, "run", sys.executable, script, "1,3,99", "2,50,0"], **options)
    assert "aten::" not in apart.stderr and apart.returncode == 0, apart.stderr
    together = subprocess.run([tool, "run", sys.executable, script, "1,3,99", "2,99,0"], **options)
    assert "aten::index_add_" in together.stderr and "aten::index.Tensor" in together.stderr and together.returncode == 1


def test_synchronised_batch_norm():
    """The kernels of SyncBatchNorm, by which two processes with halves of a batch compute what one does with all of it."""
    x, weight, bias, grad = torch.randn(6, 3, 4), torch.rand(3), torch.randn(3), torch.randn(6, 3, 4)
    means, variances = (torch.zeros(3), torch.zeros(3, device=CUDA)), (torch.ones(3), torch.ones(3, device=CUDA))
    for values in (x, weight, bias):
        values.requires_grad_()
    want = F.batch_norm(x, means[0], variances[0], weight, bias, training=True)
    want.backward(grad)
    halves = [h.detach().to(CUDA) for h in x.split([2, 4])]
    scale, shift = weight.detach().to(CUDA), bias.detach().to(CUDA)
    mean, invstd = map(torch.stack, zip(*(torch.batch_norm_stats(h, 1e-5) for h in halves)))
    counts = torch.tensor([8.0, 16.0], device=CUDA)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(halves[0], mean, invstd, means[1], variances[1], 0.1, 1e-5, counts)
    got = torch.cat([torch.batch_norm_elemt(h, scale, shift, mean, invstd, 1e-5) for h in halves])
    parts = list(zip(halves, grad.to(CUDA).split([2, 4])))
    sums = [torch.batch_norm_backward_reduce(g, h, mean, invstd, scale, True, True, True) for h, g in parts]
    dy, dy_xmu, grad_weight, grad_bias = (sum(s) for s in zip(*sums))
    grads = torch.cat([torch.batch_norm_backward_elemt(g, h, mean, invstd, scale, dy, dy_xmu, counts.int()) for h, g in parts])
    torch.testing.assert_close(
        [t.cpu() for t in (got, means[1], variances[1], grads, grad_weight, grad_bias)],
        [want.detach(), means[0], variances[0], x.grad, weight.grad, bias.grad], rtol=1e-4, atol=1e-5,
    )


@pytest.mark.parametrize("layers", [torch.nn.LSTM, torch.nn.GRU])
def test_recurrent_networks_with_cudnn_switched_on(layers):
    assert torch.backends.cudnn.enabled
    with torch.backends.cudnn.flags(enabled=False):
        assert not torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = True
    module, x = layers(4, 8), torch.randn(5, 2, 4)
    torch.testing.assert_close(on_device(module)(on_device(x))[0].cpu(), module(x)[0])


def test_nested_tensors():
    def nested(rows):
        return torch.nested.as_nested_tensor(list(rows))

    rows = [torch.randn(2, 3), torch.randn(4, 3)]
    same(lambda *rows: nested(rows).to_padded_tensor(-1.0), *rows)
    same(lambda *rows: nested(rows).to_padded_tensor(0.5, (2, 6, 3)), *rows)
    same(lambda *rows: torch.bmm(nested(rows), nested(r.t().contiguous() for r in rows)).to_padded_tensor(0), *rows)
    same_gradients(lambda *rows: nested(rows).to_padded_tensor(0), *(r.requires_grad_() for r in rows))


def test_what_torch_would_break_on_is_named(recorder, tmp_path):
    with pytest.raises(NotImplementedError, match="MemPool does not run"):
        torch.cuda.MemPool()
    with pytest.raises(NotImplementedError, match='use the backend "gloo"'):
        torch.distributed.init_process_group("nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    with pytest.raises(NotImplementedError, match="one_shot_all_reduce"):
        torch.ops.symm_mem.one_shot_all_reduce(torch.ones(4, device=CUDA), "sum", "0")
    assert [name.split(":")[0] for name in recorder.names] == ["torch.cuda.MemPool", "NCCL", "torch operator symm_mem"]


def test_collectives_of_one_process(tmp_path):
    """gloo moves CUDA tensors through the host, in streams of its own."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        x, parts = torch.arange(4.0, device=CUDA), [torch.zeros(4, device=CUDA)]
        torch.distributed.all_reduce(x)
        torch.distributed.all_gather(parts, x)
        torch.distributed.broadcast(x, 0)
        assert parts[0].tolist() == x.tolist() == [0, 1, 2, 3]
        module = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).to(CUDA))
        module(x).sum().backward()
        assert module.module.bias.grad.tolist() == [1] * 4
    finally:
        torch.distributed.destroy_process_group()


def test_a_fault_of_a_kernel_leaves_the_process_alive(tmp_path):
    """Tensors that are freed after a fault must not throw, since their destructors may not."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, torch, triton, triton.language as tl\n"
        "os.environ['TRITON_DISABLE_LINE_INFO'] = '1'\n"
        "@triton.jit\n"
        "def far(p): tl.store(p + 10, 1.0)\n"
        "x, y = torch.zeros(2, 4, device='cuda').clone().unbind(), torch.zeros(4, device='cuda')\n"
        "far[(1,)](y)\n"
        "def fails(call):\n"
        "    try: call()\n"
        "    except RuntimeError: return True\n"
        "print(*map(fails, [torch.cuda.synchronize, lambda: y.cpu(), lambda: y + 1, lambda: torch.zeros(4, device='cuda')]))\n"
        "del x, y\n"
        "print(fails(torch.cuda.synchronize))\n"
    )
    tool = os.environ["FENCEPOST_EXECUTABLE"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FENCEPOST")}
    run = subprocess.run([tool, "run", sys.executable, "-W", "ignore", script], capture_output=True, text=True, env=environment)
    assert run.stdout == "True True True True\nTrue\n" and run.returncode == 1
    assert "out of bounds: write of 4 bytes at p[10]" in run.stderr and "mask the elements" in run.stderr
    assert "aborted" not in run.stderr and "script.py:4:" in run.stderr


def test_what_cannot_be_computed_is_named(recorder):
    with pytest.raises(NotImplementedError, match="aten::_cudnn_init_dropout_state"):
        torch._cudnn_init_dropout_state(0.5, True, 1, dtype=torch.uint8, device=CUDA)
    assert recorder.names == ["torch operator aten::_cudnn_init_dropout_state: the host cannot compute it for these arguments"]


def test_half_precision_that_the_host_lacks():
    x = torch.randn(3, 3)
    host = torch.ops.aten.histc.default._op
    half = _torch._in_single_precision(host, [x.half()], {"bins": 4, "min": -1, "max": 1})
    assert half.dtype == torch.float16 and torch.equal(half.float(), torch.histc(x.half().float(), 4, -1, 1))


def accumulations(x, grad, factors):
    """Results that are sums or products of many elements."""
    places = torch.arange(x.size(0), device=x.device) % 3
    weight, bias = torch.ones(2, x.size(1), device=x.device, dtype=x.dtype)
    _, mean, rstd = torch.native_layer_norm(x, [x.size(1)], weight, bias, 1e-6)
    yield from torch.ops.aten.native_layer_norm_backward(grad, x, [x.size(1)], mean, rstd, weight, bias, [True, True, True])
    yield torch.ops.aten.embedding_dense_backward(grad, places, 3, -1, False)
    yield torch.ones(3, x.size(1), device=x.device, dtype=x.dtype).index_put_((places,), x, accumulate=True)
    yield factors.prod(0)
    yield factors.prod(0, keepdim=True, dtype=torch.float64)
    yield factors.prod()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    x, grad = torch.randn(2, 2000, 16).to(dtype)
    inputs = x, grad, (1 + x[:200] / 100).to(dtype)
    exact = accumulations(*(t.double() for t in inputs))
    for got, want in zip(accumulations(*on_device(inputs)), exact, strict=True):
        assert got.dtype in (dtype, torch.float64)
        error = (got.cpu().double() - want).abs().max() / want.abs().max()
        assert error <= 3 * torch.finfo(dtype).eps


def test_index_put_without_accumulation_stores_as_it_is():
    places = torch.tensor([1, 3])
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        same(lambda x, p: x.index_put_((p,), torch.ones((), dtype=x.dtype, device=x.device)), torch.zeros(5, dtype=dtype), places)
    same(lambda x: x.prod(0), torch.arange(1, 5))
    same(lambda x: x.prod(0, dtype=torch.float32), torch.arange(1, 5))


@pytest.mark.parametrize("operation", [torch.softmax, torch.log_softmax])
def test_softmax_of_half_precision_in_single(operation):
    x = torch.randn(6, 40).half()
    got, want = x.to(CUDA).requires_grad_(True), x.float().requires_grad_(True)
    for given in (got, want):
        result = operation(given, 1, dtype=torch.float32)
        (result * torch.linspace(-1, 1, 40, device=given.device)).sum().backward()
        if given is got:
            kept = result
    assert kept.dtype == torch.float32 and got.grad.dtype == torch.float16
    torch.testing.assert_close(kept.cpu(), result)
    torch.testing.assert_close(got.grad.cpu().float(), want.grad, rtol=1e-3, atol=1e-6)
    out = torch.empty_like(kept)
    name = "_softmax" if operation is torch.softmax else "_log_softmax"
    getattr(torch.ops.aten, name).out(x.to(CUDA), 1, True, out=out)
    assert_same(out, kept.detach().cpu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
def test_histogram(dtype):
    x = torch.arange(1000, device=CUDA).remainder(7).to(dtype)
    counts = torch.histc(x, 7, 0, 6)
    assert counts.dtype == dtype and counts.tolist() == [143] * 6 + [142]
    torch.histc(x, 4, 0, 3, out=counts)
    assert counts.tolist() == [143] * 4


def test_errors_are_the_hosts(recorder):
    with pytest.raises(RuntimeError, match="not implemented for 'Float'"):
        torch.ones(3, device=CUDA) & torch.ones(3, device=CUDA)
    assert recorder.names == []
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.ones(2, 3, device=CUDA) @ torch.ones(2, 3, device=CUDA)
    with pytest.raises(IndexError):
        torch.ones(3, device=CUDA)[torch.tensor([5], device=CUDA)]


# The rest of a program


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor([float(i * i)])


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader_with_pinned_memory(workers):
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, pin_memory=True, num_workers=workers)
    total = torch.zeros((), device=CUDA)
    for batch in loader:
        assert batch.is_pinned()
        total += batch.to(CUDA, non_blocking=True).sum()
    assert total.item() == sum(i * i for i in range(10))


def test_compiled_softmax():
    compiled = torch.compile(lambda a: torch.softmax(a * 2 + 1, -1))
    x = torch.randn(4, 50)
    got = compiled(on_device(x))
    torch.testing.assert_close(got.cpu(), torch.softmax(x * 2 + 1, -1))


def test_compiled_training_step():
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)), torch.randn(3, 4)
    moved = on_device(net)
    torch.compile(lambda m, a: m(a).square().mean())(moved, on_device(x)).backward()
    net(x).square().mean().backward()
    for g, w in zip(moved.parameters(), net.parameters()):
        torch.testing.assert_close(g.grad.cpu(), w.grad)


def test_printing_and_saving(tmp_path):
    x = torch.tensor([1.5, -2.25], device=CUDA)
    assert repr(x) == "tensor([ 1.5000, -2.2500], device='cuda:0')"
    torch.save({"x": x}, tmp_path / "x.pt")
    assert_same(torch.load(tmp_path / "x.pt")["x"], x.cpu())
    assert torch.load(tmp_path / "x.pt", map_location="cpu")["x"].device.type == "cpu"
    assert x.cpu().numpy().tolist() == x.tolist()


def test_default_device_and_inference_mode():
    with torch.device("cuda"), torch.inference_mode():
        x = torch.nn.Linear(3, 2)(torch.ones(4, 3))
        x.add_(1)
        assert x.is_cuda and x.is_inference()


def test_import_prints_nothing():
    run = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_operators_wait_for_no_answer():
    """The checker is told of operators, allocations and frees without waiting for it: what waits gives up the processor."""
    x = torch.ones(16, device=CUDA)
    torch.cuda.synchronize()
    x + x
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(200):
        x + x
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before < 100
    assert (x + x).tolist() == [2.0] * 16


def test_memory_is_zero_and_its_own():
    """Bytes of freed memory are used again at another address, cleared. Nothing that lives shares them."""
    used = set()
    for size in (1, 1000, 5000, 300_000):
        kept = [torch.full((size,), float(i), device=CUDA) for i in range(4)]
        for i in range(8):
            fresh = torch.empty(size, device=CUDA)
            assert fresh.data_ptr() not in used
            used.add(fresh.data_ptr())
            assert not fresh.any()
            fresh.fill_(-1)
            del fresh
        for i, k in enumerate(kept):
            assert (k == i).all()
            assert (k.cpu() == i).all()


def test_garbage_is_not_collected_within_a_call():
    # A tensor that were freed while another one is allocated would wait for ever for torch's allocator, which is locked then.
    script = """if True:
        import gc, torch
        def allocate(depth):
            if depth:
                return allocate(depth - 1)
            cycle = [torch.empty(4, device="cuda")]
            cycle.append(cycle)
        gc.set_threshold(3)
        for i in range(300):
            allocate(i % 7)
    """
    assert subprocess.run([sys.executable, "-c", script], timeout=100).returncode == 0


@triton.jit
def double(to, source):
    i = tl.arange(0, 4)
    tl.store(to + i, tl.load(source + i) * 2)


def test_tensor_of_another_type_for_triton():
    x, y = torch.tensor([1, -2, 3, 4], device=CUDA), torch.zeros(4, dtype=torch.int64, device=CUDA)
    double[(1,)](y, triton.reinterpret(x, tl.uint64))
    assert_same(y, torch.tensor([2, -4, 6, 8]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layer_norm_keeps_its_statistics_in_single_precision(dtype):
    x, weight, bias = (torch.randn(shape).to(dtype) for shape in ((64, 300), (300,), (300,)))
    result, mean, rstd = torch.native_layer_norm((x - 2).to(CUDA), [300], weight.to(CUDA), bias.to(CUDA), 1e-5)
    exact = torch.native_layer_norm((x - 2).double(), [300], weight.double(), bias.double(), 1e-5)
    assert result.dtype == dtype and mean.dtype == rstd.dtype == torch.float32
    torch.testing.assert_close(mean.cpu().double(), exact[1], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(rstd.cpu().double(), exact[2], rtol=1e-5, atol=1e-6)


def test_products_of_triton_without_cublas():
    from triton._C.libtriton import nvidia

    blas = nvidia.cublas.CublasLt(torch.empty(64, device=CUDA, dtype=torch.uint8))
    for dtype in (torch.float16, torch.float8_e5m2):
        a, b = torch.randn(16, 32).to(dtype), torch.randn(8, 32).to(dtype)
        c = torch.empty(16, 8, device=CUDA, dtype=torch.float16)
        blas.matmul(a.to(CUDA), b.to(CUDA), c)
        product = a.float() @ b.float().T
        torch.testing.assert_close(c.cpu().float(), product, rtol=1e-3, atol=1e-3)
        d = torch.empty_like(c)
        blas.gemm(a.to(CUDA), b.to(CUDA), c, d, 2.0, -1.0)
        torch.testing.assert_close(d.cpu().float(), product, rtol=3e-3, atol=3e-2)
