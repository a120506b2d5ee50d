// Package session implements one run: it makes the engine, the device and the detectors from options, and a report from
// their results.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/instrument/emulated"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/ptx"
)

// Options select how to run and what to judge.
type Options struct {
	Detectors []detect.Spec // none: the default ones
	Beside    []detect.Spec // additional ones, for findings that are not races
	Bare      bool          // no detector at all
	Model     detect.Model
	Engine    func() engine.Engine // nil: the default one
	Leaks     bool                 // memory that a program allocates and never frees is a finding
	Logged    bool                 // programs are instrumented, and judged by the log that they write or by the races that they find
	Mode      instrument.Mode      // with Logged: the mode of instrumentation
	Prune     bool                 // with Logged: accesses that another one covers are not logged
	Arch      int                  // compute capability of the device, times ten; 0: that for which the program was built
	Devices   int                  // number of devices that programs see; 0 means 1
	Schedule  engine.Schedule
	// Rerun executes small launches whose threads may contend again, with other schedules, if the default detectors
	// judge one run with the schedule engine.Fair. The findings of the further executions are part of the report.
	Rerun bool
	// Replay is the schedule of one launch, nil for none.
	Replay *ScheduleFile
	Seed   uint64
	Seeds  int // number of runs, with the seeds from Seed on; at least 1
	Watch  Watch
	FailOn detect.Severity
	// MaxFindings is the greatest number of findings that a detector keeps and a report lists, 0 for
	// detect.DefaultFindings.
	MaxFindings int
	Timeout     time.Duration // of all runs together; 0: none
	// Jobs is the number of cores to use. Seeds of a check and programs of the corpus run concurrently. A single run
	// lets its detectors judge concurrently with the engine. Reports are the same for any number.
	Jobs int
	// Apart says that the runs of a program do not disturb each other, so that its seeds may run concurrently too.
	Apart bool
	Meter bool // measure the metadata of the detectors
	// Record, if not nil, receives a trace of the run, of one seed only. See Analyze.
	Record io.Writer
	// NoValues leaves written values out of the trace. Racing writes of equal values are then judged as if the values
	// differed. The trace of an instrumented program never has values.
	NoValues bool
	// Sources receives the texts from which code was compiled at run time; nil drops them.
	Sources *report.Sources
	// Printf receives the output of kernels when there is no host program; nil drops it.
	Printf io.Writer
	// Progress, if not nil, is called now and then, from any goroutine, with a description of the current work, and
	// with "" when the work is done and others may print.
	Progress func(text string)
}

// Ballast is memory that is never touched, so that it occupies only address space. While it is referenced, the garbage
// collector waits for some 64 MB of garbage. Without it, the collector runs every 4 MB in a small program, which made
// watched launches of 1024 threads take 1.2 times as long on one core, and 3 times on two that the detector shares with
// it.
func Ballast() []byte { return make([]byte, 32<<20) }

// Engines lists the engines by name; warp is the default.
func Engines() map[string]func() engine.Engine {
	return map[string]func() engine.Engine{"ref": engine.NewRef, "warp": warp.New}
}

func (o *Options) engine() engine.Engine {
	if o.Engine != nil {
		return o.Engine()
	}
	return warp.New()
}

func (o *Options) detectors() []detect.Spec {
	list := o.Detectors
	switch {
	case o.Bare:
		list = nil
	case len(list) > 0:
	case o.Mode == instrument.HiRace:
		list = []detect.Spec{hirace.Spec}
	default:
		list = all.Default()
	}
	return slices.Concat(list, o.Beside)
}

// reruns reports whether launches may be executed again. The detectors in their published form judge one execution, and
// so does a trace.
func (o *Options) reruns() bool {
	return o.Rerun && o.Record == nil && o.Replay == nil && !o.Logged && !slices.ContainsFunc(o.Detectors, func(s detect.Spec) bool {
		return !slices.ContainsFunc(all.Default(), func(d detect.Spec) bool { return d.Name == s.Name })
	})
}

// rerun returns the flags of the schedule of a further execution of a launch, and "" for a launch of the program.
func rerun(l *event.Launch) string {
	if l.Rerun() == 0 {
		return ""
	}
	r := cuda.Reruns()[l.Rerun()-1]
	var flags []string
	if name := map[engine.Schedule]string{engine.Contended: "contended", engine.PCT: "pct"}[r.Schedule]; name != "" {
		flags = append(flags, "--schedule "+name)
	}
	if r.Seed != 0 {
		flags = append(flags, fmt.Sprint("--seed ", r.Seed))
	}
	return strings.Join(flags, " ")
}

// errTimeout is the cause of the context's end when --timeout has passed.
var errTimeout = errors.New("the --timeout has passed")

// withTimeout bounds a context by o.Timeout.
func (o *Options) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
}

// whyStopped says why a context ended.
func whyStopped(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return "stopped: the --timeout has passed"
	}
	return "stopped: the run was interrupted"
}

// once is one run with one seed: a device, its detectors, and their findings. Its hooks are called with the device
// locked, one at a time.
type once struct {
	opts      *Options
	ctx       context.Context
	places    *places.Table
	detectors []*metered
	judges    *detect.Judges // the detectors and the recorder
	release   func() bool    // releases the context
	recorder  *recorder      // nil: none
	replayer  *replayer      // nil: none
	executes  engine.Engine
	device    *cuda.Device
	launched  map[uint32]launched // by launch ID
	buffers   []placedBuffer      // of a launch file, by address
	codes     codes
	budget    budget
	// bufferNames replaces the device's names of buffers.
	bufferNames *strings.Replacer
	rename      func(file string) string

	findings []report.Finding
	more     int // lower bound of the number of findings that are not kept
	kernels  []report.Kernel
	kernelAt map[kernelShape]int // in kernels
	skipped  []report.Skipped

	isSkipped map[report.Skipped]bool
	notes     []string
	program   *report.Program
	replicas  replicas
	told      map[toldOf]int  // by finding: the number of occurrences that processes were last told
	unseen    map[string]bool // kernels that are not watched
	newer     map[string]bool // PTX with a note that it is newer than Fencepost
	watched   int             // number of launches that were watched
	ran       int
	hosted    bool // a program drives the device
	// abandoned says that a module was still being read when the time was over: the device is in use.
	abandoned bool
	looks     bool   // optimised code was launched
	scripted  bool   // run by a script, which compiles at run time
	broken    bool   // a detector or the engine panicked
	where     string // where the threads of a stopped launch are, as the end of a sentence
}

// launched is the data of a launch that is needed to name its addresses.
type launched struct {
	program *loader.Program
	launch  event.Launch
	fn      launchFunc
	dynamic int // bytes of dynamic shared memory
	caller  []event.Frame
	named   []engine.Argument
	params  []byte
	process uint64 // of the device; 0 while the launch runs
}

// newOnce makes the device, with memory bytes of memory (0: the default), and the detectors of one run, which may use
// the given number of cores.
func newOnce(ctx context.Context, o *Options, seed uint64, cores int, memory uint64, printf io.Writer) (*once, error) {
	var err error
	r := &once{opts: o, ctx: ctx, places: places.New(), launched: map[uint32]launched{}, unseen: map[string]bool{},
		newer: map[string]bool{}, replicas: replicas{places: map[uint32]*sharing{}}}
	var needs event.Needs
	var needBranches []string // detectors
	schedule := o.Schedule
	watch := o.Watch.detectors(r.object)
	if o.Watch.variables() {
		cores = 1 // names are looked up while the device is as it was at the race
	}
	for _, spec := range o.detectors() {
		if spec.Lockstep {
			schedule = engine.Lockstep
		}
		r.detectors = append(r.detectors, &metered{meter: o.Meter, Detector: spec.New(detect.Config{Model: o.Model, Places: r.places, MaxFindings: o.MaxFindings, Watch: watch}), name: spec.Name,
			plain: spec.Needs&event.NeedAgain == 0, alone: spec.Needs&event.NeedPeers == 0})
		if needs |= spec.Needs; spec.Needs&event.NeedBranches != 0 {
			needBranches = append(needBranches, spec.Name)
		}
	}
	watched := make([]detect.Detector, len(r.detectors))
	for i, d := range r.detectors {
		watched[i] = d
	}
	if o.Record != nil {
		needs |= o.recorded()
		if r.recorder, err = newRecorder(r, o.Record, schedule == engine.Lockstep && !o.Logged); err != nil {
			return nil, err
		}
		watched = append(watched, r.recorder)
	}
	r.judges = detect.NewJudges(cores, watched...)
	r.release = context.AfterFunc(ctx, r.judges.Stop)
	emulator := o.engine()
	r.executes = emulator
	if o.Replay != nil {
		if schedule == engine.Lockstep || o.Logged {
			return nil, fmt.Errorf("%s: a schedule runs threads one by one: not in lockstep, as --schedule lockstep and some detectors do, and not instrumented", o.Replay.Name)
		}
		r.replayer = &replayer{Engine: emulator, file: o.Replay, run: r}
		emulator = r.replayer
	}
	var rewrite func(*isa.Module) ([]*ptx.Module, error)
	if o.Logged && o.Devices > 1 {
		return nil, errors.New("--devices is about programs that are watched: it does not go with --device emulated or gpu")
	}
	if o.Logged {
		instrumented, err := o.instrumented(emulator, r, needBranches)
		if err != nil {
			return nil, err
		}
		emulator, rewrite = instrumented, instrumented.Rewrite
	} else if o.Prune || o.Mode != instrument.Log {
		return nil, errors.New("--prune and --instrument are about instrumented programs: they need --device emulated or gpu")
	}
	cfg := cuda.Config{Engine: &observer{emulator, r}, Rewrite: rewrite, Places: r.places, MemorySize: memory, Seed: seed, Schedule: schedule, Devices: o.Devices,
		OnFault: r.fault, OnLaunch: r.launch, Findings: r.asked, Printf: printf, Watch: r.watch, Progress: r.progress, OnSource: o.Sources.Add, Leaks: o.Leaks}
	cfg.Rerun = o.reruns()
	if g, ok := r.executes.(emulated.GPU); ok {
		cfg.Pinned = g.GPU()
	}
	if o.Arch != 0 {
		cfg.Limits = engine.LimitsOf(o.Arch)
	}
	if len(watched) > 0 {
		cfg.Sink, cfg.Needs = r.judges, needs
	}
	r.device, err = cuda.NewDevice(cfg)
	return r, err
}

// metered is a detector whose cost is measured.
type metered struct {
	detect.Detector
	name    string
	meter   bool
	plain   bool // it does not support event.Again
	alone   bool // it does not support accesses to the shared memory of other blocks
	peers   detect.PeerFilter
	room    []event.Event
	spent   time.Duration
	largest uint64
}

// Events implements event.Sink. Metadata is measured only at the end of a launch, because some detectors have to walk
// through it.
func (j *metered) Events(b *event.Batch) {
	if m, ok := j.Detector.(detect.Metered); ok && j.meter {
		if before, end, ok := b.CutEnd(); ok {
			j.judge(&before)
			j.largest = max(j.largest, m.MemoryBytes())
			b = &end
		}
	}
	j.judge(b)
}

func (j *metered) judge(b *event.Batch) {
	start := time.Now()
	if j.alone {
		b = j.peers.Filter(b)
	}
	if j.plain {
		b.Plain(&j.room, j.Detector.Events)
	} else {
		j.Detector.Events(b)
	}
	j.spent += time.Since(start)
}

// observer is the engine of a run. It records the program of each launch.
type observer struct {
	engine.Engine
	run *once
}

// Run implements engine.Engine. A panic of the engine ends the launch and not the run: the results of other launches
// are worth having, and the report says that this one was not checked.
func (o *observer) Run(ctx context.Context, l *engine.Launch) (stats engine.Stats, err error) {
	o.run.launched[l.ID] = launched{l.Program, l.Launch, l.Func, l.DynamicShared, l.Caller, l.Arguments, l.Params, 0}
	switch {
	case l.Language == event.Threads && len(l.Caller) > 0 && strings.HasSuffix(l.Caller[0].File, ".py"):
		o.run.scripted = o.run.scripted || optimised(l.Func)
	case l.Language == event.Threads:
		o.run.looks = o.run.looks || optimised(l.Func)
	case l.Sink != nil:
		l.Sink = o.run.replicas.over(l.Sink, &l.Launch)
	}
	o.run.header(l.Program.Module)
	defer func() {
		if bug := recover(); bug != nil {
			if o.run.device.Faulted(bug) {
				panic(bug) // the device handles it
			}
			err = o.run.defect(bug)
		}
	}()
	return o.Engine.Run(ctx, l)
}

// header records PTX that is newer than Fencepost.
func (r *once) header(m *isa.Module) {
	for _, src := range m.Source {
		if what := isa.Unknown(src); what != "" && !r.newer[src.Name] {
			r.newer[src.Name] = true
			r.note("%s says %s, which this Fencepost does not know: instructions are executed as it knows them.", src.Name, what)
		}
	}
}

// defect records a panic of Fencepost's own code and returns it as an error.
func (r *once) defect(bug any) error {
	r.noteDefect(bug, debug.Stack())
	return fmt.Errorf("a defect of Fencepost: %v", bug)
}

// judgeName names the i-th of judges.
func (r *once) judgeName(i int) string {
	if i < len(r.detectors) {
		return "detector " + r.detectors[i].name
	}
	return "the recorder"
}

func (r *once) noteDefect(bug any, stack []byte) {
	r.broken = true
	r.note("This is a defect of Fencepost, not of your program; please report it: %v\n%s", bug, stack)
}

// settle lets the detectors judge the rest, and reports those that failed.
func (r *once) settle() {
	r.judges.Wait()
	for _, id := range r.judges.Unjudged() {
		what := "operations of the host"
		if l, ok := r.launched[id]; ok {
			what = r.launchName(l)
		}
		if !slices.ContainsFunc(r.skipped, func(s report.Skipped) bool { return s.What == what }) {
			r.skip(what, whyStopped(r.ctx)+" before all that it did was judged")
		}
	}
	for _, d := range r.judges.Defects() {
		what := "operations of the host"
		if l, ok := r.launched[d.Launch]; ok {
			what = r.launchName(l)
		}
		r.noteDefect(d.Value, d.Stack)
		r.skip(what, fmt.Sprintf("a defect of Fencepost: %v; %s judged nothing from there on", d.Value, r.judgeName(d.Detector)))
	}
}

func (r *once) launchName(l launched) string {
	return fmt.Sprintf("launch %d of %s", l.launch.Number(), report.ShortName(report.BareName(l.launch.Kernel)))
}

// collect takes the findings of the detectors. A detector that has panicked may be unable to return them.
func (r *once) collect() {
	defer func() {
		if !r.broken {
			return
		}
		if bug := recover(); bug != nil {
			r.skip("findings", r.defect(bug).Error())
		}
	}()
	for _, d := range r.detectors {
		r.findings = append(r.findings, r.found(d)...)
		r.more = max(r.more, more(d.Detector))
		if n, ok := d.Detector.(detect.Noted); ok {
			for _, text := range n.Notes() {
				r.note("%s", text)
			}
		}
	}
	r.findings = withoutOutlived(r.findings)
}

// withoutOutlived removes the finding that a copy outlives its block if an error about the same copy says that it was
// not waited for.
func withoutOutlived(list []report.Finding) []report.Finding {
	told := map[event.Frame]bool{}
	for i := range list {
		for k := range list[i].Accesses {
			if a := &list[i].Accesses[k]; list[i].Severity == detect.Error && len(a.Frames) > 0 {
				told[a.Frames[0]] = true
			}
		}
	}
	return slices.DeleteFunc(list, func(f report.Finding) bool {
		return f.Kind == detect.Kind(engine.CopyOutlives) && len(f.Accesses[0].Frames) > 0 && told[f.Accesses[0].Frames[0]]
	})
}

// found returns the findings of a detector so far.
func (r *once) found(d detect.Detector) []report.Finding {
	var list []report.Finding
	for _, f := range d.Findings() {
		severity, why, fix, ok := r.tritonRace(&f)
		out := resolve(r, &f)
		switch {
		case ok:
			out.Severity, out.Message, out.Fix = severity, why, fix
		case f.Kind == detect.InterKernel && nodesOfGraph(&out):
			tellIn(inGraph, &out)
		default:
			tellIn(dialectFor(&f), &out)
		}
		list = append(list, out)
	}
	return list
}

// more is the number of findings that a detector did not keep.
func more(d detect.Detector) int {
	if c, ok := d.(detect.Capped); ok {
		n, _ := c.More()
		return n
	}
	return 0
}

// costs reports the costs of the detectors.
func (r *once) costs() []report.Detector {
	var out []report.Detector
	for _, j := range r.detectors {
		out = append(out, report.Detector{Name: j.name, Seconds: j.spent.Seconds(), Metadata: j.largest})
	}
	return out
}

func (r *once) watch(kernel string) bool {
	if r.opts.Watch.kernel(kernel) {
		return true
	}
	r.unseen[kernel] = true
	return false
}

func (r *once) progress(kernel string, blocks uint64, s engine.Stats) {
	if r.opts.Progress != nil {
		r.opts.Progress(fmt.Sprintf("%s: %d of %d blocks done, %d M lane-instructions", report.ShortName(report.BareName(kernel)), s.Blocks, blocks, s.Lanes/1e6))
	}
}

// launch records how a launch ended.
func (r *once) launch(l cuda.LaunchReport) {
	if r.opts.Progress != nil {
		r.opts.Progress("")
	}
	var name string
	if l.Err != nil { // most have none, and demangling takes as long as running a small kernel
		name = report.ShortName(report.BareName(l.Kernel))
	}
	var refused *cuda.Error
	var unchecked *cuda.Unchecked
	var lost *cuda.Lost
	switch {
	case errors.As(l.Err, &lost):
		r.skip("kernel "+name, "not run, "+lost.Error())
		return
	case l.Err == nil, errors.Is(l.Err, engine.ErrDeadlock), errors.Is(l.Err, engine.ErrTrap), errors.Is(l.Err, engine.ErrAssert):
	case errors.As(l.Err, &unchecked):
		what := "kernel " + name
		if name == "" {
			what = "a module that the program loads"
		}
		r.skip(what, lacking(unchecked))
		return
	case errors.As(l.Err, &refused):
		if !r.hosted { // otherwise it is among the device's failures
			r.refused(l, refused)
		}
		return
	case errors.Is(l.Err, engine.ErrStopped):
		r.skip(fmt.Sprintf("launch %d of %s", l.ID, name), "stopped: it reached the step limit"+r.where)
	case errors.Is(l.Err, engine.ErrHostWait), errors.Is(l.Err, engine.ErrDeviceWait):
		r.skip(fmt.Sprintf("launch %d of %s", l.ID, name), "stopped: "+l.Err.Error()+r.where)
	case errors.Is(l.Err, cuda.ErrEnded):
		r.skip(fmt.Sprintf("launch %d of %s", l.ID, name), "stopped: "+l.Err.Error()+r.where)
	case r.ctx.Err() != nil:
		r.skip(fmt.Sprintf("launch %d of %s", l.ID, name), whyStopped(r.ctx)+r.where)
	default:
		r.skip(fmt.Sprintf("launch %d of %s", l.ID, name), l.Err.Error())
	}
	if of, ok := r.launched[l.ID]; ok {
		of.process = l.Process
		r.launched[l.ID] = of
	}
	r.ran++
	if !r.unseen[l.Kernel] {
		r.watched++
	}
	r.addKernel(report.Kernel{Name: l.Kernel, Grid: l.Grid, Block: l.Block, Launches: 1, Seconds: l.Stats.Elapsed.Seconds()})
}

// refused makes a finding of a launch of a launch file that the API refuses.
func (r *once) refused(l cuda.LaunchReport, e *cuda.Error) {
	r.findings = append(r.findings, report.Finding{Class: detect.API, Kind: detect.Kind(cuda.LaunchRefused), Severity: detect.Warning,
		Detector: engineName, Kernel: l.Kernel, Count: 1, Message: refusal(&l, e.Code.String(), e.Msg), Fix: misuses[cuda.LaunchRefused].fix})
}

// kernelShape identifies an entry of the list of kernels.
type kernelShape struct {
	name        string
	grid, block event.Dim3
}

func (r *once) addKernel(k report.Kernel) {
	shape := kernelShape{k.Name, k.Grid, k.Block}
	i, ok := r.kernelAt[shape]
	if !ok {
		if r.kernelAt == nil {
			r.kernelAt = map[kernelShape]int{}
		}
		r.kernelAt[shape] = len(r.kernels)
		r.kernels = append(r.kernels, k)
		return
	}
	r.kernels[i].Launches += k.Launches
	r.kernels[i].Seconds += k.Seconds
}

func (r *once) skip(what, reason string) {
	s := report.Skipped{What: what, Reason: report.DemangleIn(reason)}
	if !r.isSkipped[s] {
		if r.isSkipped == nil {
			r.isSkipped = map[report.Skipped]bool{}
		}
		r.isSkipped[s] = true
		r.skipped = append(r.skipped, s)
	}
}

// NoDetector is the note of a bare run.
const NoDetector = "No detector was attached: races were not looked for."

func (r *once) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// finish returns the results of the run and closes the device.
func (r *once) finish() *report.Report {
	r.settle()
	if r.abandoned {
		return &report.Report{Skipped: r.skipped, Detectors: r.costs(), Notes: r.notes}
	}
	for _, call := range r.device.Unsupported() {
		r.skip(unsupported(call))
	}
	if n := r.device.LostOutput(); n > 0 {
		r.note("%d lines that kernels printed are lost: the buffer of device-side printf is full, and keeps the newest until the program "+
			"synchronises. Make it larger with cudaDeviceSetLimit(cudaLimitPrintfFifoSize, BYTES), or synchronise more often.", n)
	}
	if r.replayer != nil && r.replayer.missed() != "" {
		r.skip("schedule "+r.opts.Replay.Name, r.replayer.missed())
	}
	r.complainUnwatched()
	if r.looks {
		r.note("The PTX looks optimised: the compiler may have moved, merged or removed accesses, so a line may be " +
			"off, and a race may be hidden or made by it. Build with -lineinfo -Xcicc -O0 (\"fencepost nvcc\" does) to be sure.")
	}
	if r.scripted {
		r.note("What is compiled at run time (NVRTC, numba) is optimised: the compiler may have moved, merged or removed accesses, so a line may be " +
			"off, and a race may be hidden or made by it.")
	}
	r.endTrace() // while all findings are those of the engine
	r.collect()
	if r.recorder != nil {
		events, size := r.recorder.Written()
		r.note("%d events were recorded in %d bytes. Races were not looked for: \"fencepost analyze\" does that.", events, size)
	} else if r.opts.Bare {
		r.note(NoDetector)
	} else if note := r.opts.Watch.note(); note != "" {
		r.note("%s", note)
	}
	operators := r.device.Operators()
	r.close()
	return &report.Report{Program: r.program, Kernels: r.kernels, Operators: operators, Skipped: r.skipped,
		Findings: r.findings, More: r.more, Detectors: r.costs(), Notes: r.notes}
}

// unsupported says which feature a program asked for that is not supported, and the consequence. If it is not a call of
// CUDA, the consequence follows a colon.
func unsupported(name string) (what, why string) {
	if what, why, ok := strings.Cut(name, ": "); ok {
		return what, why
	}
	return "call " + name, "the call is not supported; it was answered with its API's own error"
}

func (r *once) complainUnwatched() {
	if r.ran == 0 || r.watched > 0 || len(r.unseen) == 0 {
		return
	}
	var names []string
	for k := range r.unseen {
		names = append(names, report.BareName(k))
	}
	slices.Sort(names)
	r.skip("kernels", fmt.Sprintf("%s chooses none of the kernels that ran: %s", r.opts.Watch.kernelFlags(), strings.Join(names, ", ")))
}

func (r *once) close() {
	r.judges.Wait() // a run may end early
	r.release()
	if r.abandoned {
		return
	}
	// The device holds only memory; an error of freeing it is irrelevant.
	_ = r.device.Close()
	if e, ok := r.executes.(io.Closer); ok {
		_ = e.Close()
	}
}

// unite merges the reports of several seeds.
func unite(reports []*report.Report, o *Options) *report.Report {
	out := *reports[0]
	out.Skipped, out.Notes = distinct(reports, func(r *report.Report) []report.Skipped { return r.Skipped }),
		distinct(reports, func(r *report.Report) []string { return r.Notes })
	for _, r := range reports[1:] {
		out.Findings = append(out.Findings, r.Findings...)
		out.More = max(out.More, r.More)
		out.Detectors = addCosts(out.Detectors, r.Detectors)
		if r.Program != nil && r.Program.Exit != 0 && out.Program.Exit == 0 {
			out.Program = r.Program
		}
	}
	order := map[string]int{}
	for i, d := range out.Detectors {
		order[d.Name] = i + 1
	}
	slices.SortStableFunc(out.Findings, func(a, b report.Finding) int { return cmp.Compare(order[a.Detector], order[b.Detector]) })
	out.Findings = report.Merge(out.Findings)
	most := cmp.Or(o.MaxFindings, detect.DefaultFindings)
	out.Cut(most)
	if out.More > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d findings are kept (--max-findings): the most severe ones, and at least one of each kind. At least %d more racing pairs of instructions were counted.",
			len(out.Findings), out.More))
	}
	slices.SortStableFunc(out.Kernels, func(a, b report.Kernel) int { return cmp.Compare(a.Name, b.Name) })
	out.Verdict = report.Judge(&out, o.FailOn)
	return &out
}

// distinct returns the different items of reports, in their order.
func distinct[T comparable](reports []*report.Report, of func(*report.Report) []T) (out []T) {
	seen := map[T]bool{}
	for _, r := range reports {
		for _, x := range of(r) {
			if !seen[x] {
				seen[x] = true
				out = append(out, x)
			}
		}
	}
	return out
}

// addCosts adds the costs of detectors in two runs.
func addCosts(a, b []report.Detector) []report.Detector {
	a = slices.Clone(a)
	for _, d := range b {
		i := slices.IndexFunc(a, func(o report.Detector) bool { return o.Name == d.Name })
		if i < 0 {
			a = append(a, d)
			continue
		}
		a[i].Seconds += d.Seconds
		a[i].Metadata = max(a[i].Metadata, d.Metadata)
		a[i].Bare += d.Bare
		a[i].Misses += d.Misses
		a[i].FalseAlarms += d.FalseAlarms
	}
	return a
}
