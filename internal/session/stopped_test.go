package session

import (
	"testing"
	"time"
)

// TestWhereabouts checks that a run which --timeout ends says where its threads were: an endless loop is there.
func TestWhereabouts(t *testing.T) {
	r := mustCheck(t, &Options{Timeout: 200 * time.Millisecond}, "kernel = \"spin\"\ngrid = 2\nblock = 33")
	requireSkipped(t, r, "launch 1 of spin: stopped: the --timeout has passed; it had 66 threads at k.ptx:")
}
