// European options by the Black-Scholes formula, one thread for each option: logf, expf, sqrtf and divisions. The
// normal distribution is the polynomial of Abramowitz and Stegun, 26.2.17.

__device__ float cdf(float d)
{
    float k = 1.0f / fmaf(0.2316419f, fabsf(d), 1.0f);
    float poly = k * fmaf(k, fmaf(k, fmaf(k, fmaf(k, 1.330274429f, -1.821255978f), 1.781477937f), -0.356563782f), 0.319381530f);
    float tail = 0.39894228f * expf(-0.5f * d * d) * poly;
    return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void blackscholes(int n, float rate, float volatility, const float *price, const float *strike,
                                        const float *years, float *call, float *put)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float s = price[i], x = strike[i], t = years[i];
    float root = volatility * sqrtf(t);
    float d1 = fmaf(fmaf(0.5f * volatility, volatility, rate), t, logf(s / x)) / root;
    float d2 = d1 - root;
    float n1 = cdf(d1), n2 = cdf(d2);
    float discounted = x * expf(-rate * t);
    call[i] = fmaf(s, n1, -discounted * n2);
    put[i] = fmaf(discounted, 1.0f - n2, -s * (1.0f - n1));
}
