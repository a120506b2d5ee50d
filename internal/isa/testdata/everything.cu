// A little of everything that nvcc has instructions for: TestNvcc decodes what it makes of this. Nothing here makes sense to run.
// -DO0: nvcc -Xcicc -O0 refuses the dot products before sm_100.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cassert>
#ifdef O0
#define DP 0
#else
#define DP __dp4a(u[1],u[2],u[3]) + __dp2a_lo(u[1],u[2],u[3])
#endif
namespace cg = cooperative_groups;
__global__ void half_k(__half *a, __half2 *b, __nv_bfloat16 *c, __nv_bfloat162 *d, float *f, double *g, int n) {
  int i = threadIdx.x;
  a[i] = __hadd(a[i], __hmul(a[i+1], __float2half(f[i])));
  a[i] = hexp(a[i]); a[i] = hsqrt(a[i]); a[i]=hlog(a[i]); a[i]=hsin(a[i]);
  b[i] = __hfma2(b[i], b[i+1], b[i+2]); b[i]=h2exp(b[i]); b[i]=h2rcp(b[i]);
  c[i] = __hadd(c[i], c[i+1]); c[i]=__hmul(c[i],c[i+2]); c[i]=hexp(c[i]);
  d[i] = __hfma2(d[i], d[i+1], d[i+2]); d[i] = __hmax2(d[i], d[i+1]);
  if (__hgt(a[i], a[i+1])) a[i] = __hneg(a[i]);
  if (__hbgt2(b[i], b[i+1])) b[i] = __habs2(b[i]);
  f[i] = __half2float(a[i]) + __bfloat162float(c[i]);
  a[i] = __int2half_rn(n); f[i+1] = __half2int_rn(a[i]); a[i+1]= __double2half(g[i]);
  c[i+1] = __double2bfloat16(g[i]); c[i+2]=__int2bfloat16_rn(n); f[i+3]=__bfloat162int_rz(c[i]);
  b[i+3] = __floats2half2_rn(f[i], f[i+1]); d[i+3] = __floats2bfloat162_rn(f[i], f[i+1]);
  atomicAdd(a, a[i]); atomicAdd(b, b[i]); atomicAdd(c, c[i]); atomicAdd(d, d[i]);
  b[i] = __shfl_down_sync(~0u, b[i], 3); b[i]=__hmin2_nan(b[i],b[i+2]); b[i]=__hfma2_relu(b[i],b[i],b[i]); b[i] = __hadd2_sat(b[i], b[i]);
  a[i+4] = __hmax(a[i],a[i+1]); a[i+5]=hfloor(a[i]); a[i+6]=htanh(a[i]); a[i+7]=hrint(a[i]); a[i+8]=hceil(a[i]);
  b[i+9] = __hlt2(b[i], b[i+1]); b[i+9]=__hequ2(b[i],b[i+2]); c[i+8]=hrint(c[i]);
}
__global__ void f_k(float *f, double *g, unsigned *u, long long *l, int n) {
  int i = threadIdx.x;
  f[i] = __fadd_rz(f[i], f[1]) + __fmul_ru(f[2], f[3]) + __fdiv_rd(f[4], f[5]) + __fsqrt_ru(f[i]) + __frcp_rz(f[2]) + __fmaf_rd(f[1],f[2],f[3]);
  f[i] += __sinf(f[i]) + __cosf(f[i+1]) + __logf(f[i]) + __expf(f[2]) + __powf(f[1],f[2]) + __fdividef(f[1],f[2]) + __tanf(f[3]) + __saturatef(f[3])
      + rsqrtf(f[1]) + tanhf(f[2]);
  f[i] += sinf(f[i]) + cosf(f[i]) + expf(f[i]) + logf(f[i]) + powf(f[i], f[1]) + erff(f[i]) + cbrtf(f[i]) + fmodf(f[i], f[1]) + remainderf(f[2],f[3])
      + lgammaf(f[1]) + roundf(f[1]) + truncf(f[2]) + rintf(f[3]) + floorf(f[1]) + ceilf(f[1]) + copysignf(f[1],f[2]) + fminf(f[1],f[2])
      + fmaxf(f[1],f[2]) + hypotf(f[1],f[2]) + atan2f(f[1],f[2]) + ldexpf(f[1], n) + logbf(f[1]) + nextafterf(f[1],f[2]);
  g[i] = __dadd_rz(g[i], g[1]) + __dmul_ru(g[2], g[3]) + __ddiv_rd(g[4], g[5]) + __dsqrt_ru(g[i]) + __drcp_rz(g[2]) + __fma_rd(g[1],g[2],g[3]);
  g[i] += sin(g[i]) + cos(g[i]) + exp(g[i]) + log(g[i]) + pow(g[i], g[1]) + erf(g[i]) + cbrt(g[i]) + fmod(g[i], g[1]) + tgamma(g[1]) + round(g[1])
      + trunc(g[2]) + rint(g[3]) + floor(g[1]) + ceil(g[1]) + copysign(g[1],g[2]) + fmin(g[1],g[2]) + fmax(g[1],g[2]) + hypot(g[1],g[2])
      + atan2(g[1],g[2]) + rsqrt(g[2]);
  u[i] = __popc(u[i]) + __clz(u[i]) + __brev(u[i]) + __ffs(u[i]) + __byte_perm(u[1],u[2],u[3]) + __funnelshift_l(u[1],u[2],u[3])
      + __funnelshift_rc(u[1],u[2],u[3]) + __umulhi(u[1],u[2]) + __mul24(u[1],u[2]) + __sad(u[1],u[2],u[3]) + __usad(u[1],u[2],u[3])
      + __hadd(u[1],u[2]) + __rhadd(u[1],u[2]) + __vadd2(u[1],u[2]) + __vabs4(u[3]) + __vmaxs4(u[1],u[2]) + DP + __viaddmax_s32(u[1],u[2],u[3])
      + __vimax3_s32_relu(u[1],u[2],u[3]);
  l[i] = __mul64hi(l[1],l[2]) + __popcll(l[1]) + __clzll(l[2]) + __brevll(l[3]) + l[1]/l[2] + l[2]%l[3] + (l[4]>>n) + __ffsll(l[1])
      + (unsigned long long)l[1]/(unsigned long long)l[2] + llabs(l[2]);
  u[i] += __float2int_rn(f[1]) + __float2uint_rz(f[1]) + __double2int_rd(g[1]) + __float2ll_ru(f[1]) + __double2ull_rz(g[1]) + __int2float_rz(n)
      + __ll2float_rn(l[1]) + __ull2double_rn(l[1]) + __double2float_rz(g[1]) + __float_as_int(f[1]) + __double2hiint(g[1]);
  f[2]=isnan(f[1]); f[3]=isinf(f[2]); f[4]=signbit(f[3]); g[1] = __hiloint2double(n,n); f[5]=fdimf(f[1],f[2]); f[6]=f[1]/f[2]; f[7]=sqrtf(f[1]);
  g[3]=g[1]/g[2]; g[4]=sqrt(g[1]);
  __int128 q = (__int128)l[1]*l[2] / l[3]; l[4]=q>>3; l[5]=(unsigned short)n; ((short*)l)[3] = n; ((char*)l)[7]=n*3; ((short*)l)[9] *= (short)n;
  ((signed char*)u)[n] /= 3;
}
struct Big { int a[40]; };
__device__ Big bigf(Big b, int i) { b.a[i] += 1; return b; }
__global__ void sync_k(int *p, unsigned long long *q, float *f, double *g, Big bb, int n) {
  __shared__ int sh[64]; extern __shared__ double dyn[];
  auto b = cg::this_thread_block(); auto t = cg::tiled_partition<16>(b); auto c = cg::coalesced_threads();
  int v = cg::reduce(t, p[threadIdx.x], cg::plus<int>()); v += cg::reduce(t, p[1], cg::greater<int>());
  v += cg::inclusive_scan(t, v); v += c.shfl(v, 0); v += t.any(v); v+= t.ballot(v) + t.match_any(v); int pr; v += __match_all_sync(~0u, v, &pr); v+=pr;
  auto lp = cg::labeled_partition(c, v & 3); v += lp.size(); auto bp = cg::binary_partition(c, v & 1); v += bp.thread_rank();
  sh[threadIdx.x & 63] = v; dyn[threadIdx.x] = v; __syncthreads();
  v += __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
  atomicAdd(p, 1); atomicSub(p, 2); atomicMin(p, 3); atomicMax(p, 4); atomicAnd(p, 5); atomicOr(p, 6); atomicXor(p, 7); atomicInc((unsigned*)p, 8);
  atomicDec((unsigned*)p, 9); atomicExch(p, 10); atomicCAS(p, 11, 12); atomicCAS((unsigned short*)p, (unsigned short)1, (unsigned short)2);
  atomicAdd(q, 1ull); atomicMin(q, 1ull); atomicMax((long long*)q, 3ll); atomicCAS(q, 1ull, 2ull); atomicExch(q, 2ull); atomicAnd(q, 2ull);
  atomicAdd(f, 1.f); atomicExch(f, 2.f); atomicAdd(g, 1.0); atomicAdd_block(p, 1); atomicAdd_system(p, 1); atomicCAS_system(p, 1, 2);
  atomicAdd(&sh[3], 1); atomicCAS(&sh[1], 1, 2);
  __threadfence(); __threadfence_block(); __threadfence_system(); __syncwarp(); __nanosleep(20);
  cuda::atomic_ref<int, cuda::thread_scope_system> ar(*p); ar.store(1, cuda::memory_order_release); v += ar.load(cuda::memory_order_acquire);
  v+= ar.exchange(3); int e = 4; ar.compare_exchange_strong(e, 5); ar.fetch_max(3); ar.store(3, cuda::memory_order_relaxed); v += ar.load();
  cuda::atomic_ref<double, cuda::thread_scope_block> ad(*g); ad.fetch_add(1.0);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_block);
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device> ac(*(unsigned char*)p); ac.fetch_add(1);
  v += __reduce_add_sync(~0u, v) + __reduce_max_sync(~0u, (unsigned)v) + __reduce_xor_sync(~0u, (unsigned)v); v += __activemask();
  v += __any_sync(~0u, v) + __all_sync(~0u, v) + __uni_sync(~0u, v) + __ballot_sync(~0u, v);
  v += __ldg(p) + __ldcg(p) + __ldca(p) + __ldcs(p) + __ldcv(p) + __ldlu(p); __stcg(p, 1); __stwt(p, 2); __stcs(p, 3); __stwb(p, 4);
  float4 f4 = __ldg((float4*)f); f[0] = f4.x; char4 c4 = ((char4*)p)[3]; v += c4.x; longlong2 l2 = ((longlong2*)q)[1]; v += l2.x;
  ushort2 us = ((ushort2*)p)[2]; v+= us.y;
  v += clock() + clock64() + warpSize + __isShared(p) + __isGlobal(p) + __isLocal(&v) + __isConstant(p); v += (int)__cvta_generic_to_shared(sh);
  v += *(int*)__cvta_shared_to_generic(4);
  Big r = bigf(bb, n); v += r.a[n]; Big *bp2 = (Big*)malloc(sizeof(Big)); *bp2 = r; free(bp2); assert(v);
  if (v == 77) __trap(); if (v == 78) __brkpt(); if (v==79) asm volatile("exit; "); __prof_trigger(3);
  switch (n) { case 0: p[0]=1; break; case 1: p[1]=2; break; case 2: p[2]=4; break; case 3: p[3]=7; break; case 4: p[4]=11; break; case 5: p[5]=12; break; case 6: p[7]=33; break; }
  p[threadIdx.x] = v; volatile int *vp = p; *vp = *vp + 1; if (threadIdx.x) __builtin_assume(n > 3); unsigned smid; asm("mov.u32 %0, %%smid;" : "=r"(smid)); p[1] = smid; p[2] = gridDim.x*blockDim.y;
}
