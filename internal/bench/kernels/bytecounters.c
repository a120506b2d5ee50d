#include <stdint.h>

void bytecounters(void **buf, const uint64_t *arg)
{
    const uint8_t *restrict in = buf[0];
    uint32_t *restrict out = buf[1];
    for (uint64_t i = 0; i < arg[0]; i++)
        out[in[i] & 63]++;
}
