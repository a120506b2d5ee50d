# Kernels for Triton 3.9 and numba-cuda 0.30, whose PTX stands beside this file.
# Run in a folder of its own with both installed; writes triton_*.ptx and numba_*.ptx there.
import os
import triton, triton.language as tl
from numba import cuda, float32, int32
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + r * n + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def matmul(a, b, c, n, k, BM: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BM + tl.arange(0, BM)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BM), dtype=tl.float32)
    for j in range(0, k, BK):
        x = tl.load(a + rm[:, None] * k + (j + rk)[None, :])
        y = tl.load(b + (j + rk)[:, None] * n + rn[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * n + rn[None, :], acc)


def mirror(x, y, n):
    s = cuda.shared.array(64, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if i < n:
        s[t] = x[i]
    cuda.syncthreads()
    if i < n:
        y[i] = s[63 - t] / (i + 1) if s[t] > 0 else 2.0 ** s[t]
        cuda.atomic.add(y, 0, s[t])


def write(name, ptx):
    library = os.path.dirname(os.path.dirname(triton.__file__))
    with open(name + ".ptx", "w") as f:
        f.write(ptx.replace(library + "/", ""))


def compile_triton(f, cc, signature, **constants):
    signature = signature | {k: "constexpr" for k in constants}
    source = ASTSource(f, signature=signature, constexprs=constants)
    return triton.compile(source, target=GPUTarget("cuda", cc, 32)).asm["ptx"]


write("triton_softmax_80", compile_triton(softmax, 80, {"x": "*fp32", "y": "*fp32", "n": "i32"}, B=1024))
for cc in (90, 100):
    args = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32", "k": "i32"}
    write("triton_matmul_%d" % cc, compile_triton(matmul, cc, args, BM=64, BK=32))
types = (float32[:], float32[:], int32)
write("numba_line", cuda.compile_ptx(mirror, types, cc=(8, 0), lineinfo=True)[0])
write("numba_debug", cuda.compile_ptx(mirror, types, cc=(8, 0), debug=True, opt=False)[0])
