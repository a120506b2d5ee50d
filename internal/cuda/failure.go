package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/event"
)

// Misuse is the stable identifier of a kind of API misuse.
type Misuse string

// The kinds of misuse. See docs/findings.md.
const (
	DoubleFree     Misuse = "double-free"
	InvalidFree    Misuse = "invalid-free"
	FreedMemory    Misuse = "freed-memory"
	CallBounds     Misuse = "call-out-of-bounds"
	InvalidPointer Misuse = "invalid-pointer"
	WrongDirection Misuse = "wrong-direction"
	InvalidHandle  Misuse = "invalid-handle"
	LaunchRefused  Misuse = "launch-refused"
	BadTensorMap   Misuse = "tensor-map"
	Leak           Misuse = "leak"          // not a failing call: what it allocated is never freed
	ErrorIgnored   Misuse = "error-ignored" // of any other error that the program never asked for
)

// Failure is calls of the API, at one place of a program, that returned an error or whose memory is never freed.
type Failure struct {
	Kind Misuse
	Call string // "cudaFree"
	Code Code
	Msg  string // the fault in one sentence, "" if the error says it all; for a leak, the allocation
	// Frames is the call stack of the first call, innermost first; empty if it is not known.
	Frames []event.Frame
	Launch *LaunchReport // for a launch; nil otherwise
	// Configured says that the launch was written <<<...>>>, so that no code received its error.
	Configured bool
	Minor      bool // it does no harm to the program
	Count      int
	Unseen     int    // number of those in Count whose error the program never asked for
	Bytes      uint64 // total size of the leaks
}

// Returned is the name of the error that the call returned: the driver API has names of its own, and fewer errors.
func (f *Failure) Returned() string {
	if rest, ok := strings.CutPrefix(f.Call, "cu"); !ok || rest == "" || rest[0] < 'A' || rest[0] > 'Z' {
		return f.Code.String()
	}
	code := f.Code
	switch code { // as driver_code in standin/src/cuda.c
	case InvalidConfiguration, InvalidPitchValue, InvalidMemcpyDirection:
		code = InvalidValue
	case InvalidSymbol, InvalidDeviceFunction:
		code = SymbolNotFound
	}
	return cmp.Or(calls.ErrorOf(uint32(code)).Driver, code.String())
}

// misuse is an error of the API that is a finding by itself.
func misuse(kind Misuse, c Code, format string, args ...any) error {
	return &Error{Code: c, Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// probes are calls that programs make to learn whether they fail. An error of theirs that is not asked for means
// nothing.
var probes = []string{"cudaFuncSetAttribute", "cudaOccupancy", "cudaPointerGetAttributes", "cudaHostRegister", "cudaHostUnregister",
	"cudaHostGetFlags", "cudaHostGetDevicePointer", "cudaDevice", "cudaGetDevice", "cudaSetDevice", "cudaGetSymbol", "cudaMemAdvise",
	"cudaMemPrefetch", "cudaStreamQuery", "cudaEventQuery", "cudaGetDriverEntryPoint", "cudaMemPool", "cudaStreamGet", "cudaStreamSet",
	"cudaFuncGetAttributes", "cudaLibrary", "cudaChooseDevice", "cudaThread", "cudaInitDevice", "__cuda"}

// probing reports whether a program may make the call in order to see its error.
func probing(call string, c Code) bool {
	// The driver API does not store errors: the program has received the error from the function.
	return c == MemoryAllocation || strings.HasPrefix(call, "cu") && !strings.HasPrefix(call, "cuda") ||
		slices.ContainsFunc(probes, func(p string) bool { return strings.HasPrefix(call, p) })
}

// asked counts the failures of a host thread whose error its program has not asked for.
type asked struct {
	thread uint32
	code   Code
	f      *Failure
}

// failed keeps the error of request r until the call ends, which provides the place. Errors that a fault left behind
// belong to the fault.
func (p *process) failed(r *request, err error) {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	p.forgetFailed(r.thread)
	var e *Error
	if err == nil || !errors.As(err, &e) || e == p.ctx.sticky {
		return
	}
	if p.failing == nil {
		p.failing = map[uint32]*Error{}
	}
	p.failing[r.thread] = e
}

// forgetFailed drops the error of a request that no API call has returned. A launch that did not take place is reported
// all the same. The device is locked.
func (p *process) forgetFailed(thread uint32) {
	if e := p.failing[thread]; e != nil {
		delete(p.failing, thread)
		if e.Launch != nil {
			p.ctx.dev.fail(&Failure{Kind: cmp.Or(e.Kind, LaunchRefused), Call: "the launch", Code: e.Code, Msg: e.Msg, Launch: e.Launch, Configured: true, Unseen: 1})
		}
	}
}

// callFailed handles the end of a call that returns an error.
func (p *process) callFailed(r *request) uint64 {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	name, bounds, _ := strings.Cut(string(r.blob), "\x00")
	f := &Failure{Kind: ErrorIgnored, Call: callName(name), Code: Code(r.args[0]), Unseen: 1}
	if e := p.failing[r.thread]; e != nil && e.Code == f.Code {
		f.Msg, f.Launch, f.Configured, f.Minor = e.Msg, e.Launch, e.configured, e.minor
		if e.Kind != "" {
			f.Kind = e.Kind
		}
	}
	delete(p.failing, r.thread)
	switch {
	case bounds != "":
		f.Kind, f.Msg = CallBounds, printable(bounds)
	case f.Kind == ErrorIgnored && strings.Contains(f.Call, "Launch") && strings.Contains(f.Call, "Kernel"):
		f.Kind = LaunchRefused
		if f.Code == InvalidDeviceFunction && f.Msg == "" {
			f.Msg = "the program has no kernel of that address"
		}
	}
	f.Frames = p.stack(r)
	f = p.ctx.dev.fail(f)
	if p.unseen == nil {
		p.unseen = map[asked]int{}
	}
	p.unseen[asked{r.thread, f.Code, f}]++
	return p.countUnseen()
}

// lookedAt records that the program asks for the text of an error, or for the last error of a thread.
func (p *process) lookedAt(code Code, thread uint32) uint64 {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	for a, n := range p.unseen {
		if a.code == code || code == 0 && a.thread == thread {
			a.f.Unseen -= n
			delete(p.unseen, a)
		}
	}
	return p.countUnseen()
}

func (p *process) countUnseen() uint64 {
	n := 0
	for _, c := range p.unseen {
		n += c
	}
	return uint64(n)
}

// callName is the name by which a program calls a function.
func callName(name string) string {
	name = printable(name)
	for _, suffix := range []string{"_ptsz", "_ptds", "_v2", "_v3"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.TrimPrefix(name, "__")
}

// failureLimit bounds the number of places of failures that are kept.
const failureLimit = 10_000

// fail adds a failure to the earlier ones at its place. The device is locked.
func (d *Device) fail(f *Failure) *Failure {
	var b strings.Builder
	fmt.Fprint(&b, f.Kind, f.Call, f.Code, f.Configured)
	if f.Launch != nil {
		fmt.Fprint(&b, f.Launch.Kernel, f.Launch.Grid, f.Launch.Block)
	}
	for i := range f.Frames {
		x := &f.Frames[i]
		fmt.Fprintf(&b, " %s %s:%d:%d", x.Function, x.File, x.Line, x.Column)
	}
	key := b.String()
	old := d.failureAt[key]
	switch {
	case old != nil:
		old.Count, old.Unseen, old.Bytes = old.Count+1, old.Unseen+f.Unseen, old.Bytes+f.Bytes
		return old
	case len(d.failures) >= failureLimit:
		return d.failures[failureLimit-1]
	}
	if d.failureAt == nil {
		d.failureAt = map[string]*Failure{}
	}
	f.Count = 1
	d.failureAt[key] = f
	d.failures = append(d.failures, f)
	return f
}

// Failures lists the calls of programs that returned an error and are worth reporting: misuse, and errors that the
// program never asked for.
func (d *Device) Failures() []Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failuresSoFar()
}

func (d *Device) failuresSoFar() []Failure {
	var list []Failure
	for _, f := range d.failures {
		if f.Kind != ErrorIgnored || f.Unseen > 0 && !probing(f.Call, f.Code) {
			list = append(list, *f)
		}
	}
	return list
}
