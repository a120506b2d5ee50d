package cuda

import (
	"fmt"
	"testing"
)

func TestFormals(t *testing.T) {
	const source = `
#define KERNEL(n) __global__ void hidden(int *n)
// __global__ void plain(int *comment);
/* __global__ void plain(int *comment); */
static const char *text = "__global__ void plain(int *\"text)", quote = '"';
static const char *raw = R"x(__global__ void plain(int *raw) )" )x";
extern "C" __global__ void plain(int *data, const unsigned int *__restrict__ in, float values[16], int n = 3 + f(1, 2));
__global__ void __launch_bounds__(256, 2) bounded(double const *x) { x[0] = 1; }
template <class T, int N = (1 > 0)> __global__ void scale(T *out, const Pair<T, int> *in, float4 *quads) {}
template __global__ void scale<float>(float *, const Pair<float, int> *, float4 *);
namespace a { __attribute__((used)) __global__ auto spaced(std::size_t, ::size_t *p, float **rows, int (*call)(int), unsigned) -> void; }
__global__ void twice(int *x); __global__ void twice(float *y);
__global__ void none(void) {}
__global__ void packed(Args... args) {}
__global__ int *variable;
__global__ void unfinished(int *x`
	for _, c := range []struct {
		kernel string
		n      int
		want   string
	}{
		{"plain", 4, "[{data int} {in unsigned int} {values float} {n }]"},
		{"plain", 3, "[]"},
		{"_Z7boundedPKd", 1, "[{x double}]"},
		{"_Z5scaleIfLi1EEvPT_PKSt4PairIS0_iEP6float4", 3, "[{out } {in } {quads float4}]"},
		{"_ZN1a6spacedEmPmPPfPFiiEj", 5, "[{ } {p } {rows } { } { }]"},
		{"_Z5twicePi", 1, "[]"},
		{"none", 0, "[]"},
		{"packed", 1, "[]"},
		{"hidden", 1, "[]"},
		{"variable", 1, "[]"},
		{"unfinished", 1, "[]"},
	} {
		if got := fmt.Sprint(formals(source, c.kernel, c.n)); got != c.want {
			t.Errorf("%s: %s, want %s", c.kernel, got, c.want)
		}
	}
}
