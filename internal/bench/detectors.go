package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/session"
)

// Detectors holds the costs of every detector, on one engine and one core.
type Detectors struct {
	Engine     string           `json:"engine"`
	Names      []string         `json:"detectors"`
	Kernels    []DetectorKernel `json:"kernels"`
	Suites     []DetectorSuite  `json:"suites"`
	Growth     []DetectorGrowth `json:"growth"`
	Compressed []Compression    `json:"compression"`
}

// DetectorKernel holds the costs of every detector on a kernel.
type DetectorKernel struct {
	Kernel    string  `json:"kernel"`
	Coalesced bool    `json:"coalesced"`
	Size      int     `json:"size"`
	Blocks    uint64  `json:"blocks"` // in all launches
	Bare      float64 `json:"bare_seconds"`
	Digest    string  `json:"digest"` // of the results without a detector; results with a detector must have the same
	Costs     []Cost  `json:"costs"`  // by detector
}

// Cost is the cost of a detector on a kernel.
type Cost struct {
	Detector        string  `json:"detector"`
	Seconds         float64 `json:"seconds"` // with events and judging; 0 if there is no number, for the reason Why
	OverBare        float64 `json:"over_bare"`
	MetadataPerByte float64 `json:"metadata_per_byte"` // of the buffers
	Findings        int     `json:"findings"`          // number of findings in a kernel that is free of races
	Why             string  `json:"why,omitempty"`
	Wrong           string  `json:"wrong,omitempty"` // how the results differ
}

// DetectorSuite holds the costs on the programs of a folder of the corpus. The time is that of all programs together,
// without the making of events, relative to the bare engine. The metadata are those of the program with the most.
type DetectorSuite struct {
	Suite    string    `json:"suite"`
	Programs int       `json:"programs"`
	OverBare []float64 `json:"over_bare"`      // by detector
	Metadata []uint64  `json:"metadata_bytes"` // by detector
}

// DetectorGrowth is a kernel with increasing numbers of blocks: figure 12 of PreDataR.
type DetectorGrowth struct {
	Kernel string       `json:"kernel"`
	Steps  []GrowthStep `json:"steps"`
}

// GrowthStep is the kernel with one number of blocks.
type GrowthStep struct {
	Blocks int    `json:"blocks"`
	Bare   Cost   `json:"bare"`
	Costs  []Cost `json:"costs"` // by detector
}

// Compression compares a detector with compressed clocks to the same detector without compression.
type Compression struct {
	Kernel string `json:"kernel"`
	Size   int    `json:"size"`
	On     Cost   `json:"on"`
	Off    Cost   `json:"off"`
}

// detectorBound is the maximum time of one run with a detector, including preparation.
const detectorBound = 10 * time.Second

// costGrowth are the kernels whose growth is measured: one with barriers and shared memory, one with locks.
var costGrowth = []struct {
	kernel  string
	perStep [3]int // elements of the first step, by Size
}{
	{"stencil", [3]int{4 * blockSize, 16 * blockSize, 64 * blockSize}},
	{"hashtable", [3]int{blockSize, blockSize, 2 * blockSize}},
}

// blockSteps are the numbers of blocks, relative to the first step.
var blockSteps = []int{1, 4, 16, 64}

// everyDetector returns all detectors, and gwcp as the default run uses it, with the names that select them.
func everyDetector() (names []string, specs []detect.Spec, err error) {
	for _, s := range all.Detectors() {
		names = append(names, s.Name)
		if s.Name == "gwcp" {
			names = append(names, "gwcp:report=predicted")
		}
	}
	for _, name := range names {
		s, err := detect.Choose(all.Detectors(), name)
		if err != nil {
			return nil, nil, err
		}
		specs = append(specs, s)
	}
	return names, specs, nil
}

// MeasureDetectors measures every detector on the last engine.
func (o *Options) MeasureDetectors(ctx context.Context) (*Detectors, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	names, specs, err := everyDetector()
	if err != nil {
		return nil, err
	}
	e := o.Engines[len(o.Engines)-1]
	out := &Detectors{Engine: e.Name, Names: names}
	for _, k := range o.kernels() {
		row, err := o.costs(ctx, k, k.New(k.Sizes[e.Size]), e, specs, nil)
		if err != nil {
			return nil, err
		}
		row.Size, row.Coalesced = k.Sizes[e.Size], k.Coalesced
		for i, name := range names {
			row.Costs[i].Detector = name
		}
		out.Kernels = append(out.Kernels, *row)
	}
	if out.Suites, err = o.suites(ctx, e, specs); err != nil {
		return nil, err
	}
	if out.Growth, err = o.detectorGrowth(ctx, e, names, specs); err != nil {
		return nil, err
	}
	out.Compressed, err = o.compression(ctx, e)
	return out, err
}

// costs measures detectors on a problem. It measures runs longer than a second once. It measures other runs once a
// round, alternating with the bare engine. A detector that got no number for a smaller problem gets none.
func (o *Options) costs(ctx context.Context, k *Kernel, p *Problem, e Engine, specs []detect.Spec, before []Cost) (*DetectorKernel, error) {
	first, err := k.Execute(ctx, p, Setup{Engine: e.New})
	if err != nil {
		return nil, err
	}
	row := &DetectorKernel{Kernel: k.Name, Blocks: first.Stats.Blocks, Digest: k.Digest(first.Results), Costs: make([]Cost, len(specs))}
	warm := first.Elapsed < time.Second
	for i := range specs {
		if before != nil && before[i].Why != "" {
			row.Costs[i].Why = before[i].Why + " with fewer blocks"
			continue
		}
		o.say("%s on %s: metadata of %s", k.Name, e.Name, specs[i].Name)
		if err := meterCost(ctx, k, p, e, &specs[i], first.Results, &row.Costs[i]); err != nil {
			return nil, err
		}
	}
	var bare []float64
	watched, over := make([][]float64, len(specs)), make([][]float64, len(specs))
	for round := range max(o.Rounds, 1) {
		o.say("%s on %s with every detector, round %d", k.Name, e.Name, round+1)
		now, err := seconds(ctx, k, p, Setup{Engine: e.New, Warm: warm})
		if err != nil {
			return nil, err
		}
		bare = append(bare, now)
		for i := range specs {
			c := &row.Costs[i]
			if c.Why != "" || round > 0 && c.Seconds > 1 {
				continue
			}
			if c.Seconds <= detectorBound.Seconds()/4 { // otherwise the time of the run that counted metadata is used
				if c.Seconds, err = seconds(ctx, k, p, Setup{Engine: e.New, Detector: &specs[i], Warm: warm}); err != nil {
					return nil, err
				}
			}
			watched[i], over[i] = append(watched[i], c.Seconds), append(over[i], c.Seconds/now)
		}
	}
	row.Bare = median(bare)
	for i := range specs {
		row.Costs[i].Seconds, row.Costs[i].OverBare = median(watched[i]), median(over[i])
	}
	return row, nil
}

// meterCost runs a problem with a detector once, within the bound. It records the detector's metadata and findings,
// whether the results are correct, and the approximate time.
func meterCost(ctx context.Context, k *Kernel, p *Problem, e Engine, spec *detect.Spec, want [][]byte, c *Cost) error {
	c.Detector = spec.Name
	run, why, err := k.bounded(ctx, p, Setup{Engine: e.New, Detector: spec, Meter: true}, detectorBound)
	if c.Why = why; err != nil || why != "" {
		return err
	}
	if err := k.Compare(run.Results, want); err != nil {
		c.Wrong = err.Error()
	}
	c.Seconds, c.Findings = run.Elapsed.Seconds(), len(run.Findings)
	c.MetadataPerByte = float64(run.Memory) / float64(p.Bytes())
	return nil
}

// bounded is Execute with a detector within a time limit. why tells why there is no run: if warps run in lockstep, a
// lane may wait forever for another lane of its warp.
func (k *Kernel) bounded(ctx context.Context, p *Problem, s Setup, bound time.Duration) (run *Run, why string, err error) {
	limited, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	run, err = k.Execute(limited, p, s)
	if s.Detector.Lockstep && errors.Is(err, engine.ErrDeadlock) {
		return nil, "is a deadlock (warps in lockstep)", nil
	}
	if limited.Err() == nil || ctx.Err() != nil {
		return run, "", err
	}
	why = fmt.Sprintf("did not end within %v", bound.Round(time.Second))
	if s.Detector.Lockstep {
		why += " (warps in lockstep)"
	}
	return nil, why, nil
}

// boundFor returns the time limit of runs with a detector, given the time without. A detector takes less than a hundred
// times that.
func boundFor(bare time.Duration) time.Duration { return max(detectorBound, 100*bare) }

func seconds(ctx context.Context, k *Kernel, p *Problem, s Setup) (float64, error) {
	runtime.GC()
	run, err := k.Execute(ctx, p, s)
	if err != nil {
		return 0, err
	}
	return run.Elapsed.Seconds(), nil
}

// suites compares the detectors on each folder of the corpus.
func (o *Options) suites(ctx context.Context, e Engine, specs []detect.Spec) ([]DetectorSuite, error) {
	programs, err := corpus.All()
	if err != nil {
		return nil, err
	}
	var out []DetectorSuite
	for len(programs) > 0 {
		n := 1
		for n < len(programs) && programs[n].Dir == programs[0].Dir {
			n++
		}
		o.say("corpus/%s with every detector", programs[0].Dir)
		s := DetectorSuite{Suite: programs[0].Dir, Programs: n}
		for rest := specs; len(rest) > 0; { // detectors with the same name are compared in separate calls
			now := 1
			for now < len(rest) && rest[now].Name != rest[now-1].Name {
				now++
			}
			if err := s.add(ctx, e, rest[:now], programs[:n]); err != nil {
				return nil, err
			}
			rest = rest[now:]
		}
		out, programs = append(out, s), programs[n:]
	}
	return out, nil
}

// add compares detectors with different names on the programs of the suite.
func (s *DetectorSuite) add(ctx context.Context, e Engine, specs []detect.Spec, programs []*corpus.Program) error {
	spent, bare, most := make([]float64, len(specs)), make([]float64, len(specs)), make([]uint64, len(specs))
	for _, r := range session.CompareCorpus(ctx, &session.Options{Engine: e.New, Jobs: 1, Detectors: specs}, programs) {
		if r.Err != nil {
			return r.Err
		}
		for i, d := range r.Report.Detectors {
			spent[i], bare[i], most[i] = spent[i]+d.Seconds, bare[i]+d.Bare, max(most[i], d.Metadata)
		}
	}
	for i := range specs {
		s.OverBare, s.Metadata = append(s.OverBare, 1+spent[i]/bare[i]), append(s.Metadata, most[i])
	}
	return nil
}

// detectorGrowth measures detectors on increasing numbers of blocks.
func (o *Options) detectorGrowth(ctx context.Context, e Engine, names []string, specs []detect.Spec) ([]DetectorGrowth, error) {
	var out []DetectorGrowth
	for _, g := range costGrowth {
		i := slices.IndexFunc(o.kernels(), func(k *Kernel) bool { return k.Name == g.kernel })
		if i < 0 {
			continue // not selected
		}
		k := o.kernels()[i]
		all := DetectorGrowth{Kernel: k.Name}
		var before []Cost
		for _, n := range blockSteps {
			size := n * g.perStep[e.Size]
			row, err := o.costs(ctx, k, k.New(size), e, specs, before)
			if err != nil {
				return nil, err
			}
			for i := range row.Costs {
				row.Costs[i].Detector = names[i]
			}
			before = row.Costs
			all.Steps = append(all.Steps, GrowthStep{size / blockSize, Cost{Seconds: row.Bare}, row.Costs})
		}
		out = append(out, all)
	}
	return out, nil
}

// compression compares detectors that compress clocks with the same detectors without compression, at sizes that the
// latter can handle.
func (o *Options) compression(ctx context.Context, e Engine) ([]Compression, error) {
	var specs []detect.Spec
	for _, s := range all.Detectors() {
		if !s.Lockstep && slices.ContainsFunc(s.Options, func(o detect.Option) bool { return o.Name == "compress" }) {
			off, err := detect.Choose(all.Detectors(), s.Name+":compress=off")
			if err != nil {
				return nil, err
			}
			specs = append(specs, s, off)
		}
	}
	var out []Compression
	for _, k := range o.kernels() {
		size := k.Sizes[min(e.Size, Small)]
		row, err := o.costs(ctx, k, k.New(size), e, specs, nil)
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(specs); i += 2 {
			out = append(out, Compression{k.Name, size, row.Costs[i], row.Costs[i+1]})
		}
	}
	return out, nil
}
