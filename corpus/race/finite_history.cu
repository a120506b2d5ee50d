// After listing 3 of the HiRace paper: each thread reads its word and the next one, and then writes that. Where only the last
// reader of a word is kept, that is the writer itself, and its owner's read is forgotten. The counter sees to it that owners
// have read before, whoever runs first; it orders nothing.
#include <cstdio>

const int N = 8;

__global__ void next_sum(int *data, int *count) {
  int t = blockIdx.x;
  int sum = data[t]; // want error:missing-fence
  atomicAdd(count, 1);
  while (atomicAdd(count, 0) < N) {}
  if (t < N - 1) {
    sum += data[t + 1];
    data[t + 1] = sum; // want error:missing-fence
  }
}

int main() {
  int *data, *count;
  cudaMallocManaged(&data, N * sizeof(int));
  cudaMallocManaged(&count, sizeof(int));
  for (int i = 0; i < N; i++) data[i] = i;
  *count = 0;
  next_sum<<<N, 1>>>(data, count);
  cudaDeviceSynchronize();
  printf("data[1] = %d\n", data[1]);
}
