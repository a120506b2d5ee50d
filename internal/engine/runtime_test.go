package engine

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
)

// TestRuntimeCalls checks that the calls of the device runtime that package isa knows are those that exist.
func TestRuntimeCalls(t *testing.T) {
	calls := isa.DeviceRuntimeCalls()
	for _, name := range calls {
		if deviceRuntime[name] == nil {
			t.Errorf("%s is not supplied", name)
		}
	}
	for name := range deviceRuntime {
		if !slices.Contains(calls, name) {
			t.Errorf("%s is not known", name)
		}
	}
}
