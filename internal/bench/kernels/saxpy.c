#include <math.h>
#include <stdint.h>
#include <string.h>

void saxpy(void **buf, const uint64_t *arg)
{
    const float *restrict x = buf[0];
    float *restrict y = buf[1], a;
    uint32_t bits = arg[1];
    memcpy(&a, &bits, sizeof a);
    for (uint64_t i = 0; i < arg[0]; i++)
        y[i] = fmaf(a, x[i], y[i]);
}
