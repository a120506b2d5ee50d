// Calls of cuBLAS and cuRAND. The first argument is the scenario; "right" is printed where the results are those of plain loops.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cudaMalloc(void **, size_t), cudaMemcpy(void *, const void *, size_t, int), cudaMallocManaged(void **, size_t, unsigned), cudaDeviceSynchronize(void);
int cudaStreamCreateWithFlags(void **, unsigned), cudaMemsetAsync(void *, int, size_t, void *), cudaStreamSynchronize(void *);
int cublasCreate_v2(void **), cublasSetStream_v2(void *, void *), cublasSetPointerMode_v2(void *, int), cublasSetMatrix(int, int, int, const void *, int, void *, int);
int cublasSaxpy_v2(void *, int, const float *, const float *, int, float *, int), cublasDdot_v2(void *, int, const double *, int, const double *, int, double *);
int cublasSnrm2_v2(void *, int, const float *, int, float *), cublasSscal_v2(void *, int, const float *, float *, int), cublasIsamax_v2(void *, int, const float *, int, int *);
int cublasSasum_v2(void *, int, const float *, int, float *), cublasSger_v2(void *, int, int, const float *, const float *, int, const float *, int, float *, int);
int cublasSgemm_v2(void *, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
int cublasDgemv_v2(void *, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int);
int cublasSgemmStridedBatched(void *, int, int, int, int, int, const float *, const float *, int, long long, const float *, int, long long, const float *, float *, int, long long, int);
int cublasDgemmBatched(void *, int, int, int, int, int, const double *, double *const *, int, double *const *, int, const double *, double *const *, int, int);
int cublasGemmEx(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *, void *, int, int, int, int);
const char *cublasGetStatusName(int), *cublasGetStatusString(int);
int curandCreateGenerator(void **, int), curandSetPseudoRandomGeneratorSeed(void *, unsigned long long), curandGenerateUniform(void *, float *, size_t);
int curandGenerateNormalDouble(void *, double *, size_t, double, double), curandGenerate(void *, unsigned *, size_t), curandGeneratePoisson(void *, unsigned *, size_t, double);

static void *handle;
static unsigned state = 1;

static double next(void) { return ((state = state * 1664525 + 1013904223) >> 8) / 16777216.0 - 0.5; }

static void *device(const void *from, size_t n) {
  void *p;
  cudaMalloc(&p, n);
  if (from) cudaMemcpy(p, from, n, 1);
  return p;
}

static int near(double a, double b) { return fabs(a - b) <= 1e-5 * (1 + fabs(b)); }

// products compares one or more products of random shapes with loops.
static int products(int ta, int tb, int batch, float beta) {
  enum { m = 37, n = 21, k = 19, lda = 40, ldb = 43, ldc = 39, sa = lda * 40, sb = ldb * 40, sc = ldc * n };
  static float a[3 * sa], b[3 * sb], c[3 * sc], got[3 * sc];
  float alpha = 1.25f;
  for (int i = 0; i < 3 * sa; i++) a[i] = (float)next();
  for (int i = 0; i < 3 * sb; i++) b[i] = (float)next();
  for (int i = 0; i < 3 * sc; i++) c[i] = (float)next();
  float *da = device(a, sizeof a), *db = device(b, sizeof b), *dc = device(c, sizeof c);
  int e = batch > 1 ? cublasSgemmStridedBatched(handle, ta, tb, m, n, k, &alpha, da, lda, sa, db, ldb, sb, &beta, dc, ldc, sc, batch)
                    : cublasSgemm_v2(handle, ta, tb, m, n, k, &alpha, da, lda, db, ldb, &beta, dc, ldc);
  cudaMemcpy(got, dc, sizeof got, 2);
  for (int s = 0; s < 3; s++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < ldc; i++) {
        double want = c[s * sc + j * ldc + i], sum = 0;
        for (int l = 0; l < k; l++) sum += (double)a[s * sa + (ta ? i * lda + l : l * lda + i)] * b[s * sb + (tb ? l * ldb + j : j * ldb + l)];
        if (i < m && s < batch) want = alpha * sum + beta * want;
        if (!near(got[s * sc + j * ldc + i], want)) return 0;
      }
  return !e;
}

static int vectors(void) {
  enum { n = 1000 };
  static float x[2 * n], y[n], got[n];
  static double dx[n], dy[n];
  float two = 2, norm, sum, wantNorm = 0, wantSum = 0;
  double dot, wantDot = 0;
  int best, wantBest = 0, right = 1;
  for (int i = 0; i < 2 * n; i++) x[i] = (float)next();
  for (int i = 0; i < n; i++) y[i] = (float)next(), dx[i] = next(), dy[i] = next();
  for (int i = 0; i < n; i++) wantDot += dx[i] * dy[n - 1 - i];
  float *px = device(x, sizeof x), *py = device(y, sizeof y);
  double *pd = device(dx, sizeof dx), *pe = device(dy, sizeof dy);
  right &= !cublasSaxpy_v2(handle, n, &two, px, 2, py, -1) && !cublasDdot_v2(handle, n, pd, 1, pe, -1, &dot);
  cudaMemcpy(got, py, sizeof got, 2);
  for (int i = 0; i < n; i++) right &= near(got[i], y[i] + 2 * x[2 * (n - 1 - i)]);
  for (int i = 0; i < n; i++) {
    wantNorm += x[2 * i] * x[2 * i], wantSum += fabsf(x[2 * i]);
    if (fabsf(x[2 * i]) > fabsf(x[2 * wantBest])) wantBest = i;
  }
  right &= !cublasSnrm2_v2(handle, n, px, 2, &norm) && !cublasSasum_v2(handle, n, px, 2, &sum) && !cublasIsamax_v2(handle, n, px, 2, &best);
  right &= fabs(norm - sqrt(wantNorm)) < 1e-3 && fabs(sum - wantSum) < 1e-2 && best == wantBest + 1 && near(dot, wantDot);
  cublasSetPointerMode_v2(handle, 1);
  float *scale = device(&two, sizeof two), *result = device(NULL, sizeof(float)), kept;
  right &= !cublasSscal_v2(handle, n, scale, px, 2) && !cublasSnrm2_v2(handle, n, px, 2, result);
  cublasSetPointerMode_v2(handle, 0);
  cudaMemcpy(&kept, result, sizeof kept, 2);
  return right && near(kept, 2 * norm);
}

static int others(void) {
  double a[6] = {1, 2, 3, 4, 5, 6}, x[3] = {1, 10, 100}, y[3] = {1, 1, 1}, alpha = 1, beta = 2, got[3];
  double *pa = device(a, sizeof a), *px = device(x, sizeof x), *py = device(y, sizeof y);
  int right = !cublasDgemv_v2(handle, 0, 2, 3, &alpha, pa, 2, px, 1, &beta, py, 1); // columns (1 2) (3 4) (5 6)
  cudaMemcpy(got, py, sizeof got, 2);
  right &= got[0] == 533 && got[1] == 644 && got[2] == 1;
  right &= !cublasDgemv_v2(handle, 1, 2, 3, &alpha, pa, 2, px, 1, &beta, py, 1);
  cudaMemcpy(got, py, sizeof got, 2);
  right &= got[0] == 21 + 1066 && got[1] == 43 + 1288 && got[2] == 65 + 2;
  double *list[3] = {pa, pa + 2, pa + 4}, *out[3] = {px, px + 1, px + 2}, zero = 0;
  double **pl = device(list, sizeof list), **po = device(out, sizeof out);
  right &= !cublasDgemmBatched(handle, 1, 0, 1, 1, 2, &alpha, pl, 2, pl, 2, &zero, po, 1, 3);
  cudaMemcpy(got, px, sizeof got, 2);
  right &= got[0] == 5 && got[1] == 25 && got[2] == 61;
  uint16_t half[4] = {0x3c00, 0x4000, 0x4200, 0x4400}, back[4]; // 1 2 3 4
  float one = 1, none = 0;
  uint16_t *ph = device(half, sizeof half), *pc = device(NULL, sizeof half);
  right &= !cublasGemmEx(handle, 0, 0, 2, 2, 2, &one, ph, 2, 2, ph, 2, 2, &none, pc, 2, 2, 68, -1);
  cudaMemcpy(back, pc, sizeof back, 2);
  right &= back[0] == 0x4700 && back[1] == 0x4900 && back[2] == 0x4b80 && back[3] == 0x4d80; // 7 10 15 22
  float g[4] = {0}, u[2] = {1, 2}, v[2] = {3, 4}, *pg = device(g, sizeof g), *pu = device(u, sizeof u), *pv = device(v, sizeof v);
  right &= !cublasSger_v2(handle, 2, 2, &one, pu, 1, pv, 1, pg, 2);
  cudaMemcpy(g, pg, sizeof g, 2);
  return right && g[0] == 3 && g[1] == 6 && g[2] == 4 && g[3] == 8;
}

static int random_numbers(void) {
  enum { n = 20000 };
  static float u[n], again[n];
  static double d[n];
  static unsigned p[n];
  void *g;
  float *pu = device(NULL, sizeof u);
  double *pd = device(NULL, sizeof d), mean = 0, square = 0, average = 0;
  unsigned *pp = device(NULL, sizeof p);
  int right = !curandCreateGenerator(&g, 100) && !curandSetPseudoRandomGeneratorSeed(g, 7) && !curandGenerateUniform(g, pu, n);
  cudaMemcpy(u, pu, sizeof u, 2);
  right &= !curandSetPseudoRandomGeneratorSeed(g, 7) && !curandGenerateUniform(g, pu, n) && !curandGenerateNormalDouble(g, pd, n, 3, 2) && !curandGeneratePoisson(g, pp, n, 5);
  cudaMemcpy(again, pu, sizeof u, 2), cudaMemcpy(d, pd, sizeof d, 2), cudaMemcpy(p, pp, sizeof p, 2);
  for (int i = 0; i < n; i++) right &= u[i] > 0 && u[i] <= 1, average += u[i] / n;
  right &= !memcmp(u, again, sizeof u) && fabs(average - 0.5) < 0.01;
  for (int i = 0; i < n; i++) mean += d[i] / n, square += d[i] * d[i] / n;
  right &= fabs(mean - 3) < 0.05 && fabs(sqrt(square - mean * mean) - 2) < 0.05;
  average = 0;
  for (int i = 0; i < n; i++) average += p[i] / (double)n;
  return right && fabs(average - 5) < 0.1 && curandGenerateNormalDouble(g, pd, 3, 0, 1) == 105;
}

// unordered fills what an operation of another stream reads; with ordered it waits first.
static int unordered(int ordered) {
  void *s, *t;
  float *x, two = 2, norm;
  cudaMallocManaged((void **)&x, 4096, 1);
  cudaStreamCreateWithFlags(&s, 1), cudaStreamCreateWithFlags(&t, 1);
  cudaMemsetAsync(x, 0, 4096, s);
  if (ordered) cudaStreamSynchronize(s);
  cublasSetStream_v2(handle, t);
  int e = cublasSscal_v2(handle, 1024, &two, x, 1) || cublasSnrm2_v2(handle, 1024, x, 1, &norm); // which waits
  return !e && norm == 0 && (!ordered || x[5] == 0);
}

int main(int argc, char **argv) {
  int right = !cublasCreate_v2(&handle);
  if (!strcmp(argv[1], "products"))
    for (int i = 0; i < 16; i++) right &= products(i & 1, i >> 1 & 1, i & 4 ? 3 : 1, i & 8 ? 0.5f : 0);
  else if (!strcmp(argv[1], "vectors")) right &= vectors();
  else if (!strcmp(argv[1], "others")) right &= others() && !strcmp(cublasGetStatusName(15), "CUBLAS_STATUS_NOT_SUPPORTED") && !strcmp(cublasGetStatusString(0), "success");
  else if (!strcmp(argv[1], "random")) right &= random_numbers();
  else right &= unordered(!strcmp(argv[1], "ordered"));
  puts(right ? "right" : "wrong");
  return 0;
}
