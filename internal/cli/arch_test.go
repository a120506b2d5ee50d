package cli

import "testing"

// TestDevices checks that --arch takes nvcc's names, and that the device has that capability.
func TestDevices(t *testing.T) {
	names := devices()
	for name, want := range map[string]int{"sm_80": 80, "sm_89": 89, "sm_90a": 90, "sm_100f": 100, "sm_103a": 103, "sm_120a": 120, "sm_121f": 121,
		"sm_80a": 0, "sm_90f": 0, "sm_75": 0, "sm_100b": 0, "compute_90": 0} {
		if got := names[name]; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
