package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/report"
)

// Input is kernels and the description of their launches.
type Input struct {
	Images []cuda.Image // linked together
	Launch *LaunchFile
	// Rename, if not nil, maps the source file names of the PTX to those of the report.
	Rename func(file string) string
	// Look, if not nil, is called after the launches, unless memory is lost, with a function that reads a buffer. Check
	// returns its error.
	Look func(read func(*Buffer) ([]byte, error)) error
}

// Check launches kernels as the launch file describes, once for each seed, o.Jobs seeds at a time. It returns an error
// if nothing could be run: invalid PTX, a missing kernel, arguments that do not fit. A *FileError or FileErrors
// concerns the launch file.
func Check(ctx context.Context, o *Options, in *Input) (*report.Report, error) {
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	// The output of kernels appears in the order of the seeds, even if the runs overlap: that of the first appears
	// immediately.
	printed := make([]bytes.Buffer, max(o.Seeds, 1))
	defer func() {
		if o.Printf != nil {
			for i := range printed {
				_, _ = printed[i].WriteTo(o.Printf)
			}
		}
	}()
	return overSeeds(ctx, o, o.Jobs, func(i int, seed uint64, cores int) (*report.Report, error) {
		to := o.Printf
		if i > 0 && to != nil {
			to = &printed[i]
		}
		return checkOnce(ctx, o, in, seed, cores, to)
	})
}

// overSeeds makes one report of the runs with each seed, jobs of them at a time, which divide the cores among them.
// Runs share nothing, and their reports are merged in the order of the seeds, so that the report is the same for any
// number of jobs.
func overSeeds(ctx context.Context, o *Options, jobs int, run func(i int, seed uint64, cores int) (*report.Report, error)) (*report.Report, error) {
	seeds := max(o.Seeds, 1)
	jobs = min(max(jobs, 1), seeds)
	cores := min(o.Jobs, runtime.GOMAXPROCS(0)) / jobs
	reports := make([]*report.Report, seeds)
	errs := make([]error, seeds)
	bugs := make([]any, seeds)
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= seeds || i > 0 && ctx.Err() != nil {
				return
			}
			func() {
				defer func() { bugs[i] = recover() }()
				reports[i], errs[i] = run(i, o.Seed+uint64(i), cores)
			}()
			if errs[i] != nil || bugs[i] != nil {
				failed.Store(true)
			}
		}
	}
	var wg sync.WaitGroup
	for range jobs - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	for i := range seeds {
		if bugs[i] != nil {
			panic(fmt.Sprintf("BUG: a run with seed %d: %v", o.Seed+uint64(i), bugs[i]))
		}
		if errs[i] != nil {
			return nil, errs[i]
		}
	}
	done := slices.DeleteFunc(reports, func(r *report.Report) bool { return r == nil })
	if missing := seeds - len(done); missing > 0 {
		last := done[len(done)-1]
		last.Skipped = append(last.Skipped, report.Skipped{What: fmt.Sprintf("%d of %d seeds", missing, seeds), Reason: whyStopped(ctx)})
	}
	return unite(done, o), nil
}

func checkOnce(ctx context.Context, o *Options, in *Input, seed uint64, cores int, printf io.Writer) (*report.Report, error) {
	r, err := newOnce(ctx, o, seed, cores, checkMemory, printf)
	if err != nil {
		return nil, err
	}
	r.rename = in.Rename
	c := &checker{once: r, in: in, api: r.device.NewContext(), streams: map[int]cuda.StreamID{},
		kernels: map[string]*cuda.Kernel{}, placed: map[*Buffer]uint64{}}
	if err := c.run(); err != nil {
		r.close()
		return nil, err
	}
	return r.finish(), nil
}

// checker drives the device as the launch file describes, like a host program.
type checker struct {
	*once
	in      *Input
	api     *cuda.Context
	module  *cuda.Module
	streams map[int]cuda.StreamID
	kernels map[string]*cuda.Kernel // by their names in launches
	placed  map[*Buffer]uint64
}

func (c *checker) run() error {
	err := c.load()
	if c.abandoned {
		c.skip("the module", whyStopped(c.ctx)+" while it was read")
		return nil
	}
	if err != nil {
		var bad *cuda.Error
		if errors.As(err, &bad) {
			return errors.New(bad.Msg)
		}
		return err
	}
	if err := c.place(); err != nil {
		return err
	}
	for i := range c.in.Launch.Launches {
		if c.ctx.Err() != nil {
			c.skip(fmt.Sprintf("launch %d of %s", i+1, c.in.Launch.Name), whyStopped(c.ctx))
			continue
		}
		if err := c.launchOne(i); err != nil {
			return err
		}
	}
	return c.verify()
}

// load reads the module. When the time is over it does not wait for that: the device is then left to the goroutine that
// is still reading.
func (c *checker) load() error {
	type loaded struct {
		module *cuda.Module
		err    error
		bug    any
	}
	done := make(chan loaded, 1)
	go func() {
		var l loaded
		defer func() {
			if l.bug = recover(); l.bug != nil {
				l.bug = fmt.Sprintf("reading a module: %v\n%s", l.bug, debug.Stack())
			}
			done <- l
		}()
		l.module, l.err = c.api.LoadModule(c.in.Images...)
	}()
	select {
	case l := <-done:
		if l.bug != nil {
			panic(fmt.Sprintf("BUG: %v", l.bug))
		}
		c.module = l.module
		return l.err
	case <-c.ctx.Done():
		c.abandoned = true
		return nil
	}
}

// narrow reports whether a kernel receives the address of a buffer in 32 bits.
func (c *checker) narrow() bool {
	for i := range c.in.Launch.Launches {
		l := &c.in.Launch.Launches[i]
		k, err := c.kernel(l)
		if err != nil {
			continue // reported when it is launched
		}
		for j, p := range k.Params() {
			if j < len(l.Args) && l.Args[j].Buffer != nil && p.Size == 4 {
				return true
			}
		}
	}
	return false
}

// checkMemory is the device memory for a launch file. Half of it is for buffers, the rest for variables of the module
// and the gaps between allocations.
const checkMemory = 2 * (maxBuffer + 1<<30)

// place allocates and fills the buffers.
func (c *checker) place() error {
	if c.narrow() { // so that no buffer has the 32-bit address 0, a null pointer
		if _, err := c.api.Malloc(1, devmem.DeviceAlloc); err != nil {
			return err
		}
	}
	for _, b := range c.in.Launch.Buffers {
		addr, err := c.api.Malloc(b.Bytes(), devmem.DeviceAlloc)
		if err != nil {
			return fmt.Errorf("%s: buffer %q of %d bytes: %w", c.in.Launch.Name, b.Name, b.Bytes(), err)
		}
		c.buffers = append(c.buffers, placedBuffer{b, addr})
		c.placed[b] = addr
		if err := c.fill(b, addr); err != nil {
			return err
		}
	}
	slices.SortFunc(c.buffers, func(x, y placedBuffer) int { return cmp.Compare(x.addr, y.addr) })
	return nil
}

// pieceBytes is the number of bytes of a buffer that are filled or compared at once: a --timeout may end either.
const pieceBytes = 1 << 20

// fill writes the initial contents of a buffer.
func (c *checker) fill(b *Buffer, addr uint64) error {
	if b.fill == nil {
		c.api.Zeroed(addr, b.Bytes())
		return nil
	}
	data := make([]byte, min(b.Bytes(), pieceBytes))
	step := uint64(len(data) / b.Type.Size)
	for from := uint64(0); from < b.Count && c.ctx.Err() == nil; from += step {
		n := min(step, b.Count-from)
		b.Fill(data[:n*uint64(b.Type.Size)], from)
		if err := c.api.Write(addr+from*uint64(b.Type.Size), data[:n*uint64(b.Type.Size)]); err != nil {
			return err
		}
	}
	return nil
}

// launchOne runs launch i. The error is a mistake in the launch file.
func (c *checker) launchOne(i int) error {
	l := &c.in.Launch.Launches[i]
	k, err := c.kernel(l)
	if err != nil {
		return err
	}
	params, err := c.params(l, k)
	if err != nil {
		return err
	}
	cfg := cuda.LaunchConfig{Grid: l.Grid, Block: l.Block, Cluster: l.Cluster, Shared: l.Shared, Cooperative: k.SyncsGrid(), Programmatic: l.Programmatic, Arguments: c.named()}
	if l.Cooperative != nil {
		cfg.Cooperative = *l.Cooperative
	}
	if cfg.Stream, err = c.stream(l.Stream); err != nil {
		return err
	}
	if most := int32(l.Shared); l.Shared > 0 {
		// The opt-in for large shared memory is a matter of the host program, not of the kernel. Too much is refused
		// below.
		_ = k.SetAttribute(cuda.FuncMaxDynamicShared, most)
	}
	told := len(c.findings)
	err = c.api.Launch(c.ctx, k, cfg, params)
	var refused *cuda.Error
	var unchecked *cuda.Unchecked
	switch {
	case err == nil || c.ctx.Err() != nil || errors.As(err, &unchecked): // OnLaunch has reported it
	case errors.As(err, &refused):
		if len(c.findings) > told {
			return &FileError{File: c.in.Launch.Name, Pos: l.Pos, Msg: refused.Error(), Err: refused}
		}
	default:
		return err
	}
	return c.query(l, cfg.Stream)
}

// query asks after a launch on a stream whether the stream has finished, as often as the launch file says, and then
// waits for it if the file says so. The answer of the API orders later operations. A lost device is noticed at the next
// launch.
func (c *checker) query(l *LaunchSpec, stream cuda.StreamID) error {
	for range l.Query {
		_ = c.api.QueryStream(stream, 0)
	}
	if l.EventQuery > 0 {
		e, err := c.api.CreateEvent(cuda.EventDisableTiming)
		if err != nil {
			return err
		}
		if err := c.api.RecordEvent(e, stream, 0); err != nil {
			return err
		}
		for range l.EventQuery {
			_ = c.api.QueryEvent(e)
		}
	}
	if l.Sync {
		_ = c.api.Synchronize()
	}
	return nil
}

// named returns the buffers, for engines that name them in messages.
func (c *checker) named() []engine.Argument {
	var named []engine.Argument
	for _, b := range c.buffers {
		named = append(named, engine.Argument{Name: b.Name, Addr: b.addr, Size: b.Bytes(), Elem: b.Type.Size, Signed: b.Type.Sign, Float: b.Type.Float})
	}
	return named
}

func (c *checker) at(pos Pos, format string, args ...any) error {
	return &FileError{File: c.in.Launch.Name, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

func (c *checker) stream(n int) (cuda.StreamID, error) {
	if n == 0 {
		return cuda.StreamLegacy, nil
	}
	if id, ok := c.streams[n]; ok {
		return id, nil
	}
	id, err := c.api.CreateStream(0, 0)
	c.streams[n] = id
	return id, err
}

// kernel finds the kernel of a launch.
func (c *checker) kernel(l *LaunchSpec) (*cuda.Kernel, error) {
	if k := c.kernels[l.Kernel]; k != nil {
		return k, nil
	}
	k, err := c.findKernel(l)
	if err == nil {
		c.kernels[l.Kernel] = k
	}
	return k, err
}

func (c *checker) findKernel(l *LaunchSpec) (*cuda.Kernel, error) {
	names := c.module.Kernels()
	var matches []string
	for _, n := range names {
		if l.Kernel == "" || Called(n, l.Kernel) {
			matches = append(matches, n)
		}
	}
	if slices.Contains(matches, l.Kernel) {
		matches = []string{l.Kernel}
	} else if l.Kernel == "" && len(matches) > 1 {
		matches = c.opts.Watch.named(matches)
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s holds no kernel (no .entry)", c.in.Images[0].Name)
	case len(matches) == 1:
		return c.module.Kernel(matches[0])
	case l.Kernel == "" && len(matches) == 0:
		return nil, fmt.Errorf("%s: %s has no such kernel%s", c.opts.Watch.kernelFlags(), c.in.Images[0].Name,
			nearest.Hint(fmt.Sprint(c.opts.Watch.Kernel), callNames(names)))
	case l.Kernel == "":
		return nil, c.at(l.Pos, "%s holds %d kernels; say which one, as in kernel = %q (%s)", c.in.Images[0].Name, len(names),
			CallName(names[0]), strings.Join(callNames(names), ", "))
	case len(matches) == 0:
		return nil, c.at(l.KernelPos, "there is no kernel %q in %s%s", clipped(l.Kernel), c.in.Images[0].Name, nearest.Hint(l.Kernel, callNames(names)))
	}
	return nil, c.at(l.KernelPos, "%q means several kernels: %s", l.Kernel, strings.Join(matches, ", "))
}

// clipped is a name, shortened if it is long.
func clipped(name string) string {
	const most = 200
	if r := []rune(name); len(r) > most {
		return string(r[:most]) + "..."
	}
	return name
}

// Called reports whether name may refer to a kernel: it is its name in the PTX, or its demangled name with or without
// parameters, namespaces and template arguments.
func Called(kernel, name string) bool {
	call := CallName(kernel)
	bare := report.BareName(kernel)
	plain, _, _ := strings.Cut(bare, "<")
	name = unspaced(name)
	return slices.ContainsFunc([]string{kernel, report.Demangle(kernel), call, bare, plain}, func(n string) bool { return name == unspaced(n) })
}

// unspaced is a name without spaces: "tile<4,int>" is "tile<4, int>".
func unspaced(name string) string { return strings.ReplaceAll(name, " ", "") }

// CallName is the demangled name without return type and parameters: "ns::scan<float>".
func CallName(kernel string) string {
	full, bare := report.Demangle(kernel), report.BareName(kernel)
	i := strings.LastIndex(full, bare+"(")
	if i < 0 {
		return full
	}
	start := i
	for depth := 0; start > 0; start-- {
		switch full[start-1] {
		case '>', ')':
			depth++
		case '<', '(':
			depth--
		case ' ':
			if depth == 0 {
				return full[start : i+len(bare)]
			}
		}
	}
	return full[:i+len(bare)]
}

func callNames(kernels []string) []string {
	var names []string
	for _, k := range kernels {
		names = append(names, CallName(k))
	}
	return names
}

// params lays out the kernel's parameter block.
func (c *checker) params(l *LaunchSpec, k *cuda.Kernel) ([]byte, error) {
	want := k.Params()
	if len(l.Args) != len(want) {
		return nil, c.at(l.Pos, "kernel %s has %d parameters and the launch gives %d arguments; its parameters are %s",
			CallName(k.Name()), len(want), len(l.Args), describeParams(k))
	}
	block := make([]byte, k.ParamSize())
	for i, p := range want {
		a := &l.Args[i]
		value := a.Value
		if a.Buffer != nil {
			addr := c.address(a.Buffer)
			if a.Texture != nil {
				object, err := c.api.CreateTexture(a.Texture.describe(a.Buffer, addr))
				if err != nil {
					return nil, c.at(a.Pos, "argument %d: %v", i+1, err)
				}
				addr = object
			}
			value = binary.LittleEndian.AppendUint64(nil, addr)
			if p.Size == 4 { // a 32-bit pointer: see isa.Widen
				value = value[:4]
				if end := addr + a.Buffer.Bytes(); end > isa.GlobalBase+isa.NarrowLimit {
					return nil, c.at(a.Pos, "argument %d: a 32-bit address does not reach %s", i+1, a.Buffer.Name)
				}
			}
		}
		if len(value) != p.Size {
			return nil, c.at(a.Pos, "argument %d (%s) has %d bytes, and parameter %d of %s has %d",
				i+1, a.Type, len(value), i+1, CallName(k.Name()), p.Size)
		}
		number := a.Buffer == nil && a.Type != "bytes"
		if integer := p.Type.Signed() || p.Type >= isa.U8 && p.Type <= isa.U64; number && (integer && a.Type[0] == 'f' || p.Type.Float() && a.Type[0] != 'f') {
			return nil, c.at(a.Pos, "argument %d is %s, and parameter %d of %s is %s: give a number of that type, or bytes",
				i+1, a.Type, i+1, CallName(k.Name()), p.Type)
		}
		copy(block[p.Off:], value)
	}
	return block, nil
}

// describeParams lists sizes, and types if the kernel's name contains them: "int* (8 bytes), int (4 bytes)".
func describeParams(k *cuda.Kernel) string {
	ps := k.Params()
	if len(ps) == 0 {
		return "none"
	}
	var out []string
	types := sourceTypes(k.Name(), len(ps))
	for i, p := range ps {
		s := fmt.Sprintf("%d bytes", p.Size)
		if p.Size == 1 {
			s = "1 byte"
		}
		if types[i] != "" {
			s = fmt.Sprintf("%s (%s)", types[i], s)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func (c *checker) address(b *Buffer) uint64 {
	addr, ok := c.placed[b]
	if !ok {
		panic("BUG: buffer " + b.Name + " was not placed")
	}
	return addr
}

// read returns the contents of a buffer.
func (c *checker) read(b *Buffer) ([]byte, error) {
	data := make([]byte, b.Bytes())
	return data, c.api.Read(c.address(b), data)
}

// verify compares buffers with the expectations of the launch file. A difference is a failure of the program, like a
// failing check of results in a host program.
func (c *checker) verify() error {
	if err := c.api.Synchronize(); err != nil || c.ctx.Err() != nil {
		return nil // reported with the launch that failed
	}
	if c.in.Look != nil {
		if err := c.in.Look(c.read); err != nil {
			return err
		}
	}
	if x := c.in.Launch.Condition; x != nil {
		c.skip(fmt.Sprintf("the condition %q of %s, line %d", x.Quantifier, c.in.Launch.Name, x.Pos.Line), "it is about all executions, which fencepost verify explores")
	}
	for i := range c.in.Launch.Expects {
		if err := c.expect(&c.in.Launch.Expects[i]); err != nil {
			return err
		}
	}
	return nil
}

// expect compares a buffer with an expectation, up to the first difference.
func (c *checker) expect(x *Expect) error {
	n := uint64(x.Buffer.Type.Size)
	data := make([]byte, min(x.First*n, pieceBytes))
	for i := range x.First {
		at := i * n % pieceBytes
		if at == 0 {
			if c.ctx.Err() != nil {
				c.skip("expected results", whyStopped(c.ctx))
				return nil
			}
			if err := c.api.Read(c.address(x.Buffer)+i*n, data[:min((x.First-i)*n, pieceBytes)]); err != nil {
				return err
			}
		}
		if got, want, ok := x.Judge(i, data[at:at+n]); !ok {
			c.program = &report.Program{Exit: 1}
			c.note("%s:%d:%d: %s[%d] is %s, and %s is expected.", c.in.Launch.Name, x.Pos.Line, x.Pos.Column, x.Buffer.Name, i, got, want)
			return nil
		}
	}
	return nil
}
