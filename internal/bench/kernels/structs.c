#include <stdint.h>

struct item {
    uint32_t place, speed, mass, age, hits;
};

void structs(void **buf, const uint64_t *arg)
{
    struct item *items = buf[0];
    for (uint64_t i = 0; i < arg[0]; i++) {
        struct item *p = &items[i];
        p->place += p->speed;
        p->speed ^= p->mass;
        p->age++;
        if (p->place & 1)
            p->hits += p->age;
    }
}
