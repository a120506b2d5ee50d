// Tasks take part in a reduction of the threads that make them.
#include <stdio.h>

int main(void) {
	int sum = 0, total = 0;
	#pragma omp parallel reduction(task, + : sum) num_threads(4)
	{
		sum++;
		#pragma omp task in_reduction(+ : sum)
		sum += 2;
	}
	#pragma omp parallel num_threads(4)
	{
		#pragma omp for reduction(task, + : total) schedule(static, 4)
		for (int i = 0; i < 16; i++) {
			#pragma omp task in_reduction(+ : total)
			total += i;
			total++;
		}
	}
	printf("%d %d\n", sum, total);
	return 0;
}
