package session

import (
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/flow"
	"fencepost.dev/fencepost/internal/report"
)

// TestStreamCause checks that races of one operation with several operations of another stream have one cause.
func TestStreamCause(t *testing.T) {
	const later = "aten::mul.Tensor (stream 5)\nt.py:7 <module>"
	allocated, filled := streamCause("cudaMallocAsync (default stream)\nt.py:2 <module>", later), streamCause("aten::fill_ (default stream)\nt.py:3 <module>", later)
	if allocated == nil || filled == nil || allocated.Key != filled.Key {
		t.Errorf("%+v, %+v", allocated, filled)
	}
	for _, other := range []*report.Cause{streamCause("aten::fill_ (stream 4)\nt.py:3 <module>", later), streamCause("aten::fill_ (default stream)\nt.py:3 <module>", later+"2")} {
		if other == nil || other.Key == filled.Key {
			t.Errorf("%+v", other)
		}
	}
	if got := streamCause("cudaFree\nt.py:3 <module>", later); got != nil {
		t.Errorf("%+v", got)
	}
}

// TestCodeOfTrace checks that a trace with inconsistent control flow has no code, and that the time to read a large one
// is bounded.
func TestCodeOfTrace(t *testing.T) {
	good := &flow.Code{Function: "k", File: "k.ptx", Lines: []int{7}, Jumps: map[int][]int{0: {}}}
	at := event.Frame{Function: "k", PTXFile: "k.ptx"}
	for _, c := range []struct {
		code  []*flow.Code
		index int
		ok    bool
	}{
		{[]*flow.Code{good}, 0, true},
		{[]*flow.Code{good}, 1, false},
		{[]*flow.Code{good}, -1, false},
		{[]*flow.Code{good, nil}, 0, false},
		{[]*flow.Code{good, {}}, 0, false},
	} {
		names := &traceNames{appendix: &appendix{Code: c.code, Launched: map[uint32][]int{3: {c.index}}}}
		names.checkCode()
		if got := names.code(at, 3); (got != nil) != c.ok {
			t.Errorf("%+v: %+v", c, got)
		}
		if got := names.code(at, 4); got != nil {
			t.Errorf("of another launch: %+v", got)
		}
		names.budget = wholeBudget
		if got := names.code(at, 3); got != nil {
			t.Errorf("beyond the budget: %+v", got)
		}
	}
}
