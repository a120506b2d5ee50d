"""Makes the CUDA build of PyTorch work on the emulated device.

PyTorch ships its CUDA operators as machine code, which the emulated device does not run. install() overrides each operator that
is registered for the dispatch key CUDA by one that is computed on the host. Device memory is mapped into the process, so the
host's operator works on CPU tensors that share the bytes of the CUDA tensors: arguments need no copy, and mutated arguments
hold their results when it returns. Only a fresh result is copied to device memory.

To the checker each operator is an operation of the current stream that reads and writes the bytes of its tensors. It is told
through the object given to install():

    device.host_address(ptr)                  the address at which this process may read and write the device memory at ptr
    device.operator(name, stream, accesses)   an operation of a stream, told before the bytes are touched; an access is
                                              (write, address, pitch, slice, width, height, depth): rows of width bytes
    device.host_access(name, address, size, write)  an operator of the host itself; false when the host has waited for all work
    device.unsupported(name)                  names what could not be computed, and so was not checked
"""

import ctypes
import functools
import itertools
import warnings

import torch

from . import _torch_operators as substitutes
from ._torch_host import Watch, extent

# Operators that make, view or query tensors and never start a kernel, or that use nothing but the CUDA runtime's copies.
# Operators whose results are views of their arguments are recognised by their schemas.
_NATIVE = frozenset(
    "aten::" + name
    for name in (
        "empty.memory_format",
        "empty_strided",
        "is_set_to",
        "record_stream",
        "resize_",
        "set_",
        "set_.source_Storage",
        "set_.source_Storage_storage_offset",
        "set_.source_Tensor",
        "_efficientzerotensor",
        "_local_scalar_dense",
    )
)

# Registered for every backend at once; the CUDA path needs an override of its own.
_ADDED = ("aten::convolution", "aten::convolution_overrideable", "aten::copy_")

# Arguments that are written, though their schema does not say so.
_UNANNOTATED = {
    "aten::native_batch_norm": ("running_mean", "running_var"),
    "aten::cudnn_batch_norm": ("running_mean", "running_var"),
    "aten::batch_norm_update_stats": ("running_mean", "running_var"),
    "aten::batch_norm_gather_stats": ("running_mean", "running_var"),
    "aten::batch_norm_gather_stats_with_counts": ("running_mean", "running_var"),
}

# Operators whose index, length or step tensors may be in host memory.
_MIXED = ("aten::index", "aten::_index_put", "aten::_ctc_loss", "aten::_use_", "aten::_embedding_bag")

# Operators that take numbers for tensors from Python.
_UNWRAPPING = ("add", "sub", "mul", "div", "floor_divide")

# Operators whose results the host needs for a size or an answer: the host waits for the stream.
_WAITING = frozenset(
    "aten::" + name
    for name in (
        "_unique",
        "_unique2",
        "bincount",
        "equal",
        "masked_select",
        "masked_select.out",
        "nonzero",
        "nonzero.out",
        "repeat_interleave.Tensor",
        "unique_consecutive",
        "unique_dim",
        "unique_dim_consecutive",
    )
)

# Operators on sparse tensors that have kernels of their own. The others are made of operators on the indices and values.
_SPARSE_KERNELS = frozenset(
    (
        "_coalesce",
        "_sparse_csr_prod",
        "_sparse_csr_sum",
        "_sparse_log_softmax",
        "_sparse_log_softmax_backward_data",
        "_sparse_mask_projection",
        "_sparse_softmax",
        "_sparse_softmax_backward_data",
        "_sparse_sparse_matmul",
        "_sparse_sum_backward",
        "add",
        "add_",
        "addmm",
        "addmm_",
        "addmv",
        "baddbmm",
        "bmm",
        "hspmm",
        "mm",
        "mul",
        "sparse_mask",
        "sparse_sampled_addmm",
        "sub",
        "sum",
        "triangular_solve",
    )
)

_TENSOR, _TENSORS, _OUT, _DEVICE, _GENERATOR, _PINNED = range(6)
_KINDS = {
    "Tensor": _TENSOR,
    "Optional[Tensor]": _TENSOR,
    "List[Tensor]": _TENSORS,
    "List[Optional[Tensor]]": _TENSORS,
    "Optional[List[Tensor]]": _TENSORS,
    "Optional[Device]": _DEVICE,
    "Device": _DEVICE,
    "Optional[Generator]": _GENERATOR,
    "Generator": _GENERATOR,
}

_NUMBERS = frozenset((bool, int, float, complex))
_CPU = torch.device("cpu")
_HALF = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
_ORDINARY = ("Float", "Double", "Byte", "Char", "Short", "Int", "Long", "Bool", "ComplexFloat", "ComplexDouble")
_MEMCPY_DEFAULT = 4
_MOST_BOXES = 4096
_MOST_RUNS = 1 << 18  # each costs the checker about 10 microseconds and 400 bytes

_device = None  # the checker's end, see above
_watch = None  # of host memory that copies use
_runtime = None  # the CUDA runtime library of this process
_libraries = []  # registrations last as long as their library objects


@functools.lru_cache(maxsize=4096)
def boxes(shape, stride, itemsize):
    """The bytes that a strided tensor covers, as (offset, pitch, slice, width, height, depth) relative to its first element.

    Dimensions that follow each other in memory are collapsed, and a dimension of stride 0 counts once. What needs more than
    three strided dimensions becomes several boxes; where that would be too many, one box that covers them all.
    """
    if 0 in shape:
        return ()
    dims = sorted((s * itemsize, n) for n, s in zip(shape, stride) if n > 1 and s > 0)
    width, rest = itemsize, []
    for step, n in dims:
        if not rest and step <= width:
            width += step * (n - 1)
        elif rest and step == rest[-1][0] * rest[-1][1]:
            rest[-1] = (rest[-1][0], rest[-1][1] * n)
        else:
            rest.append((step, n))
    rest.sort(key=lambda dim: dim[1])
    outer, inner = rest[:-2], rest[-2:]
    inner.sort()
    (pitch, height), (slice_, depth) = (inner + [(0, 1), (0, 1)])[:2]
    count = 1
    for _, n in outer:
        count *= n
    if count > _MOST_BOXES:
        return ((0, 0, 0, width + sum(step * (n - 1) for step, n in rest), 1, 1),)
    offsets = itertools.product(*(range(0, step * n, step) for step, n in outer))
    return tuple((sum(o), pitch, slice_, width, height, depth) for o in offsets)


def _add_accesses(accesses, tensor, write):
    """Appends the accesses of a CUDA tensor's bytes."""
    nbytes = tensor.nbytes
    if nbytes == 0:
        return
    at = tensor.data_ptr()
    if tensor.is_contiguous():
        accesses.append((write, at, 0, 0, nbytes, 1, 1))
        return
    for offset, pitch, slice_, width, height, depth in boxes(tensor.shape, tensor.stride(), tensor.element_size()):
        accesses.append((write, at + offset, pitch, slice_, width, height, depth))


def _add_touched(name, accesses, tensor, write, offsets, shape, stride):
    """Appends the accesses of the pieces of a CUDA tensor that an operator touches, see _torch_operators.

    Neither more may be told, which would be races that are none, nor less in silence: what is too scattered is named.
    """
    at, size = tensor.data_ptr(), tensor.element_size()
    for offset, pitch, slice_, width, height, depth in boxes(shape, stride, size):
        begins, ends = substitutes.runs(offsets * size + offset, width)
        count = len(begins)
        if count > _MOST_RUNS:
            _device.unsupported(f"torch operator {name}: of {count} pieces of memory that indices choose only {_MOST_RUNS} are checked")
            begins, ends = begins[:_MOST_RUNS], ends[:_MOST_RUNS]
        elif count > 2 and height == depth == 1:
            steps, widths = begins.diff(), ends - begins
            if (steps == steps[0]).all() and (widths == widths[0]).all():
                begins, ends, pitch, height = begins[:1], ends[:1], int(steps[0]), count
        for begin, end in zip(begins.tolist(), ends.tolist()):
            accesses.append((write, at + begin, pitch, slice_, end - begin, height, depth))


class _Memory(dict):
    """CPU tensors over the whole address space, one for each dtype: views of them alias CUDA tensors.

    One shared storage costs a single as_strided per alias, and lets the host's operators see when arguments overlap.
    """

    begin = 4096

    def __missing__(self, dtype):
        with torch.inference_mode(False):
            size = 1 << 47
            storage = torch._C._construct_storage_from_data_pointer(self.begin, _CPU, size)
            count = size // dtype.itemsize
            base = self[dtype] = torch.empty(0, dtype=dtype, device=_CPU).set_(storage, 0, (count,), (1,))
        return base

    def alias(self, tensor):
        """A CPU tensor with the bytes, shape, strides and conjugation of a CUDA tensor."""
        at = tensor.data_ptr()
        if not at:
            return self.bounded(tensor)
        dtype = tensor.dtype
        index = (_device.host_address(at) - self.begin) // dtype.itemsize
        host = self[dtype].as_strided(tensor.shape, tensor.stride(), index)
        if dtype.is_complex and tensor.is_conj():
            host = host.conj()
        if tensor.is_neg():
            host = torch._neg_view(host)
        return host

    def bounded(self, tensor):
        """An alias with a storage of its own, which no operator can resize."""
        at = tensor.data_ptr()
        host = torch.empty(0, dtype=tensor.dtype, device=_CPU)
        if not at:
            return host.as_strided(tensor.shape, tensor.stride())
        nbytes = extent(tensor) * tensor.element_size()
        storage = torch._C._construct_storage_from_data_pointer(_device.host_address(at), _CPU, nbytes)
        host.set_(storage, 0, tensor.shape, tensor.stride())
        if tensor.is_conj():
            host = host.conj()
        return torch._neg_view(host) if tensor.is_neg() else host


_memory = _Memory()


def _stream(index):
    return torch._C._cuda_getCurrentRawStream(index)


def _tell(name, index, accesses):
    if accesses:
        _device.operator(name, _stream(index), accesses)


def _check(error, call):
    if error:
        _runtime.cudaGetLastError()  # else torch finds it where it cannot be handled
        raise RuntimeError(f"CUDA error: {call} failed with error {error}")


def _wait(index):
    _check(_runtime.cudaStreamSynchronize(_stream(index)), "cudaStreamSynchronize")


def _unsupported(name, cause=None):
    _device.unsupported(f"torch operator {name}: the host cannot compute it for these arguments")
    error = NotImplementedError(f"{name} cannot be computed on Fencepost's emulated device")
    raise error from cause


def _generator(generator, index):
    """A CPU generator that continues a CUDA generator, whose offset is advanced as an operator of the device would."""
    if generator is None:
        generator = torch.cuda.default_generators[index]
    offset = generator.get_offset()
    generator.set_offset(offset + 4)
    return substitutes.host_generator(generator.initial_seed(), offset)


class _Uncomputable(Exception):
    """The host has nothing that computes an operator for these arguments."""


class _Result:
    """The host's side of an out= argument."""

    def __init__(self, tensor, fresh):
        self.tensor = tensor
        self.fresh = fresh or tensor.numel() == 0
        self.host = torch.empty(0, dtype=tensor.dtype, device=_CPU) if self.fresh else _memory.bounded(tensor)

    def finish(self, name):
        """Gives the CUDA tensor the shape and, where the host's tensor was one of its own, the values of the result."""
        host, tensor = self.host, self.tensor
        if host.shape != tensor.shape:
            tensor.resize_(host.shape if host.is_contiguous() else (extent(host),))
            if host.shape != tensor.shape or host.stride() != tensor.stride():
                tensor.as_strided_(host.shape, host.stride())
        if self.fresh and host.numel():
            accesses = []
            _add_accesses(accesses, tensor, True)
            _tell(name, tensor.get_device(), accesses)
            _memory.alias(tensor).copy_(host)


class _Call:
    """What one call of an operator meets: where it runs, what it touches, and which CUDA tensor each mutated host tensor is."""

    __slots__ = ("accesses", "alias", "index", "results", "foreign", "numbers", "fresh")

    def __init__(self, alias, fresh):
        self.alias = alias  # makes a host tensor of a CUDA tensor
        self.accesses = []
        self.index = -1
        self.results = []
        self.foreign = False  # a tensor of another device is among the arguments
        self.numbers = False  # a number stands for a tensor
        self.fresh = fresh  # out= arguments get host tensors of their own

    def tensor(self, tensor, write):
        if type(tensor) in _NUMBERS:  # torch unwraps the number of x + 1
            self.numbers = True
            return tensor
        if not tensor.is_cuda:
            self.foreign = self.foreign or tensor.dim() > 0
            return tensor
        if self.index < 0:
            self.index = tensor.get_device()
        if tensor.layout is not torch.strided:
            return self.sparse(tensor, write)
        _add_accesses(self.accesses, tensor, write)
        return self.alias(tensor)

    def sparse(self, tensor, write):
        if write or tensor.layout not in _SPARSE:
            raise _Uncomputable(f"a mutated tensor of layout {tensor.layout}")
        return _SPARSE[tensor.layout](tensor, lambda part: self.tensor(part, False))

    def out(self, tensor):
        if not tensor.is_cuda:
            self.foreign = True
            return tensor
        if self.index < 0:
            self.index = tensor.get_device()
        if tensor.layout is not torch.strided:
            return self.sparse(tensor, True)
        result = _Result(tensor, self.fresh)
        if not result.fresh:
            _add_accesses(self.accesses, tensor, True)
        self.results.append(result)
        return result.host


def _sparse_coo_tensor(indices, values, shape, coalesced):
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=False, is_coalesced=coalesced)


def _sparse_coo(tensor, convert):
    return _sparse_coo_tensor(convert(tensor._indices()), convert(tensor._values()), tensor.shape, tensor.is_coalesced())


def _sparse_compressed(rows, columns):
    def build(tensor, convert):
        parts = (convert(getattr(tensor, part)()) for part in (rows, columns, "values"))
        return torch.sparse_compressed_tensor(*parts, tensor.shape, layout=tensor.layout, check_invariants=False)

    return build


_SPARSE = {
    torch.sparse_coo: _sparse_coo,
    torch.sparse_csr: _sparse_compressed("crow_indices", "col_indices"),
    torch.sparse_csc: _sparse_compressed("ccol_indices", "row_indices"),
    torch.sparse_bsr: _sparse_compressed("crow_indices", "col_indices"),
    torch.sparse_bsc: _sparse_compressed("ccol_indices", "row_indices"),
}


class _Operator:
    """One overridden operator: what its schema says, prepared once."""

    def __init__(self, name, host_key):
        self.name = name
        namespace, rest = name.split("::")
        packet, _, overload = rest.partition(".")
        schema = torch._C._get_schema(f"{namespace}::{packet}", overload)
        self.host = substitutes.OPERATORS.get(name)
        if self.host is None and torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, host_key):
            self.host = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")._op
        # Some of the host's kernels for sparse tensors misread a storage offset.
        self.alias = _memory.alias if host_key == "CPU" else _memory.bounded
        self.waits = name in _WAITING
        self.masked = packet in ("index", "_index_put_impl_")  # whose Boolean indices have a size that the host needs
        self.mixed = name.startswith(_MIXED)
        self.unwraps = packet.rstrip("_") in _UNWRAPPING
        self.touched = substitutes.TOUCHED.get(name) if host_key == "CPU" else None
        self.positions = []  # (position, kind, written)
        self.places = {argument.name: position for position, argument in enumerate(schema.arguments)}
        self.names = {}  # name to (kind, written), of every argument
        written = {}  # alias set to the position and name of its argument
        for position, argument in enumerate(schema.arguments):
            alias = argument.alias_info
            if alias is not None:
                for label in alias.before_set:
                    written[label] = position, argument.name
            kind = _KINDS.get(str(argument.type))
            if argument.name == "pin_memory":
                kind = _PINNED
            elif kind == _TENSOR and argument.is_out:
                kind = _OUT
            if kind is None:
                continue
            write = argument.name in _UNANNOTATED.get(name, ()) or (alias is not None and alias.is_write)
            self.names[argument.name] = kind, write
            if not argument.kwarg_only:
                self.positions.append((position, kind, write))
        generators = [(p, a.name) for p, a in enumerate(schema.arguments) if _KINDS.get(str(a.type)) == _GENERATOR]
        if name in substitutes.SEEDED:
            generators.append((len(schema.arguments), "generator"))
        self.generator = generators[0] if generators else None  # position and name
        self.resizes = any(kind == _OUT for kind, _ in self.names.values())
        labels = (value.alias_info.before_set if value.alias_info else () for value in schema.returns)
        self.returned = [written[next(iter(label))] if label else None for label in labels]  # the argument that each return is
        self.single = len(self.returned) == 1

    def __call__(self, args, kwargs):
        if self.host is None:
            _unsupported(self.name)
        call = _Call(self.alias, False)
        try:
            values = self.compute(call, args, kwargs)
        except _Uncomputable as error:
            _unsupported(self.name, error)
        except RuntimeError as error:
            if not (self.resizes and "not resizable" in str(error)):
                raise
            call = _Call(self.alias, True)
            values = self.compute(call, args, kwargs)
        fresh = []
        if self.returned:
            values = self.give(call, values, args, kwargs, fresh)
        # One message for all: those of fresh results come after their allocation.
        for tensor, _ in fresh:
            _add_accesses(call.accesses, tensor, True)
        _tell(self.name, call.index, call.accesses)
        for tensor, value in fresh:
            _memory.alias(tensor).copy_(value)
        for result in call.results:
            result.finish(self.name)
        if self.waits or (self.masked and any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])):
            _wait(call.index)
        return values

    def compute(self, call, args, kwargs):
        """Calls the host's operator with host tensors in place of CUDA tensors, and notes what that accesses."""
        host = list(args)
        count = len(host)
        for position, kind, write in self.positions:
            if position >= count:
                break
            value = host[position]
            if value is not None:
                host[position] = self.convert(call, value, kind, write)
        named = kwargs
        if kwargs or self.generator:
            named = dict(kwargs)
            for name, value in kwargs.items():
                if value is not None and name in self.names:
                    named[name] = self.convert(call, value, *self.names[name])
        if call.index < 0:
            call.index = torch.cuda.current_device()
        if call.foreign and not self.mixed:
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")
        if call.numbers and not self.unwraps:
            self.wrap(host, named)
        if self.generator:
            position, name = self.generator
            if position < count:
                host[position] = _generator(args[position], call.index)
            else:
                named[name] = _generator(kwargs.get(name), call.index)
        if self.touched:
            self.narrow(call, args, kwargs, self.touched(*host, **named))
        try:
            return self.host(*host, **named)
        except (NotImplementedError, RuntimeError) as error:
            text = str(error)
            lacking = text.partition("not implemented for '")[2].partition("'")[0]
            if lacking in _ORDINARY or not (lacking or isinstance(error, NotImplementedError)):
                raise
            try:
                return _in_single_precision(self.host, host, named)
            except (NotImplementedError, RuntimeError):
                raise _Uncomputable(text) from error

    def narrow(self, call, args, kwargs, touched):
        """Has only a part of some tensors accessed, not all of them as call says."""
        for name, pieces in touched.items():
            tensor = kwargs[name] if name in kwargs else args[self.places[name]]
            if pieces is None or not tensor.is_cuda:
                continue
            _, write = self.names[name]
            whole = []
            _add_accesses(whole, tensor, write)
            for access in whole:
                call.accesses.remove(access)
            _add_touched(self.name, call.accesses, tensor, write, *pieces)

    def wrap(self, host, named):
        """Makes tensors of numbers, of the dtype that they would have given the result."""
        places = [(host, p) for p, kind, _ in self.positions if kind == _TENSOR and p < len(host)]
        places += [(named, n) for n in named if n in self.names and self.names[n][0] == _TENSOR]
        values = [values[key] for values, key in places if values[key] is not None]
        if self.name.startswith("aten::where"):
            values = values[1:]  # the condition has no part in it
        dtype = functools.reduce(torch.promote_types, (torch.result_type(values[0], v) for v in values))
        for values, key in places:
            if type(values[key]) in _NUMBERS:
                values[key] = torch.tensor(values[key], dtype=dtype, device=_CPU)

    def convert(self, call, value, kind, write):
        if kind == _TENSOR:
            return call.tensor(value, write)
        if kind == _TENSORS:
            return [t if t is None else call.tensor(t, write) for t in value]
        if kind == _OUT:
            return call.out(value)
        if kind == _DEVICE:
            if value.type == "cuda" and value.index is not None:
                call.index = value.index
            return _CPU
        return None if kind == _GENERATOR else False

    def give(self, call, values, args, kwargs, fresh):
        """The host's results on the device: the arguments that they are, or fresh tensors, which are added to fresh."""
        if self.single:
            argument = self.returned[0]
            return self.result(call, values, fresh) if argument is None else _argument(argument, args, kwargs)
        return tuple(
            self.result(call, value, fresh) if argument is None else _argument(argument, args, kwargs)
            for value, argument in zip(values, self.returned)
        )

    def result(self, call, value, fresh):
        """One result on the device; (CUDA tensor, host tensor) is added to fresh where bytes are still to be moved."""
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided:
                return _sparse_result(value, lambda part: self.result(call, part, fresh))
            return _fresh(call.index, value, fresh)
        if isinstance(value, (list, tuple)):
            return [self.result(call, v, fresh) for v in value]
        return value


def _argument(argument, args, kwargs):
    position, name = argument
    return kwargs[name] if name in kwargs else args[position]


def _fresh(index, value, fresh):
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    stride = value.stride()
    if 0 in stride and value.numel() > 1:
        value = value.contiguous()
        stride = value.stride()
    tensor = torch.empty_strided(value.shape, stride, dtype=value.dtype, device=_cuda(index))
    if value.numel():
        fresh.append((tensor, value))
    return tensor


@functools.lru_cache(maxsize=None)
def _cuda(index):
    return torch.device("cuda", index)


def _sparse_result(value, give):
    if value.layout is torch.sparse_coo:
        return _sparse_coo_tensor(give(value._indices()), give(value._values()), value.shape, value.is_coalesced())
    rows = value.layout in (torch.sparse_csr, torch.sparse_bsr)
    plain = (value.crow_indices(), value.col_indices()) if rows else (value.ccol_indices(), value.row_indices())
    parts = [give(part) for part in (*plain, value.values())]
    return torch.sparse_compressed_tensor(*parts, value.shape, layout=value.layout, check_invariants=False)


def _in_single_precision(operator, args, kwargs):
    """Calls an operator that the host does not have for half precision with float32 tensors, and rounds the results."""
    widened = []

    def widen(value):
        if isinstance(value, torch.Tensor) and value.dtype in _HALF:
            widened.append((value, value.to(_HALF[value.dtype])))
            return widened[-1][1]
        if isinstance(value, list):
            return [widen(v) for v in value]
        return value

    def narrow(value):
        if isinstance(value, torch.Tensor) and value.dtype in _HALF.values():
            return value.to(dtype)
        if isinstance(value, (list, tuple)):
            return [narrow(v) for v in value]
        return value

    results = operator(*map(widen, args), **{name: widen(value) for name, value in kwargs.items()})
    if not widened:
        raise NotImplementedError
    dtype = widened[0][0].dtype
    for value, wide in widened:
        rounded = wide.to(value.dtype)
        if not torch.equal(rounded, value):  # mutated
            value.copy_(rounded)
    return narrow(results)


def _memcpy(self, source, index, wait):
    nbytes = self.nbytes
    stream = _stream(index)
    _check(_runtime.cudaMemcpyAsync(self.data_ptr(), source.data_ptr(), nbytes, _MEMCPY_DEFAULT, stream), "cudaMemcpyAsync")
    if wait:
        _check(_runtime.cudaStreamSynchronize(stream), "cudaStreamSynchronize")


def _same_bytes(self, source):
    """Reports whether a copy can move the bytes as they are."""
    if self.dtype != source.dtype or self.is_conj() != source.is_conj() or self.is_neg() != source.is_neg():
        return False
    if self.is_contiguous() and source.is_contiguous():
        return True
    if self.stride() != source.stride():
        return False
    covered = boxes(self.shape, self.stride(), self.element_size())
    return len(covered) == 1 and covered[0][3] == self.nbytes and covered[0][4:] == (1, 1)


def _copy(self, source, non_blocking=False):
    """copy_: copies between host and device are the CUDA runtime's; dtypes and layouts are converted where torch does it."""
    if self.numel() == 0 or self is source:
        return self
    if source.shape != self.shape:
        source = source.expand(self.shape)
    index = self.get_device() if self.is_cuda else source.get_device()
    across = not (self.is_cuda and source.is_cuda)
    if _same_bytes(self, source):
        if self.data_ptr() != source.data_ptr():
            if across and non_blocking:
                _watch.settle()
            _memcpy(self, source, index, across and not non_blocking)
            if across and non_blocking:
                _watch.copy(source if self.is_cuda else self)
    elif not across:
        accesses = []
        _add_accesses(accesses, source, False)
        _add_accesses(accesses, self, True)
        _tell("aten::copy_", index, accesses)
        _memory.alias(self).copy_(_memory.alias(source))
    elif self.is_cuda:
        staged = source.to(self.dtype).contiguous().resolve_conj().resolve_neg()
        plain = self.is_contiguous() and not self.is_conj() and not self.is_neg()
        target = self if plain else torch.empty(self.shape, dtype=self.dtype, device=self.device)
        _memcpy(target, staged, index, not non_blocking)
        if not plain:
            _copy(self, target)
    else:
        packed = source.contiguous().resolve_conj().resolve_neg()
        target = torch.empty(self.shape, dtype=source.dtype, device=_CPU)
        _memcpy(target, packed, index, True)
        self.copy_(target)
    return self


def _overridden(name, host_key):
    """Wraps the operator of a name, which is prepared when it is first called; host_key is the host's dispatch key for it."""
    if name == "aten::copy_":
        return _copy_operator
    operator = None

    def call(*args, **kwargs):
        nonlocal operator
        if operator is None:
            operator = _Operator(name, host_key)
        with torch._C.DisableTorchFunctionSubclass():
            return operator(args, kwargs)

    return call


def _copy_operator(self, source, non_blocking=False):
    with torch._C.DisableTorchFunctionSubclass():
        return _copy(self, source, non_blocking)


def _is_native(name):
    if name in _NATIVE or not name.startswith(("aten::", "quantized::", "quantization::", "symm_mem::")):
        return True
    packet, _, overload = name.partition(".")
    returns = torch._C._get_schema(packet, overload).returns
    return any(value.alias_info is not None and not value.alias_info.is_write for value in returns)


def _override(names, key, host_key):
    """Overrides the operators of a dispatch key."""
    for namespace in sorted({name.split("::")[0] for name in names}):
        library = torch._C._dispatch_library("IMPL", namespace, "")
        _libraries.append(library)
        for name in names:
            if name.startswith(namespace + "::"):
                library.impl(name, key, _overridden(name, host_key))


def install(device):
    """Overrides the CUDA operators of this process. device is the checker's end, described above."""
    global _device, _runtime, _watch
    if _device is not None or torch.version.cuda is None:
        return
    _device, _watch = device, Watch(device, boxes)
    _runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
    _runtime.cudaMemcpyAsync.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    _runtime.cudaStreamSynchronize.argtypes = [ctypes.c_void_p]
    _without_cudnn()
    _without_nccl()
    _runtime.__cudaFencepostTorch()
    torch.ctc_loss = _watch.without(torch.ctc_loss)  # with a mode, lengths in host memory are refused
    torch.jit.trace = _watch.without(torch.jit.trace)  # and nothing can be traced
    torch._tensor_str._str = _watch.printing(torch._tensor_str._str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some releases warn of every override
        _override_all()


def _without_cudnn():
    """Keeps torch from cuDNN, whose operators are computed but for its recurrent networks; a script may still switch it on and ask."""
    torch._C._set_cudnn_enabled(False)
    state = [True]
    torch._C._get_cudnn_enabled = lambda: state[0]
    torch._C._set_cudnn_enabled = lambda on: state.__setitem__(0, on)
    cudnn = torch.backends.cudnn
    vars(type(cudnn))["enabled"].__init__(torch._C._get_cudnn_enabled, torch._C._set_cudnn_enabled)
    cudnn.is_acceptable = lambda tensor: False


def _refused(base, what, remedy):
    """A class that has no objects here."""

    def refuse(self, *args, **kwargs):
        _device.unsupported(f"{what}: {remedy}")
        raise NotImplementedError(f"{what} does not run on Fencepost's emulated device: {remedy}")

    return type(base.__name__, (base,), {"__init__": refuse})


def _without_nccl():
    """Names what would end the process: NCCL's kernels are machine code, and pools are the allocator's that torch does not use here."""
    torch.cuda.memory.MemPool = torch.cuda.MemPool = _refused(
        torch.cuda.memory.MemPool, "torch.cuda.MemPool", "torch asks the device for each tensor here, and keeps no memory"
    )
    if torch.distributed.is_available():
        groups = torch.distributed.distributed_c10d
        for name in [n for n in vars(groups) if n.startswith("ProcessGroupNCCL")]:
            nccl = _refused(getattr(groups, name), "NCCL", 'use the backend "gloo", which takes CUDA tensors')
            setattr(groups, name, nccl)
            setattr(torch.distributed, name, nccl)


def _override_all():
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    nested = {name for name, (key, _) in substitutes.NESTED.items() if key == "CUDA"}
    operators = [n for n in registered("CUDA") if not _is_native(n) and n not in nested]
    _override([*operators, *_ADDED], "CUDA", "CPU")
    for layout in ("Sparse", "SparseCsr"):
        names = [n for n in registered(layout + "CUDA") if n[len("aten::") :].split(".")[0] in _SPARSE_KERNELS]
        _override(names, layout + "CUDA", layout + "CPU")
    library = torch._C._dispatch_library("IMPL", "aten", "")
    _libraries.append(library)
    for name, (key, function) in substitutes.NESTED.items():
        library.impl(name, key, function)
    torch._C._cuda_sleep = lambda cycles: None  # a kernel that touches nothing
