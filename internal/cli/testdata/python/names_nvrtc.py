"""Two blocks store to what pointers lead to, in CUDA C++ that is compiled at run time and linked."""

# named: typed[3]; typed + 12 bytes
# named: inside[1]; inside + 8 bytes of double[2]
# named: pairs + 12 bytes; pairs + 12 bytes

import ctypes

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
struct Pair { int first, second; };
template <class T> __global__ void kernel(T *typed, const int n, T *outer, double *inside, Pair *pairs) {
  typed[n] = blockIdx.x;
  inside[1] = blockIdx.x;
  pairs[1].second = blockIdx.x;
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, "c++", ProgramOptions(arch="sm_80", name="folder/names.cu"))
kernel = program.compile("cubin", name_expressions=("kernel<int>",)).get_kernel("kernel<int>")
typed, doubles, pairs = (device.allocate(n, stream=stream) for n in (32, 48, 64))
inside = int(doubles.handle) + 32
launch(stream, LaunchConfig(grid=2, block=1), kernel, typed, ctypes.c_int(3), doubles, inside, pairs)
stream.sync()
