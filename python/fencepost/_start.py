"""Hooks on the imports of GPU packages, so that they find the emulated GPU. Nothing happens until one is imported."""

import atexit
import ctypes
import functools
import glob
import hashlib
import importlib.abc
import inspect
import itertools
import math
import os
import re
import subprocess
import sys
import threading

from fencepost import _device


def install():
    """Watch imports from now on. Called once, by start/sitecustomize.py."""
    sys.meta_path.insert(0, _Hooks())
    atexit.register(_end)
    _children()


def _children():
    """Have children that are given an environment of their own find the emulated GPU, too."""
    popen = subprocess.Popen
    start = popen.__init__
    told = {name: os.environ[name] for name in os.environ.get("FENCEPOST_VARIABLES", "").split() if name in os.environ}

    @functools.wraps(start)
    def init(self, *args, **kwargs):
        try:
            bound = inspect.signature(start).bind(self, *args, **kwargs)
        except TypeError:
            return start(self, *args, **kwargs)  # which says what is wrong
        env = bound.arguments.get("env")
        bound.arguments["env"] = _completed(os.environ if env is None else env, told, env)
        _tell_blind(bound.arguments["args"])
        return start(*bound.args, **bound.kwargs)

    popen.__init__ = init


def _completed(env, told, unchanged):
    """Give an environment with what run has told, if nothing of that is in it; unchanged otherwise."""
    have = {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()}
    first = told.get("PYTHONPATH", "").split(os.pathsep)[0]
    if "FENCEPOST_SOCKET" not in told or "FENCEPOST_SOCKET" in have or first in have.get("PYTHONPATH", "").split(os.pathsep):
        return unchanged
    for name, value in told.items():
        if name in ("PYTHONPATH", "LD_LIBRARY_PATH") and have.get(name):
            have[name] = value + os.pathsep + have[name]
        else:
            have.setdefault(name, value)
    return have


def _tell_blind(args):
    """Tell of a child that is Python and does not look at its environment."""
    if not isinstance(args, (list, tuple)):  # an iterator may be read once
        return
    program, *flags = [os.fsdecode(a) for a in args if isinstance(a, (str, bytes, os.PathLike))] or [""]
    if not re.fullmatch(r"python[0-9.]*", os.path.basename(program)):
        return
    for flag in flags:
        if not re.fullmatch(r"-[bBdEhiIOqsSuvVxP]+", flag):
            return
        if set(flag) & set("IES"):
            print(
                f"fencepost: {program} {flag} does not look at its environment, and GPU packages will find no GPU in it\n"
                f"  remedy: leave {flag} out; -s and -P keep the user's and the script's folders off the path without it",
                file=sys.stderr,
            )
            return


def _end():
    """Wait for the device before the interpreter frees what it still holds: no stream gets that memory again."""
    if _device.in_use():
        _device.library("libcuda.so.1").cuCtxSynchronize()


class _Hooks(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the others find, and runs a hook before or after the module of that name."""

    def find_spec(self, name, path=None, target=None):
        before, after = _BEFORE.get(name), _AFTER.get(name)
        if before is None and after is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                break
        else:
            return None
        execute = getattr(spec.loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module):
            if before:
                before()
            execute(module)
            if after:
                after(module)

        spec.loader.exec_module = exec_module
        return spec


def _runtime():
    """Load the stand-in CUDA runtimes: libraries that want one by name then find these."""
    for name in ("libcuda.so.1", "libcudart.so.13", "libcudart.so.12"):
        _device.library(name)


def _compilers():
    """Load the libraries that stand before NVRTC and nvJitLink, where the real ones are installed."""
    for name in ("nvrtc", "nvJitLink"):
        for major in ("13", "12"):
            file = f"lib{name}.so.{major}"
            variable = f"FENCEPOST_{name.upper()}_{major}"
            if variable not in os.environ:
                real = _installed(file)
                if real is None:
                    continue
                os.environ[variable] = real
            _device.library(os.path.join("python", file))


def _installed(file):
    """Find a library of NVIDIA's where its packages and its toolkit put it."""
    for folder in sys.path:
        found = sorted(glob.glob(os.path.join(glob.escape(folder or "."), "nvidia", "*", "lib", file)))
        if found:
            return found[-1]
    roots = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), os.environ.get("CONDA_PREFIX"), "/usr/local/cuda"]
    folders = [os.path.join(root, lib) for root in roots if root for lib in ("lib64", "lib")]
    for folder in folders + os.environ.get("LD_LIBRARY_PATH", "").split(":") + ["/usr/lib/x86_64-linux-gnu"]:
        if folder and os.path.exists(os.path.join(folder, file)):
            return os.path.join(folder, file)
    return None


def _torch_libraries():
    _runtime()
    _compilers()
    # Whatever the script has set: an allocator that keeps blocks would hide errors, and segments that grow are not emulated.
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        os.environ[name] = "backend:cudaMallocAsync"


def _torch(module):
    from fencepost import _torch

    _torch.install(_device.Device())


def _extensions():
    """Let torch build extensions with "fencepost nvcc"."""
    tool = os.environ.get("FENCEPOST_EXECUTABLE")
    if not tool:
        return
    got = subprocess.run([tool, "nvcc", "--toolkit"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if got.returncode:
        print(f"fencepost: CUDA extensions cannot be built: {got.stderr.strip()}", file=sys.stderr)
        return
    os.environ["CUDA_HOME"] = got.stdout.strip()
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "8.0+PTX")


def _named_tensors(module):
    """Tell the names of the tensors that a Triton kernel is launched with, and have it compiled with its source lines.

    Packages switch the lines off for all of a process, to save time.
    """
    function = module.JITFunction
    run = function.run
    device = _device.Device()

    def named(self, *args, grid, warmup, **kwargs):
        os.environ.pop("TRITON_DISABLE_LINE_INFO", None)
        if not warmup:
            for name, value in list(zip(self.arg_names, args)) + list(kwargs.items()):
                if hasattr(value, "data_ptr"):
                    tensor = all(hasattr(value, a) for a in ("element_size", "shape", "stride", "dtype"))
                    (_name if tensor else _name_pointer)(device, name, value)
        return run(self, *args, grid=grid, warmup=warmup, **kwargs)

    function.run = named


def _name(device, name, tensor):
    """Tell the name of a tensor, or of what Triton takes for one: triton.reinterpret gives such a thing, with less methods."""
    element = tensor.element_size()
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()) if n > 0 and s > 0) + 1 if all(tensor.shape) else 0
    kind = f"{str(tensor.dtype).replace('torch.', '')}[{', '.join(map(str, tensor.shape))}]"
    dense = getattr(tensor, "base", tensor).is_contiguous()
    device.argument(f"{name}\n{kind}", tensor.data_ptr(), reach * element, element if dense else 0)


def _name_pointer(device, name, value):
    """Name the memory behind a pointer by an object that says no more of it than that."""
    base, size, pointer = ctypes.c_uint64(), ctypes.c_size_t(), int(value.data_ptr())
    if not _device.library("libcuda.so.1").cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer)):
        device.argument(name, pointer, base.value + size.value - pointer, 0)


def _named_arrays(module):
    """Tell the names of the arrays that a kernel of numba's is launched with."""
    kernel = module._Kernel
    launch, prepare = kernel.launch, kernel._prepare_args
    device = _device.Device()
    names = threading.local()  # of the launch that a thread prepares: what is left of them

    def named(self, args, *others, **kwargs):
        code = self.py_func.__code__
        names.left = iter(code.co_varnames[: code.co_argcount])
        return launch(self, args, *others, **kwargs)

    def prepare_args(self, ty, val, stream, retr, kernelargs):
        outer, name = getattr(names, "within", None), None
        if outer is None:
            name = next(getattr(names, "left", iter(())), None)
        else:  # an element of a tuple
            name = f"{outer[0]}[{next(outer[1])}]"
        first = len(kernelargs)
        names.within = (name, itertools.count()) if name else None
        try:
            prepare(self, ty, val, stream, retr, kernelargs)
        finally:
            names.within = outer
        if name and isinstance(ty, module.types.Array):
            _name_array(device, name, ty, kernelargs[first:])

    kernel.launch, kernel._prepare_args = named, prepare_args


def _name_array(device, name, ty, parameters):
    """Name an array by the parameters that numba passes it as: meminfo, parent, nitems, itemsize, data, shape and strides."""
    values = [getattr(p, "value", p) or 0 for p in parameters]
    itemsize, data = values[3:5]
    shape, strides = values[5 : 5 + ty.ndim], values[5 + ty.ndim :]
    if 0 in shape:
        return
    first = sum((n - 1) * s for n, s in zip(shape, strides) if s < 0)
    size = sum((n - 1) * abs(s) for n, s in zip(shape, strides)) + itemsize
    dense = size == math.prod(shape) * itemsize and ty.layout == "C"
    device.argument(f"{name}\n{ty.dtype}[{', '.join(map(str, shape))}]", data + first, size, itemsize if dense else 0)


def _lines_by_default(module):
    """Make numba's jit write line tables without being asked."""
    jit = module.jit
    names = [p.name for p in inspect.signature(jit).parameters.values() if p.default is not p.empty]
    if "lineinfo" in names and jit.__defaults__:
        defaults = list(jit.__defaults__)
        defaults[names.index("lineinfo") - len(names)] = True
        jit.__defaults__ = tuple(defaults)


class _Products:
    """Stands in for Triton's class CublasLt, which calls cuBLAS: torch's operators compute the products. Matrices b are transposed."""

    def __init__(self, workspace):
        pass

    def matmul(self, a, b, c):
        self.gemm(a, b, c, c, 1.0, 0.0)

    def gemm(self, a, b, c, d, alpha, beta):
        import torch

        product = alpha * torch.matmul(a.to(torch.float32), b.to(torch.float32).T)
        d.copy_(product + beta * c.to(torch.float32) if beta else product)

    def block_scaled_matmul_mxfp8(self, *args):
        raise NotImplementedError("fencepost computes no block-scaled products of cuBLAS")

    block_scaled_matmul_nvfp4 = block_scaled_matmul_mxfp8


def _no_cublas(module):
    nvidia = getattr(module, "nvidia", None)  # absent in builds for other devices
    if hasattr(nvidia, "cublas"):
        nvidia.cublas.CublasLt = _Products


def _one_measurement(module):
    """Measure kernels by one launch each: times are made up of the instructions executed, and are the same every time."""

    def do_bench(fn, warmup=None, rep=None, grad_to_none=None, quantiles=None, return_mode="mean", **others):
        from triton.runtime import driver

        device = driver.active.get_device_interface()
        start, end = (device.Event(enable_timing=True) for _ in range(2))
        start.record()
        fn()
        end.record()
        device.synchronize()
        time = start.elapsed_time(end)
        if quantiles is not None:
            return [time] * len(quantiles) if len(quantiles) > 1 else time
        return [time] if return_mode == "all" else time

    module.do_bench = module.do_bench_cudagraph = do_bench


def _few_measurements(module):
    """Measure kernels of torch.compile by one launch each, too."""
    benchmarker = getattr(module, "InductorBenchmarker", None)
    if benchmarker is None:
        return
    measure = benchmarker.benchmark_gpu
    counts = [n for n in ("estimation_iters", "memory_warmup_iters", "benchmark_iters") if n in inspect.signature(measure).parameters]

    def benchmark_gpu(self, *args, **kwargs):
        return measure(self, *args, **kwargs, **{n: 1 for n in counts if n not in kwargs})

    benchmarker.benchmark_gpu = benchmark_gpu


def _cells(module):
    """Name the cells of a notebook by their numbers: otherwise they have the names of temporary files that do not exist."""
    compiler = getattr(module, "XCachingCompiler", None)
    if compiler is None:
        return
    from IPython import get_ipython

    watched = []

    def tell(*_):
        if _device.in_use():
            _device.Device().tell_sources()

    def name(self, raw_code, code, number):
        shell = get_ipython()
        if shell is not None and not watched:
            watched.append(shell)
            shell.events.register("post_run_cell", tell)
        _device.sources.append((f"In [{number}]", code))
        return f"In [{number}]"

    compiler.get_code_name = name


def _telling(name, gluon):
    """Let the compilation of a class of kernel sources tell the stand-in for ptxas whether they are Gluon's.

    Shared memory of Gluon kernels is their author's to synchronise. What is kept of a compilation names the file, which Triton's
    key for it leaves out: another file with the same text at the same line would be taken for this one.
    """

    def patch(module):
        source = getattr(module, name, None)
        if source is None:
            return
        make = source.make_ir

        def make_ir(*args, **kwargs):
            if gluon:
                os.environ["FENCEPOST_GLUON"] = "1"
            else:
                os.environ.pop("FENCEPOST_GLUON", None)
            return make(*args, **kwargs)

        source.make_ir = make_ir
        if "hash" in vars(source):
            key = source.hash

            def hash(self):
                code = getattr(getattr(self.fn, "fn", None), "__code__", None)
                return hashlib.sha256(f"{key(self)} {code.co_filename if code else ''}".encode()).hexdigest()

            source.hash = hash

    return patch


def _without_device(name, why, remedy):
    """Tell at once that a package finds no device."""

    def tell():
        print(f"fencepost: {name} will find no device: {why}\n  remedy: {remedy}", file=sys.stderr)

    return tell


def _static_runtime(name):
    return _without_device(
        name,
        "its wheel holds NVIDIA's CUDA runtime, linked in statically, and that runs on NVIDIA's driver only",
        f"use a build of {name} that links libcudart.so (from source), or check its kernels' PTX with \"fencepost check\"",
    )


_JAX = _without_device(
    "JAX",
    "its CUDA plugin asks for NVIDIA's device files, NVIDIA's management library (NVML) and the driver's virtual memory management "
    "(cuMemCreate), of which the emulated GPU has none",
    "launch Triton kernels without JAX, on torch's tensors or on NumPy's arrays (examples/python/triton_numpy_fixed.py); what JAX "
    "computes on the CPU is not checked",
)

_BEFORE = {
    "torch": _torch_libraries,
    "torch.utils.cpp_extension": _extensions,
    "cuda.bindings": _compilers,
    "numba.cuda": _compilers,
    "jax_plugins.xla_cuda12": _JAX,
    "jax_plugins.xla_cuda13": _JAX,
    "cupy": _static_runtime("CuPy"),
    "warp": _static_runtime("Warp"),
}

_AFTER = {
    "ipykernel.compiler": _cells,
    "torch": _torch,
    "torch._inductor.runtime.benchmarking": _few_measurements,
    "triton._C.libtriton": _no_cublas,
    "triton.testing": _one_measurement,
    "triton.runtime.jit": _named_tensors,
    "triton.compiler.compiler": _telling("ASTSource", gluon=False),
    "triton.experimental.gluon._runtime": _telling("GluonASTSource", gluon=True),
    "numba.cuda.dispatcher": _named_arrays,
    "numba.cuda.decorators": _lines_by_default,
    "numba.cuda.cudadecorators": _lines_by_default,
}
