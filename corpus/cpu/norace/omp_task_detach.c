// A detached task ends when its event is fulfilled, by another task.
#include <omp.h>
#include <stdio.h>

int main(void) {
	int x = 0, y = 0, seen = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
		omp_event_handle_t event;
#pragma omp task detach(event) depend(out : x) shared(x)
		x = 1;
#pragma omp task firstprivate(event) shared(y)
		{
			y = 2;
			omp_fulfill_event(event);
		}
#pragma omp task depend(in : x) shared(x, y, seen)
		seen = x + y;
	}
	printf("%d\n", seen);
	return seen != 3;
}
