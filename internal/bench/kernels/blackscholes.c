#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float cdf(float d)
{
    float k = 1.0f / fmaf(0.2316419f, fabsf(d), 1.0f);
    float poly = k * fmaf(k, fmaf(k, fmaf(k, fmaf(k, 1.330274429f, -1.821255978f), 1.781477937f), -0.356563782f), 0.319381530f);
    float tail = 0.39894228f * expf(-0.5f * d * d) * poly;
    return d > 0 ? 1.0f - tail : tail;
}

void blackscholes(void **buf, const uint64_t *arg)
{
    const float *restrict price = buf[0], *restrict strike = buf[1], *restrict years = buf[2];
    float *restrict call = buf[3], *restrict put = buf[4], rate, volatility;
    uint32_t bits[2] = {arg[1], arg[2]};
    memcpy(&rate, &bits[0], sizeof rate);
    memcpy(&volatility, &bits[1], sizeof volatility);
    for (uint64_t i = 0; i < arg[0]; i++) {
        float s = price[i], x = strike[i], t = years[i];
        float root = volatility * sqrtf(t);
        float d1 = fmaf(fmaf(0.5f * volatility, volatility, rate), t, logf(s / x)) / root;
        float d2 = d1 - root;
        float n1 = cdf(d1), n2 = cdf(d2);
        float discounted = x * expf(-rate * t);
        call[i] = fmaf(s, n1, -discounted * n2);
        put[i] = fmaf(discounted, 1.0f - n2, -s * (1.0f - n1));
    }
}
