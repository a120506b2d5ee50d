// Who makes a task that is not deferred goes on after it, and so do tasks of a final one.
#include <stdio.h>

int main(void) {
	int a = 0, b = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task if (0)
		a = 1;
		a++;
#pragma omp task final(1) shared(b)
		{
			b = 1;
#pragma omp task shared(b)
			b++;
			b++;
		}
#pragma omp taskwait
		b++;
	}
	printf("%d %d\n", a, b);
	return a != 2 || b != 4;
}
