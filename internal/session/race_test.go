//go:build race

package session

// slower is how many times more a test may take than without the race detector.
const slower = 8
