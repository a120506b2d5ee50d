// Particles that repel each other: forces are added up by thread, then together. Arguments: threads (4), size.
#include "kernel.h"

enum { PARTS = 64 };
struct vector { double x, y, z; };
static struct vector *at, *speed, *force[PARTS];
static double energy;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void work(int id, int threads) {
	for (int step = 0; step < 3; step++) {
		double mine = 0;
		memset(force[id], 0, size * sizeof(struct vector));
		for (long i = id; i < size; i += threads)
			for (long j = i + 1; j < size; j++) {
				double dx = at[i].x - at[j].x, dy = at[i].y - at[j].y, dz = at[i].z - at[j].z;
				double d = dx * dx + dy * dy + dz * dz + 0.01, f = 1 / (d * d);
				force[id][i].x += f * dx, force[id][i].y += f * dy, force[id][i].z += f * dz;
				force[id][j].x -= f * dx, force[id][j].y -= f * dy, force[id][j].z -= f * dz;
				mine += 1 / d;
			}
		pthread_mutex_lock(&m);
		energy += mine;
		pthread_mutex_unlock(&m);
		meet();
		for (long i = size * id / threads; i < size * (id + 1) / threads; i++)
			for (int t = 0; t < threads; t++) {
				speed[i].x += force[t][i].x * 1e-6, speed[i].y += force[t][i].y * 1e-6, speed[i].z += force[t][i].z * 1e-6;
				at[i].x += speed[i].x, at[i].y += speed[i].y, at[i].z += speed[i].z;
			}
		meet();
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 160;
	at = malloc(size * sizeof *at), speed = calloc(size, sizeof *speed);
	for (int t = 0; t < threads; t++)
		force[t] = malloc(size * sizeof(struct vector));
	unsigned r = 1;
	for (long i = 0; i < size; i++)
		at[i].x = rnd(&r) % 1000 * 1e-2, at[i].y = rnd(&r) % 1000 * 1e-2, at[i].z = rnd(&r) % 1000 * 1e-2;
	in_threads(work);
	printf("%.4f\n", energy);
	return 0;
}
