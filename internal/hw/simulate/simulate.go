// Package simulate runs traces and programs on simulated processors with race detectors in hardware. It makes the
// tables and figures of seed 001, section 4.4, from their counts.
package simulate

import (
	"errors"
	"fmt"
	"sync"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/hw/machine"
	"fencepost.dev/fencepost/internal/hw/parsnip"
	"fencepost.dev/fencepost/internal/hw/radish"
)

// Design is a race detector in hardware as a value in a list.
type Design struct {
	Name, Doc string
	start     func(c machine.Config, found func(cpu.Race)) processor
}

// processor runs events.
type processor interface {
	Events(events []cpu.Event)
	// result stores the counts in r. It returns an error if the trace could not be run to its end.
	result(r *DesignResult) error
}

// Designs returns every design.
func Designs() []Design {
	variant := func(name, doc string, change func(*parsnip.Options)) Design {
		return Design{name, doc, func(c machine.Config, found func(cpu.Race)) processor {
			o := parsnip.Thesis()
			o.Machine = c
			change(&o)
			return parsnipRun{parsnip.New(o, found)}
		}}
	}
	typeSafety := func(name, doc string, on bool) Design {
		return Design{name, doc, func(c machine.Config, found func(cpu.Race)) processor {
			return radishRun{radish.New(c, on, found)}
		}}
	}
	return []Design{
		variant("parsnip", "PARSNIP: references to a few clocks, beside the data in the caches", func(*parsnip.Options) {}),
		typeSafety("radish", "metadata of each byte in the caches, after Radish", false),
		typeSafety("radish-ts", "radish that assumes type safety: metadata of each variable", true),
		variant("parsnip-no-buffers", "parsnip without epoch store buffers", func(o *parsnip.Options) { o.BufferEntries = 0 }),
		variant("parsnip-no-speculation", "parsnip without access history prediction", func(o *parsnip.Options) { o.Predict = false }),
		variant("parsnip-l1", "parsnip whose lines stay in L1 alone", func(o *parsnip.Options) { o.Residence = parsnip.L1 }),
		variant("parsnip-llc", "parsnip whose lines go where data go", func(o *parsnip.Options) { o.Residence = parsnip.LLC }),
	}
}

// Result is a run of one program or trace.
type Result struct {
	Program string         `json:"program"`
	Threads int            `json:"threads"`
	Base    machine.Counts `json:"base"`
	Designs []DesignResult `json:"designs"`
}

// DesignResult is the result of a design in a run.
type DesignResult struct {
	Design   string         `json:"design"`
	Counts   machine.Counts `json:"counts"`
	Slowdown float64        `json:"slowdown"` // cycles per instruction, relative to those without race detection
	// RacyVariables is the number of variables with a race, and Races the number of accesses that race.
	RacyVariables int            `json:"racy_variables"`
	Races         uint64         `json:"races"`
	Parsnip       *ParsnipResult `json:"parsnip,omitempty"`
	Radish        *RadishResult  `json:"radish,omitempty"`
}

// ParsnipResult are the counts of a design of the PARSNIP family.
type ParsnipResult struct {
	Resolved    ParsnipSources `json:"resolved"`        // checks, figure 4.10
	Overhead    ParsnipCosts   `json:"overhead_cycles"` // figure 4.11
	Drains      uint64         `json:"epoch_buffer_drains"`
	Evictions   uint64         `json:"line_evictions"`
	Rejections  uint64         `json:"table_rejections"`
	Checks      uint64         `json:"software_checks"`
	Rewrites    uint64         `json:"line_mode_changes"`
	Switches    uint64         `json:"residence_changes"`
	Histories   []uint64       `json:"histories_per_line"` // [i]: lines with i distinct references; the last entry: more than 16
	MemoryBytes uint64         `json:"memory_bytes"`
}

// ParsnipSources are the checks that each source resolved.
type ParsnipSources struct {
	Capability uint64 `json:"capability"`
	Local      uint64 `json:"local_table"`
	Remote     uint64 `json:"remote_table"`
	Buffer     uint64 `json:"epoch_buffer"`
	Software   uint64 `json:"software"`
	Missing    uint64 `json:"line_not_cached"`
}

// ParsnipCosts are the cycles that each source costs.
type ParsnipCosts struct {
	LineAccess    uint64 `json:"line_access"`
	MissingLine   uint64 `json:"line_not_cached"`
	LocalTable    uint64 `json:"local_table"`
	RemoteTable   uint64 `json:"remote_table"`
	SoftwareCheck uint64 `json:"software_check"`
	BufferDrain   uint64 `json:"epoch_buffer_drain"`
}

// RadishResult are the counts of Radish: checks and cycles by source.
type RadishResult struct {
	Resolved RadishSources `json:"resolved"`
	Overhead RadishSources `json:"overhead_cycles"`
}

// RadishSources has a number for each source.
type RadishSources struct {
	Permission uint64 `json:"permission"`
	Metadata   uint64 `json:"metadata"`
	Readers    uint64 `json:"concurrent_readers"`
	Missing    uint64 `json:"metadata_not_cached"`
}

type parsnipRun struct{ *parsnip.Detector }

func (p parsnipRun) result(r *DesignResult) error {
	r.Counts = p.Base.Counts
	c := &p.Counts
	s, o := &c.Resolved, &c.Overhead
	r.Parsnip = &ParsnipResult{
		Resolved:  ParsnipSources{s[parsnip.Capability], s[parsnip.Local], s[parsnip.Remote], s[parsnip.Buffer], s[parsnip.Software], s[parsnip.Missing]},
		Overhead:  ParsnipCosts{o[parsnip.LineAccess], o[parsnip.MissingLine], o[parsnip.LocalTable], o[parsnip.RemoteTable], o[parsnip.SoftwareCheck], o[parsnip.BufferDrain]},
		Drains:    c.Drains,
		Evictions: c.Evictions, Rejections: c.Rejections, Checks: c.Checks, Rewrites: c.Rewrites, Switches: c.Switches,
		Histories: c.Histories[:], MemoryBytes: p.MemoryBytes()}
	return p.Err
}

type radishRun struct{ *radish.Detector }

func (p radishRun) result(r *DesignResult) error {
	r.Counts = p.Base.Counts
	sources := func(s *[radish.Sources]uint64) RadishSources {
		return RadishSources{s[radish.Permission], s[radish.Metadata], s[radish.Readers], s[radish.Missing]}
	}
	r.Radish = &RadishResult{sources(&p.Counts.Resolved), sources(&p.Counts.Overhead)}
	return p.Err
}

// batch is the number of events that processors receive at a time.
const batch = 1 << 14

// Source produces the events of a program or trace, in batches that it may reuse.
type Source func(out func([]cpu.Event)) error

// Run runs a program on a processor without race detection and on one with each of the designs. An error of a design is
// returned with the design's name. The results up to then are valid.
func Run(name string, c machine.Config, designs []Design, from Source) (*Result, error) {
	base := machine.NewBase(c)
	var all []func([]cpu.Event)
	out := &Result{Program: name, Designs: make([]DesignResult, len(designs))}
	var processors []processor
	for i, d := range designs {
		r := &out.Designs[i]
		r.Design = d.Name
		racy, last := map[uint32]bool{}, ^uint64(0)
		p := d.start(c, func(race cpu.Race) {
			racy[race.Variable] = true
			r.RacyVariables = len(racy)
			if race.Event != last {
				r.Races, last = r.Races+1, race.Event
			}
		})
		processors = append(processors, p)
		all = append(all, p.Events)
	}
	threads := map[uint16]bool{}
	native := func(events []cpu.Event) {
		for i := range events {
			if machine.Check(&events[i]) != nil {
				return // the designs report it
			}
			threads[events[i].Thread] = true
			base.Step(&events[i])
		}
	}
	err := feed(from, append(all, native))
	out.Base, out.Threads = base.Counts, len(threads)
	for i, p := range processors {
		r := &out.Designs[i]
		if e := p.result(r); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", r.Design, e))
		}
		r.Slowdown = r.Counts.CPI() / base.Counts.CPI()
	}
	return out, err
}

// feed passes the events to all processors, which run in parallel with each other and with the source.
func feed(from Source, all []func([]cpu.Event)) error {
	var full [2][]cpu.Event
	var running sync.WaitGroup
	at := 0
	flush := func() {
		running.Wait()
		events := full[at]
		for _, run := range all {
			running.Go(func() { run(events) })
		}
		at = 1 - at
		full[at] = full[at][:0]
	}
	err := from(func(events []cpu.Event) {
		if full[at] = append(full[at], events...); len(full[at]) >= batch {
			flush()
		}
	})
	flush()
	running.Wait()
	return err
}
