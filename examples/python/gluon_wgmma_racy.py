# expect: exit 1, stage-reuse
# arch: sm_90
"""A Gluon kernel for Hopper: one warp loads tiles by TMA, four multiply them by wgmma, two stages. A stage
is said to be free before the product that reads it has been waited for."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_init, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def load(a, b, tiles_a, tiles_b, full, empty, N: gl.constexpr):
    for i in range(N):
        stage, phase = i % 2, i // 2 & 1
        mbarrier.wait(empty.index(stage), phase ^ 1)
        mbarrier.expect(full.index(stage), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [0, i * 64], full.index(stage), tiles_a.index(stage))  # race
        tma.async_load(b, [i * 64, 0], full.index(stage), tiles_b.index(stage))  # race


@gluon.jit
def multiply(c, tiles_a, tiles_b, result, full, empty, N: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    acc = warpgroup_mma_init(gl.zeros([64, 64], gl.float32, layout))
    for i in range(N):
        stage, phase = i % 2, i // 2 & 1
        mbarrier.wait(full.index(stage), phase)
        acc = warpgroup_mma(tiles_a.index(stage), tiles_b.index(stage), acc, is_async=True)  # race
        mbarrier.arrive(empty.index(stage), count=1)
    acc = warpgroup_mma_wait(0, deps=[acc])
    result.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(c, [0, 0], result)
    tma.store_wait(0)


@gluon.jit
def matmul(a, b, c, N: gl.constexpr):
    tiles_a = gl.allocate_shared_memory(a.dtype, [2, 64, 64], a.layout)
    tiles_b = gl.allocate_shared_memory(b.dtype, [2, 64, 64], b.layout)
    result = gl.allocate_shared_memory(c.dtype, [64, 64], c.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    consumer = (c, tiles_a, tiles_b, result, full, empty, N)
    gl.warp_specialize([(multiply, consumer), (load, (a, b, tiles_a, tiles_b, full, empty, N))], [1], [24])


torch.manual_seed(0)
N = 5
x = torch.randn(64, 64 * N, device="cuda", dtype=torch.float16)
y = torch.randn(64 * N, 64, device="cuda", dtype=torch.float16)
z = torch.zeros(64, 64, device="cuda", dtype=torch.float16)
layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
matmul[(1,)](*(TensorDescriptor.from_tensor(t, [64, 64], layout) for t in (x, y, z)), N, num_warps=4)
torch.cuda.synchronize()
