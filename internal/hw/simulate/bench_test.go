package simulate

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cputime"
	"fencepost.dev/fencepost/internal/hw/machine"
	"fencepost.dev/fencepost/internal/hw/programs"
)

// BenchmarkDesigns measures a single design on one core, with the events of a program in memory.
func BenchmarkDesigns(b *testing.B) {
	for _, p := range programs.List() {
		var events []cpu.Event
		p.Events(16, 2_000_000, func(batch []cpu.Event) { events = append(events, batch...) })
		for _, design := range append([]Design{{Name: "none"}}, Designs()[:3]...) {
			b.Run(p.Name+"/"+design.Name, func(b *testing.B) {
				begin := cputime.Used()
				for b.Loop() {
					run := func(events []cpu.Event) {}
					if design.start != nil {
						run = design.start(machine.Thesis(), func(cpu.Race) {}).Events
					} else {
						base := machine.NewBase(machine.Thesis())
						run = func(events []cpu.Event) {
							for i := range events {
								base.Step(&events[i])
							}
						}
					}
					for part := range slices.Chunk(events, batch) {
						run(part)
					}
				}
				b.ReportMetric(float64(b.N*len(events))/(cputime.Used()-begin).Seconds()/1e6, "Mevents/cpu-s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
