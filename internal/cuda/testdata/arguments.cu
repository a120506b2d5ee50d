// Kernel arguments of every size and alignment, by value, and templates.
// stdout: 1 2 3 7 4.5 8.25 cxpb 4 24 no error
// launches: _Z3all1ScP6ResultdsxPKc _Z4bareP6Result _Z5typedIfEvT_P6Result _Z5typedI1SEvT_P6Result
#include <cstdio>
struct S { char a; int b; double c; char text[5]; };
struct Result { int v[4]; double d[2]; char c[8]; int size[2]; };
__global__ void all(S s, char c, Result *r, double d, short h, long long l, const char *p) {
  r->v[0] = s.a; r->v[1] = s.b; r->v[2] = h; r->v[3] = (int)l;
  r->d[0] = s.c; r->d[1] = d; r->c[0] = c; r->c[1] = s.text[4]; r->c[2] = p[0];
}
__global__ void bare(Result *r) { r->c[3] = 'b'; }
template <class T> __global__ void typed(T t, Result *r) { r->size[sizeof t > 4] = (int)sizeof t; }
int main() {
  Result *r;
  char *p;
  cudaMallocManaged(&r, sizeof *r);
  cudaMallocManaged(&p, 1);
  *p = 'p';
  S s = {1, 2, 4.5, "abc"};
  s.text[4] = 'x';
  all<<<1, 1>>>(s, 'c', r, 8.25, 3, 7, p);
  bare<<<1, 1>>>(r);
  typed<<<1, 1>>>(1.0f, r);
  typed<<<1, 1>>>(s, r);
  cudaError_t e = cudaDeviceSynchronize();
  printf("%d %d %d %d %g %g %.4s %d %d %s\n", r->v[0], r->v[1], r->v[2], r->v[3], r->d[0], r->d[1], r->c, r->size[0], r->size[1],
         cudaGetErrorString(e));
}
