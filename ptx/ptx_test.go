package ptx

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// mustParse parses valid text.
func mustParse(t testing.TB, name, src string) *Module {
	t.Helper()
	m, err := Parse(name, src)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func printed(t testing.TB, m *Module) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// clearPos sets every Pos under v to zero, so that trees can be compared.
func clearPos(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			clearPos(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			clearPos(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Pos]() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			clearPos(v.Field(i))
		}
	}
}

// roundTrip checks that src parses, and that printing and parsing again gives the same tree and the same text.
func roundTrip(t testing.TB, name, src string) string {
	t.Helper()
	a := mustParse(t, name, src)
	text := printed(t, a)
	b, err := Parse(name, text)
	if err != nil {
		t.Fatalf("printed module does not parse: %v\n%s", err, text)
	}
	if again := printed(t, b); again != text {
		t.Errorf("second printing differs:\n%s", firstDiff(text, again))
	}
	clearPos(reflect.ValueOf(a))
	clearPos(reflect.ValueOf(b))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("tree differs after printing:\n%s", text)
	}
	return text
}

func firstDiff(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// files returns the PTX files of a folder of testdata.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.ptx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in testdata/%s: %v", dir, err)
	}
	m := make(map[string]string)
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		m[p] = string(b)
	}
	return m
}

// TestRoundTrip parses and prints the output of compilers (nvcc, clang) and hand-written modules.
func TestRoundTrip(t *testing.T) {
	for _, dir := range []string{"compiler", "hand"} {
		for path, src := range files(t, dir) {
			t.Run(path, func(t *testing.T) {
				roundTrip(t, path, src)
				crlf := strings.ReplaceAll(src, "\n", "\r\n") + "\r\n\x00\x00\x00\x00"
				roundTrip(t, path+" with CRLF and NUL padding", crlf)
			})
		}
	}
}
