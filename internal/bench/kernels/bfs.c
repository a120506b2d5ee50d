#include <stdint.h>

// The queue holds all frontiers, one after the other.
void bfs(void **buf, const uint64_t *arg)
{
    const int32_t *restrict first = buf[0], *restrict edges = buf[1];
    int32_t *restrict queue = buf[2], *restrict dist = buf[3];
    uint64_t head = 0, tail = 1;
    (void)arg;
    while (head < tail) {
        int32_t v = queue[head++];
        for (int32_t e = first[v]; e < first[v + 1]; e++) {
            int32_t w = edges[e];
            if (dist[w] < 0) {
                dist[w] = dist[v] + 1;
                queue[tail++] = w;
            }
        }
    }
}
