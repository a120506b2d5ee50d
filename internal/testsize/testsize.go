// Package testsize scales the tests that take random inputs, or the whole corpus several times.
package testsize

import (
	"os"
	"runtime/debug"
	"testing"
)

// A test keeps a few megabytes of memory and makes gigabytes of garbage. Collecting it less often saves a third of the
// time of the longest packages. GOGC overrides this.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Long reports whether the tests may take as long as in CI, which sets FENCEPOST_TESTS=long.
func Long() bool { return os.Getenv("FENCEPOST_TESTS") == "long" && !testing.Short() }

// Of returns short if tests are to be short (go test -short), long if they may be long, and plain otherwise.
func Of(short, plain, long int) int {
	switch {
	case testing.Short():
		return short
	case Long():
		return long
	}
	return plain
}
