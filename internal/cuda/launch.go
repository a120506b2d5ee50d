package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// LaunchConfig is the configuration of a launch.
type LaunchConfig struct {
	Grid        event.Dim3
	Block       event.Dim3
	Cluster     event.Dim3 // blocks of a cluster; zero: those that the kernel requires, or one
	Shared      int        // bytes of dynamic shared memory
	Stream      StreamID
	Thread      uint32 // the calling host thread, for the per-thread default stream
	Cooperative bool
	// Programmatic allows programmatic stream serialization: the launch may begin before the preceding one on the
	// stream has ended.
	Programmatic bool
	Arguments    []engine.Argument
	Caller       []event.Frame // the place of the launch in the program, innermost first; nil if it is not known
}

// Launch runs a kernel to its end. params is its parameter block, laid out as Kernel.Params describes.
//
// The error is that of the launch call: an *Error for a launch that the API refuses, an *Unchecked for a kernel that
// cannot be executed, or ctx.Err(). Errors while the kernel runs are reported through OnFault and OnLaunch and become
// the error of every later call, as on a real device.
func (c *Context) Launch(ctx context.Context, k *Kernel, cfg LaunchConfig, params []byte) error {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		c.dev.report(LaunchReport{Process: c.id, Kernel: k.Name(), Grid: cfg.Grid, Block: cfg.Block, Err: &Lost{err}})
		return err
	}
	report := LaunchReport{Process: c.id, Kernel: k.Name(), Grid: cfg.Grid, Block: cfg.Block}
	s, err := c.stream(cfg.Stream, cfg.Thread)
	if err != nil {
		return c.refuse(report, err)
	}
	if s.gpu != c.gpu {
		return c.refuse(report, fail(InvalidResourceHandle, "the stream is of device %d, and the current device is %d", s.gpu.number, c.gpu.number))
	}
	if k.module.ctx == c {
		if k, err = k.on(c.gpu); err != nil {
			return c.refuse(report, err)
		}
	}
	l := c.launch(k, cfg, params, s)
	if err := c.admit(k, cfg, l); err != nil {
		return c.refuse(report, err)
	}
	c.dev.launches++
	l.ID, report.ID = c.dev.launches, c.dev.launches
	name := fmt.Sprintf("launch of %s (%s)", k.Name(), s.name)
	l.Early = cfg.Programmatic && s.kernel
	c.begin(s, name)
	c.awaitPrerequisites(s, k)
	s.kernel = true
	c.work(s)
	c.signalling(k)
	c.dev.flush()

	if len(c.gpus) > 1 {
		c.gpu.reached(c.dev.mem)
	}
	if c.dev.sharing {
		c.dev.mem.Shut(c.shut)
	}
	again, rerun := *l, false
	if c.mayRerun(k, l) {
		c.dev.spare.before, rerun = c.save(k, c.dev.spare.before)
	}
	report, worst := c.perform(ctx, k, l, report, 1)
	if deadlock := errors.Is(report.Err, engine.ErrDeadlock); rerun && (worst == 0 || deadlock) {
		c.rerun(ctx, k, again, report.Stats.Warps, deadlock)
	}
	c.launched(s, k)
	if worst != 0 {
		c.sticky = &Error{Code: worst, Msg: fmt.Sprintf("after launch %d", l.ID), lost: true}
	}
	return ctx.Err()
}

// refuse reports a launch that does not take place. The failures of a program contain its place.
func (c *Context) refuse(r LaunchReport, err error) error {
	r.Err = err
	c.dev.report(r)
	var e *Error
	if errors.As(err, &e) {
		e.Launch = &r
		e.Kind = cmp.Or(e.Kind, LaunchRefused)
	}
	return err
}

// execute runs a launch. If a page of device memory cannot be allocated (the machine is out of memory), only the launch
// ends.
func (d *Device) execute(ctx context.Context, l *engine.Launch) (stats engine.Stats, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if bug := recover(); bug != nil {
			if !d.faulted(bug) {
				panic(bug)
			}
			err = ErrMemory
		}
	}()
	stats, err = d.cfg.Engine.Run(ctx, l)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return stats, err
}

// ErrMemory says that the machine could not provide a page of device memory.
var ErrMemory = errors.New("a page of device memory could not be had: the machine may be out of memory")

// faulted reports whether a panic is a fault at an address of device memory.
func (d *Device) faulted(bug any) bool {
	fault, ok := bug.(interface{ Addr() uintptr })
	from := uintptr(unsafe.Pointer(unsafe.SliceData(d.backing)))
	return ok && fault.Addr()-from < uintptr(len(d.backing))
}

// Faulted reports whether a panic during a launch is a fault of device memory and not a defect.
func (d *Device) Faulted(bug any) bool { return d.faulted(bug) }

func (d *Device) report(r LaunchReport) {
	if d.cfg.OnLaunch != nil {
		d.cfg.OnLaunch(r)
	}
}

func (c *Context) launch(k *Kernel, cfg LaunchConfig, params []byte, s *stream) *engine.Launch {
	d := c.dev
	if cfg.Cluster == (event.Dim3{}) {
		cfg.Cluster = k.clusterShape()
	}
	l := &engine.Launch{
		Launch: event.Launch{Agent: s.agent, Kernel: k.Name(), Grid: cfg.Grid, Block: cfg.Block, Cluster: cfg.Cluster, Language: k.module.written,
			Device: s.gpu.inEvents(c)},
		Program: k.module.program, Places: d.cfg.Places, Func: k.fn,
		DynamicShared: cfg.Shared, Params: params, Cooperative: cfg.Cooperative, NonPortableCluster: k.nonPortable, Caller: cfg.Caller, Arguments: append(cfg.Arguments, k.named(params)...),
		OnFault: d.cfg.OnFault, Seed: d.cfg.Seed, Schedule: d.cfg.Schedule, MaxSteps: d.cfg.MaxSteps,
	}
	if d.cfg.Watch == nil || d.cfg.Watch(k.Name()) {
		l.Sink, l.Needs = d.cfg.Sink, d.cfg.Needs
	}
	if c.printf != nil {
		l.Printf = func(text []byte) { c.printf.Write(text) }
	}
	if d.cfg.Progress != nil {
		l.Progress = func(st engine.Stats) { d.cfg.Progress(k.Name(), cfg.Grid.Count(), st) }
	}
	return l
}

// admit returns an error if the API refuses a launch.
func (c *Context) admit(k *Kernel, cfg LaunchConfig, l *engine.Launch) error {
	if !k.module.ctx.modules[k.module] || k.module.ctx != c {
		return fail(InvalidResourceHandle, "the module of %s is not loaded", k.Name())
	}
	if k.err != nil {
		return k.err
	}
	lim := c.limits
	if cfg.Shared < 0 || cfg.Shared > k.maxDynamic {
		return fail(InvalidValue, "%d bytes of dynamic shared memory, and the kernel may have %d "+
			"(cudaFuncSetAttribute raises that to at most %d)", cfg.Shared, k.maxDynamic, lim.SharedOptin-int(k.shared.Static))
	}
	if err := engine.Check(l, lim); err != nil {
		var limit *engine.LimitError
		if errors.As(err, &limit) {
			return &Error{Code: codeNamed(limit.API), Msg: limit.Msg, Err: err}
		}
		return &Unchecked{Kernel: k.Name(), Err: err}
	}
	return nil
}

// faultCode is the error of a device after a fault; 0 if it would continue.
func faultCode(kind engine.FaultKind) Code {
	switch kind {
	case engine.OutOfBounds, engine.UseAfterFree, engine.NoPeerAccess, engine.ReadOnly:
		return IllegalAddress
	case engine.Misaligned:
		return MisalignedAddress
	case engine.Assertion:
		return Assert
	case engine.Deadlock, engine.StepLimit:
		return LaunchTimeout
	case "":
		return 0
	}
	return LaunchFailure
}

// endCode is the error after a launch that was ended without a fault.
func endCode(err error) Code {
	if errors.Is(err, engine.ErrDeadlock) || errors.Is(err, engine.ErrStopped) || errors.Is(err, engine.ErrHostWait) || errors.Is(err, engine.ErrDeviceWait) ||
		errors.Is(err, ErrEnded) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return LaunchTimeout
	}
	return LaunchFailure
}

// BlocksPerSM is cudaOccupancyMaxActiveBlocksPerMultiprocessor. Registers are not modelled.
func (k *Kernel) BlocksPerSM(threads, dynamicShared uint64) (int, error) {
	leave, err := k.module.ctx.enter()
	defer leave()
	if err != nil {
		return 0, err
	}
	if k, err = k.on(k.module.ctx.gpu); err != nil {
		return 0, err
	}
	if threads == 0 {
		return 0, fail(InvalidValue, "occupancy of blocks of no threads")
	}
	return k.blocksPerSM(threads, dynamicShared), nil
}

func (k *Kernel) blocksPerSM(threads, dynamicShared uint64) int {
	lim := k.module.ctx.limits
	if threads > uint64(k.maxThreads(lim)) || dynamicShared > uint64(k.maxDynamic) {
		return 0
	}
	return lim.ResidentBlocks(int(threads), int(k.shared.Static)+int(dynamicShared)) / lim.SMs
}

// Clusters returns how many clusters of a shape can be resident at once (cudaOccupancyMaxActiveClusters; zero: of the
// shape that the kernel requires), and the number of blocks of the largest possible cluster
// (cudaOccupancyMaxPotentialClusterSize).
func (k *Kernel) Clusters(threads, dynamicShared uint64, shape event.Dim3) (resident, largest int, err error) {
	leave, err := k.module.ctx.enter()
	defer leave()
	lim := k.module.ctx.limits
	if shape == (event.Dim3{}) {
		shape = k.clusterShape()
	}
	if shape == (event.Dim3{}) {
		shape = event.Dim3{X: 1, Y: 1, Z: 1}
	}
	most := engine.MaxCluster(k.nonPortable)
	switch size := shape.Count(); {
	case err != nil:
		return 0, 0, err
	case threads == 0:
		return 0, 0, fail(InvalidValue, "occupancy of blocks of no threads")
	case !lim.Clusters() || size == 0 || size > uint64(most):
		return 0, 0, fail(InvalidClusterSize, "clusters of %v blocks on a device of compute capability %d.%d", shape, lim.Major, lim.Minor)
	case threads > uint64(k.maxThreads(lim)) || dynamicShared > uint64(k.maxDynamic):
		return 0, 0, nil
	}
	use := int(k.shared.Static) + int(dynamicShared)
	for largest = most; largest > 0 && lim.ResidentClusters(largest, int(threads), use) == 0; {
		largest--
	}
	return lim.ResidentClusters(int(shape.Count()), int(threads), use), largest, nil
}

// maxThreads is the largest block the kernel may be launched with.
func (k *Kernel) maxThreads(lim engine.Limits) int {
	if k.fn.MaxThreads > 0 {
		return min(k.fn.MaxThreads, lim.ThreadsPerBlock)
	}
	return lim.ThreadsPerBlock
}
