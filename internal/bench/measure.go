package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
)

// Options select what to measure.
type Options struct {
	Engines   []Engine
	Reference func() engine.Engine // its count of instructions is the reference for other engines
	Detector  detect.Spec
	Kernels   *regexp.Regexp // nil for all
	Rounds    int            // number of measurements, of which medians are used
	Native    *Native        // nil for no comparison with native code
	Errors    io.Writer      // receives the error output of programs that are run
	// Progress is called with the current work.
	Progress func(text string)
}

// Engine is an engine with its name.
type Engine struct {
	Name string
	New  func() engine.Engine
	Size Size // of the kernels
}

// Row is a kernel on an engine. Times are medians of processor time in seconds, on one core. A ratio is the median of
// the ratios of the rounds.
type Row struct {
	Kernel    string  `json:"kernel"`
	Engine    string  `json:"engine"`
	Coalesced bool    `json:"coalesced"`
	Size      int     `json:"size"`
	Threads   uint64  `json:"threads"`
	Lanes     uint64  `json:"lanes"` // number of lane-instructions that the engine executed
	Warps     uint64  `json:"warps"` // number of warp-instructions
	Native    float64 `json:"native_seconds,omitempty"`
	First     float64 `json:"first_seconds"` // bare, with the preparation of the code
	Bare      float64 `json:"bare_seconds"`
	Events    float64 `json:"events_seconds"` // with the events that the detector needs, which are dropped
	Watched   float64 `json:"watched_seconds"`

	BareOverNative  float64 `json:"bare_over_native,omitempty"`
	EventsOverBare  float64 `json:"events_over_bare"`
	WatchedOverBare float64 `json:"watched_over_bare"`
	// WatchedOverNative is the time with the detector relative to the time of the native program.
	WatchedOverNative float64 `json:"watched_over_native,omitempty"`
	MetadataPerByte   float64 `json:"metadata_per_byte"` // of the buffers
	// Numbers of warp-instructions of this engine, relative to the reference engine on nvcc's default output.
	KeptOverDefault    float64 `json:"kept_over_default"`
	DefaultOverDefault float64 `json:"default_over_default"`

	Why    string `json:"why,omitempty"` // why there are no times with events and with the detector
	Digest string `json:"digest"`
	Exact  bool   `json:"exact"` // results are compared bit by bit
	Wrong  string `json:"wrong,omitempty"`
}

// MeasureKernels measures every kernel on every engine.
func (o *Options) MeasureKernels(ctx context.Context) ([]Row, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var rows []Row
	for _, k := range o.kernels() {
		r, err := o.measureKernel(ctx, k)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(o.rank(a.Engine), o.rank(b.Engine)) })
	return rows, nil
}

func (o *Options) kernels() []*Kernel {
	all := Kernels()
	if o.Kernels == nil {
		return all
	}
	return slices.DeleteFunc(all, func(k *Kernel) bool { return !o.Kernels.MatchString(k.Name) })
}

func (o *Options) rank(emulator string) int {
	return slices.IndexFunc(o.Engines, func(e Engine) bool { return e.Name == emulator })
}

func (o *Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// nativeBudget is the time for the native version of a kernel in a round.
const nativeBudget = 60 * time.Millisecond

// series is the results of the rounds for one engine.
type series struct {
	engine                        Engine
	problem                       *Problem
	warm                          bool
	row                           Row
	want                          [][]byte // expected results
	native, bare, events, watched []float64
}

// measureKernel measures a kernel on all engines, round by round, so that other processes affect all engines equally.
func (o *Options) measureKernel(ctx context.Context, k *Kernel) ([]Row, error) {
	var all []*series
	for _, e := range o.Engines {
		o.say("%s on %s", k.Name, e.Name)
		s, err := o.begin(ctx, k, e)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	for i := range max(o.Rounds, 1) {
		o.say("%s, round %d of %d", k.Name, i+1, o.Rounds)
		for _, s := range all {
			if err := o.round(ctx, k, s); err != nil {
				return nil, err
			}
		}
	}
	var rows []Row
	for _, s := range all {
		rows = append(rows, s.finish())
	}
	return rows, nil
}

// begin makes the measurements that need only one round.
func (o *Options) begin(ctx context.Context, k *Kernel, e Engine) (*series, error) {
	size := k.Sizes[e.Size]
	s := &series{engine: e, problem: k.New(size)}
	s.row = Row{Kernel: k.Name, Engine: e.Name, Coalesced: k.Coalesced, Size: size, Exact: k.Tolerance == 0}
	first, err := k.Execute(ctx, s.problem, Setup{Engine: e.New})
	if err != nil {
		return nil, err
	}
	s.row.Lanes, s.row.Warps, s.row.Threads = first.Stats.Lanes, first.Stats.Warps, first.Stats.Threads
	s.row.First = first.Elapsed.Seconds()
	s.warm, s.want = first.Elapsed < time.Second, first.Results
	if err := o.count(ctx, k, s); err != nil {
		return nil, err
	}
	return s, o.meter(ctx, k, s)
}

// round makes one measurement of each kind: native, bare, with events, with the detector.
func (o *Options) round(ctx context.Context, k *Kernel, s *series) error {
	if o.Native != nil {
		run, err := o.Native.Run(ctx, k, s.problem, nativeBudget)
		if err != nil {
			return err
		}
		s.native, s.want = append(s.native, run.Elapsed.Seconds()), run.Results
	}
	for _, m := range []struct {
		to    *[]float64
		setup Setup
	}{
		{&s.bare, Setup{}},
		{&s.events, Setup{Detector: &o.Detector, Discard: true}},
		{&s.watched, Setup{Detector: &o.Detector}},
	} {
		if m.setup.Detector != nil && s.row.Why != "" {
			continue
		}
		m.setup.Engine, m.setup.Warm = s.engine.New, s.warm
		runtime.GC()
		run, err := k.Execute(ctx, s.problem, m.setup)
		if err != nil {
			return err
		}
		*m.to = append(*m.to, run.Elapsed.Seconds())
		s.row.Digest = k.Digest(run.Results)
		if err := run.Check(k, s.want); err != nil && s.row.Wrong == "" {
			s.row.Wrong = err.Error()
		}
	}
	return nil
}

// count compares numbers of warp-instructions, at a size that the reference engine can handle.
func (o *Options) count(ctx context.Context, k *Kernel, s *series) error {
	p := k.New(k.Sizes[min(s.engine.Size, Small)])
	warps := func(emulator func() engine.Engine, v Variant) (float64, error) {
		run, err := k.Execute(ctx, p, Setup{Engine: emulator, Variant: v})
		if err != nil {
			return 0, err
		}
		return float64(run.Stats.Warps), nil
	}
	base, err := warps(o.Reference, Default)
	if err != nil {
		return err
	}
	kept, err := warps(s.engine.New, Kept)
	if err != nil {
		return err
	}
	optimised, err := warps(s.engine.New, Default)
	if err != nil {
		return err
	}
	s.row.KeptOverDefault, s.row.DefaultOverDefault = kept/base, optimised/base
	return nil
}

// meter measures the detector's metadata. If a run does not end within the bound, it records that in the row.
func (o *Options) meter(ctx context.Context, k *Kernel, s *series) error {
	bare := time.Duration(s.row.First * float64(time.Second))
	run, why, err := k.bounded(ctx, s.problem, Setup{Engine: s.engine.New, Detector: &o.Detector, Meter: true}, boundFor(bare))
	if s.row.Why = why; err != nil || why != "" {
		return err
	}
	s.row.MetadataPerByte = float64(run.Memory) / float64(s.problem.Bytes())
	return nil
}

func (s *series) finish() Row {
	r := s.row
	r.Native, r.Bare, r.Events, r.Watched = median(s.native), median(s.bare), median(s.events), median(s.watched)
	r.BareOverNative = medianRatio(s.bare, s.native)
	r.EventsOverBare = medianRatio(s.events, s.bare)
	r.WatchedOverBare = medianRatio(s.watched, s.bare)
	r.WatchedOverNative = medianRatio(s.watched, s.native)
	return r
}

// median returns the median of v, or 0 if v is empty.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// medianRatio returns the median of the ratios a[i]/b[i].
func medianRatio(a, b []float64) float64 {
	var q []float64
	for i := range min(len(a), len(b)) {
		q = append(q, a[i]/b[i])
	}
	return median(q)
}

// geomean returns the geometric mean of f over the rows. Zeros are omitted.
func geomean(rows []Row, f func(r *Row) float64) float64 {
	sum, n := 0.0, 0
	for i := range rows {
		if x := f(&rows[i]); x > 0 {
			sum += math.Log(x)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}

// Wrong returns an error that lists the wrong results.
func Wrong(rows []Row) error {
	var texts []string
	for _, r := range rows {
		if r.Wrong != "" {
			texts = append(texts, r.Engine+": "+r.Wrong)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return fmt.Errorf("wrong results or findings:\n%s", strings.Join(texts, "\n"))
}
