#include <stdint.h>

void spmv(void **buf, const uint64_t *arg)
{
    const int32_t *restrict first = buf[0], *restrict column = buf[1];
    const uint32_t *restrict value = buf[2], *restrict x = buf[3];
    uint32_t *restrict y = buf[4];
    for (uint64_t row = 0; row < arg[0]; row++) {
        uint32_t sum = 0;
        for (int32_t k = first[row]; k < first[row + 1]; k++)
            sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}
