//go:build !race

package session

import "testing"

// slower is how many times more a test may take than without the race detector.
const slower = 1

func sequential(*testing.T) {}
