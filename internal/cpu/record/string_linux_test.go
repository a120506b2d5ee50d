package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu/fasttrack"
)

// stringCalls are calls of functions of the C library, by name. Each call accesses the last byte that another thread
// writes.
var stringCalls = map[string]string{
	"strnlen":           "sink = strnlen(s, 6)",
	"strncat":           "strncat(s, \"xyz\", 1)",
	"stpcpy":            "stpcpy(s, \"fedcba\")",
	"strchr":            "sink = strchr(s, 'f') != 0",
	"strrchr":           "sink = strrchr(s, 'a') != 0",
	"strstr":            "sink = strstr(s, \"ef\") != 0",
	"memchr":            "sink = memchr(s, 'f', 60) != 0",
	"strncmp":           "sink = strncmp(s, \"abcdex\", 6)",
	"strcasecmp":        "sink = strcasecmp(s, \"ABCDEX\")",
	"strncasecmp":       "sink = strncasecmp(s, \"ABCDEX\", 9)",
	"strdup":            "copy = strdup(s)",
	"strndup":           "copy = strndup(s, 6)",
	"bzero":             "bzero(s, 6)",
	"snprintf":          "snprintf(s, 60, \"%d\", 54321)",
	"sprintf":           "sprintf(s, \"edcba\")",
	"pwrite":            "pwrite(file, s, 6, 0)",
	"pread":             "pread(file, s, 6, 0)",
	"fwrite":            "fwrite(s, 2, 3, stream)",
	"fputs":             "fputs(s, stream)",
	"fread":             "rewind(stream), fread(s, 1, 6, stream)",
	"fgets":             "rewind(stream), fgets(s, 7, stream)",
	"recv":              "recv(ends[0], s, 6, 0)",
	"send":              "send(ends[0], s, 6, 0)",
	"__builtin_memcpy":  "__builtin_memcpy(s, \"fedcba\", 6)",
	"__builtin_memmove": "__builtin_memmove(s, \"fedcba\", 6)",
	"__builtin_memset":  "__builtin_memset(s, 'a', 6)",
	"mempcpy":           "mempcpy(s, \"fedcba\", 6)",
	"strspn":            "sink = strspn(s, \"abcde\")",
	"strcspn":           "sink = strcspn(s, \"f\")",
	"strpbrk":           "sink = strpbrk(s, \"xf\") != 0",
	"strtok_r":          "char *rest; sink = strtok_r(s, \"f\", &rest) != 0",
	"strtol":            "sink = strtol(s, NULL, 15)",
	"strtoull":          "sink = strtoull(s, NULL, 15)",
	"strtod":            "memcpy(s, \"12345\", 5), sink = strtod(s, NULL)",
	"atoi":              "memcpy(s, \"12345\", 5), sink = atoi(s)",
	"atof":              "memcpy(s, \"12345\", 5), sink = atof(s)",
	"qsort":             "qsort(s, 3, 2, equal)",
	"qsort_r":           "qsort_r(s, 3, 2, equal_r, NULL)",
	"wmemcpy":           "wmemcpy((wchar_t *)s, wide, 2)",
	"wmemmove":          "wmemmove((wchar_t *)s, wide, 2)",
	"wmemset":           "wmemset((wchar_t *)s, 0, 2)",
	"wcslen":            "sink = wcslen((wchar_t *)s)",
	"wcscpy":            "wcscpy((wchar_t *)s, wide)",
}

// TestStringFunctions checks that a function of the C library races with a thread that accesses the sixth byte, and not
// with a thread that accesses a byte that the function does not touch.
func TestStringFunctions(t *testing.T) {
	var text, declared, calls, writes strings.Builder
	for name, call := range stringCalls {
		fmt.Fprintf(&declared, "_Alignas(16) char of_%s[80] = \"abcdef\";\n", name)
		fmt.Fprintf(&calls, "\t{ char *s = of_%s; %s; }\n", name, call)
		fmt.Fprintf(&writes, "\tof_%s[5] = 'f', of_%[1]s[70] = 1;\n", name)
	}
	fmt.Fprintf(&text, `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wchar.h>
%s
static wchar_t wide[3] = L"ab";
static int equal(const void *a, const void *b) { return 0; }
static int equal_r(const void *a, const void *b, void *more) { return 0; }
static volatile long sink;
static char *volatile copy;
static int file, ends[2];
static FILE *stream;
static void *call(void *unused) {
%s	return unused;
}
static void *change(void *unused) {
%s	return unused;
}
int main(void) {
	pthread_t t[2];
	char *end = "none";
	if (strtol("1", &end, 1) || *end != 'n')
		return 1;
	stream = tmpfile(), file = fileno(stream);
	fputs("abcdefghi", stream), fflush(stream);
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	send(ends[1], "abcdef", 6, 0);
	pthread_create(&t[0], NULL, call, NULL);
	pthread_create(&t[1], NULL, change, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return 0;
}
`, &declared, &calls, &writes)
	for name, c := range compilers(t) {
		file := filepath.Join(t.TempDir(), "strings.c")
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		rep, r, out := judged(t, fasttrack.Spec, compileProgram(t, c(file), file))
		if r.Exit != 0 {
			t.Fatalf("%s: exit code %d: %s", name, r.Exit, out)
		}
		found := map[string]bool{}
		for _, f := range rep.Findings {
			o := f.Accesses[0].Object
			if found[o.Name] = true; o.Offset == 70 {
				t.Errorf("%s: a race on a byte of %s that nobody else accesses", name, o.Name)
			}
		}
		for call := range stringCalls {
			if !found["of_"+call] {
				t.Errorf("%s: no race of %s", name, call)
			}
		}
	}
}
