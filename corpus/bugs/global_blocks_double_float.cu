// A double is stored whole, and its upper half is loaded as a float.
__global__ void k(double *x, float *out) {
  if (blockIdx.x == 0)
    *x = 1.0; // want error:unordered
  else
    *out = ((float *)x)[1]; // want error:unordered
}
