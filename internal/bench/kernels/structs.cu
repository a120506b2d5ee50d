// An array of structures of five words. Each structure is updated by a different thread.

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
