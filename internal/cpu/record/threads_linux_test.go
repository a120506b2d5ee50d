package record

import (
	"os"
	"path/filepath"
	"testing"

	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// Programs of POSIX threads that were once judged wrong.
var threadPrograms = []struct{ name, text string }{
	{"many locks held for writing", `
#include <pthread.h>
enum { N = 40 };
static pthread_rwlock_t l[N];
int x;
static void *work(void *p) {
	for (int i = 0; i < N; i++)
		pthread_rwlock_wrlock(&l[i]);
	for (int i = 0; i < N; i++)
		pthread_rwlock_unlock(&l[i]);
	x++; // want race
	return p;
}
int main(void) {
	pthread_t t[2];
	for (int i = 0; i < N; i++)
		pthread_rwlock_init(&l[i], 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
`},
}

func TestThreads(t *testing.T) {
	for name, c := range compilers(t) {
		for _, p := range threadPrograms {
			t.Run(name+"/"+p.name, func(t *testing.T) {
				source := filepath.Join(t.TempDir(), "program.c")
				if err := os.WriteFile(source, []byte(p.text), 0o644); err != nil {
					t.Fatal(err)
				}
				rep, r, out := judged(t, fasttrack.Spec, compileProgram(t, c(source), source, "-pthread"))
				if r.Exit != 0 {
					t.Errorf("exit code %d: %s", r.Exit, out)
				}
				compareLines(t, source, rep)
			})
		}
	}
}
