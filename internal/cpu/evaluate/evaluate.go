// Package evaluate compares SlimFast with FastTrack on CPU programs, as section 3.4 of the thesis (seed 001) does on
// Java programs: table 3.1 and figures 3.2 and 3.12 to 3.14.
//
// The thesis compares with the FastTrack of RoadRunner, which has an object for each variable and guards it by a lock.
// This package implements that version too, in addition to package fasttrack, whose state is flat.
package evaluate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/fasttrack"
	"fencepost.dev/fencepost/internal/cpu/order"
	"fencepost.dev/fencepost/internal/cpu/record"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
	"fencepost.dev/fencepost/internal/cputime"
)

// Options select what is measured.
type Options struct {
	Sources []string // C programs: the first argument is the number of threads
	CC      string   // the compiler
	Dir     string   // the folder for programs and for the recorder
	Threads int
	Rounds  int // number of measurements, of which the minimum is used
}

// result is the measurements of a program.
type result struct {
	name   string
	times  times
	trace  characteristics
	speed1 speed // with one thread
	speedN speed
}

// times are processor times of the program and of the process that judges it.
type times struct{ native, recorder, fasttrack, slimfast, tsan time.Duration }

// characteristics are the characteristics of one trace.
type characteristics struct {
	events                          int
	races                           int
	slim                            slimfast.Counts
	objects                         *objects
	sharedValues                    int     // distinct EpochPlusVCs that SlimFast allocated
	slimMax                         uint64  // maximum size of the metadata in bytes
	slimMean, objectsMean, flatMean float64 // mean size over the trace in bytes
}

// speed holds the times to judge a trace. Parallel times are measured with a goroutine for each thread of the program.
type speed struct {
	flat, objects, slim           time.Duration // processor time on one core
	parallelObjects, parallelSlim time.Duration // elapsed time
}

// Write measures programs and writes the tables.
func Write(ctx context.Context, w io.Writer, o Options) error {
	var all []*result
	for _, source := range o.Sources {
		r, err := measure(ctx, o, source)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(source), err)
		}
		all = append(all, r)
	}
	write(w, o, all)
	return nil
}

func measure(ctx context.Context, o Options, source string) (*result, error) {
	r := &result{name: strings.TrimSuffix(filepath.Base(source), ".c")}
	build := func(variant string, flags ...string) (string, error) {
		to := filepath.Join(o.Dir, r.name+variant)
		args := append(flags, "-O1", source, "-o", to, "-lm", "-lpthread")
		if out, err := exec.CommandContext(ctx, o.CC, args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", o.CC, err, out)
		}
		return to, nil
	}
	native, err := build("-native")
	if err != nil {
		return nil, err
	}
	tsan, err := build("-tsan", "-g", "-fsanitize=thread")
	if err != nil {
		return nil, err
	}
	recorded := filepath.Join(o.Dir, r.name)
	c := record.Compiler{Path: o.CC, Clang: record.IsClang(ctx, o.CC), Recorder: func() (string, error) { return record.Build(ctx, o.CC, o.Dir) }}
	var diagnostics bytes.Buffer
	code, err := c.Run(ctx, []string{"-O1", source, "-o", recorded, "-lm", "-lpthread"}, nil, io.Discard, &diagnostics)
	if err != nil || code != 0 {
		return nil, fmt.Errorf("%s: exit code %d, %v\n%s", o.CC, code, err, &diagnostics)
	}
	threads := strconv.Itoa(o.Threads)
	least := func(to *time.Duration, run func() (time.Duration, error)) {
		for range o.Rounds {
			d, e := run()
			if err == nil {
				err = e
			}
			if *to == 0 || d < *to {
				*to = d
			}
		}
	}
	least(&r.times.native, func() (time.Duration, error) { return plain(ctx, native, threads) })
	least(&r.times.tsan, func() (time.Duration, error) { return plain(ctx, tsan, threads) })
	least(&r.times.recorder, func() (time.Duration, error) { return watched(ctx, recorded, threads, nil) })
	least(&r.times.fasttrack, func() (time.Duration, error) { return watched(ctx, recorded, threads, fasttrack.Spec.New) })
	least(&r.times.slimfast, func() (time.Duration, error) { return watched(ctx, recorded, threads, slimfast.Spec.New) })
	if err != nil {
		return nil, err
	}
	one, err := events(ctx, recorded, "1")
	if err != nil {
		return nil, err
	}
	many, err := events(ctx, recorded, threads)
	if err != nil {
		return nil, err
	}
	r.trace = characterise(many)
	r.speed1, r.speedN = timed(one, o.Rounds), timed(many, o.Rounds)
	return r, nil
}

// plain runs a program and returns its processor time.
func plain(ctx context.Context, program, threads string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, program, threads)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// watched runs a recorded program with a detector, or with none.
func watched(ctx context.Context, program, threads string, detector func(func(cpu.Race)) cpu.Detector) (time.Duration, error) {
	began := cputime.Used()
	r, err := record.Run(ctx, record.Options{Path: program, Args: []string{threads}, Stdout: io.Discard, Stderr: io.Discard,
		Process: func(*record.Names) func([]cpu.Event) {
			if detector == nil {
				return func([]cpu.Event) {}
			}
			return detector(func(cpu.Race) {}).Events
		}})
	if err == nil && r.Exit != 0 {
		err = fmt.Errorf("exit code %d", r.Exit)
	}
	return cputime.Used() - began + r.Processor, err
}

// events returns the events of a program.
func events(ctx context.Context, program, threads string) (all []cpu.Event, err error) {
	_, err = record.Run(ctx, record.Options{Path: program, Args: []string{threads}, Stdout: io.Discard, Stderr: io.Discard,
		Process: func(*record.Names) func([]cpu.Event) {
			return func(e []cpu.Event) { all = append(all, e...) }
		}})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("nothing was recorded")
	}
	return all, err
}

// samples is the number of points in a trace at which memory is measured.
const samples = 32

func characterise(events []cpu.Event) (c characteristics) {
	c.events = len(events)
	c.objects = &objects{distinct: map[[2]order.Epoch]bool{}, clocks: map[string]bool{}}
	slim, flat := slimfast.New(func(cpu.Race) { c.races++ }), fasttrack.Spec.New(func(cpu.Race) {})
	values := map[string]bool{}
	var key []byte
	slim.Shared = func(m *slimfast.Metadata) {
		key = appendClock(key[:0], m.Write, m.Reads.Clock)
		values[string(key)] = true
	}
	for i := range samples {
		part := events[len(events)*i/samples : len(events)*(i+1)/samples]
		slim.Events(part)
		flat.Events(part)
		c.objects.Events(part)
		n := slim.MemoryBytes()
		c.slimMax = max(c.slimMax, n)
		c.slimMean += float64(n) / samples
		c.objectsMean += float64(c.objects.MemoryBytes()) / samples
		c.flatMean += float64(flat.MemoryBytes()) / samples
	}
	c.slim, c.sharedValues = slim.Counts(), len(values)
	return c
}

// timed measures the times to judge a trace.
func timed(events []cpu.Event, rounds int) (s speed) {
	least := func(to *time.Duration, used func() time.Duration, run func()) {
		runtime.GC()
		began := used()
		run()
		if d := used() - began; *to == 0 || d < *to {
			*to = d
		}
	}
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	threads, variables := segments(events)
	for range rounds {
		procs := runtime.GOMAXPROCS(1)
		least(&s.flat, cputime.Used, func() { fasttrack.Spec.New(func(cpu.Race) {}).Events(events) })
		least(&s.objects, cputime.Used, func() { new(objects).Events(events) })
		least(&s.slim, cputime.Used, func() { slimfast.New(func(cpu.Race) {}).Events(events) })
		runtime.GOMAXPROCS(procs)
		least(&s.parallelObjects, clock, func() {
			all := make([]*variable, variables)
			for i := range all {
				all[i] = &variable{}
			}
			replay(threads, func(id int) judge { return &locked{id: uint16(id), variables: all} })
		})
		least(&s.parallelSlim, clock, func() {
			all := make([]slimfast.Variable, variables)
			replay(threads, func(id int) judge {
				return slim{slimfast.NewThread(uint16(id), func(order.Epoch, bool) {}), all}
			})
		})
	}
	return s
}

// write writes the tables.
func write(w io.Writer, o Options, all []*result) {
	title := func(s string) { fmt.Fprintf(w, "%s\n", s) }
	var means []float64 // of the columns that are ratios; 0 for the others
	table := func(head string, row func(*result) []any) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "\t%s\t\n", strings.ReplaceAll(head, "|", "\t"))
		means = nil
		for _, r := range all {
			fmt.Fprintf(t, "%s\t", r.name)
			for i, cell := range row(r) {
				if len(means) <= i {
					means = append(means, 0)
				}
				if x, ok := cell.(float64); ok {
					means[i] += math.Log(x) / float64(len(all))
					cell = fmt.Sprintf("%.2f", x)
				} else {
					means[i] = math.NaN()
				}
				fmt.Fprintf(t, "%v\t", cell)
			}
			fmt.Fprintln(t)
		}
		fmt.Fprint(t, "geometric mean\t")
		for _, m := range means {
			if math.IsNaN(m) {
				fmt.Fprint(t, "\t")
			} else {
				fmt.Fprintf(t, "%.2f\t", math.Exp(m))
			}
		}
		fmt.Fprintln(t)
		t.Flush()
	}
	title(fmt.Sprintf("Slowdown: processor time of the program and of the detector over that of the program alone, %d threads (table 3.1)", o.Threads))
	table("recorder alone|fasttrack|slimfast|ThreadSanitizer|events", func(r *result) []any {
		over := func(d time.Duration) any { return float64(d) / float64(max(r.times.native, time.Microsecond)) }
		return []any{over(r.times.recorder), over(r.times.fasttrack), over(r.times.slimfast), over(r.times.tsan), r.trace.events}
	})
	title("\nMetadata of SlimFast (table 3.1)")
	table("EVC accesses|EVC metadata|S|Q|EVC reuse|EP reuse|most KB|FT:SF allocations|races", func(r *result) []any {
		s := r.trace.slim
		plus, pairs := s.InflAllocated+s.SharedAlloc, s.PairAllocated+s.WriteAllocated
		reused := s.InflReused + s.SharedReused
		return []any{percent(s.SharedAccesses, s.Accesses), percent(plus, plus+pairs), mean(s.SumS, s.Epochs), mean(s.SumQ, s.Epochs),
			percent(reused, reused+plus), percent(s.PairReused, s.PairReused+s.PairAllocated), r.trace.slimMax / 1000,
			float64(r.trace.objects.allocated) / float64(max(1, plus+pairs)), r.trace.races}
	})
	title("\nRedundancy: metadata by distinct metadata (figures 3.2 and 3.14)")
	table("FastTrack, all|SlimFast, EpochPlusVCs", func(r *result) []any {
		d := r.trace.objects
		s := r.trace.slim
		shared := any("-")
		if r.trace.sharedValues > 0 {
			shared = fmt.Sprintf("%.2f", float64(s.InflAllocated+s.SharedAlloc)/float64(r.trace.sharedValues))
		}
		return []any{float64(d.values) / float64(max(1, len(d.distinct)+len(d.clocks))), shared}
	})
	title("\nMean memory of metadata over that of SlimFast (figure 3.12)")
	table("FastTrack, objects|FastTrack, flat", func(r *result) []any {
		return []any{r.trace.objectsMean / r.trace.slimMean, r.trace.flatMean / r.trace.slimMean}
	})
	title(fmt.Sprintf("\nTime to judge over that of SlimFast (figure 3.13): one core, programs with 1 and %d threads; and as many goroutines on %d cores, with locks", o.Threads, runtime.GOMAXPROCS(0)))
	table(fmt.Sprintf("objects, 1|flat, 1|objects, %[1]d|flat, %[1]d|locks, %[1]d", o.Threads), func(r *result) []any {
		over := func(a, b time.Duration) any { return float64(a) / float64(max(b, time.Microsecond)) }
		return []any{over(r.speed1.objects, r.speed1.slim), over(r.speed1.flat, r.speed1.slim),
			over(r.speedN.objects, r.speedN.slim), over(r.speedN.flat, r.speedN.slim), over(r.speedN.parallelObjects, r.speedN.parallelSlim)}
	})
}

func percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func mean(sum, n uint64) string { return fmt.Sprintf("%.1f", float64(sum)/float64(max(1, n))) }
