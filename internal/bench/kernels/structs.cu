// An array of structures of five words, each updated by a thread of its own.

struct item {
    unsigned place, speed, mass, age, hits;
};

extern "C" __global__ void structs(int n, struct item *items)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    struct item *p = &items[i];
    p->place += p->speed;
    p->speed ^= p->mass;
    p->age++;
    if (p->place & 1)
        p->hits += p->age;
}
