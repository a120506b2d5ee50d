// cublas.c: replaces cuBLAS, whose kernels are machine code. It has cuBLAS's handles, vectors, and products of matrices
// in float, double, half and bfloat16. Matrices are stored by columns. The order of sums is the fastest one here;
// cuBLAS guarantees no order.
#include "compute.h"

enum { success = 0, notInitialised = 1, allocFailed = 3, invalidValue = 7, executionFailed = 13, notSupported = 15 };
enum { real32 = 0, real64 = 1, real16 = 2, brain16 = 14 };

struct handle {
  void *stream;
  int device_scalars, math, atomics;
};

EXPORT int cublasCreate_v2(struct handle **h) { return h && (*h = calloc(1, sizeof **h)) ? success : h ? allocFailed : invalidValue; }
EXPORT int cublasDestroy_v2(struct handle *h) {
  free(h);
  return h ? success : notInitialised;
}
EXPORT int cublasGetVersion_v2(struct handle *h, int *version) {
  (void)h;
  return version ? (*version = 130000, success) : invalidValue;
}
#define SETTING(name, field, type)                                                                                              \
  EXPORT int cublasSet##name(struct handle *h, type v) { return h ? (h->field = v, success) : notInitialised; }                \
  EXPORT int cublasGet##name(struct handle *h, type *v) { return h && v ? (*v = h->field, success) : invalidValue; }
SETTING(Stream_v2, stream, void *)
SETTING(PointerMode_v2, device_scalars, int)
SETTING(MathMode, math, int)
SETTING(AtomicsMode, atomics, int)
EXPORT int cublasSetWorkspace_v2(struct handle *h, void *p, size_t n) { return (void)p, (void)n, h ? success : notInitialised; }
static const struct { int status; const char *name, *text; } statuses[] = {
  {success, "CUBLAS_STATUS_SUCCESS", "success"},
  {notInitialised, "CUBLAS_STATUS_NOT_INITIALIZED", "there is no handle"},
  {allocFailed, "CUBLAS_STATUS_ALLOC_FAILED", "out of memory"},
  {invalidValue, "CUBLAS_STATUS_INVALID_VALUE", "an argument is not valid"},
  {executionFailed, "CUBLAS_STATUS_EXECUTION_FAILED", "the computation failed"},
  {notSupported, "CUBLAS_STATUS_NOT_SUPPORTED", "not supported"},
};
EXPORT const char *cublasGetStatusString(int status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (statuses[i].status == status) return statuses[i].text;
  return "unknown status";
}
EXPORT const char *cublasGetStatusName(int status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (statuses[i].status == status) return statuses[i].name;
  return "unknown status";
}

// run reports an operation and executes it. A result on the host is available when the call returns.
static int run(struct handle *h, const char *name, struct boxes *b, void (*compute)(void *, fp_locate), void *data, int awaited) {
  enum { apiNotSupported = 801 };
  int e = b->count ? fencepostCompute(name, h->stream, b->word, b->count, compute, data) : 0;
  if (!e && awaited && b->count) e = cuStreamSynchronize(h->stream);
  return e == apiNotSupported ? notSupported : e ? executionFailed : success;
}

// scalar records that a scalar on the device is read.
static void scalar(struct handle *h, struct boxes *b, const void *p, u64 size) {
  if (h->device_scalars) touches(b, 0, p, size, size, 1);
}

// A vector: element i is at p[first + i * step].
struct vector { const void *p; long n, step; };
#define FIRST(v) ((v).step < 0 ? (1 - (v).n) * (v).step : 0)

struct operation {
  struct handle *h;
  struct vector x, y;
  const void *alpha, *beta;
  void *result;
  int device, transA, transB, outer;
  long m, n, k;
  const void *a, *b;
  void *c;
  long lda, ldb, ldc, strideA, strideB, strideC, count;
  int typeA, typeB, typeC;
  void (*product)(const struct operation *, const void *, const void *, void *, double, double);
};

static void scalars(const struct operation *o, fp_locate at, int type, double *alpha, double *beta) {
  const void *s[2] = {o->alpha, o->beta};
  double *to[2] = {alpha, beta};
  for (int i = 0; i < 2; i++) {
    if (!to[i] || !s[i]) continue;
    const void *p = o->device ? at((u64)s[i]) : s[i];
    *to[i] = type == real64 ? *(const double *)p : *(const float *)p;
  }
}

#define VECTORS(T, L, type)                                                                                                     \
  static void L##axpy(void *data, fp_locate at) {                                                                              \
    struct operation *o = data;                                                                                                \
    double alpha = 0;                                                                                                          \
    scalars(o, at, type, &alpha, NULL);                                                                                        \
    const T *x = (const T *)at((u64)o->x.p) + FIRST(o->x);                                                                     \
    T *y = (T *)at((u64)o->y.p) + FIRST(o->y);                                                                                 \
    for (long i = 0; i < o->x.n; i++) y[i * o->y.step] += (T)alpha * x[i * o->x.step];                                         \
  }                                                                                                                            \
  EXPORT int cublas##L##axpy_v2(struct handle *h, int n, const T *alpha, const T *x, int incx, T *y, int incy) {               \
    if (!h || !alpha) return h ? invalidValue : notInitialised;                                                                \
    struct operation o = {.h = h, .x = {x, n, incx}, .y = {y, n, incy}, .alpha = alpha, .device = h->device_scalars};          \
    struct boxes b = {.count = 0};                                                                                             \
    touches_vector(&b, 0, x, sizeof(T), n, incx), touches_vector(&b, 0, y, sizeof(T), n, incy);                                \
    touches_vector(&b, 1, y, sizeof(T), n, incy);                                                                              \
    if (b.count) scalar(h, &b, alpha, sizeof(T));                                                                              \
    return run(h, __func__, &b, L##axpy, &o, 0);                                                                               \
  }                                                                                                                            \
  static void L##scal(void *data, fp_locate at) {                                                                              \
    struct operation *o = data;                                                                                                \
    double alpha = 0;                                                                                                          \
    scalars(o, at, type, &alpha, NULL);                                                                                        \
    T *x = (T *)at((u64)o->x.p);                                                                                               \
    for (long i = 0; i < o->x.n; i++) x[i * o->x.step] *= (T)alpha;                                                            \
  }                                                                                                                            \
  EXPORT int cublas##L##scal_v2(struct handle *h, int n, const T *alpha, T *x, int incx) {                                     \
    if (!h || !alpha || incx < 0) return h ? invalidValue : notInitialised;                                                    \
    struct operation o = {.h = h, .x = {x, n, incx}, .alpha = alpha, .device = h->device_scalars};                             \
    struct boxes b = {.count = 0};                                                                                             \
    touches_vector(&b, 0, x, sizeof(T), n, incx), touches_vector(&b, 1, x, sizeof(T), n, incx);                                \
    if (b.count) scalar(h, &b, alpha, sizeof(T));                                                                              \
    return run(h, __func__, &b, L##scal, &o, 0);                                                                               \
  }                                                                                                                            \
  static void L##copy(void *data, fp_locate at) {                                                                              \
    struct operation *o = data;                                                                                                \
    const T *x = (const T *)at((u64)o->x.p) + FIRST(o->x);                                                                     \
    T *y = (T *)at((u64)o->y.p) + FIRST(o->y);                                                                                 \
    for (long i = 0; i < o->x.n; i++) y[i * o->y.step] = x[i * o->x.step];                                                     \
  }                                                                                                                            \
  EXPORT int cublas##L##copy_v2(struct handle *h, int n, const T *x, int incx, T *y, int incy) {                               \
    if (!h) return notInitialised;                                                                                             \
    struct operation o = {.h = h, .x = {x, n, incx}, .y = {y, n, incy}};                                                       \
    struct boxes b = {.count = 0};                                                                                             \
    touches_vector(&b, 0, x, sizeof(T), n, incx), touches_vector(&b, 1, y, sizeof(T), n, incy);                                \
    return run(h, __func__, &b, L##copy, &o, 0);                                                                               \
  }                                                                                                                            \
  static void L##swap(void *data, fp_locate at) {                                                                              \
    struct operation *o = data;                                                                                                \
    T *x = (T *)at((u64)o->x.p) + FIRST(o->x), *y = (T *)at((u64)o->y.p) + FIRST(o->y);                                        \
    for (long i = 0; i < o->x.n; i++) {                                                                                        \
      T t = x[i * o->x.step];                                                                                                  \
      x[i * o->x.step] = y[i * o->y.step], y[i * o->y.step] = t;                                                               \
    }                                                                                                                          \
  }                                                                                                                            \
  EXPORT int cublas##L##swap_v2(struct handle *h, int n, T *x, int incx, T *y, int incy) {                                     \
    if (!h) return notInitialised;                                                                                             \
    struct operation o = {.h = h, .x = {x, n, incx}, .y = {y, n, incy}};                                                       \
    struct boxes b = {.count = 0};                                                                                             \
    for (int write = 0; write < 2; write++)                                                                                    \
      touches_vector(&b, write, x, sizeof(T), n, incx), touches_vector(&b, write, y, sizeof(T), n, incy);                      \
    return run(h, __func__, &b, L##swap, &o, 0);                                                                               \
  }                                                                                                                            \
  static void L##dot(void *data, fp_locate at) {                                                                               \
    struct operation *o = data;                                                                                                \
    const T *x = (const T *)at((u64)o->x.p) + FIRST(o->x), *y = (const T *)at((u64)o->y.p) + FIRST(o->y);                      \
    double sum = 0;                                                                                                            \
    for (long i = 0; i < o->x.n; i++) sum += (double)x[i * o->x.step] * y[i * o->y.step];                                      \
    *(T *)(o->device ? at((u64)o->result) : o->result) = (T)sum;                                                               \
  }                                                                                                                            \
  EXPORT int cublas##L##dot_v2(struct handle *h, int n, const T *x, int incx, const T *y, int incy, T *result) {               \
    if (!h || !result) return h ? invalidValue : notInitialised;                                                               \
    struct operation o = {.h = h, .x = {x, n, incx}, .y = {y, n, incy}, .result = result, .device = h->device_scalars};        \
    struct boxes b = {.count = 0};                                                                                             \
    touches_vector(&b, 0, x, sizeof(T), n, incx), touches_vector(&b, 0, y, sizeof(T), n, incy);                                \
    if (o.device) touches(&b, 1, result, sizeof(T), sizeof(T), 1);                                                             \
    if (!o.device && n <= 0) *result = 0;                                                                                      \
    return run(h, __func__, &b, L##dot, &o, !o.device);                                                                        \
  }                                                                                                                            \
  static void L##norm(void *data, fp_locate at) {                                                                              \
    struct operation *o = data;                                                                                                \
    const T *x = (const T *)at((u64)o->x.p);                                                                                   \
    double sum = 0;                                                                                                            \
    for (long i = 0; i < o->x.n; i++) {                                                                                        \
      double v = x[i * o->x.step];                                                                                             \
      sum += o->outer ? fabs(v) : v * v;                                                                                       \
    }                                                                                                                          \
    *(T *)(o->device ? at((u64)o->result) : o->result) = (T)(o->outer ? sum : sqrt(sum));                                      \
  }                                                                                                                            \
  static int L##norm_call(struct handle *h, const char *name, int n, const T *x, int incx, T *result, int absolute) {          \
    if (!h || !result) return h ? invalidValue : notInitialised;                                                               \
    struct operation o = {.h = h, .x = {x, incx > 0 ? n : 0, incx}, .result = result, .device = h->device_scalars, .outer = absolute}; \
    struct boxes b = {.count = 0};                                                                                             \
    touches_vector(&b, 0, x, sizeof(T), o.x.n, incx);                                                                          \
    if (o.device) touches(&b, 1, result, sizeof(T), sizeof(T), 1);                                                             \
    if (!o.device && o.x.n <= 0) *result = 0;                                                                                  \
    return run(h, name, &b, L##norm, &o, !o.device);                                                                           \
  }                                                                                                                            \
  EXPORT int cublas##L##nrm2_v2(struct handle *h, int n, const T *x, int incx, T *result) { return L##norm_call(h, __func__, n, x, incx, result, 0); } \
  EXPORT int cublas##L##asum_v2(struct handle *h, int n, const T *x, int incx, T *result) { return L##norm_call(h, __func__, n, x, incx, result, 1); } \
  static void L##extreme(void *data, fp_locate at) {                                                                           \
    struct operation *o = data;                                                                                                \
    const T *x = (const T *)at((u64)o->x.p);                                                                                   \
    long best = 0;                                                                                                             \
    for (long i = 1; i < o->x.n; i++) {                                                                                        \
      double v = fabs((double)x[i * o->x.step]), w = fabs((double)x[best * o->x.step]);                                        \
      if (o->outer ? v < w : v > w) best = i;                                                                                  \
    }                                                                                                                          \
    *(int *)(o->device ? at((u64)o->result) : o->result) = (int)best + 1;                                                      \
  }                                                                                                                            \
  static int L##extreme_call(struct handle *h, const char *name, int n, const T *x, int incx, int *result, int least) {        \
    if (!h || !result) return h ? invalidValue : notInitialised;                                                               \
    struct operation o = {.h = h, .x = {x, incx > 0 ? n : 0, incx}, .result = result, .device = h->device_scalars, .outer = least}; \
    struct boxes b = {.count = 0};                                                                                             \
    touches_vector(&b, 0, x, sizeof(T), o.x.n, incx);                                                                          \
    if (!o.device) *result = 0;                                                                                                \
    if (o.device && b.count) touches(&b, 1, result, sizeof(int), sizeof(int), 1);                                              \
    return run(h, name, &b, L##extreme, &o, !o.device);                                                                        \
  }
VECTORS(float, S, real32)
VECTORS(double, D, real64)
EXPORT int cublasIsamax_v2(struct handle *h, int n, const float *x, int incx, int *r) { return Sextreme_call(h, __func__, n, x, incx, r, 0); }
EXPORT int cublasIsamin_v2(struct handle *h, int n, const float *x, int incx, int *r) { return Sextreme_call(h, __func__, n, x, incx, r, 1); }
EXPORT int cublasIdamax_v2(struct handle *h, int n, const double *x, int incx, int *r) { return Dextreme_call(h, __func__, n, x, incx, r, 0); }
EXPORT int cublasIdamin_v2(struct handle *h, int n, const double *x, int incx, int *r) { return Dextreme_call(h, __func__, n, x, incx, r, 1); }

#define MATRICES(T, L, type)                                                                                                    \
  /* One product: c = alpha op(a) op(b) + beta c. It computes c column by column, so that accesses are to adjacent memory. */   \
  static void L##product(const struct operation *o, const void *pa, const void *pb, void *pc, double alpha, double beta) {     \
    const T *a = pa, *b = pb;                                                                                                  \
    T *c = pc, *column = malloc(sizeof(T) * (size_t)(o->k ? o->k : 1));                                                        \
    for (long j = 0; column && j < o->n; j++) {                                                                                \
      T *to = c + j * o->ldc;                                                                                                  \
      for (long i = 0; i < o->m; i++) to[i] = beta == 0 ? 0 : (T)beta * to[i];                                                 \
      for (long l = 0; l < o->k; l++) column[l] = (T)alpha * (o->transB ? b[j + l * o->ldb] : b[l + j * o->ldb]);              \
      if (alpha == 0) continue;                                                                                                \
      for (long l = 0; !o->transA && l < o->k; l++) {                                                                          \
        const T *from = a + l * o->lda, by = column[l];                                                                        \
        for (long i = 0; i < o->m; i++) to[i] += from[i] * by;                                                                 \
      }                                                                                                                        \
      for (long i = 0; o->transA && i < o->m; i++) {                                                                           \
        const T *from = a + i * o->lda;                                                                                        \
        T sum = 0;                                                                                                             \
        for (long l = 0; l < o->k; l++) sum += from[l] * column[l];                                                            \
        to[i] += sum;                                                                                                          \
      }                                                                                                                        \
    }                                                                                                                          \
    free(column);                                                                                                              \
  }
MATRICES(float, S, real32)
MATRICES(double, D, real64)

static u64 size_of(int type) { return type == real64 ? 8 : type == real32 ? 4 : 2; }

static float from_half(uint16_t v) {
  _Float16 h;
  memcpy(&h, &v, 2);
  return (float)h;
}

static float narrow_to_float(int type, uint16_t v) {
  if (type == real16) return from_half(v);
  u32 bits = (u32)v << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

static uint16_t float_to_narrow(int type, float f) {
  uint16_t v;
  if (type == real16) {
    _Float16 h = (_Float16)f;
    memcpy(&v, &h, 2);
    return v;
  }
  u32 bits;
  memcpy(&bits, &f, 4);
  if (f != f) return 0x7fff;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// widened returns a matrix as floats without gaps between columns.
static float *widened(const void *p, int type, long rows, long columns, long ld) {
  float *to = malloc(sizeof *to * (size_t)(rows * columns + 1));
  for (long j = 0; to && j < columns; j++)
    for (long i = 0; i < rows; i++)
      to[j * rows + i] = type == real32 ? ((const float *)p)[j * ld + i] : narrow_to_float(type, ((const uint16_t *)p)[j * ld + i]);
  return to;
}

// mixed computes a product of narrow types, with sums in float.
static void mixed(const struct operation *o, const void *a, const void *b, void *c, double alpha, double beta) {
  struct operation w = *o;
  long rowsA = o->transA ? o->k : o->m, rowsB = o->transB ? o->n : o->k;
  float *wa = widened(a, o->typeA, rowsA, o->transA ? o->m : o->k, o->lda), *wb = widened(b, o->typeB, rowsB, o->transB ? o->k : o->n, o->ldb);
  float *wc = widened(c, o->typeC, o->m, o->n, o->ldc);
  w.lda = rowsA, w.ldb = rowsB, w.ldc = o->m;
  if (wa && wb && wc) {
    Sproduct(&w, wa, wb, wc, alpha, beta);
    for (long j = 0; j < o->n; j++)
      for (long i = 0; i < o->m; i++) {
        if (o->typeC == real32) ((float *)c)[j * o->ldc + i] = wc[j * o->m + i];
        else ((uint16_t *)c)[j * o->ldc + i] = float_to_narrow(o->typeC, wc[j * o->m + i]);
      }
  }
  free(wa), free(wb), free(wc);
}

static void products(void *data, fp_locate at) {
  struct operation *o = data;
  double alpha = 0, beta = 0;
  scalars(o, at, o->typeC == real64 ? real64 : real32, &alpha, &beta);
  const char *a = at((u64)o->a), *b = at((u64)o->b);
  char *c = at((u64)o->c);
  for (long i = 0; i < o->count; i++)
    o->product(o, a + (u64)(i * o->strideA) * size_of(o->typeA), b + (u64)(i * o->strideB) * size_of(o->typeB), c + (u64)(i * o->strideC) * size_of(o->typeC), alpha, beta);
}

// overlaps reports whether matrices of a batch overlap each other's columns.
static int overlaps(const struct operation *o, long rows, long columns, long ld, long stride) {
  return o->count > 1 && stride && (stride < 0 || stride < (columns - 1) * ld + rows);
}

// gemm checks and computes products of matrices at strides.
static int gemm(struct operation *o, const char *name) {
  struct handle *h = o->h;
  struct boxes b = {.count = 0};
  long rowsA = o->transA ? o->k : o->m, rowsB = o->transB ? o->n : o->k;
  if (!h) return notInitialised;
  if (o->m < 0 || o->n < 0 || o->k < 0 || o->count < 0 || o->lda < rowsA || o->lda < 1 || o->ldb < rowsB || o->ldb < 1 || o->ldc < o->m || o->ldc < 1 || !o->alpha || !o->beta)
    return invalidValue;
  if (!o->m || !o->n || !o->count) return success;
  if (overlaps(o, rowsA, o->transA ? o->m : o->k, o->lda, o->strideA) || overlaps(o, rowsB, o->transB ? o->k : o->n, o->ldb, o->strideB) ||
      overlaps(o, o->m, o->n, o->ldc, o->strideC)) {
    int e = success;
    for (long i = 0; !e && i < o->count; i++) {
      struct operation one = *o;
      one.count = 1;
      one.a = (const char *)o->a + i * o->strideA * (long)size_of(o->typeA), one.b = (const char *)o->b + i * o->strideB * (long)size_of(o->typeB);
      one.c = (char *)o->c + i * o->strideC * (long)size_of(o->typeC);
      e = gemm(&one, name);
    }
    return e;
  }
  o->device = h->device_scalars;
  int keeps = h->device_scalars || (o->typeC == real64 ? *(const double *)o->beta != 0 : *(const float *)o->beta != 0);
  const struct { const void *p; long rows, columns, ld, stride; int type, write, used; } m[4] = {
    {o->a, rowsA, o->transA ? o->m : o->k, o->lda, o->strideA, o->typeA, 0, o->k > 0}, {o->b, rowsB, o->transB ? o->k : o->n, o->ldb, o->strideB, o->typeB, 0, o->k > 0},
    {o->c, o->m, o->n, o->ldc, o->strideC, o->typeC, 0, keeps}, {o->c, o->m, o->n, o->ldc, o->strideC, o->typeC, 1, 1}};
  for (int i = 0; i < 4; i++) {
    u64 size = size_of(m[i].type), slices = m[i].stride ? (u64)o->count : 1;
    if (!m[i].used) continue;
    touches(&b, m[i].write, m[i].p, (u64)m[i].rows * size, (u64)m[i].ld * size, (u64)m[i].columns);
    b.word[7 * (b.count - 1) + 3] = (u64)m[i].stride * size, b.word[7 * (b.count - 1) + 6] = slices;
  }
  u64 scalarSize = o->typeC == real64 ? 8 : 4;
  scalar(h, &b, o->alpha, scalarSize), scalar(h, &b, o->beta, scalarSize);
  return run(h, name, &b, products, o, 0);
}

#define GEMM(T, L, type)                                                                                                        \
  EXPORT int cublas##L##gemmStridedBatched(struct handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, long long sa, \
                                           const T *b, int ldb, long long sb, const T *beta, T *c, int ldc, long long sc, int count) { \
    struct operation o = {.h = h, .transA = ta != 0, .transB = tb != 0, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .a = a, .b = b, .c = c, \
      .lda = lda, .ldb = ldb, .ldc = ldc, .strideA = sa, .strideB = sb, .strideC = sc, .count = count, .typeA = type, .typeB = type, .typeC = type, .product = L##product}; \
    return gemm(&o, __func__);                                                                                                 \
  }                                                                                                                            \
  EXPORT int cublas##L##gemm_v2(struct handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) { \
    return cublas##L##gemmStridedBatched(h, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);                 \
  }                                                                                                                            \
  EXPORT int cublas##L##gemmBatched(struct handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *const *a, int lda, const T *const *b, int ldb, \
                                    const T *beta, T *const *c, int ldc, int count) {                                          \
    const T **list = malloc(3 * sizeof *list * (size_t)(count > 0 ? count : 1));                                               \
    int e = h ? list ? success : allocFailed : notInitialised;                                                                 \
    if (!e && count > 0) e = pointers(h, (const void *const *[]){(const void *const *)a, (const void *const *)b, (const void *const *)c}, (const void **)list, count); \
    for (int i = 0; !e && i < count; i++)                                                                                      \
      e = cublas##L##gemm_v2(h, ta, tb, m, n, k, alpha, list[i], lda, list[count + i], ldb, beta, (T *)list[2 * count + i], ldc); \
    free(list);                                                                                                                \
    return e;                                                                                                                  \
  }                                                                                                                            \
  EXPORT int cublas##L##gemv_v2(struct handle *h, int t, int m, int n, const T *alpha, const T *a, int lda, const T *x, int incx, const T *beta, T *y, int incy) { \
    if (incx < 1 || incy < 1) return incx && incy ? notSupported : invalidValue;                                               \
    /* A vector is a matrix of one row, with a distance of incx between its columns. */                                        \
    struct operation o = {.h = h, .transA = 0, .transB = t == 0, .m = 1, .n = t ? n : m, .k = t ? m : n, .alpha = alpha, .beta = beta, .a = x, .b = a, .c = y, \
      .lda = incx, .ldb = lda, .ldc = incy, .count = 1, .typeA = type, .typeB = type, .typeC = type, .product = L##product};   \
    return gemm(&o, __func__);                                                                                                 \
  }                                                                                                                            \
  EXPORT int cublas##L##ger_v2(struct handle *h, int m, int n, const T *alpha, const T *x, int incx, const T *y, int incy, T *a, int lda) { \
    static const T one = 1;                                                                                                    \
    if (incx < 1 || incy < 1 || (h && h->device_scalars)) return notSupported;                                                 \
    struct operation o = {.h = h, .transA = 1, .transB = 0, .m = m, .n = n, .k = 1, .alpha = alpha, .beta = &one, .a = x, .b = y, .c = a, \
      .lda = incx, .ldb = incy, .ldc = lda, .count = 1, .typeA = type, .typeB = type, .typeC = type, .product = L##product};   \
    return gemm(&o, __func__);                                                                                                 \
  }

// lists are lists of count pointers in device memory.
struct lists { const void *const *const *from; const void **to; int count; };

static void read_lists(void *data, fp_locate at) {
  struct lists *l = data;
  for (int i = 0; i < 3; i++) memcpy(l->to + (size_t)i * l->count, at((u64)l->from[i]), sizeof(void *) * (size_t)l->count);
}

static int pointers(struct handle *h, const void *const *const *from, const void **to, int count) {
  struct lists l = {from, to, count};
  struct boxes b = {.count = 0};
  for (int i = 0; i < 3; i++) touches_vector(&b, 0, from[i], sizeof(void *), count, 1);
  return run(h, "the lists of a batch of matrices", &b, read_lists, &l, 0);
}

GEMM(float, S, real32)
GEMM(double, D, real64)

static int known(int type) { return type == real32 || type == real64 || type == real16 || type == brain16; }

EXPORT int cublasGemmStridedBatchedEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int typeA, int lda, long long sa,
                                      const void *b, int typeB, int ldb, long long sb, const void *beta, void *c, int typeC, int ldc, long long sc, int count, int compute, int algorithm) {
  enum { half = 64, halfPedantic = 65 };
  (void)algorithm;
  struct operation o = {.h = h, .transA = ta != 0, .transB = tb != 0, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .a = a, .b = b, .c = c,
    .lda = lda, .ldb = ldb, .ldc = ldc, .strideA = sa, .strideB = sb, .strideC = sc, .count = count, .typeA = typeA, .typeB = typeB, .typeC = typeC, .product = mixed};
  int doubles = (typeA == real64) + (typeB == real64) + (typeC == real64);
  if (!known(typeA) || !known(typeB) || !known(typeC) || (doubles && doubles < 3)) return notSupported;
  if (compute == half || compute == halfPedantic) return notSupported; // scalars and sums are halves
  if (doubles) o.product = Dproduct;
  if (typeA == real32 && typeB == real32 && typeC == real32) o.product = Sproduct;
  return gemm(&o, __func__);
}

EXPORT int cublasGemmEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int typeA, int lda, const void *b, int typeB, int ldb,
                        const void *beta, void *c, int typeC, int ldc, int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, typeA, lda, 0, b, typeB, ldb, 0, beta, c, typeC, ldc, 0, 1, compute, algorithm);
}

// Copies of vectors and matrices between host and device.
extern int cuMemcpy2D_v2(const void *), cuMemcpy2DAsync_v2(const void *, void *);

static int copy_columns(int rows, int columns, int size, const void *from, int lda, void *to, int ldb, void *stream, int async) {
  enum { unified = 4 };
  const struct { size_t x, y; u32 type, pad; const void *host; u64 device; void *array; size_t pitch; size_t tx, ty; u32 ttype, tpad; void *thost; u64 tdevice; void *tarray; size_t tpitch, width, height; } c = {
    .type = unified, .device = (u64)from, .pitch = (size_t)lda * (size_t)size, .ttype = unified, .tdevice = (u64)to, .tpitch = (size_t)ldb * (size_t)size,
    .width = (size_t)rows * (size_t)size, .height = (size_t)columns};
  if (rows < 0 || columns < 0 || size <= 0 || lda < rows || ldb < rows) return invalidValue;
  if (!rows || !columns) return success;
  return (async ? cuMemcpy2DAsync_v2(&c, stream) : cuMemcpy2D_v2(&c)) ? 11 : success;
}

EXPORT int cublasSetMatrix(int m, int n, int size, const void *a, int lda, void *b, int ldb) { return copy_columns(m, n, size, a, lda, b, ldb, NULL, 0); }
EXPORT int cublasGetMatrix(int m, int n, int size, const void *a, int lda, void *b, int ldb) { return copy_columns(m, n, size, a, lda, b, ldb, NULL, 0); }
EXPORT int cublasSetMatrixAsync(int m, int n, int size, const void *a, int lda, void *b, int ldb, void *s) { return copy_columns(m, n, size, a, lda, b, ldb, s, 1); }
EXPORT int cublasGetMatrixAsync(int m, int n, int size, const void *a, int lda, void *b, int ldb, void *s) { return copy_columns(m, n, size, a, lda, b, ldb, s, 1); }
EXPORT int cublasSetVector(int n, int size, const void *x, int incx, void *y, int incy) { return copy_columns(1, n, size, x, incx, y, incy, NULL, 0); }
EXPORT int cublasGetVector(int n, int size, const void *x, int incx, void *y, int incy) { return copy_columns(1, n, size, x, incx, y, incy, NULL, 0); }
