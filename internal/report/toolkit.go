package report

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// toolkitPattern is a race within the toolkit's own code during one call. Nothing in the user's code could order the
// two accesses, so it is a remark.
type toolkitPattern struct {
	why string // one sentence
	// fits compares a race of two device accesses with the pattern. params are the parameters of the launch.
	fits func(f *Finding, params [][]byte) bool
}

// toolkitPatterns are the races that concern the toolkit only.
var toolkitPatterns = []toolkitPattern{
	{"the toolkit's atomic function is a plain read and a loop of compare-and-swap on this device: it tries again when the value has changed", ofAtomicFunctions},
	{"both accesses are in one call of a function of the toolkit, which relies on volatile accesses or on the value being the same", mildInOneCall},
	{"both accesses are in one call of a collective of a tile of more than 32 threads: one lane acquires what the other warps " +
		"have released, and a shuffle passes it on to the lanes of its warp", inTileCollective},
	{"the kernel of the toolkit initialises its mbarriers and then meets at a barrier of the cluster that it arrives at in relaxed order, with no fence", settingUpBarriers},
	{"the call selects in place: a block writes where earlier blocks have read, after a look-back that is relaxed on purpose", inPlaceSelection},
}

// Internal says why a race concerns the toolkit only, in one sentence; "" if it concerns the user. params are the
// parameters of the launch of the first access, nil if they are not known.
func (f *Finding) Internal(params [][]byte) string {
	if f.Class != detect.Race || len(f.Accesses) != 2 || f.Accesses[0].Host != "" || f.Accesses[1].Host != "" {
		return ""
	}
	for i := range toolkitPatterns {
		if p := &toolkitPatterns[i]; p.fits(f, params) {
			return p.why
		}
	}
	return ""
}

// ofAtomicFunctions matches atomicAdd of __nv_bfloat162 and the like. Two calls are atomic to each other, so each need
// not be one atomic operation.
func ofAtomicFunctions(f *Finding, _ [][]byte) bool {
	for i := range f.Accesses {
		if op := f.Accesses[i].Op; op != detect.AtomicOp && op != detect.Read { // atomic_init stores
			return false
		}
	}
	return f.Kind == detect.MixedAtomic && f.Accesses[0].ofAtomicFunction() && f.Accesses[1].ofAtomicFunction()
}

// ofAtomicFunction reports whether the access was made by a function such as atomicAdd of the toolkit's headers, called
// from the user's code.
func (a *Access) ofAtomicFunction() bool {
	function := ""
	for _, frame := range a.Frames {
		if frame.File != "" && !systemFile(frame.File) {
			break
		}
		function = frame.Function
	}
	return strings.HasPrefix(BareName(function), "atomic")
}

// mildInOneCall is CUB's look-back, which polls volatile variables.
func mildInOneCall(f *Finding, _ [][]byte) bool {
	volatile := f.Accesses[0].Order == event.Volatile && f.Accesses[1].Order == event.Volatile
	if f.Kind != detect.VolatileOnly && f.Kind != detect.SameValue && !volatile || !f.inHeaders() {
		return false
	}
	p, q := f.Accesses[0].Place(), f.Accesses[1].Place()
	if systemFile(p.File) || systemFile(q.File) {
		return systemFile(p.File) && systemFile(q.File)
	}
	return p.File == q.File && p.Line == q.Line && p.Column == q.Column
}

// SharesStorage reports whether two warps make volatile writes of the same bytes of shared memory in one call of the
// toolkit. It makes such writes where a warp works by itself (cub::WarpScan): the user has given both warps the same
// temporary storage.
func (f *Finding) SharesStorage() bool {
	if f.Kind != detect.VolatileOnly || len(f.Accesses) != 2 || !f.inHeaders() {
		return false
	}
	p, q := &f.Accesses[0], &f.Accesses[1]
	return p.Space == event.Shared && p.Op == detect.Write && q.Op == detect.Write && p.Block == q.Block && p.warp() != q.warp()
}

// CopiesInBulk reports whether a proxy fence is missing before a bulk copy that cuda::memcpy_async or the like has
// chosen to make. The caller need not know this, and the function executes no fence itself.
func (f *Finding) CopiesInBulk() bool {
	return f.Kind == detect.MissingProxyFence && slices.ContainsFunc(f.Accesses, func(a Access) bool { return a.frameOf("memcpy_async") >= 0 })
}

// warp returns the number of the thread's warp in its block.
func (a *Access) warp() uint32 {
	t, s := a.Thread, a.Shape
	return (t.X + s.X*(t.Y+s.Y*t.Z)) / 32
}

// inHeaders reports whether code of the toolkit made both accesses.
func (f *Finding) inHeaders() bool {
	return !slices.ContainsFunc(f.Accesses, func(a Access) bool { return len(a.Frames) == 0 || !systemFile(a.Frames[0].File) })
}

// inTileCollective matches cg::reduce, cg::inclusive_scan and the like over tiles of more than 32 threads. All of them
// call collectives_scheme, in which each warp first writes its part, and one warp then combines the parts in place. In
// the opposite order the two accesses belong to two calls, between which the user can put a barrier.
func inTileCollective(f *Finding, _ [][]byte) bool {
	p, q := &f.Accesses[0], &f.Accesses[1]
	i, j := p.frameOf("collectives_scheme"), q.frameOf("collectives_scheme")
	return p.Op == detect.Write && q.Op != detect.AtomicOp && p.Launch == q.Launch && i >= 0 && j >= 0 && f.inHeaders() &&
		sameCalls(p.Frames[i+1:], q.Frames[j+1:]) && p.Frames[i].Line < q.Frames[j].Line
}

// sameCalls reports whether two call stacks are of the same calls in the source.
func sameCalls(a, b []event.Frame) bool {
	return slices.EqualFunc(a, b, func(x, y event.Frame) bool {
		return x.Function == y.Function && x.File == y.File && x.Line == y.Line && x.Column == y.Column
	})
}

// frameOf is the index of the frame of a function of the toolkit, -1 if there is none.
func (a *Access) frameOf(function string) int {
	return slices.IndexFunc(a.Frames, func(f event.Frame) bool {
		name, _, _ := strings.Cut(BareName(f.Function), "<")
		return name == function && systemFile(f.File)
	})
}

// settingUpBarriers matches a kernel of CUB whose warps have different work (detail::warpspeed, as in DeviceScan).
func settingUpBarriers(f *Finding, _ [][]byte) bool {
	p, q := &f.Accesses[0], &f.Accesses[1]
	return p.Op == detect.Write && p.Launch == q.Launch && p.frameOf("clusterInitSync") >= 0 && f.inHeaders()
}

// inPlaceSelection matches DeviceSelect of CUB, which thrust::unique and thrust::remove_if also call, with an output
// that begins at the start of the input. An output that begins elsewhere in the input is the user's mistake.
func inPlaceSelection(f *Finding, params [][]byte) bool {
	const input, output = 0, 2 // parameters of the kernel
	if len(params) <= output || len(params[input]) != 8 || !bytes.Equal(params[input], params[output]) {
		return false
	}
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if k := len(a.Frames) - 1; a.Op == detect.AtomicOp || k < 0 || path.Base(a.Frames[k].File) != "dispatch_select_if.cuh" ||
			a.frameOf("DeviceSelectSweepKernel") != k {
			return false
		}
	}
	p, q := &f.Accesses[0], &f.Accesses[1]
	return p.Op != q.Op && p.Launch == q.Launch && f.inHeaders()
}
