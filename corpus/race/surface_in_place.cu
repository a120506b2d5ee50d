// Each thread writes its element of an image through a surface and reads it back: surface reads are not coherent with writes of the
// same kernel, not even with those of the same thread.
#include <cstdio>

const int WIDTH = 64, HEIGHT = 4;

__global__ void twice(cudaSurfaceObject_t image) {
  int x = threadIdx.x, y = blockIdx.x;
  surf2Dwrite(1.0f, image, x * sizeof(float), y); // want error:read-only-load
  float v;
  surf2Dread(&v, image, x * sizeof(float), y); // want error:read-only-load
  surf2Dwrite(v + 1.0f, image, x * sizeof(float), y);
}

int main() {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  static float host[HEIGHT * WIDTH];
  cudaArray_t array;
  cudaMallocArray(&array, &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore);
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = array;
  cudaSurfaceObject_t image = 0;
  cudaCreateSurfaceObject(&image, &what);
  twice<<<HEIGHT, WIDTH>>>(image);
  cudaMemcpy2DFromArray(host, WIDTH * sizeof(float), array, 0, 0, WIDTH * sizeof(float), HEIGHT, cudaMemcpyDeviceToHost);
  printf("first: %g\n", host[0]);
  return host[0] != 2;
}
