// curand.c: replaces cuRAND's host API, whose kernels are machine code. All generators are Philox 4x32-10 (Salmon et
// al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011). The numbers are as random as cuRAND's and the same for
// the same seed, but they are not cuRAND's numbers.
#include "compute.h"

enum { success = 0, notInitialised = 101, allocFailed = 102, typeError = 103, outOfRange = 104, odd = 105, launchFailed = 201 };
enum { uniform, uniformDouble, normal, normalDouble, logNormal, logNormalDouble, bits32, bits64, poisson };

struct generator {
  void *stream;
  u64 seed, next; // next is the number of the next block of 4 numbers
  int host;
};

static void philox(u64 counter, u64 seed, u32 out[4]) {
  u32 c[4] = {(u32)counter, (u32)(counter >> 32), 0, 0}, k[2] = {(u32)seed, (u32)(seed >> 32)};
  for (int round = 0; round < 10; round++) {
    u64 a = (u64)0xD2511F53 * c[0], b = (u64)0xCD9E8D57 * c[2];
    const u32 n[4] = {(u32)(b >> 32) ^ c[1] ^ k[0], (u32)b, (u32)(a >> 32) ^ c[3] ^ k[1], (u32)a};
    memcpy(c, n, sizeof c);
    k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
  }
  memcpy(out, c, sizeof c);
}

struct work {
  struct generator *g;
  void *out;
  size_t n;
  int what;
  double mean, deviation;
};

// unit returns a number above 0 and at most 1.
static double unit(u32 high, u32 low) { return ((double)high * 4294967296.0 + low + 1) / 18446744073709551616.0; }

static double gauss(const u32 r[4], int second) {
  double radius = sqrt(-2 * log(unit(r[0], r[1]))), angle = 6.283185307179586 * unit(r[2], r[3]);
  return radius * (second ? sin(angle) : cos(angle));
}

static u32 poissonOf(double lambda, struct generator *g, u64 at) {
  enum { large = 64 };
  u32 r[4], count = 0;
  if (lambda > large) { // near enough a normal distribution
    philox(at, g->seed ^ 0x517cc1b727220a95u, r);
    double v = floor(lambda + sqrt(lambda) * gauss(r, 0) + 0.5);
    return v < 0 ? 0 : (u32)v;
  }
  for (double p = 1, end = exp(-lambda);; count++) {
    philox(at, g->seed + 1 + count, r);
    p *= unit(r[0], r[1]);
    if (p <= end) return count;
  }
}

static void generate(const struct work *w, char *out) {
  struct generator *g = w->g;
  u32 r[4];
  for (size_t i = 0; i < w->n; i++) {
    int pairs = w->what >= normal && w->what <= logNormalDouble;
    if (w->what != poisson && (pairs ? i % 2 == 0 : 1)) philox(g->next++, g->seed, r);
    double v = pairs ? w->mean + w->deviation * gauss(r, i % 2 == 1) : 0;
    switch (w->what) {
      case uniform: ((float *)out)[i] = (float)r[0] * 0x1p-32f + 0x1p-33f; break;
      case uniformDouble: ((double *)out)[i] = unit(r[0], r[1]); break;
      case normal: ((float *)out)[i] = (float)v; break;
      case normalDouble: ((double *)out)[i] = v; break;
      case logNormal: ((float *)out)[i] = (float)exp(v); break;
      case logNormalDouble: ((double *)out)[i] = exp(v); break;
      case bits32: ((u32 *)out)[i] = r[0]; break;
      case bits64: ((u64 *)out)[i] = (u64)r[1] << 32 | r[0]; break;
      case poisson: ((u32 *)out)[i] = poissonOf(w->mean, g, g->next++); break;
    }
  }
}

static void compute(void *data, fp_locate at) {
  const struct work *w = data;
  generate(w, at((u64)w->out));
}

static int call(struct generator *g, const char *name, void *out, size_t n, u64 size, int what, double mean, double deviation) {
  struct work w = {g, out, n, what, mean, deviation};
  struct boxes b = {.count = 0};
  if (!g) return notInitialised;
  if (what >= normal && what <= logNormalDouble && n % 2) return odd;
  if (!n) return success;
  if (g->host) return generate(&w, out), success;
  touches(&b, 1, out, n * size, n * size, 1);
  return fencepostCompute(name, g->stream, b.word, b.count, compute, &w) ? launchFailed : success;
}

static int create(struct generator **g, int type, int host) {
  enum { firstQuasi = 200, first = 100, last = 161 };
  if (!g || type < first || type > last) return typeError; // quasi-random sequences are not supported
  if (!(*g = calloc(1, sizeof **g))) return allocFailed;
  (*g)->host = host;
  return success;
}

EXPORT int curandCreateGenerator(struct generator **g, int type) { return create(g, type, 0); }
EXPORT int curandCreateGeneratorHost(struct generator **g, int type) { return create(g, type, 1); }
EXPORT int curandDestroyGenerator(struct generator *g) {
  free(g);
  return g ? success : notInitialised;
}
EXPORT int curandGetVersion(int *version) { return version ? (*version = 10400, success) : outOfRange; }
EXPORT int curandSetStream(struct generator *g, void *stream) { return g ? (g->stream = stream, success) : notInitialised; }
EXPORT int curandSetPseudoRandomGeneratorSeed(struct generator *g, unsigned long long seed) { return g ? (g->seed = seed, g->next = 0, success) : notInitialised; }
EXPORT int curandSetGeneratorOffset(struct generator *g, unsigned long long offset) { return g ? (g->next = offset, success) : notInitialised; }
EXPORT int curandSetGeneratorOrdering(struct generator *g, int order) { return (void)order, g ? success : notInitialised; }
EXPORT int curandGenerateSeeds(struct generator *g) { return g ? success : notInitialised; }
EXPORT int curandGenerate(struct generator *g, u32 *out, size_t n) { return call(g, __func__, out, n, 4, bits32, 0, 0); }
EXPORT int curandGenerateLongLong(struct generator *g, u64 *out, size_t n) { return call(g, __func__, out, n, 8, bits64, 0, 0); }
EXPORT int curandGenerateUniform(struct generator *g, float *out, size_t n) { return call(g, __func__, out, n, 4, uniform, 0, 0); }
EXPORT int curandGenerateUniformDouble(struct generator *g, double *out, size_t n) { return call(g, __func__, out, n, 8, uniformDouble, 0, 0); }
EXPORT int curandGenerateNormal(struct generator *g, float *out, size_t n, float m, float d) { return call(g, __func__, out, n, 4, normal, m, d); }
EXPORT int curandGenerateNormalDouble(struct generator *g, double *out, size_t n, double m, double d) { return call(g, __func__, out, n, 8, normalDouble, m, d); }
EXPORT int curandGenerateLogNormal(struct generator *g, float *out, size_t n, float m, float d) { return call(g, __func__, out, n, 4, logNormal, m, d); }
EXPORT int curandGenerateLogNormalDouble(struct generator *g, double *out, size_t n, double m, double d) { return call(g, __func__, out, n, 8, logNormalDouble, m, d); }
EXPORT int curandGeneratePoisson(struct generator *g, u32 *out, size_t n, double lambda) { return lambda > 0 ? call(g, __func__, out, n, 4, poisson, lambda, 0) : outOfRange; }
