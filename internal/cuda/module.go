package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/fatbin"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// Image is one PTX text. Several are linked to one module.
type Image struct {
	Name string // the file, for messages and places
	Text string
}

// Module is PTX loaded into the device for a context.
type Module struct {
	ctx     *Context
	program *loader.Program
	kernels map[string]*Kernel
	number  int
	written event.Language
	sources []written // from which it was compiled, if they are known
	images  []Image   // kept if there are several devices
	gpu     *gpu
	others  map[*gpu]*Module // the same module on other devices
}

// Kernel is an entry function of a module.
type Kernel struct {
	module *Module
	fn     *isa.Func
	shared *isa.Shared
	err    error // *Unchecked: it must not run
	// maxDynamic is cudaFuncAttributeMaxDynamicSharedMemorySize. carveout is kept only to be read back.
	maxDynamic  int
	carveout    int32
	required    [3]uint32 // the cluster shape that was set, zeros for none
	nonPortable bool      // clusters of more than 8 blocks are allowed
	formals     []formal  // nil: not searched for yet
	signalled   bool      // signals is known
	signals     bool      // see Context.signalling
	examined    bool      // contending is known
	contending  bool      // see contends
	rerun       uint64    // the cost so far of executing its launches again
	saving      uint64    // the cost of saving the memory for that at the last attempt
}

// LoadModule links PTX texts and places their variables. It returns an *Error (InvalidPtx, wrapping the ptx.ErrorList)
// for text that is invalid at module level. Errors inside a kernel appear when that kernel is requested.
func (c *Context) LoadModule(images ...Image) (*Module, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	return c.load(images)
}

// LoadFatbins loads fat binaries that lie end to end, as a program registers them, and links their contents.
func (c *Context) LoadFatbins(data []byte) (*Module, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	entries, err := fatbin.Parse(data)
	if err != nil {
		return nil, &Error{Code: InvalidKernelImage, Msg: err.Error(), Err: err}
	}
	best := fatbin.Best(entries, c.limits.Capability())
	if len(best) == 0 {
		return nil, fail(NoKernelImageForDevice, "the program holds no PTX%s; build it with PTX, "+
			"for instance with -gencode arch=compute_80,code=compute_80", holds(entries))
	}
	images := make([]Image, len(best))
	for i, e := range best {
		name := fmt.Sprintf("embedded-%d.ptx", i+1)
		if e.Name != "" {
			name = filepath.Base(e.Name) + ".ptx" // of the embedded file, not of the source
		}
		images[i] = Image{Name: name, Text: string(e.Text)}
	}
	return c.load(images)
}

// holds describes the contents of a fat binary without PTX.
func holds(entries []fatbin.Entry) string {
	var what []string
	for _, e := range entries {
		if s := fmt.Sprintf("%s for sm_%d%s", e.Kind, e.Arch, e.Suffix); !slices.Contains(what, s) {
			what = append(what, s)
		}
	}
	if len(what) == 0 {
		return ""
	}
	return " (only " + strings.Join(what, ", ") + ")"
}

func (c *Context) load(images []Image) (*Module, error) {
	linked := withConditions(images)
	trees := make([]*ptx.Module, len(linked))
	var sources []written
	for i, im := range linked {
		tree, err := ptx.Parse(im.Name, im.Text)
		if err != nil {
			isa.Locate(tree, err)
			return nil, &Error{Code: InvalidPtx, Msg: err.Error(), Err: err}
		}
		trees[i] = tree
		sources = append(sources, writtenIn(im.Text)...)
	}
	decoded, err := isa.Decode(trees...)
	if err != nil {
		return nil, &Error{Code: InvalidPtx, Msg: err.Error(), Err: err}
	}
	if decoded, err = c.dev.rewritten(decoded); err != nil {
		return nil, err
	}
	c.gpu.own(c.dev.mem)
	program, err := loader.Load(decoded, c.dev.mem)
	if err != nil {
		code := InvalidKernelImage
		if errors.Is(err, devmem.ErrOutOfMemory) {
			code = MemoryAllocation
		}
		return nil, &Error{Code: code, Msg: err.Error(), Err: err}
	}
	for _, tree := range trees {
		c.builtFor(targetOf(tree))
	}
	m := &Module{ctx: c, gpu: c.gpu, images: images, program: program, kernels: map[string]*Kernel{}, number: len(c.modules), written: language(images), sources: sources}
	c.modules[m] = true
	c.dev.tellWritten(sources, trees)
	return m, nil
}

// rewritten returns the module that is loaded in place of a module.
func (d *Device) rewritten(m *isa.Module) (*isa.Module, error) {
	if d.cfg.Rewrite == nil {
		return m, nil
	}
	trees, err := d.cfg.Rewrite(m)
	if err != nil {
		return nil, &Error{Code: InvalidPtx, Msg: err.Error(), Err: err}
	}
	if m, err = isa.Decode(trees...); err != nil {
		return nil, &Error{Code: InvalidPtx, Msg: err.Error(), Err: err}
	}
	return m, nil
}

// targetOf is the architecture of a module's target: 90 for sm_90a.
func targetOf(tree *ptx.Module) int {
	for _, name := range tree.Targets {
		if number, ok := strings.CutPrefix(name, "sm_"); ok {
			arch, _ := strconv.Atoi(strings.TrimRight(number, "af"))
			return arch
		}
	}
	return 0
}

// language is the language of a module's source. The stand-in for ptxas writes it above PTX of Triton's.
func language(images []Image) event.Language {
	switch text := images[0].Text; {
	case strings.HasPrefix(text, "// fencepost: made by Triton with Gluon"):
		return event.Gluon
	case strings.HasPrefix(text, "// fencepost: made by Triton"):
		return event.Triton
	}
	return event.Threads
}

// Unload is cuModuleUnload: it waits for the device and frees the module's variables.
func (m *Module) Unload() error {
	leave, err := m.ctx.enter()
	defer leave()
	m.ctx.waitAll("module unload")
	m.unload()
	return err
}

func (m *Module) unload() {
	if m.ctx.modules[m] {
		delete(m.ctx.modules, m)
		m.program.Unload()
		for _, o := range m.others {
			o.unload()
		}
	}
}

func (c *Context) sortedModules() []*Module {
	ms := make([]*Module, 0, len(c.modules))
	for m := range c.modules {
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b *Module) int { return cmp.Compare(a.number, b.number) })
	return ms
}

// Kernels lists the names of the module's kernels in source order.
func (m *Module) Kernels() []string {
	var names []string
	for _, f := range m.program.Module.Kernels() {
		names = append(names, f.Name)
	}
	return names
}

// Kernel finds an entry by linker name. It returns an *Error with InvalidDeviceFunction if there is none. It also finds
// a kernel that cannot be executed; its launch fails.
func (m *Module) Kernel(name string) (*Kernel, error) {
	leave, _ := m.ctx.enter()
	defer leave()
	return m.kernel(name)
}

func (m *Module) kernel(name string) (*Kernel, error) {
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	fn := m.program.Kernel(name)
	if fn == nil {
		return nil, fail(InvalidDeviceFunction, "no kernel %s in the module", name)
	}
	k := &Kernel{module: m, fn: fn, shared: &isa.Shared{}, carveout: -1}
	if err := m.program.Module.Check(fn); err != nil {
		k.err = &Unchecked{Kernel: name, Err: err, Language: m.written}
	} else {
		k.shared = m.program.Module.SharedLayout(fn)
	}
	k.maxDynamic = max(0, m.ctx.limits.SharedPerBlock-int(k.shared.Static))
	m.kernels[name] = k
	return k, nil
}

// Name is the linker name.
func (k *Kernel) Name() string { return k.fn.Name }

// Err is an *Unchecked if the kernel contains something that cannot be executed, and nil otherwise.
func (k *Kernel) Err() error { return k.err }

// Params describes the parameter block of the kernel; ParamSize is its length in bytes.
func (k *Kernel) Params() []isa.Param { return k.fn.Sig.Params }

// SyncsGrid reports whether the kernel synchronises its grid, which requires a cooperative launch.
func (k *Kernel) SyncsGrid() bool { return k.fn.SyncsGrid() }

// ParamSize is the length of the parameter block in bytes.
func (k *Kernel) ParamSize() int {
	n := 0
	for _, p := range k.fn.Sig.Params {
		n = max(n, p.Off+p.Size)
	}
	return n
}

// StaticShared is the static shared memory of the kernel in bytes.
func (k *Kernel) StaticShared() int64 { return k.shared.Static }

// Symbol returns the address and size of a variable of the module on the current device.
func (m *Module) Symbol(name string) (addr, size uint64, err error) {
	leave, _ := m.ctx.enter()
	defer leave()
	if m, err = m.on(m.ctx.gpu); err != nil {
		return 0, 0, err
	}
	addr, size, ok := m.program.Symbol(name)
	if !ok {
		return 0, 0, fail(InvalidSymbol, "no variable %s in the module", name)
	}
	return addr, size, nil
}

// The attributes of cudaFuncSetAttribute.
const (
	FuncMaxDynamicShared = 8
	FuncCarveout         = 9

	funcClusterMustBeSet   = 10
	funcClusterWidth       = 11
	funcClusterHeight      = 12
	funcClusterDepth       = 13
	funcNonPortableCluster = 14
	funcClusterPolicy      = 15
)

// clusterShape is the cluster shape of launches that specify none: that for which the kernel was compiled, or that
// which was set; zero for none.
func (k *Kernel) clusterShape() event.Dim3 {
	if k.fn != nil && k.fn.Cluster != (event.Dim3{}) {
		return k.fn.Cluster
	}
	return event.Dim3{X: k.required[0], Y: max(k.required[1], min(1, k.required[0])), Z: max(k.required[2], min(1, k.required[0]))}
}

// SetAttribute is cudaFuncSetAttribute.
func (k *Kernel) SetAttribute(attribute uint32, value int32) error {
	leave, err := k.module.ctx.enter()
	defer leave()
	if err != nil {
		return err
	}
	if k, err = k.on(k.module.ctx.gpu); err != nil {
		return err
	}
	switch attribute {
	case FuncMaxDynamicShared:
		most := k.module.ctx.limits.SharedOptin - int(k.shared.Static)
		if value < 0 || int(value) > most {
			return fail(InvalidValue, "%d bytes of dynamic shared memory for %s; the device has %d beside its static %d",
				value, k.Name(), most, k.shared.Static)
		}
		k.maxDynamic = int(value)
	case FuncCarveout:
		if value < -1 || value > 100 {
			return fail(InvalidValue, "carveout %d", value)
		}
		k.carveout = value
	case funcClusterMustBeSet:
		return fail(NotSupported, "cluster attribute %d of %s, which is only read", attribute, k.Name())
	case funcClusterWidth, funcClusterHeight, funcClusterDepth:
		if value < 1 {
			return fail(InvalidValue, "an extent of clusters of %d", value)
		}
		k.required[attribute-funcClusterWidth] = uint32(value)
	case funcNonPortableCluster:
		k.nonPortable = value != 0
	case funcClusterPolicy: // a hint
	default:
		return fail(InvalidValue, "function attribute %d", attribute)
	}
	return nil
}
