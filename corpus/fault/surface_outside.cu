// The threads write every second element, and the last ones are outside the row of 8: a surface access outside traps.
#include <cstdio>

const int WIDTH = 8;

__global__ void paint(cudaSurfaceObject_t image) {
  surf1Dwrite(1.0f, image, threadIdx.x * 2 * sizeof(float)); // want error:out-of-bounds
}

int main() {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, WIDTH, 0, cudaArraySurfaceLoadStore);
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = array;
  cudaSurfaceObject_t image = 0;
  cudaCreateSurfaceObject(&image, &what);
  paint<<<1, WIDTH>>>(image);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
