package record

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// TestPlaces checks that each access has its own line, and that there are no accesses that the program does not make,
// although compilers merge, move and vectorise accesses.
func TestPlaces(t *testing.T) {
	const text = `
#include <pthread.h>
struct pair { long left, right; } pair;
int tail, sides, left, right, many[64], marks[64], some[64];
struct { long a, b, c, d; } record;
static __thread volatile int sink;
__attribute__((noinline)) static void same_end(long second) {
	if (second) {
		sink = 1;
		tail++; // want race
		sink = 3;
	} else {
		sink = 2;
		tail++; // want race
		sink = 3;
	}
}
__attribute__((noinline)) static int reads(long second) {
	if (second)
		return sides + 1; // want race
	else
		return sides * 3;
}
__attribute__((noinline)) static long one_of_two(long second) { return second ? right : left; }
__attribute__((noinline)) static long one_of_pair(struct pair *p, long second) { return second ? p->right : p->left; }
__attribute__((noinline)) static void write_one_of_two(long second) {
	if (second)
		right = pair.right = 1;
	else
		left = pair.left = 1;
}
__attribute__((noinline)) static int chosen(long second) {
	int sum = 0;
	for (int i = 0; i < 64; i++)
		if (marks[i] == second)
			sum += some[i];
	return sum;
}
__attribute__((noinline)) static void write_chosen(long second) {
	for (int i = 0; i < 64; i++)
		if (marks[i] == second)
			some[i] = i;
}
static void *work(void *second) {
	same_end((long)second);
	if (second)
		sink = reads((long)second);
	else
		sides = 2; // want race
	write_one_of_two((long)second);
	sink = one_of_two((long)second) + one_of_pair(&pair, (long)second);
	write_chosen((long)second);
	sink = chosen((long)second);
	for (int i = 0; i < 64; i++)
		many[i]++; // want race
	record.a = 1; // want race
	record.b = 2; // want race
	record.c = 3; // want race
	record.d = 4; // want race
	return 0;
}
static void *write_part(void *of) {
	((int *)of)[3] = 1; // want race
	return 0;
}
int main(void) {
	pthread_t t;
	int local[8] = {0};
	pthread_create(&t, 0, write_part, local);
	local[3] = 2; // want race
	pthread_join(t, 0);
	for (int i = 0; i < 64; i += 3)
		marks[i] = 1;
	pthread_create(&t, 0, work, (void *)1);
	work(0);
	pthread_join(t, 0);
	return 0;
}
`
	source := filepath.Join(t.TempDir(), "places.c")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range compilers(t) {
		levels := [][]string{{"-O1"}, {"-O2"}, {"-O3"}}
		if runtime.GOARCH == "amd64" {
			levels = append(levels, []string{"-O3", "-mavx2"})
		}
		for _, flags := range levels {
			rep, _, _ := judged(t, fasttrack.Spec, compileProgram(t, c(source), source, flags...))
			t.Log(name, flags)
			compareLines(t, source, rep)
		}
	}
}
