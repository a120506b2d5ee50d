// One thread of a block waits for the kernel before; the others clear what that kernel may still read, as no barrier follows.
// -arch=compute_90
#include <cstdio>

const int N = 64;

__global__ void sum(const int *data, int *out) {
  int t = threadIdx.x;
  cudaTriggerProgrammaticLaunchCompletion();
  out[t] = data[t] + data[(t + 1) % N]; // want error:inter-kernel
}

__global__ void clear(int *data) {
  if (threadIdx.x == 0) cudaGridDependencySynchronize();
  data[threadIdx.x] = 0;                // want error:inter-kernel
}

int main() {
  int *data, *out;
  cudaMallocManaged(&data, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  for (int i = 0; i < N; i++) data[i] = 1;
  sum<<<1, N>>>(data, out);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = N;
  config.attrs = attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, clear, data);
  cudaDeviceSynchronize();
  printf("out[1] = %d\n", out[1]);
}
