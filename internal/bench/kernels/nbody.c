#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct { float x, y, z, w; } float4;

#define GROUP 64

// The inner loop is over the bodies that are attracted, not over those that attract. So it can be vectorised, and the
// sums have the kernel's order.
void nbody(void **buf, const uint64_t *arg)
{
    const float4 *restrict pos = buf[0], *restrict vel = buf[1];
    float4 *restrict newpos = buf[2], *restrict newvel = buf[3];
    uint64_t n = arg[0];
    uint32_t bits = arg[1];
    float dt;
    memcpy(&dt, &bits, sizeof dt);
    for (uint64_t i0 = 0; i0 < n; i0 += GROUP) {
        float x[GROUP], y[GROUP], z[GROUP], ax[GROUP] = {0}, ay[GROUP] = {0}, az[GROUP] = {0};
        for (int i = 0; i < GROUP; i++)
            x[i] = pos[i0 + i].x, y[i] = pos[i0 + i].y, z[i] = pos[i0 + i].z;
        for (uint64_t j = 0; j < n; j++) {
            float4 q = pos[j];
            for (int i = 0; i < GROUP; i++) {
                float dx = q.x - x[i], dy = q.y - y[i], dz = q.z - z[i];
                float inv = 1 / sqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 1e-2f))));
                float s = q.w * inv * inv * inv;
                ax[i] = fmaf(dx, s, ax[i]);
                ay[i] = fmaf(dy, s, ay[i]);
                az[i] = fmaf(dz, s, az[i]);
            }
        }
        for (int i = 0; i < GROUP; i++) {
            float4 v = vel[i0 + i], p = pos[i0 + i];
            v.x = fmaf(ax[i], dt, v.x), v.y = fmaf(ay[i], dt, v.y), v.z = fmaf(az[i], dt, v.z);
            newvel[i0 + i] = v;
            p.x = fmaf(v.x, dt, p.x), p.y = fmaf(v.y, dt, p.y), p.z = fmaf(v.z, dt, p.z);
            newpos[i0 + i] = p;
        }
    }
}
