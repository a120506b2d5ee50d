// Package all lists the detectors.
package all

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/barracuda"
	"fencepost.dev/fencepost/internal/detect/curd"
	"fencepost.dev/fencepost/internal/detect/foreign"
	"fencepost.dev/fencepost/internal/detect/gwcp"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/detect/iguard"
	"fencepost.dev/fencepost/internal/detect/racecheck"
	"fencepost.dev/fencepost/internal/detect/readonly"
	"fencepost.dev/fencepost/internal/detect/scord"
	"fencepost.dev/fencepost/internal/detect/uninit"
)

// Default returns the detectors of a run that does not select any. They report all races of the observed order, and the
// races that other orders of the same critical sections would show.
func Default() []detect.Spec {
	predicted, err := detect.Choose(Detectors(), "gwcp:report=predicted")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return []detect.Spec{defaultSpec(), predicted}
}

// Detectors returns all detectors, the default one first.
func Detectors() []detect.Spec {
	return []detect.Spec{defaultSpec(), barracuda.Spec, barracuda.PlusSpec, curd.Spec, gwcp.Spec, scord.Spec, scord.Cached, iguard.Spec, racecheck.Spec, hirace.Spec}
}

// Uninit returns the detector of uninitialised reads, which runs in addition to race detectors. report is a value of
// its option.
func Uninit(report string) detect.Spec {
	spec, err := detect.Choose([]detect.Spec{uninit.Spec}, uninit.Spec.Name+":report="+report)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return spec
}

// defaultSpec is hb, extended to find read-only loads and uses of foreign pointers.
func defaultSpec() detect.Spec {
	spec := hb.Spec
	spec.New = func(c detect.Config) detect.Detector {
		return foreign.Beside(readonly.Beside(hb.Spec.New(c), spec.Name, c), spec.Name, c)
	}
	return spec
}
