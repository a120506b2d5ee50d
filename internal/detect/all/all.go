// Package all lists the detectors.
package all

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/barracuda"
	"fencepost.dev/fencepost/internal/detect/curd"
	"fencepost.dev/fencepost/internal/detect/gwcp"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/detect/iguard"
	"fencepost.dev/fencepost/internal/detect/racecheck"
	"fencepost.dev/fencepost/internal/detect/scord"
)

// Detectors gives every detector, the default one first.
func Detectors() []detect.Spec {
	return []detect.Spec{hb.Spec, barracuda.Spec, barracuda.PlusSpec, curd.Spec, gwcp.Spec, scord.Spec, scord.Cached, iguard.Spec, racecheck.Spec, hirace.Spec}
}
