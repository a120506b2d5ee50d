// What belongs to a thread, and what is copied for a task, is not shared by the tasks that a thread executes.
#include <stdio.h>

static int last;
#pragma omp threadprivate(last)
static __thread int calls;

struct numbers { int of[16]; };

int main(void) {
	long sum = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
	{
		struct numbers x = {{0}};
		for (int i = 0; i < 300; i++) {
			x.of[i % 16] = i;
#pragma omp task firstprivate(x) shared(sum)
			{
				last = i;
				calls++;
				x.of[i % 16] += last;
#pragma omp atomic
				sum += x.of[i % 16];
			}
		}
	}
	printf("%ld\n", sum);
	return sum != 2L * 300 * 299 / 2;
}
