// Package testsize chooses how much the tests do that take random inputs, or all of the corpus several times.
package testsize

import (
	"os"
	"testing"
)

// Long reports whether the tests may take as long as in CI, which sets FENCEPOST_TESTS=long.
func Long() bool { return os.Getenv("FENCEPOST_TESTS") == "long" && !testing.Short() }
