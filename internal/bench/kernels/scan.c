#include <stdint.h>

void scan(void **buf, const uint64_t *arg)
{
    const uint32_t *restrict in = buf[0];
    uint32_t *restrict out = buf[1], sum = 0;
    for (uint64_t i = 0; i < arg[0]; i++) {
        out[i] = sum;
        sum += in[i];
    }
}
