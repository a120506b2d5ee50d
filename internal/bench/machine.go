package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"fencepost.dev/fencepost/internal/cputime"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
)

// Setup selects how to run a kernel.
type Setup struct {
	Variant  Variant
	Engine   func() engine.Engine
	Detector *detect.Spec // nil for none
	Seed     uint64       // of the schedule
	// Discard makes the events that Detector needs, but does not pass them on.
	Discard bool
	// Warm first runs the kernel without the detector, so that the time does not include the preparation of code.
	Warm bool
	// Meter measures the metadata of Detector. This takes time.
	Meter bool
}

// Run is the result of running a kernel.
type Run struct {
	// Elapsed is the time of the host program with its launches, without allocations and copies. It is the processor
	// time of the process, so other processes hardly affect it. Wall is the elapsed time.
	Elapsed  time.Duration
	Wall     time.Duration
	Stats    engine.Stats // summed over the launches
	Results  [][]byte
	Findings []detect.Finding
	Faults   []engine.Fault
	// Memory is the size of the detector's metadata in bytes at the end of a launch, if Setup.Meter is set. It is the
	// maximum over all launches, or 0 if the detector does not count metadata.
	Memory uint64

	stopped error // the error of the first launch that did not complete
}

// Execute runs a problem of kernel k.
func (k *Kernel) Execute(ctx context.Context, p *Problem, s Setup) (*Run, error) {
	run := &Run{}
	sink := &relay{}
	cfg := cuda.Config{Engine: s.Engine(), Places: places.New(), Seed: s.Seed,
		OnFault:  func(f engine.Fault) { run.Faults = append(run.Faults, f) },
		OnLaunch: run.launched}
	if s.Detector != nil {
		cfg.Sink, cfg.Needs = sink, s.Detector.Needs
		if s.Detector.Lockstep {
			cfg.Schedule = engine.Lockstep
		}
	}
	dev, err := cuda.NewDevice(cfg)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	text, err := k.PTX(s.Variant)
	if err != nil {
		return nil, err
	}
	api := dev.NewContext()
	mod, err := api.LoadModule(cuda.Image{Name: k.Name + s.Variant.suffix(), Text: text})
	if err != nil {
		return nil, err
	}
	m := &machine{ctx: ctx, api: api, mod: mod, problem: p}
	if s.Warm {
		if err := m.host(); err != nil {
			return nil, err
		}
		*run = Run{}
	}
	var detector detect.Detector
	if s.Detector != nil && !s.Discard {
		detector = s.Detector.New(detect.Config{Places: dev.Places()})
		m.judges = detect.NewJudges(runtime.GOMAXPROCS(0), detector)
		sink.to = m.judges
	}
	if c, ok := detector.(detect.Metered); ok && s.Meter {
		sink.to = &meter{sink: detector, metered: c, run: run}
	}
	if err := m.host(); err != nil {
		return nil, fmt.Errorf("%s: %w", k.Name, errors.Join(err, run.stopped))
	}
	run.Elapsed, run.Wall, run.Results = m.elapsed, m.wall, m.results
	if detector != nil {
		for _, d := range m.judges.Defects() {
			return nil, fmt.Errorf("%s: %w", k.Name, d)
		}
		run.Findings = detector.Findings()
	}
	return run, nil
}

func (r *Run) launched(l cuda.LaunchReport) {
	r.Stats.Lanes += l.Stats.Lanes
	r.Stats.Warps += l.Stats.Warps
	r.Stats.Blocks += l.Stats.Blocks
	r.Stats.Threads += l.Stats.Threads
	r.Stats.Elapsed += l.Stats.Elapsed
	if l.Err != nil && r.stopped == nil {
		r.stopped = l.Err
	}
}

// relay is a sink that passes events to another sink, which can be set later.
type relay struct{ to event.Sink }

// Events implements event.Sink.
func (r *relay) Events(b *event.Batch) {
	if r.to != nil {
		r.to.Events(b)
	}
}

// Take implements event.Taker.
func (r *relay) Take(b *event.Batch) {
	if r.to != nil {
		event.Hand(r.to, b)
	}
}

// meter measures a detector's metadata before the last events of each launch, when they are largest.
type meter struct {
	sink    event.Sink
	metered detect.Metered // the same value as sink
	run     *Run
}

// Events implements event.Sink.
func (m *meter) Events(b *event.Batch) {
	if before, end, ok := b.CutEnd(); ok {
		m.sink.Events(&before)
		m.run.Memory = max(m.run.Memory, m.metered.MemoryBytes())
		b = &end
	}
	m.sink.Events(b)
}

// machine drives a device. It implements Machine.
type machine struct {
	ctx     context.Context
	api     *cuda.Context
	mod     *cuda.Module
	problem *Problem
	addrs   []uint64
	results [][]byte
	judges  *detect.Judges // nil for none
	elapsed time.Duration
	wall    time.Duration
}

// host allocates the buffers, runs the host program, reads the results, and frees the buffers.
func (m *machine) host() error {
	m.addrs = nil
	for _, b := range m.problem.Buffers {
		addr, err := m.api.Malloc(uint64(len(b.Data)), devmem.DeviceAlloc)
		if err != nil {
			return err
		}
		m.addrs = append(m.addrs, addr)
		if err := m.api.Write(addr, b.Data); err != nil {
			return err
		}
	}
	runtime.GC() // otherwise garbage from preparing the code would be collected during the measurement
	begin, used := time.Now(), cputime.Used()
	err := m.problem.Host(m)
	if m.judges != nil {
		m.judges.Wait()
	}
	m.wall, m.elapsed = time.Since(begin), cputime.Used()-used
	if err != nil {
		return err
	}
	m.results = m.problem.results()
	next := 0
	for i, b := range m.problem.Buffers {
		if b.Role == Result {
			if err := m.api.Read(m.addrs[i], m.results[next]); err != nil {
				return err
			}
			next++
		}
	}
	for _, addr := range m.addrs {
		if err := m.api.Free(addr); err != nil {
			return err
		}
	}
	return nil
}

// Launch implements Machine.
func (m *machine) Launch(kernel string, grid, block event.Dim3, args ...any) error {
	k, err := m.mod.Kernel(kernel)
	if err != nil {
		return err
	}
	want := k.Params()
	if len(args) != len(want) {
		return fmt.Errorf("%s has %d parameters, and there are %d arguments", kernel, len(want), len(args))
	}
	params := make([]byte, k.ParamSize())
	for i, p := range want {
		var value []byte
		switch a := args[i].(type) {
		case Ref:
			value = binary.LittleEndian.AppendUint64(nil, m.addrs[a])
		case int32:
			value = binary.LittleEndian.AppendUint32(nil, uint32(a))
		case uint32:
			value = binary.LittleEndian.AppendUint32(nil, a)
		case float32:
			value = binary.LittleEndian.AppendUint32(nil, math.Float32bits(a))
		}
		if len(value) != p.Size {
			return fmt.Errorf("argument %d of %s has %d bytes, and the parameter has %d", i+1, kernel, len(value), p.Size)
		}
		copy(params[p.Off:], value)
	}
	if err := m.api.Launch(m.ctx, k, cuda.LaunchConfig{Grid: grid, Block: block}, params); err != nil {
		return err
	}
	return m.ctx.Err()
}

// Word implements Machine.
func (m *machine) Word(buffer Ref) (uint32, error) {
	var b [4]byte
	err := m.api.Read(m.addrs[buffer], b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// SetWord implements Machine.
func (m *machine) SetWord(buffer Ref, v uint32) error {
	return m.api.Write(m.addrs[buffer], binary.LittleEndian.AppendUint32(nil, v))
}

// Check returns an error if a run has findings, faults or wrong results.
func (r *Run) Check(k *Kernel, want [][]byte) error {
	var errs []error
	for _, f := range r.Findings {
		errs = append(errs, fmt.Errorf("%s: finding %s: %s", k.Name, f.Kind, f.Message))
	}
	for _, f := range r.Faults {
		errs = append(errs, fmt.Errorf("%s: fault %s: %s", k.Name, f.Kind, f.Message))
	}
	if want != nil {
		if err := k.Compare(r.Results, want); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", k.Name, err))
		}
	}
	return errors.Join(errs...)
}
