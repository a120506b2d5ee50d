# expect: exit 1, stage-reuse
# arch: sm_100
"""A Gluon kernel for Blackwell: a warp loads tiles by TMA, another multiplies them by tcgen05, four store the product. A stage
is said to be free by the thread, not by the tensor core that reads it."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (TensorMemoryLayout, allocate_tensor_memory, fence_async_shared, mbarrier,
                                                                 tcgen05_commit, tcgen05_mma, tma)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def load(a, b, c, tiles_a, tiles_b, result, acc, full, empty, done, N: gl.constexpr):
    for i in range(N):
        stage, phase = i % 2, i // 2 & 1
        mbarrier.wait(empty.index(stage), phase ^ 1)
        mbarrier.expect(full.index(stage), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [0, i * 64], full.index(stage), tiles_a.index(stage))  # race
        tma.async_load(b, [i * 64, 0], full.index(stage), tiles_b.index(stage))  # race


@gluon.jit
def multiply(a, b, c, tiles_a, tiles_b, result, acc, full, empty, done, N: gl.constexpr):
    for i in range(N):
        stage, phase = i % 2, i // 2 & 1
        mbarrier.wait(full.index(stage), phase)
        tcgen05_mma(tiles_a.index(stage), tiles_b.index(stage), acc, use_acc=i > 0)  # race
        mbarrier.arrive(empty.index(stage), count=1)
    tcgen05_commit(done)


@gluon.jit
def store(a, b, c, tiles_a, tiles_b, result, acc, full, empty, done, N: gl.constexpr):
    mbarrier.wait(done, 0)
    result.store(acc.load().to(gl.float16))
    fence_async_shared()
    tma.async_store(c, [0, 0], result)
    tma.store_wait(0)


@gluon.jit
def matmul(a, b, c, N: gl.constexpr):
    tiles_a = gl.allocate_shared_memory(a.dtype, [2, 128, 64], a.layout)
    tiles_b = gl.allocate_shared_memory(b.dtype, [2, 64, 64], b.layout)
    result = gl.allocate_shared_memory(c.dtype, [128, 64], c.layout)
    acc = allocate_tensor_memory(gl.float32, [128, 64], TensorMemoryLayout([128, 64], col_stride=1))
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    args = (a, b, c, tiles_a, tiles_b, result, acc, full, empty, done, N)
    gl.warp_specialize([(store, args), (load, args), (multiply, args)], [1, 1], [24, 24])


torch.manual_seed(0)
N = 5
x = torch.randn(128, 64 * N, device="cuda", dtype=torch.float16)
y = torch.randn(64 * N, 64, device="cuda", dtype=torch.float16)
z = torch.zeros(128, 64, device="cuda", dtype=torch.float16)
layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
a, b, c = (TensorDescriptor.from_tensor(t, s, layout) for t, s in ((x, [128, 64]), (y, [64, 64]), (z, [128, 64])))
matmul[(1,)](a, b, c, N, num_warps=4)
torch.cuda.synchronize()
