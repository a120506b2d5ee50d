#include <stdint.h>

void rowproduct(void **buf, const uint64_t *arg)
{
    const uint32_t *restrict a = buf[0], *restrict b = buf[1];
    uint32_t *restrict c = buf[2];
    uint64_t n = arg[0];
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t j = 0; j < n; j++)
            c[i * n + j] = 0;
        for (uint64_t k = 0; k < n; k++)
            for (uint64_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}
