#include <stdint.h>

#define TILE 32

void transpose(void **buf, const uint64_t *arg)
{
    const uint32_t *restrict in = buf[0];
    uint32_t *restrict out = buf[1];
    uint64_t n = arg[0];
    for (uint64_t i = 0; i < n; i += TILE)
        for (uint64_t j = 0; j < n; j += TILE)
            for (uint64_t y = i; y < i + TILE; y++)
                for (uint64_t x = j; x < j + TILE; x++)
                    out[y * n + x] = in[x * n + y];
}
