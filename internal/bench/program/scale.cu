// The small program whose way through "fencepost run" is measured.

#include <cstdio>

__global__ void scale(int n, float a, float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= a;
}

int main()
{
    const int n = 10000;
    static float host[n];
    for (int i = 0; i < n; i++)
        host[i] = (float)i;
    float *x;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    scale<<<(n + 255) / 256, 256>>>(n, 2.0f, x);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    cudaFree(x);
    for (int i = 0; i < n; i++)
        if (host[i] != 2.0f * (float)i)
            return 1;
    puts("ok");
    return 0;
}
