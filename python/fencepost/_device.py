"""What the stand-in driver offers to Python code of ours beyond the CUDA API."""

import ctypes
import functools
import itertools
import json
import os
import struct


def library(name):
    """Load a library of Fencepost's own, by its path, so that later loads by its name find this one."""
    return ctypes.CDLL(os.path.join(os.environ["FENCEPOST_LIBRARIES"], name), mode=ctypes.RTLD_GLOBAL)


# What this process has compiled that is in no file, as (name, text), and has not told yet: to tell it would be a use of the device.
sources = []


@functools.lru_cache(maxsize=None)
def _boxes(count):
    return struct.Struct(f"={7 * count}Q")


class Device:
    """The emulated GPU, as internal/cuda/standin/src/cuda.c exports it."""

    def __init__(self):
        self._driver = driver = library("libcuda.so.1")
        self._address = driver.fencepostHostAddress
        self._address.restype, self._address.argtypes = ctypes.c_void_p, [ctypes.c_uint64]
        self._operator = driver.fencepostOperator
        self._operator.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        self._argument = driver.fencepostArgument
        self._argument.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]
        self._host_access = driver.fencepostHostAccess
        self._host_access.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int]
        self._source = driver.fencepostSource
        self._source.argtypes = [ctypes.c_char_p]
        self._findings = driver.fencepostFindings
        self._findings.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)]
        self._unsupported = driver.fencepostUnsupported
        self._unsupported.restype, self._unsupported.argtypes = None, [ctypes.c_char_p]

    def host_address(self, pointer):
        """Give the address at which this process may touch the device memory at pointer."""
        address = self._address(pointer)
        if address is None:
            raise RuntimeError("fencepost: the checker cannot be reached")
        return address

    def operator(self, name, stream, accesses):
        """Tell that an operation runs in a stream, before the host computes it in the stream's place.

        accesses are (write, address, pitch, slice, width, height, depth): the bytes address + z*slice + y*pitch + [0, width).
        The error is that of the CUDA API: memory that was freed, say.
        """
        count = len(accesses)
        error = self._operator(name.encode(), stream, _boxes(count).pack(*itertools.chain.from_iterable(accesses)), count)
        if error:
            raise RuntimeError(f"CUDA error {error} in {name}")

    def argument(self, name, pointer, size, element):
        """Name size bytes of memory for the next launch of this thread: "name\\ntype", in elements of so many bytes."""
        self._argument(name.encode(), pointer, size, element)

    def host_access(self, name, address, size, write):
        """Tell that an operator of the host accesses memory that kernels can reach. False: it has waited for all work, and need not tell more."""
        return self._host_access(name.encode(), address, size, write) != 0

    def unsupported(self, name):
        """Name what cannot be computed to the report, which then says that not everything was checked."""
        self._unsupported(name.encode())

    def tell_sources(self):
        """Tell the texts in sources."""
        while sources:
            self._source("\n".join(sources.pop()).encode(errors="replace"))

    def findings(self):
        """Give what was found in this process since the last call, as internal/session/asked.go writes it."""
        self.tell_sources()
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        if self._findings(ctypes.byref(text), ctypes.byref(size)):
            raise RuntimeError("fencepost: the checker cannot be reached")
        answer = ctypes.string_at(text, size.value) if text else b""
        _libc.free(text)
        return json.loads(answer) if answer else {"findings": [], "not_checked": []}


def in_use():
    """Say whether this process uses the device. To ask it for something would be a use, after which it may not fork."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return any("fencepost-device-memory" in line for line in maps)


_libc = ctypes.CDLL(None)
_libc.free.restype, _libc.free.argtypes = None, [ctypes.c_void_p]
