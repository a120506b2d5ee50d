#include <stdint.h>

void counter(void **buf, const uint64_t *arg)
{
    const uint32_t *restrict in = buf[0];
    uint32_t count = 0;
    for (uint64_t i = 0; i < arg[0]; i++)
        count += in[i] % 2;
    *(uint32_t *)buf[1] = count;
}
