// A message by a volatile flag, with fences: the flag is no atomic, the message is in order.
__global__ void k(int *data, volatile int *flag, int *out) {
  if (blockIdx.x == 0) {
    *data = 42;
    __threadfence();
    *flag = 1; // want warning:volatile
  } else {
    while (*flag == 0) {} // want warning:volatile
    __threadfence();
    *out = *data;
  }
}
