package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Growth is saxpy with some number of threads on one core. Each thread handles one element.
type Growth struct {
	Engine  string  `json:"engine"`
	Threads int     `json:"threads"`
	Bare    float64 `json:"bare_ns"`    // nanoseconds of processor time for each thread
	Watched float64 `json:"watched_ns"` // with the detector
	Memory  float64 `json:"metadata_per_byte"`
}

// growthSteps are the numbers of threads. growthCount is how many of them are measured at each Size.
var (
	growthSteps = []int{1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22}
	growthCount = [3]int{1, 3, 5}
)

// MeasureGrowth runs saxpy with increasing numbers of threads.
func (o *Options) MeasureGrowth(ctx context.Context) ([]Growth, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	k := Kernels()[0]
	var out []Growth
	for _, e := range o.Engines {
		for _, n := range growthSteps[:growthCount[e.Size]] {
			o.say("%s of %d threads on %s", k.Name, n, e.Name)
			p := k.New(n)
			g := Growth{Engine: e.Name, Threads: n}
			var err error
			if g.Bare, err = o.perThread(ctx, k, p, Setup{Engine: e.New}); err != nil {
				return nil, err
			}
			if g.Watched, err = o.perThread(ctx, k, p, Setup{Engine: e.New, Detector: &o.Detector}); err != nil {
				return nil, err
			}
			s := &series{engine: e, problem: p}
			if err := o.meter(ctx, k, s); err != nil {
				return nil, err
			}
			g.Memory = s.row.MetadataPerByte
			out = append(out, g)
		}
	}
	return out, nil
}

// perThread returns the median time for each thread in nanoseconds. It takes at least the requested number of rounds,
// and more if a round is short.
func (o *Options) perThread(ctx context.Context, k *Kernel, p *Problem, s Setup) (float64, error) {
	const enough, most = 200 * time.Millisecond, 25
	var times []float64
	var spent time.Duration
	s.Warm = true
	for len(times) < max(o.Rounds, 1) || spent < enough && len(times) < most {
		runtime.GC()
		run, err := k.Execute(ctx, p, s)
		if err != nil {
			return 0, err
		}
		spent += run.Elapsed
		s.Warm = run.Elapsed < time.Second
		times = append(times, float64(run.Elapsed.Nanoseconds())/float64(p.Args[0]))
	}
	return median(times), nil
}

// CoreRow holds the times of a kernel on one core and on all cores in seconds.
type CoreRow struct {
	Kernel     string  `json:"kernel"`
	Engine     string  `json:"engine"`
	Cores      int     `json:"cores"`
	BareOne    float64 `json:"bare_one_seconds"`
	BareAll    float64 `json:"bare_all_seconds"`
	WatchedOne float64 `json:"watched_one_seconds"`
	WatchedAll float64 `json:"watched_all_seconds"`
	Why        string  `json:"why,omitempty"` // why there are no times with the detector
}

// coreKernels are the kernels measured on several cores: coalesced, arithmetic, atomics, locks.
var coreKernels = map[string]bool{"saxpy": true, "matmul": true, "nbody": true, "blackscholes": true, "sha256": true, "histogram": true, "hashtable": true}

// MeasureCores compares the elapsed times on one core (GOMAXPROCS) and on all cores.
func (o *Options) MeasureCores(ctx context.Context) ([]CoreRow, error) {
	all := runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var out []CoreRow
	for _, e := range o.Engines {
		for _, k := range o.kernels() {
			if !coreKernels[k.Name] {
				continue
			}
			o.say("%s on %s, one core and %d", k.Name, e.Name, all)
			row := CoreRow{Kernel: k.Name, Engine: e.Name, Cores: all}
			p := k.New(k.Sizes[e.Size])
			var times [4][]float64
			for range max(o.Rounds, 1) {
				for i := range times {
					setup := Setup{Engine: e.New, Warm: true}
					if i >= 2 {
						setup.Detector = &o.Detector
					}
					if i >= 2 && row.Why != "" {
						continue
					}
					runtime.GOMAXPROCS([]int{1, all}[i%2])
					runtime.GC()
					var run *Run
					var err error
					if i < 2 {
						run, err = k.Execute(ctx, p, setup)
					} else {
						run, row.Why, err = k.bounded(ctx, p, setup, boundFor(time.Duration(times[0][0]*float64(time.Second))))
					}
					switch {
					case err != nil:
						return nil, err
					case row.Why != "":
						continue
					}
					times[i] = append(times[i], run.Wall.Seconds())
				}
			}
			row.BareOne, row.BareAll, row.WatchedOne, row.WatchedAll = median(times[0]), median(times[1]), median(times[2]), median(times[3])
			out = append(out, row)
		}
	}
	return out, nil
}

// Peak is the memory of a process that runs saxpy with many threads.
type Peak struct {
	Engine  string `json:"engine"`
	Threads int    `json:"threads"`
	Watched bool   `json:"watched"`
	Buffers int    `json:"buffers"` // in bytes; the process has each buffer on the device and on the host
	Bytes   int64  `json:"bytes"`   // the largest resident set
}

// peakRuns are the launches whose memory is measured, on engines for Normal sizes.
var peakRuns = []struct {
	threads int
	watched bool
}{{1 << 20, false}, {1 << 20, true}, {1 << 24, false}}

// MeasurePeaks runs this program again for each launch, in a process of its own.
func (o *Options) MeasurePeaks(ctx context.Context) ([]Peak, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var out []Peak
	for _, e := range o.Engines {
		if e.Size < Normal {
			continue
		}
		for _, r := range peakRuns {
			o.say("memory of %d threads on %s", r.threads, e.Name)
			mode := "bare"
			if r.watched {
				mode = "watched"
			}
			cmd := exec.CommandContext(ctx, self, "-engine", e.Name, "-detector", o.Detector.Name, "-peak", strconv.Itoa(r.threads), "-mode", mode)
			cmd.Stderr = o.Errors
			text, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("saxpy with %d threads: %w", r.threads, err)
			}
			bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err != nil {
				return nil, err
			}
			out = append(out, Peak{e.Name, r.threads, r.watched, 2 * 4 * r.threads, bytes})
		}
	}
	return out, nil
}
