#include <math.h>
#include <stdint.h>

static inline float point(float l, float c, float r) { return fmaf(0.25f, l, fmaf(0.25f, r, 0.5f * c)); }

void stencil(void **buf, const uint64_t *arg)
{
    const float *restrict in = buf[0];
    float *restrict out = buf[1];
    uint64_t n = arg[0];
    out[0] = point(0, in[0], in[1]);
    for (uint64_t i = 1; i + 1 < n; i++)
        out[i] = point(in[i - 1], in[i], in[i + 1]);
    out[n - 1] = point(in[n - 2], in[n - 1], 0);
}
