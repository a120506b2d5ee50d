#include <math.h>
#include <stdint.h>
#include <string.h>

#define ROWS 4
#define COLS 64

// Each element is summed over k from 0 up, as in the kernel. The sums of a block of ROWS x COLS stay in registers or
// nearby.
void matmul(void **buf, const uint64_t *arg)
{
    const float *restrict a = buf[0], *restrict b = buf[1];
    float *restrict c = buf[2];
    uint64_t n = arg[0];
    for (uint64_t j = 0; j < n; j += COLS) {
        uint64_t cols = n - j < COLS ? n - j : COLS;
        for (uint64_t i = 0; i < n; i += ROWS) {
            float sum[ROWS][COLS];
            memset(sum, 0, sizeof sum);
            if (cols == COLS) {
                for (uint64_t k = 0; k < n; k++)
                    for (int r = 0; r < ROWS; r++)
                        for (int x = 0; x < COLS; x++)
                            sum[r][x] = fmaf(a[(i + r) * n + k], b[k * n + j + x], sum[r][x]);
            } else {
                for (uint64_t k = 0; k < n; k++)
                    for (int r = 0; r < ROWS; r++)
                        for (uint64_t x = 0; x < cols; x++)
                            sum[r][x] = fmaf(a[(i + r) * n + k], b[k * n + j + x], sum[r][x]);
            }
            for (int r = 0; r < ROWS; r++)
                memcpy(&c[(i + r) * n + j], sum[r], cols * sizeof(float));
        }
    }
}
