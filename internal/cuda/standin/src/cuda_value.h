// cuda_value.h: stream memory operations of the driver API. Part of cuda.c.

enum { fpWaitValue32 = 1, fpWriteValue32, fpFlush, fpWaitValue64, fpWriteValue64, fpBarrier };

union memory_op {
  int operation;
  struct {
    int operation;
    u64 address, value;
    unsigned flags;
  } value;
  u64 pad[6];
};

static int stream_value(u64 stream, u64 address, u64 value, u64 what, unsigned flags) {
  struct fp_capture *capture;
  if (fp_capturing() && fp_branch_of(stream, &capture)) {
    capture->invalid = 1;
    return fp_unsupported("a stream memory operation in a stream that captures");
  }
  const u64 args[5] = {stream, address, value, what, what & FP_VALUE_WAIT ? flags : 0};
  return fp_request(FP_StreamValue, args, 5, NULL, 0);
}

static int stream_values(u64 stream, unsigned n, const union memory_op *list, unsigned flags) {
  int e = flags || !list || n > 256 ? fpInvalidValue : 0;
  for (unsigned i = 0; i < n && !e; i++) {
    const union memory_op *o = &list[i];
    switch (o->operation) {
      case fpWaitValue32: e = stream_value(stream, o->value.address, (u32)o->value.value, 4 | FP_VALUE_WAIT, o->value.flags); break;
      case fpWaitValue64: e = stream_value(stream, o->value.address, o->value.value, 8 | FP_VALUE_WAIT, o->value.flags); break;
      case fpWriteValue32: e = stream_value(stream, o->value.address, (u32)o->value.value, 4, 0); break;
      case fpWriteValue64: e = stream_value(stream, o->value.address, o->value.value, 8, 0); break;
      case fpBarrier: break; // every write is ordered after what precedes it
      default: e = fp_unsupported("a stream memory operation that is no write, wait or barrier (cuStreamBatchMemOp)");
    }
  }
  return e;
}

#define VALUE(what, bits, type, wait)                                                                                                                            \
  EXPORT int cuStream##what##Value##bits(void *s, u64 a, type v, unsigned f) { return finish(stream_value(stream_of(s, 0), a, v, bits / 8 | wait, f)); }         \
  EXPORT int cuStream##what##Value##bits##_ptsz(void *s, u64 a, type v, unsigned f) { return finish(stream_value(stream_of(s, 1), a, v, bits / 8 | wait, f)); }  \
  EXPORT int cuStream##what##Value##bits##_v2(void *s, u64 a, type v, unsigned f) { return finish(stream_value(stream_of(s, 0), a, v, bits / 8 | wait, f)); }    \
  EXPORT int cuStream##what##Value##bits##_v2_ptsz(void *s, u64 a, type v, unsigned f) { return finish(stream_value(stream_of(s, 1), a, v, bits / 8 | wait, f)); }
VALUE(Write, 32, u32, 0)
VALUE(Write, 64, u64, 0)
VALUE(Wait, 32, u32, FP_VALUE_WAIT)
VALUE(Wait, 64, u64, FP_VALUE_WAIT)

#define BATCH(version, per_thread)                                                                              \
  EXPORT int cuStreamBatchMemOp##version(void *s, unsigned n, const union memory_op *list, unsigned flags) {    \
    return finish(stream_values(stream_of(s, per_thread), n, list, flags));                                     \
  }
BATCH(, 0)
BATCH(_ptsz, 1)
BATCH(_v2, 0)
BATCH(_v2_ptsz, 1)
