// Package all lists the detectors of CPU traces.
package all

import (
	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
	"fencepost.dev/fencepost/internal/cpu/wcp"
)

// Default returns the default detectors: for races of the observed execution, and of others.
func Default() []cpu.Spec { return []cpu.Spec{fasttrack.Spec, wcp.Spec} }

// Detectors returns every detector.
func Detectors() []cpu.Spec { return []cpu.Spec{fasttrack.Spec, slimfast.Spec, wcp.Spec} }
