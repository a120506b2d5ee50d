// Each thread reads its element of an image through a surface, and writes it: what it reads was written before the launch.
#include <cstdio>

const int WIDTH = 64, HEIGHT = 4;

__global__ void invert(cudaSurfaceObject_t image) {
  int x = threadIdx.x, y = blockIdx.x;
  float v;
  surf2Dread(&v, image, x * sizeof(float), y);
  surf2Dwrite(1.0f - v, image, x * sizeof(float), y);
}

int main() {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  static float host[HEIGHT * WIDTH];
  cudaArray_t array;
  cudaMallocArray(&array, &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(array, 0, 0, host, WIDTH * sizeof(float), WIDTH * sizeof(float), HEIGHT, cudaMemcpyHostToDevice);
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = array;
  cudaSurfaceObject_t image = 0;
  cudaCreateSurfaceObject(&image, &what);
  invert<<<HEIGHT, WIDTH>>>(image);
  cudaMemcpy2DFromArray(host, WIDTH * sizeof(float), array, 0, 0, WIDTH * sizeof(float), HEIGHT, cudaMemcpyDeviceToHost);
  printf("first: %g\n", host[0]);
  return host[0] != 1;
}
