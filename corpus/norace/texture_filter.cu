// Linear filtering of a texture with clamped coordinates: the mean of neighbours, the edge of the image outside it.
#include <cstdio>

const int WIDTH = 32, HEIGHT = 16;

__global__ void halfway(cudaTextureObject_t image, float *out) {
  int x = threadIdx.x, y = blockIdx.x;
  out[y * WIDTH + x] = tex2D<float>(image, x + 1.0f, y + 0.5f); // between elements x and x + 1
}

int main() {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  static float host[HEIGHT * WIDTH];
  for (int i = 0; i < HEIGHT * WIDTH; i++) host[i] = i;
  cudaArray_t array;
  cudaMallocArray(&array, &format, WIDTH, HEIGHT);
  cudaMemcpy2DToArray(array, 0, 0, host, WIDTH * sizeof(float), WIDTH * sizeof(float), HEIGHT, cudaMemcpyHostToDevice);
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t image = 0;
  cudaCreateTextureObject(&image, &what, &how, nullptr);
  float *out;
  cudaMalloc(&out, sizeof(host));
  halfway<<<HEIGHT, WIDTH>>>(image, out);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%g %g\n", host[0], host[WIDTH - 1]);
  return host[0] != 0.5f || host[WIDTH - 1] != WIDTH - 1;
}
