"""Hooks on the imports of GPU packages, so that they find the emulated GPU. Nothing happens until one is imported."""

import atexit
import glob
import hashlib
import importlib.abc
import inspect
import os
import subprocess
import sys

from fencepost import _device


def install():
    """Watch imports from now on. Called once, by start/sitecustomize.py."""
    sys.meta_path.insert(0, _Hooks())
    atexit.register(_end)


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
    """Tell the names of the tensors that a Triton kernel is launched with."""
    function = module.JITFunction
    run = function.run
    device = _device.Device()

    def named(self, *args, grid, warmup, **kwargs):
        if not warmup:
            for name, value in list(zip(self.arg_names, args)) + list(kwargs.items()):
                if all(hasattr(value, a) for a in ("data_ptr", "element_size", "shape", "stride", "dtype")):
                    _name(device, name, value)
        return run(self, *args, grid=grid, warmup=warmup, **kwargs)

    function.run = named


def _name(device, name, tensor):
    """Tell the name of a tensor, or of what Triton takes for one: triton.reinterpret gives such a thing, with less methods."""
    element = tensor.element_size()
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()) if n > 0 and s > 0) + 1 if all(tensor.shape) else 0
    kind = f"{str(tensor.dtype).replace('torch.', '')}[{', '.join(map(str, tensor.shape))}]"
    device.argument(f"{name}\n{kind}", tensor.data_ptr(), reach * element, element)


def _lines_by_default(module):
    """Make numba's jit write line tables without being asked."""
    jit = module.jit
    names = [p.name for p in inspect.signature(jit).parameters.values() if p.default is not p.empty]
    if "lineinfo" in names and jit.__defaults__:
        defaults = list(jit.__defaults__)
        defaults[names.index("lineinfo") - len(names)] = True
        jit.__defaults__ = tuple(defaults)


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
    if compiler:
        compiler.get_code_name = lambda self, raw_code, code, number: f"In [{number}]"


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


def _static_runtime(name):
    """Tell at once that a package finds no device: its wheel holds NVIDIA's static runtime, which insists on NVIDIA's driver."""

    def tell():
        print(
            f"fencepost: {name} will find no device: its wheel holds NVIDIA's CUDA runtime, linked in statically, and that runs on "
            f"NVIDIA's driver only\n  remedy: use a build of {name} that links libcudart.so (from source), or check its kernels' PTX "
            'with "fencepost check"',
            file=sys.stderr,
        )

    return tell


_BEFORE = {
    "torch": _torch_libraries,
    "torch.utils.cpp_extension": _extensions,
    "cuda.bindings": _compilers,
    "numba.cuda": _compilers,
    "cupy": _static_runtime("CuPy"),
    "warp": _static_runtime("Warp"),
}

_AFTER = {
    "ipykernel.compiler": _cells,
    "torch": _torch,
    "torch._inductor.runtime.benchmarking": _few_measurements,
    "triton.testing": _one_measurement,
    "triton.runtime.jit": _named_tensors,
    "triton.compiler.compiler": _telling("ASTSource", gluon=False),
    "triton.experimental.gluon._runtime": _telling("GluonASTSource", gluon=True),
    "numba.cuda.decorators": _lines_by_default,
    "numba.cuda.cudadecorators": _lines_by_default,
}
