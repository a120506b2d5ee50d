// A thread stores an element that it has not loaded.
__global__ void items(int *out, const int *in, int n) {
  int v[4];
  for (int i = 0; i < 4; i++)
    if (threadIdx.x * 4 + i < n * 9) v[i] = in[threadIdx.x * 4 + i];
  for (int i = 0; i < 4; i++)
    v[i] = v[i] * 3 + 1;
  for (int i = 0; i < 4; i++)
    out[threadIdx.x * 4 + i] = v[i]; // want error:uninitialised-read
}
