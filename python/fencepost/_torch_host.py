"""Tells the checker what torch's CPU operators do with pinned memory that a copy may still use.

The interpreter's own accesses of memory cannot be observed, but operators can: by a mode that torch asks before each of them. It is
entered when a thread issues its first copy that does not wait. From then on an operator of that thread costs some microseconds more.
"""

import functools
import itertools
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_MOST_ROWS = 4096
_MOST_COPIES = 256

# Operators that look at a tensor's shape and dtype alone, or at memory that they allocate.
# Of those with indices it is not known which elements they touch.
_SHAPED = ("empty_", "zeros_", "ones_", "full_", "rand_", "randn_", "randint_", "new_", "resize_", "set_", "record_stream", "is_same_size", "is_pinned")
_INDEXED = ("index", "_index", "_unsafe_index", "gather", "scatter", "embedding", "_embedding", "take", "put", "masked_scatter")


@functools.lru_cache(maxsize=None)
def _arguments(func):
    """The tensors that an operator touches, as (position, name, written); () for one that only looks at shapes or makes a view."""
    schema = func._schema
    if any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
        return ()
    if schema.name.startswith("aten::") and schema.name[len("aten::") :].startswith(_SHAPED + _INDEXED):
        return ()
    tensors = (a for a in enumerate(schema.arguments) if "Tensor" in str(a[1].type))
    return tuple((position, a.name, a.alias_info is not None and a.alias_info.is_write) for position, a in tensors)


def extent(tensor):
    """The number of elements from the first to the last in memory."""
    return sum(s * (n - 1) for n, s in zip(tensor.shape, tensor.stride())) + 1 if tensor.numel() else 0


class Watch(TorchDispatchMode):
    """What one process's copies use, and the mode. device is the checker's end, boxes see _torch."""

    def __init__(self, device, boxes):
        super().__init__()
        self.device, self.boxes = device, boxes
        # Where pinned memory begins that a copy used: where it ends, and its storage. To keep the storage keeps the memory from those who
        # ask for pinned memory next: torch's allocator waits for copies, and does not know of these.
        self.copied = {}
        self.thread = threading.local()  # asked: this mode has been asked, and is off the stack until it answers

    @classmethod
    def ignore_compile_internals(cls):
        return True

    @classmethod
    def is_infra_mode(cls):  # before torch 2.10 this is what torch.compile asks
        return True

    # Operators that run others may run them under this mode, which does not see those.
    supports_higher_order_operators = True

    def settle(self):
        """Forgets the copies, before another is issued, if the host has waited for all."""
        if self.copied and not self.device.host_access("", 0, 0, False):
            self.copied.clear()

    def copy(self, tensor):
        """Notes that a copy was issued which uses a tensor of the host, and that nobody has waited for."""
        if not tensor.is_pinned():
            return
        begin, end = tensor.data_ptr(), tensor.data_ptr() + extent(tensor) * tensor.element_size()
        self.copied[begin] = max(self.copied.pop(begin, (0, None))[0], end), tensor.untyped_storage()
        if len(self.copied) > _MOST_COPIES:  # of memory that is used again nothing is known, and nothing is told
            del self.copied[next(iter(self.copied))]
        # Who leaves a mode leaves the one on top: to enter this one within another would leave that on the stack.
        if torch._C._len_torch_dispatch_stack() == 0 and not getattr(self.thread, "asked", False):
            self.__enter__()

    def without(self, function):
        """Makes a function that is called without this mode, for one that torch computes another way where there is a mode."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            top = torch._C._len_torch_dispatch_stack() - 1
            if top < 0 or torch._C._get_dispatch_stack_at(top) is not self:
                return function(*args, **kwargs)
            self.__exit__(None, None, None)
            try:
                return function(*args, **kwargs)
            finally:
                self.__enter__()

        return call

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.copied and isinstance(func, torch._ops.OpOverload):
            self.tell(func, args, kwargs)
        self.thread.asked = True
        try:
            return func(*args, **kwargs)
        finally:
            self.thread.asked = False

    def tell(self, func, args, kwargs):
        """Tells what an operator is about to do with copied memory, if it is one of the host."""
        touched = []
        for position, name, write in _arguments(func):
            value = args[position] if position < len(args) else kwargs.get(name)
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                    continue
                if tensor.device.type != "cpu":
                    return
                if tensor.layout is torch.strided:
                    touched.append((tensor, write))
        device = kwargs.get("device")
        if device is not None and torch.device(device).type != "cpu":
            return
        for tensor, write in touched:
            self.touch(func._schema.name, tensor, write)

    def touch(self, name, tensor, write):
        """Tells that what is named touches a tensor of the host, if that has copied memory."""
        at, size = tensor.data_ptr(), tensor.element_size()
        end = at + extent(tensor) * size
        if not any(at < e and b < end for b, (e, _) in self.copied.items()):
            return
        rows = (
            (at + offset + z * slice_ + y * pitch, width)
            for offset, pitch, slice_, width, height, depth in self.boxes(tensor.shape, tensor.stride(), size)
            for z in range(depth)
            for y in range(height)
        )
        for row, width in itertools.islice(rows, _MOST_ROWS):
            if not self.device.host_access(name, row, width, write):
                self.copied.clear()
                return
        if next(rows, None) is not None:
            self.device.unsupported(f"torch operator {name}: of a tensor in pinned memory only {_MOST_ROWS} rows are checked")

    def printing(self, function):
        """Makes a function that prints a tensor, for which torch leaves all modes, tell that it reads the tensor."""

        @functools.wraps(function)
        def call(tensor, *args, **kwargs):
            if self.copied and type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu" and tensor.layout is torch.strided:
                self.touch("aten::print", tensor, False)
            return function(tensor, *args, **kwargs)

        return call
