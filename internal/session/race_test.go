//go:build race

package session

import "testing"

// slower is how many times more a test may take than without the race detector.
const slower = 8

// sequential skips a test in which the race detector would find nothing more, because other tests do the same in
// goroutines.
func sequential(t *testing.T) {
	t.Helper()
	t.Skip("takes long under the race detector, which would find nothing more")
}
