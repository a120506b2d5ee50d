// Stream memory operations: conditions, sizes, refusals, and a wait whose value comes later.
// flags: -lcuda
// stdout: ok
// unsupported: what comes behind cuStreamWaitValue32 (stream 2), which waits for a value that nothing has written yet
#include <cstdio>
#include <cstdlib>
#include <cuda.h>

#define WANT(call, code) do { int e = (call); if (e != (code)) printf("line %d: %s gives %d\n", __LINE__, #call, e), exit(9); } while (0)
#define OK(call) WANT(call, 0)
#define TRUE(x) do { if (!(x)) printf("line %d: %s\n", __LINE__, #x), exit(9); } while (0)

int main() {
  unsigned *flag, *managed;
  int has;
  CUstream s, t;
  CUdeviceptr d;
  OK(cudaMallocHost(&flag, 16));
  OK(cudaMallocManaged(&managed, 16));
  OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
  TRUE(has == 1);
  OK(cuMemAlloc(&d, 16));
  OK(cuMemsetD8(d, 0, 16));
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
  CUdeviceptr f = (CUdeviceptr)flag;
  OK(cuStreamWriteValue32(s, f, 5, 0));
  TRUE(flag[0] == 5);
  OK(cuStreamWriteValue64(s, d + 8, 1ull << 40, 0));
  OK(cuStreamWaitValue64(s, d + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamWaitValue64(s, d + 8, 3ull << 40, CU_STREAM_WAIT_VALUE_AND));
  OK(cuStreamWaitValue32(s, f, 4, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuStreamWaitValue32(s, f, 0, CU_STREAM_WAIT_VALUE_NOR));
  OK(cuStreamSynchronize(s));
  WANT(cuStreamWriteValue32(s, f + 2, 5, 0), 1);
  WANT(cuStreamWriteValue32(s, (CUdeviceptr)managed, 5, 0), 1);
  WANT(cuStreamWriteValue32(s, 64, 5, 0), 1);
  WANT(cuStreamWaitValue32(s, f, 5, 7), 1);
  CUstreamBatchMemOpParams list[2] = {};
  list[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  list[0].writeValue.address = d, list[0].writeValue.value = 7;
  list[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  list[1].waitValue.address = d, list[1].waitValue.value = 7, list[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  OK(cuStreamBatchMemOp(s, 2, list, 0));
  OK(cuStreamSynchronize(s));
  OK(cuStreamWaitValue32(t, f, 6, CU_STREAM_WAIT_VALUE_EQ)); // nobody has written it
  WANT(cuStreamSynchronize(t), 801);
  WANT(cuCtxSynchronize(), 801);
  OK(cuStreamSynchronize(s));
  OK(cuStreamWriteValue32(s, f, 6, 0));
  OK(cuStreamSynchronize(t));
  OK(cuStreamWaitValue32(t, f, 9, 0));
  flag[0] = 9; // by the host
  OK(cuStreamSynchronize(t));
  puts("ok");
}
