// A taskloop without its group waits for nothing, and its tasks add to one variable.
#include <stdio.h>

int main(void) {
	int done[40] = {0}, sum = 0, seen = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp taskloop nogroup num_tasks(4) shared(done, sum)
		for (int i = 0; i < 40; i++) {
			done[i] = 1; // want race
			sum += i;    // want race
		}
		seen = done[3]; // want race
#pragma omp taskwait
		seen += done[4];
	}
	printf("%d\n", seen > 2 || sum > 780);
	return 0;
}
