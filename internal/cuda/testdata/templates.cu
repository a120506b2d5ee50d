// Thrust, which looks at attributes, occupancy and errors all the time.
// stdout: 0 1 2 3 4950 no error
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <cstdio>
int main() {
  thrust::device_vector<int> v(100);
  thrust::sequence(v.rbegin(), v.rend());
  thrust::sort(v.begin(), v.end());
  int sum = thrust::reduce(v.begin(), v.end());
  int a = v[0], b = v[1], c = v[2], d = v[3];
  printf("%d %d %d %d %d %s\n", a, b, c, d, sum, cudaGetErrorString(cudaGetLastError()));
}
