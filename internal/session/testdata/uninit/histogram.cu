// The counters are never cleared.
__global__ void histogram(int *out, const int *in, int n) {
  int count[8];
  for (int i = 0; i < n; i++)
    count[(in[i] + threadIdx.x) & 7]++;
  for (int i = 0; i < 8; i++)
    if (count[i] > 1) // want error:uninitialised-read
      out[threadIdx.x * 8 + i] = 1;
}
