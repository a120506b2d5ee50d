// Package testsize chooses how much the tests do that take random inputs, or all of the corpus several times.
package testsize

import (
	"os"
	"runtime/debug"
	"testing"
)

// A test keeps a few megabytes and makes gigabytes of garbage. Collecting it less often takes a third of the time from the
// longest packages. GOGC overrides this.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Long reports whether the tests may take as long as in CI, which sets FENCEPOST_TESTS=long.
func Long() bool { return os.Getenv("FENCEPOST_TESTS") == "long" && !testing.Short() }

// Of gives the first number where tests are to be short (go test -short), the last one where they may be long, and plain otherwise.
func Of(short, plain, long int) int {
	switch {
	case testing.Short():
		return short
	case Long():
		return long
	}
	return plain
}
