// Rays through spheres, lines of the picture dealt out by an atomic counter. Arguments: threads (4), size.
#include "kernel.h"

#include <stdatomic.h>
struct sphere { double x, y, z, r; };
static struct sphere spheres[24];
static unsigned char *picture;
static atomic_long next;

static void work(int id, int threads) {
	for (long y; (y = atomic_fetch_add(&next, 1)) < size;)
		for (long x = 0; x < size; x++) {
			double dx = (double)x / size - 0.5, dy = (double)y / size - 0.5, nearest = 1e9;
			for (int i = 0; i < 24; i++) {
				struct sphere *s = &spheres[i];
				double b = dx * s->x + dy * s->y + s->z, c = s->x * s->x + s->y * s->y + s->z * s->z - s->r * s->r;
				double d = b * b - (dx * dx + dy * dy + 1) * c;
				if (d > 0 && b - sqrt(d) < nearest)
					nearest = b - sqrt(d);
			}
			picture[y * size + x] = nearest < 1e9 ? 255 - (int)(nearest * 9) % 255 : 0;
		}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 96;
	picture = malloc(size * size);
	unsigned r = 1;
	for (int i = 0; i < 24; i++)
		spheres[i] = (struct sphere){rnd(&r) % 100 * 0.1 - 5, rnd(&r) % 100 * 0.1 - 5, 8 + rnd(&r) % 100 * 0.1, 1};
	in_threads(work);
	long sum = 0;
	for (long i = 0; i < size * size; i++)
		sum += picture[i];
	printf("%ld\n", sum);
	return 0;
}
