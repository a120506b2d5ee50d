// Each block writes a row of an image through a surface.
#include <cstdio>

const int WIDTH = 64, HEIGHT = 4;

__global__ void paint(cudaSurfaceObject_t image) {
  int x = threadIdx.x, y = blockIdx.x;
  surf2Dwrite<int>(blockIdx.x + 1, image, x * sizeof(int), y);
}

int main() {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore);
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = array;
  cudaSurfaceObject_t image = 0;
  cudaCreateSurfaceObject(&image, &what);
  paint<<<HEIGHT, WIDTH>>>(image);
  static int host[HEIGHT * WIDTH];
  cudaMemcpy2DFromArray(host, WIDTH * sizeof(int), array, 0, 0, WIDTH * sizeof(int), HEIGHT, cudaMemcpyDeviceToHost);
  printf("last row: %d\n", host[(HEIGHT - 1) * WIDTH]);
  return host[(HEIGHT - 1) * WIDTH] != HEIGHT;
}
