// Two zeros that are equal as numbers and not as bits.
__global__ void k(float *x) {
  *x = blockIdx.x ? 0.0f : -0.0f; // want error:unordered
}
