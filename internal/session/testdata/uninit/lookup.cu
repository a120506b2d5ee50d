// Where nothing is found, the index has no value.
__device__ bool find(const int *a, int n, int key, int *at) {
  for (int i = 0; i < n; i++)
    if (a[i] == key) {
      *at = i;
      return true;
    }
  return false;
}

__global__ void lookup(int *out, const int *in, int n) {
  int at;
  find(in, n, 99, &at);
  out[at & 255] = 1; // want error:uninitialised-read
}
