// A reader takes its announcement back without a fence, and the node is overwritten.
__global__ void k(int *node, int *hazard, int *out) {
  if (blockIdx.x == 0) {
    atomicExch(hazard, 0);
    __threadfence();
    *out = node[0]; // want error:missing-fence
    atomicExch(hazard, 1);
  } else {
    while (atomicAdd(hazard, 0) != 1) {}
    __threadfence();
    node[0] = 9; // want error:missing-fence
  }
}
