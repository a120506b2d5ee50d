// A kernel that is launched to begin early waits for the kernel before it, and reads then what that has written.
// -arch=compute_90
#include <cstdio>

const int N = 128, BLOCK = 64;

__global__ void produce(int *data) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  cudaTriggerProgrammaticLaunchCompletion();
  data[i] = i;
}

__global__ void consume(const int *data, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  cudaGridDependencySynchronize();
  out[i] = data[i];
}

int main() {
  int *data, *out;
  cudaMallocManaged(&data, N * sizeof(int));
  cudaMallocManaged(&out, N * sizeof(int));
  produce<<<N / BLOCK, BLOCK>>>(data);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = N / BLOCK;
  config.blockDim = BLOCK;
  config.attrs = attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, consume, (const int *)data, out);
  cudaDeviceSynchronize();
  for (int i = 0; i < N; i++)
    if (out[i] != i) return 1;
  printf("out[1] = %d\n", out[1]);
}
