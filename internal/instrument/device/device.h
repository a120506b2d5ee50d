// What the device code of every mode needs: strong accesses, and the numbers of the thread's block, warp and lane.
#pragma once

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { pause = 20 }; // time in ns that a thread sleeps while it waits for another thread

static __device__ u64 acquire(u64 *p)
{
	u64 v;
	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
}

static __device__ void release(u64 *p, u64 v)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
}

static __device__ u64 add(u64 *p, u64 n)
{
	u64 old;
	asm volatile("atom.add.relaxed.gpu.global.u64 %0, [%1], %2;" : "=l"(old) : "l"(__cvta_generic_to_global(p)), "l"(n) : "memory");
	return old;
}

static __device__ u32 take(u32 *ticket)
{
	u32 old;
	asm volatile("atom.add.relaxed.gpu.global.u32 %0, [%1], 1;" : "=r"(old) : "l"(__cvta_generic_to_global(ticket)) : "memory");
	return old;
}

static __device__ u32 acquire(u32 *p)
{
	u32 v;
	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
}

static __device__ void release(u32 *p, u32 v)
{
	asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
}

static __device__ u32 lane()
{
	u32 l;
	asm("mov.u32 %0, %%laneid;" : "=r"(l));
	return l;
}

static __device__ u64 block()
{
	return ((u64)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

static __device__ u32 warp()
{
	u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	u32 warps = (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
	return (u32)block() * warps + thread / 32;
}
