package session

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/flow"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/ptx"
)

// engineName is the detector name of findings that the engine makes itself.
const engineName = "engine"

type launchFunc = *isa.Func

// placedBuffer is a buffer of a launch file with its address.
type placedBuffer struct {
	*Buffer
	addr uint64
}

// faultKinds gives the class and the fix of each kind of fault.
var faultKinds = map[engine.FaultKind]struct {
	class detect.Class
	fix   string
}{
	engine.OutOfBounds:       {detect.MemoryFault, "bound the index by the size of the allocation, or make the allocation as large as the launch needs"},
	engine.OutOfVariable:     {detect.MemoryFault, "bound the index by the size of the array that the source names"},
	engine.Misaligned:        {detect.MemoryFault, "access memory at multiples of the access's size: align the pointer, or use a narrower type"},
	engine.NoPeerAccess:      {detect.MemoryFault, "call cudaDeviceEnablePeerAccess for the device that owns the memory, with the kernel's device current; memory of cudaMallocAsync stays with its device"},
	engine.UseAfterFree:      {detect.MemoryFault, "free the memory after the last kernel that uses it has finished"},
	engine.ReadOnly:          {detect.MemoryFault, "write to a __device__ variable instead; __constant__ memory is written by the host, and mapped memory by kernels that cuMemSetAccess lets write"},
	engine.BarrierDivergence: {detect.Divergence, "let all threads of the block reach the same barrier: move it out of the branch, or let the branch depend on the block alone"},
	engine.MemberMask:        {detect.Divergence, "name in the mask every lane that executes the instruction; 0xffffffff is the whole warp"},
	engine.WarpDivergence:    {detect.Divergence, "let all lanes that the mask names execute the instruction with that mask: move it out of the branch or loop that parts them, or compute the mask before it with __ballot_sync"},
	engine.UndefinedShuffle:  {detect.Divergence, "let the lanes that are read take part: name them in the mask and do not let them return before; or do not use the values of other lanes"},
	engine.MbarrierEarly:     {detect.Divergence, "initialise the barrier (mbarrier.init) and put a barrier of the block, or of the cluster, between that and the first use by other threads"},
	engine.MbarrierEnded:     {detect.Divergence, "put a barrier of the block between the last use of the barrier and mbarrier.inval"},
	engine.MbarrierMisuse:    {detect.Divergence, "initialise the barrier once, with as many arrivals as a phase has, before any thread uses it; end it with mbarrier.inval before its memory is used for something else"},
	engine.WgmmaNoFence:      {detect.Divergence, "execute wgmma.fence.sync.aligned in all warps of the warpgroup before its first wgmma.mma_async, and before each one whose registers other instructions have accessed"},
	engine.WgmmaTouched:      {detect.Divergence, "commit the operation and wait for it (wgmma.commit_group, wgmma.wait_group) before its accumulators are used or the registers of A are written again; execute tcgen05.wait::ld before the values that tcgen05.ld loads are used"},
	engine.TensorMemory:      {detect.MemoryFault, "access columns of tensor memory between tcgen05.alloc and tcgen05.dealloc of them, each warp the lanes of its quarter, and allocate a power of two from 32 to 512"},
	engine.TensorLeak:        {detect.MemoryFault, "execute tcgen05.dealloc, in one warp, for each allocation before the block ends"},
	engine.CopyOutlives:      {detect.MemoryFault, "wait before the block ends: cp.async.bulk.wait_group.read 0 in the thread that copies from shared memory, the phase of the mbarrier for copies to it"},
	engine.PeerGone:          {detect.MemoryFault, "put a barrier of the cluster (cluster.sync()) between the last access to a block's shared memory and the end of that block"},
	engine.PeerEarly:         {detect.MemoryFault, "put a barrier of the cluster (cluster.sync()) before the first access to another block's shared memory"},
	engine.ClusterMisuse:     {detect.Divergence, "let every thread arrive once at the barrier of its cluster, and wait once, for each phase"},
	engine.TextureMisuse:     {detect.MemoryFault, "pass the object that cudaCreateTextureObject or cudaCreateSurfaceObject made, not yet destroyed, and use it by the function for its kind and number of dimensions"},
	engine.TensorMisuse:      {detect.MemoryFault, "pass the map that cuTensorMapEncodeTiled made as a __grid_constant__ parameter, or write all fields of one that is made on the device, and copy a tensor of its rank"},
	engine.Deadlock:          {detect.Deadlock, "make sure that the wait can end: every thread that a barrier counts must arrive, and every lock must be released"},
	engine.Assertion:         {detect.API, ""},
	engine.TrapHit:           {detect.API, ""},
	engine.BadCall:           {detect.MemoryFault, "call only through pointers to device functions of the same module"},
	engine.StackOverflow:     {detect.MemoryFault, "bound the recursion"},
	engine.DeviceRefused:     {detect.API, "launch a shape that the device can run, with pointers to global memory, and check cudaGetLastError() after the launch"},
	engine.DeviceHeap:        {detect.MemoryFault, "free each pointer that malloc in device code returned exactly once, and no other pointer"},
}

// fault makes a finding of a fault. It is called while the device is as the kernel left it, so that names are right.
func (r *once) fault(f engine.Fault) {
	if f.Kind == engine.StepLimit {
		r.where = r.whereabouts(&f)
		return // reported at the end of the launch
	}
	k, ok := faultKinds[f.Kind]
	if !ok {
		panic("BUG: fault of unknown kind " + string(f.Kind))
	}
	if f.Kind == engine.WgmmaTouched && f.Launch.Language != event.Threads && strings.Contains(f.Message, "tcgen05") {
		return // Triton orders tensor memory by the wait, which it puts after the stores of the loaded values, and leaves the registers to ptxas
	}
	out := report.Finding{Class: k.class, Kind: detect.Kind(f.Kind), Severity: detect.Error, Detector: engineName,
		Kernel: f.Launch.Kernel, Count: max(f.Count, 1), Message: f.Message, Fix: k.fix}
	if f.Warning {
		out.Severity = detect.Warning
	}
	for i := range f.Stands {
		out.Accesses = append(out.Accesses, r.stand(&f, &f.Stands[i]))
	}
	if f.Kind == engine.OutOfBounds && len(out.Accesses) == 1 {
		out.Fix = strayFix(&out.Accesses[0], f.Launch.Language, out.Fix)
	}
	if f.Kind == engine.Deadlock && strings.Contains(out.Message, "bytes of transactions") {
		out.Fix += "; let the phase expect the bytes that its copies bring (mbarrier.arrive.expect_tx), no more and no fewer"
	}
	out.Message = report.DemangleIn(r.nameBuffers(out.Message)) // the engine uses linker names of variables
	out.Fix = sayIn(dialectOf(&f.Launch), out.Fix)              // the message names instructions
	r.findings = append(r.findings, out)
}

// whereabouts describes where most threads of a stopped launch are: that shows an endless loop.
func (r *once) whereabouts(f *engine.Fault) string {
	const most = 3
	var places []string
	threads := map[string]int{}
	for i := range f.Stands {
		s := &f.Stands[i]
		a := r.stand(f, s)
		if len(a.Frames) == 0 || s.Doing == "exited" {
			continue
		}
		place := fmt.Sprintf("%s:%d", path.Base(a.Frames[0].PTXFile), a.Frames[0].PTXLine)
		if p := a.Place(); p.File != "" {
			place = fmt.Sprintf("%s:%d", path.Base(p.File), p.Line)
		}
		if s.Doing != "runs" {
			place += ", " + s.Doing
		}
		if threads[place] == 0 {
			places = append(places, place)
		}
		threads[place] += s.Threads
	}
	if len(places) == 0 {
		return ""
	}
	sort.SliceStable(places, func(i, j int) bool { return threads[places[i]] > threads[places[j]] })
	var list []string
	for _, p := range places[:min(most, len(places))] {
		noun := "threads"
		if threads[p] == 1 {
			noun = "thread"
		}
		list = append(list, fmt.Sprintf("%d %s at %s", threads[p], noun, p))
	}
	where := "; it had " + strings.Join(list, "; ")
	if _, lacks, ok := strings.Cut(f.Message, "; "); ok {
		where += "; " + report.DemangleIn(r.nameBuffers(lacks))
	}
	return where
}

// strayFix is the fix of an access out of bounds. An address that is near no allocation has no index to bound.
func strayFix(a *report.Access, language event.Language, otherwise string) string {
	const page = 4096
	switch {
	case a.Space == event.Global && a.Object.Name != "" && language != event.Threads:
		return "mask the elements that lie outside the tensor, or check the strides and the size that the launch is given"
	case a.Space != event.Global || a.Object.Name != "":
		return otherwise
	case a.Address < page:
		return "let the pointer point to an allocation before the kernel uses it, and check what the allocation returned"
	}
	return "give the kernel memory that the device can reach (cudaMalloc, cudaMallocManaged, cudaHostAlloc), and check how the address is computed"
}

func (r *once) stand(f *engine.Fault, s *engine.Stand) report.Access {
	a := report.Access{Op: report.OpWait, Space: s.Space, Kernel: f.Launch.Kernel, Launch: f.Launch.Number(), Rerun: rerun(&f.Launch), Grid: f.Launch.Grid,
		Shape: f.Launch.Block, Block: s.Block, Thread: s.Thread, Threads: s.Threads, Doing: s.Doing, Address: s.Address, Size: s.Size,
		Frames: r.frames(s.Place), Caller: r.caller(f.Launch.ID)}
	switch s.Flags & (event.FlagRead | event.FlagWrite) {
	case event.FlagRead:
		a.Op = detect.Read
	case event.FlagWrite:
		a.Op = detect.Write
	case event.FlagRead | event.FlagWrite:
		a.Op = detect.AtomicOp
	}
	if a.Op != report.OpWait {
		if tag := a.Address >> event.PeerShift; a.Space == event.Shared && tag != 0 {
			if a.Address %= 1 << event.PeerShift; tag <= f.Launch.ClusterShape().Count() {
				cluster, _ := f.Launch.ClusterOf(blockOf(&f.Launch, s.Block))
				a.Owner = f.Launch.Grid.At(uint64(f.Launch.BlockIn(cluster, uint32(tag)-1))).String()
			}
		}
		a.Object = r.object(s.Space, a.Address, f.Launch.ID)
		if a.Object.Name == "" && s.Space == event.Global {
			a.Object = r.before(s.Address, f.Launch.ID)
		}
	}
	return a
}

// before returns the last allocation that ends before an address in none: usually the one that a launch has overrun.
func (r *once) before(addr uint64, launch uint32) report.Object {
	const far = 1 << 20
	var best devmem.Alloc
	for _, a := range r.device.Memory().Allocs() {
		if a.Addr <= addr && a.Addr >= best.Addr {
			best = a
		}
	}
	if best.Size == 0 || addr-(best.Addr+best.Size) > far {
		return report.Object{}
	}
	o := r.object(event.Global, best.Addr, launch)
	o.Offset = addr - best.Addr
	return o
}

func (r *once) nameBuffers(text string) string {
	if r.bufferNames == nil {
		var pairs []string
		for _, b := range r.buffers {
			if a, ok := r.device.Memory().Find(b.addr); ok && a.Name != "" {
				pairs = append(pairs, a.Name, fmt.Sprintf("buffer %q (%d bytes)", b.Name, b.Bytes()))
			}
		}
		r.bufferNames = strings.NewReplacer(pairs...)
	}
	return r.bufferNames.Replace(text)
}

// namer names the numbers of a run.
type namer interface {
	frames(place uint32) []event.Frame
	caller(launch uint32) []event.Frame // the host's place of the launch
	params(launch uint32) [][]byte      // its parameters; nil if they are not known
	object(space event.Space, addr uint64, launch uint32) report.Object
	code(f event.Frame, launch uint32) *flow.Code // of a function that the launch may call; nil if it is not known
	nameBuffers(text string) string               // replaces the device's names of the buffers of a launch file
}

// resolve replaces the numbers of a finding by names.
func resolve(r namer, f *detect.Finding) report.Finding {
	out := report.Finding{Class: f.Class, Kind: f.Kind, Severity: f.Severity, Detector: f.Detector, Predicted: f.Predicted,
		Count: f.Count, Addresses: f.Addresses, Message: f.Message, Fix: f.Fix, NoSync: f.NoSync}
	for i := range f.Accesses {
		a := &f.Accesses[i]
		x := report.Access{Op: a.Op, Order: a.Order, Scope: a.Scope, Space: a.Space, Address: a.Address, Size: a.Size, Doing: a.Doing, Took: a.Took}
		if a.Op != detect.Wait {
			x.Object = r.object(a.Space, a.Address, a.Launch.ID)
		}
		if a.Owner != nil {
			x.Owner = a.Owner.String()
		}
		x.Object.Freed = false // it was not freed at the time of the access
		if x.Host, x.Frames = event.CutHostPlace(a.Host); a.Host == "" {
			x.Kernel, x.Launch, x.Rerun, x.Grid, x.Shape = a.Launch.Kernel, a.Launch.Number(), rerun(&a.Launch), a.Launch.Grid, a.Launch.Block
			x.Block, x.Thread = a.Launch.BlockOf(a.Warp), a.Launch.ThreadOf(a.Warp, a.Lane)
			x.Frames, x.Caller = r.frames(a.Place), r.caller(a.Launch.ID)
			if out.Kernel == "" {
				out.Kernel = a.Launch.Kernel
			}
		}
		if a.Sync != nil {
			x.Sync = &report.Sync{What: a.Sync.What, Frames: r.frames(a.Sync.Place)}
		}
		out.Accesses = append(out.Accesses, x)
	}
	for i := range f.Sections {
		s := &f.Sections[i]
		lock := report.Access{Space: event.Global, Address: s.Lock, Block: s.Launch.BlockOf(s.Warp), Thread: s.Launch.ThreadOf(s.Warp, s.Lane)}
		if s.Shared {
			lock.Space = event.Shared
		}
		lock.Object = r.object(lock.Space, s.Lock, s.Launch.ID)
		lock.Object.Freed = false
		out.Sections = append(out.Sections, report.Section{Lock: lock, From: r.frames(s.From), To: r.frames(s.To)})
	}
	out.Cause = cause(r, f, &out)
	out.Message, out.Fix = r.nameBuffers(out.Message), r.nameBuffers(out.Fix)
	if out.Class == detect.Race && len(f.Accesses) > 0 && f.Accesses[0].Host == "" {
		if out.SharesStorage() {
			out.Kind, out.Severity = detect.MissingBarrier, detect.Error
			out.Message = "two warps write the same bytes of shared memory in a function of the toolkit that a warp executes by itself: they share its temporary storage"
			out.Fix = "give each warp a temporary storage of its own (an array of TempStorage), or let only one warp at a time use it, with __syncthreads() between"
		} else if out.CopiesInBulk() {
			out.Severity = min(out.Severity, detect.Warning)
			out.Message += "; memcpy_async copies in bulk on this device, and executes no fence itself"
		} else if why := out.Internal(r.params(f.Accesses[0].Launch.ID)); why != "" {
			out.Severity, out.Message, out.Fix = detect.Info, out.Message+"; "+why, ""
		}
	}
	return out
}

func (r *once) frames(place uint32) []event.Frame {
	if place == 0 {
		return nil
	}
	frames := r.places.Frames(place)
	for i := range frames {
		frames[i].File = r.opts.Sources.Name(frames[i].File)
	}
	if r.rename != nil {
		for i := range frames {
			frames[i].File = r.rename(frames[i].File)
		}
	}
	return frames
}

func (r *once) caller(launch uint32) []event.Frame { return r.launched[launch].caller }

func (r *once) params(launch uint32) [][]byte {
	l, ok := r.launched[launch]
	if !ok {
		return nil
	}
	var list [][]byte
	for _, p := range l.fn.Sig.Params {
		if p.Off < 0 || p.Off+p.Size > len(l.params) {
			return nil
		}
		list = append(list, l.params[p.Off:p.Off+p.Size])
	}
	return list
}

// object names the object at an address.
func (r *once) object(space event.Space, addr uint64, launch uint32) report.Object {
	switch space {
	case event.Shared:
		return r.sharedObject(addr, launch)
	case event.Tensor:
		lane, column := event.TensorCell(addr)
		return report.Object{Name: fmt.Sprintf("tensor memory, lane %d, column %d", lane, column)}
	case event.Local, event.Param, event.NoSpace:
		return report.Object{}
	}
	if i := sort.Search(len(r.buffers), func(i int) bool { return r.buffers[i].addr > addr }) - 1; i >= 0 {
		if b := r.buffers[i]; addr-b.addr < b.Bytes() {
			return report.Object{Name: b.Name, Named: true, Offset: addr - b.addr, Size: b.Bytes(), Elem: b.Type.Size}
		}
	}
	for _, n := range r.launched[launch].named {
		if addr >= n.Addr && addr-n.Addr < n.Size {
			return report.Object{Name: n.Name, Named: true, Offset: addr - n.Addr, Size: n.Size, Elem: n.Elem, Type: n.Type}
		}
	}
	a, ok := r.device.Memory().Find(addr)
	if !ok {
		return report.Object{}
	}
	return report.Object{Name: a.Name, Named: !strings.Contains(a.Name, " "), Offset: addr - a.Addr, Size: a.Size, Freed: a.Freed}
}

func (r *once) sharedObject(off uint64, launch uint32) report.Object {
	l, ok := r.launched[launch]
	if !ok {
		return report.Object{}
	}
	name, at, ok := l.program.SharedVar(l.fn, off)
	if !ok || off >= at && l.dynamic == 0 && strings.Contains(name, " ") { // past the end of the static variables
		return report.Object{}
	}
	o := report.Object{Name: name, Named: !strings.Contains(name, " "), Offset: off - at}
	for _, v := range l.program.Module.Vars {
		if v.Name == name && v.Size > 0 {
			o.Size = uint64(v.Size)
		}
	}
	return o
}

// optimised reports whether a function looks like the output of an optimising compiler. nvcc with -Xcicc -O0 keeps
// pointers generic and converts none to global. (Sources convert some to shared themselves, with
// __cvta_generic_to_shared.) Clang at -O0 converts the parameters of a kernel and immediately converts them back.
func optimised(f *isa.Func) bool {
	for i := range f.Insts {
		src := f.Insts[i].Source
		if src == nil || src.Op != "cvta" || !strings.HasPrefix(src.Mods, ".to.global") {
			continue
		}
		if i+1 == len(f.Insts) || !convertsBack(src, f.Insts[i+1].Source) {
			return true
		}
	}
	return false
}

// convertsBack reports whether one conversion of an address makes the result of the other generic again.
func convertsBack(to, back *ptx.Inst) bool {
	return back != nil && back.Op == "cvta" && back.Mods == ".global.u64" && len(to.Operands) == 2 && len(back.Operands) == 2 &&
		to.Operands[0].Name == back.Operands[1].Name
}

// blockOf returns the number of a block of a launch.
func blockOf(l *event.Launch, at event.Dim3) uint32 {
	return at.X + l.Grid.X*(at.Y+l.Grid.Y*at.Z)
}
