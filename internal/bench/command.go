package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/peak"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/toolchain"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

const usage = `Usage: go run ./cmd/bench [flags]

Measures engines and detectors on the kernels of internal/bench/kernels. Flags:
`

// partNames are the parts of a report.
var partNames = []string{"kernels", "detectors", "growth", "cores", "memory", "whole"}

// sizeNames are the names of the sizes, by Size.
var sizeNames = []string{"tiny", "small", "normal"}

// command is the command line.
type command struct {
	options   Options
	parts     []string
	json      bool
	write     string
	profile   string
	mode      string
	peak      int
	out, errs io.Writer
}

// Main runs the command and returns its exit code: 0, 1 if a result was wrong or something failed, or 2 for wrong
// usage.
func Main(args []string, out, errs io.Writer) int {
	defer runtime.KeepAlive(session.Ballast()) // like the tool
	c := &command{out: out, errs: errs}
	if err := c.parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(errs, "bench:", err)
		return 2
	}
	if err := lanes.TierError(); err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return 1
	}
	return 0
}

func (c *command) parse(args []string) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	engine := f.String("engine", "", "engines to measure, comma-separated (default all: "+strings.Join(engineNames(), ", ")+")")
	kernels := f.String("kernels", "", "only kernels whose names match this regular expression")
	size := f.String("size", "auto", "tiny, small, normal, or auto: small for the reference engine, normal for others")
	parts := f.String("parts", strings.Join(partNames, ","), "what to measure, comma-separated")
	detector := f.String("detector", all.Detectors()[0].Name, "the detector")
	f.IntVar(&c.options.Rounds, "rounds", 3, "measurements of each thing; medians are taken")
	f.BoolVar(&c.json, "json", false, "print JSON instead of tables")
	f.StringVar(&c.write, "write", "", "also write a page of documentation to this file")
	f.StringVar(&c.profile, "profile", "", "measure nothing; write a CPU profile of the kernels on the first engine to this file")
	f.IntVar(&c.peak, "peak", 0, "measure nothing; run saxpy with so many threads on the first engine, once (for part memory)")
	f.StringVar(&c.mode, "mode", "watched", "with -profile and -peak: bare, events (made and thrown away) or watched (with the detector)")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(c.out, usage)
			f.SetOutput(c.out)
			f.PrintDefaults()
		}
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no flag; there are no other arguments", f.Arg(0))
	}
	var err error
	if c.options.Kernels, err = regexp.Compile(*kernels); err != nil {
		return err
	}
	if len(c.options.kernels()) == 0 {
		return fmt.Errorf("no kernel matches %q", *kernels)
	}
	if err := oneOf("size", *size, append(sizeNames, "auto")); err != nil {
		return err
	}
	if err := oneOf("mode", c.mode, []string{"bare", "events", "watched"}); err != nil {
		return err
	}
	c.parts = strings.Split(*parts, ",")
	for _, p := range c.parts {
		if err := oneOf("part", p, partNames); err != nil {
			return err
		}
	}
	return c.choose(*engine, *size, *detector)
}

func oneOf(what, got string, valid []string) error {
	if slices.Contains(valid, got) {
		return nil
	}
	return fmt.Errorf("there is no %s %q%s (%s)", what, got, nearest.Hint(got, valid), strings.Join(valid, ", "))
}

// engineNames returns the names of the engines, the reference engine first.
func engineNames() []string {
	names := []string{"ref"}
	for name := range session.Engines() {
		if name != "ref" {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names
}

func (c *command) choose(engines, size, detector string) error {
	c.options.Reference = session.Engines()["ref"]
	names := engineNames()
	if engines != "" {
		names = strings.Split(engines, ",")
	}
	for _, name := range names {
		if err := oneOf("engine", name, engineNames()); err != nil {
			return err
		}
		e := Engine{name, session.Engines()[name], Normal}
		if size != "auto" {
			e.Size = Size(slices.Index(sizeNames, size))
		} else if name == "ref" {
			e.Size = Small
		}
		c.options.Engines = append(c.options.Engines, e)
	}
	var err error
	c.options.Detector, err = detect.Choose(all.Detectors(), detector)
	return err
}

func (c *command) run(ctx context.Context) error {
	o := &c.options
	switch {
	case c.profile != "":
		return c.runProfile(ctx)
	case c.peak > 0:
		return c.runPeak(ctx)
	}
	o.Errors = c.errs
	o.Progress = func(text string) { fmt.Fprintf(c.errs, "\r\x1b[K%s", text) }
	if c.json || !terminal(c.errs) {
		o.Progress = nil
	}
	dir, err := os.MkdirTemp("", "fencepost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Native, err = BuildNative(ctx, dir)
	var missing *toolchain.Missing
	if errors.As(err, &missing) {
		fmt.Fprintln(c.errs, "bench: nothing is compared with native code:", err)
	} else if err != nil {
		return err
	}
	r := NewReport(o)
	if err := c.measure(ctx, r); err != nil {
		return err
	}
	o.say("")
	if err := c.print(r); err != nil {
		return err
	}
	return errors.Join(Wrong(r.Rows), r.Detectors.Wrong())
}

func (c *command) measure(ctx context.Context, r *Report) error {
	o := &c.options
	for _, part := range c.parts {
		var err error
		switch part {
		case "kernels":
			r.Rows, err = o.MeasureKernels(ctx)
		case "detectors":
			r.Detectors, err = o.MeasureDetectors(ctx)
		case "growth":
			r.Growth, err = o.MeasureGrowth(ctx)
		case "memory":
			r.Peaks, err = o.MeasurePeaks(ctx)
		case "cores":
			r.Scaling, err = o.MeasureCores(ctx)
		case "whole":
			r.Whole, err = o.MeasureWhole(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *command) print(r *Report) error {
	if c.write != "" {
		var b strings.Builder
		if err := r.WritePage(&b); err != nil {
			return err
		}
		if err := os.WriteFile(c.write, []byte(b.String()), 0o666); err != nil {
			return err
		}
	}
	if c.json {
		e := json.NewEncoder(c.out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.WriteText(c.out)
}

// profileTime is how long each kernel runs under the profiler.
const profileTime = 3 * time.Second

// runProfile runs each kernel for profileTime under the CPU profiler.
func (c *command) runProfile(ctx context.Context) error {
	file, err := os.Create(c.profile)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	e := c.options.Engines[0]
	for _, k := range c.options.kernels() {
		p := k.New(k.Sizes[e.Size])
		var lanes uint64
		var spent time.Duration
		for begin := time.Now(); time.Since(begin) < profileTime; {
			run, err := k.Execute(ctx, p, c.setup())
			if err != nil {
				return err
			}
			lanes += run.Stats.Lanes
			spent += run.Elapsed
		}
		fmt.Fprintf(c.out, "%-14s %8.1f M lane-instructions/s %s\n", k.Name, float64(lanes)/1e6/spent.Seconds(), c.mode)
	}
	return nil
}

// runPeak runs saxpy once and prints its peak memory.
func (c *command) runPeak(ctx context.Context) error {
	k := Kernels()[0]
	if _, err := k.Execute(ctx, k.New(c.peak), c.setup()); err != nil {
		return err
	}
	bytes, err := peak.Resident()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, bytes)
	return err
}

// setup returns the setup of -mode, on the first engine.
func (c *command) setup() Setup {
	s := Setup{Engine: c.options.Engines[0].New, Discard: c.mode == "events"}
	if c.mode != "bare" {
		s.Detector = &c.options.Detector
	}
	return s
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
