// Locks for two buckets each; one place takes that of the bucket's neighbour.
__global__ void k(int *x, int *lock) {
  if (threadIdx.x != 0) return;
  int bucket = blockIdx.x % 2, wrong = blockIdx.x == 3;
  while (atomicCAS(lock + (bucket + wrong) % 2, 0, 1) != 0) {}
  __threadfence();
  x[bucket] += 1; // want error:missing-lock
  __threadfence();
  atomicExch(lock + (bucket + wrong) % 2, 0);
}
