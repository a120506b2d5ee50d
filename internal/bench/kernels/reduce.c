#include <stdint.h>

void reduce(void **buf, const uint64_t *arg)
{
    const uint32_t *restrict in = buf[0];
    uint32_t sum = 0;
    for (uint64_t i = 0; i < arg[0]; i++)
        sum += in[i];
    *(uint32_t *)buf[1] = sum;
}
