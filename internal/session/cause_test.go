package session

import (
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/flow"
)

// TestCodeOfTrace: a trace whose control flow is not consistent has none, and much of it is not looked at for ever.
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
