// One step of n bodies that all attract each other, positions through a tile in shared memory: much fp32 arithmetic with
// rsqrt. n is a multiple of 256.

#define BLOCK 256

extern "C" __global__ void nbody(int n, float dt, const float4 *pos, const float4 *vel, float4 *newpos, float4 *newvel)
{
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 p = pos[i];
    float ax = 0, ay = 0, az = 0;
    for (int j0 = 0; j0 < n; j0 += BLOCK) {
        tile[threadIdx.x] = pos[j0 + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < BLOCK; j++) {
            float4 q = tile[j];
            float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
            float inv = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 1e-2f))));
            float s = q.w * inv * inv * inv;
            ax = fmaf(dx, s, ax);
            ay = fmaf(dy, s, ay);
            az = fmaf(dz, s, az);
        }
        __syncthreads();
    }
    float4 v = vel[i];
    v.x = fmaf(ax, dt, v.x), v.y = fmaf(ay, dt, v.y), v.z = fmaf(az, dt, v.z);
    newvel[i] = v;
    p.x = fmaf(v.x, dt, p.x), p.y = fmaf(v.y, dt, p.y), p.z = fmaf(v.z, dt, p.z);
    newpos[i] = p;
}
