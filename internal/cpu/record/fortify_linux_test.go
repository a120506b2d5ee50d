package record

import (
	"os"
	"path/filepath"
	"testing"

	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// TestFortified checks that copies of a known size and prints are recorded even if the default flags of a distribution
// request checks of sizes. Clang 15 calls the recorder's functions for copies.
func TestFortified(t *testing.T) {
	const source = `
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
char to[32], from[32], more[32], text[32];
void *__tsan_memcpy(void *, const void *, size_t);
static void *work(void *unused) {
	memcpy(to, from, 16);
	__tsan_memcpy(more, from, 16);
	snprintf(text, sizeof text, "%p", unused);
	return unused;
}
int main(void) {
	pthread_t t[2];
	pthread_create(&t[0], NULL, work, NULL);
	pthread_create(&t[1], NULL, work, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return 0;
}
`
	for name, c := range compilers(t) {
		file := filepath.Join(t.TempDir(), "fortified.c")
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		rep, _, _ := judged(t, fasttrack.Spec, compileProgram(t, c(file), file, "-O2", "-D_FORTIFY_SOURCE=2"))
		found := map[string]bool{}
		for _, f := range rep.Findings {
			found[f.Accesses[0].Object.Name] = true
		}
		if !found["to"] || !found["more"] || !found["text"] {
			t.Errorf("%s: races on %v", name, found)
		}
	}
}
