#include <stdint.h>

void permute(void **buf, const uint64_t *arg)
{
    const int32_t *restrict from = buf[0], *restrict to = buf[1];
    const uint32_t *restrict in = buf[2];
    uint32_t *restrict out = buf[3];
    for (uint64_t i = 0; i < arg[0]; i++)
        out[to[i]] = in[from[i]];
}
