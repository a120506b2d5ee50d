// A kernel that is launched to begin early reads what the kernel before it writes and does not wait for that.
// -arch=compute_90
#include <cstdio>

const int N = 128, BLOCK = 64;

__global__ void produce(int *data) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  cudaTriggerProgrammaticLaunchCompletion();
  data[i] = i;          // want error:inter-kernel
}

__global__ void consume(const int *data, int *out) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  int v = data[i];      // want error:inter-kernel
  cudaGridDependencySynchronize();
  out[i] = v;
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
  printf("out[1] = %d\n", out[1]);
}
