# expect: exit 0
"""A CUDA C++ kernel, compiled by NVRTC through cuda.core, with a barrier between its accesses of shared memory."""

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
extern "C" __global__ void reverse(int *data) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  tile[t] = data[t];
  __syncthreads();
  data[t] = tile[63 - t];
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, "c++", ProgramOptions(arch="sm_80", name="reverse.cu"))
kernel = program.compile("cubin").get_kernel("reverse")
data = device.allocate(64 * 4, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, data)
stream.sync()
