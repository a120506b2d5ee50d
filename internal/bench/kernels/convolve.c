#include <stdint.h>

void convolve(void **buf, const uint64_t *arg)
{
    const uint32_t *restrict in = buf[0], *restrict weights = buf[1];
    uint32_t *restrict out = buf[2];
    int n = (int)arg[0];
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++)
            out[y * n + x] = 0;
        for (int dy = -2; dy <= 2; dy++) {
            if (y + dy < 0 || y + dy >= n)
                continue;
            for (int dx = -2; dx <= 2; dx++) {
                uint32_t w = weights[(dy + 2) * 5 + dx + 2];
                int from = dx < 0 ? -dx : 0, to = dx > 0 ? n - dx : n;
                for (int x = from; x < to; x++)
                    out[y * n + x] += in[(y + dy) * n + x + dx] * w;
            }
        }
    }
}
