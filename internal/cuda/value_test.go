package cuda

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/engine/devmem"
)

// TestValueOrder follows which launches come before one that is after a wait for a value.
func TestValueOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *script, a, b StreamID, at uint64)
		want []uint32
	}{
		{"written before the wait", func(s *script, a, b StreamID, at uint64) {
			s.launch(a)
			s.must(s.c.StreamValue(ValueOp{Addr: at, Value: 1, Size: 4}, a, 0))
			s.launch(a) // not before what waits
			s.must(s.c.StreamValue(ValueOp{Addr: at, Value: 1, Size: 4, Wait: true, Condition: 1}, b, 0))
			s.launch(b)
		}, []uint32{2}},
		{"written after the wait", func(s *script, a, b StreamID, at uint64) {
			s.must(s.c.StreamValue(ValueOp{Addr: at, Value: 1, Size: 8, Wait: true}, b, 0))
			s.launch(a)
			s.must(s.c.StreamValue(ValueOp{Addr: at, Value: 2, Size: 8}, a, 0))
			s.launch(b)
		}, []uint32{2}},
		{"written by no stream", func(s *script, a, b StreamID, at uint64) {
			s.launch(a)
			s.must(s.c.StreamValue(ValueOp{Addr: at, Size: 4, Wait: true}, b, 0))
			s.launch(b)
		}, []uint32{1, 2}},
		{"another value", func(s *script, a, b StreamID, at uint64) {
			s.launch(a)
			s.must(s.c.StreamValue(ValueOp{Addr: at, Value: 1, Size: 4}, a, 0))
			s.must(s.c.StreamValue(ValueOp{Addr: at, Value: 2, Size: 4, Wait: true, Condition: 1}, b, 0))
			if err := s.c.SynchronizeStream(b, 0); codeOf(err) != NotSupported {
				s.Errorf("a wait for a stream that waits gives %v", err)
			}
			if err := s.c.Synchronize(); codeOf(err) != NotSupported {
				s.Errorf("a wait for the device gives %v", err)
			}
			s.launch(a)
		}, []uint32{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t)
			at, err := s.c.Malloc(16, devmem.DeviceAlloc)
			s.must(err)
			a, b, third := s.stream(StreamNonBlocking), s.stream(StreamNonBlocking), s.stream(StreamNonBlocking)
			s.launch(third)
			c.do(s, a, b, at)
			if got := sortedKeys(s.log.before[uint32(len(s.log.before))]); !slices.Equal(got, c.want) {
				t.Errorf("the last launch comes after %v, want %v", got, c.want)
			}
		})
	}
}
