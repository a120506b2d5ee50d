// The sum begins with whatever the register holds.
__global__ void sum(int *out, const int *in, int n) {
  int s;
  for (int i = 0; i < n; i++)
    s += in[i];
  out[threadIdx.x] = s; // want error:uninitialised-read
}
