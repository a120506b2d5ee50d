package engine

import (
	"testing"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
)

// TestStackFits checks the limits of the stack: 8192 calls, and 512 KB of local memory. Each frame begins at a multiple
// of 32 bytes.
func TestStackFits(t *testing.T) {
	for _, c := range []struct {
		depth, localAt int32
		frame          int
		want           bool
	}{{0, 0, 0, true}, {8191, 0, 16, true}, {8192, 0, 0, false}, {1, 1024, 523264, true}, {1, 1024, 523265, false}, {1, 524288, 0, true}, {1, 524289, 0, false}} {
		if got := StackFits(c.depth, c.localAt, &isa.Func{LocalFrame: c.frame}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, c := range []struct {
		from, want int32
		frame      int
	}{{0, 0, 0}, {0, 32, 1}, {0, 32, 32}, {32, 96, 33}, {64, 128, 64}} {
		if got := loader.FrameAt(c.from, &isa.Func{LocalFrame: c.frame}); got != c.want {
			t.Errorf("a frame of %d bytes from %d: the next begins at %d", c.frame, c.from, got)
		}
	}
}
