// Each lane stores a word, and loads a vector of which three words are other lanes', behind __syncwarp().
__global__ void k(int *out) {
  __shared__ int4 s[8];
  int t = threadIdx.x;
  ((int *)s)[t] = t;
  __syncwarp();
  int4 v = s[t / 4];
  out[t] = v.x + v.y + v.z + v.w;
}
