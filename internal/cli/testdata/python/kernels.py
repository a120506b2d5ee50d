"""Kernels for tests, launched through the driver API with nothing but ctypes."""

import ctypes

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry stores(.param .u64 p) {
  .reg .b64 %a; .reg .b32 %r;
  ld.param.u64 %a, [p]; mov.u32 %r, %ctaid.x; st.global.u32 [%a], %r;
  ret;
}
.visible .entry loads(.param .u64 p) {
  .reg .b64 %a; .reg .b32 %r; .reg .pred %q;
  ld.param.u64 %a, [p]; mov.u32 %r, %ctaid.x; setp.eq.u32 %q, %r, 0;
  @%q st.global.u32 [%a], %r;
  @!%q ld.global.u32 %r, [%a];
  ret;
}
.visible .entry same(.param .u64 p) {
  .reg .b64 %a;
  ld.param.u64 %a, [p]; st.global.u32 [%a], 1;
  ret;
}
.visible .entry adds(.param .u64 p) {
  .reg .b64 %a; .reg .b32 %r;
  ld.param.u64 %a, [p]; atom.global.add.u32 %r, [%a], 1;
  ret;
}
.visible .entry copies(.param .u64 p) {
  .reg .b64 %a;
  .shared .align 16 .b8 s[16];
  ld.param.u64 %a, [p]; cp.async.bulk.strange;
  ret;
}
"""

_cuda = ctypes.CDLL("libcuda.so.1")
_ready = []


def call(name, *args):
    error = getattr(_cuda, name)(*args)
    if error:
        raise RuntimeError(f"{name}: error {error}")


def launch(kernel, blocks=2):
    """Run blocks of one thread, all on one word of memory."""
    if not _ready:
        call("cuInit", 0)
        context, module, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        call("cuCtxSetCurrent", context)
        call("cuModuleLoadData", ctypes.byref(module), PTX)
        call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(256))
        _ready[:] = module, memory
    module, memory = _ready
    function = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    call("cuLaunchKernel", function, blocks, 1, 1, 1, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
