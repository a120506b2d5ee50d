package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/event/trace"
	"fencepost.dev/fencepost/internal/flow"
	"fencepost.dev/fencepost/internal/report"
)

// recorded is the contents of a trace: everything that a detector may need. Branches occur in lockstep only. Old values
// are left out: a detector could remember them itself.
func (o *Options) recorded() event.Needs {
	needs := event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedHost | event.NeedLaunch | event.NeedBranches | event.NeedReconverge
	if !o.noValues() {
		needs |= event.NeedValues
	}
	return needs
}

// noValues reports whether a trace lacks the values written.
func (o *Options) noValues() bool { return o.NoValues || o.Logged }

// recorder writes the events of a run to a trace. It finds nothing.
type recorder struct {
	*trace.Writer
	lockstep bool
	room     []event.Event
}

// Events implements event.Sink.
func (r *recorder) Events(b *event.Batch) {
	b.Plain(&r.room, func(b *event.Batch) { r.Writer.Events(withoutUndefined(b)) })
}

// withoutUndefined is a batch in the form for traces, which leave out local variables.
func withoutUndefined(b *event.Batch) *event.Batch {
	undefined := func(e event.Event) bool { return e.Kind == event.Undefined }
	if !slices.ContainsFunc(b.Events, undefined) {
		return b
	}
	out := *b
	out.Events = slices.DeleteFunc(slices.Clone(b.Events), undefined)
	return &out
}

// Findings implements detect.Detector.
func (r *recorder) Findings() []detect.Finding { return nil }

// tracePlaces are the places of a run as in its report.
type tracePlaces struct{ *once }

// Frames implements event.Places.
func (p tracePlaces) Frames(place uint32) []event.Frame { return p.frames(place) }

// Arms implements event.Places.
func (p tracePlaces) Arms(place uint32) []event.Arm { return p.places.Arms(place) }

// Updates implements event.Places.
func (p tracePlaces) Updates(place uint32) (load uint32, ok bool) { return p.places.Updates(place) }

// Discards implements event.Places.
func (p tracePlaces) Discards(place uint32) bool { return p.places.Discards(place) }

// Dereferences implements event.Places.
func (p tracePlaces) Dereferences(place uint32) bool { return p.places.Dereferences(place) }

func newRecorder(r *once, to io.Writer, lockstep bool) (*recorder, error) {
	w, err := trace.NewWriter(to, tracePlaces{r})
	if err != nil {
		return nil, err
	}
	return &recorder{Writer: w, lockstep: lockstep}, nil
}

// appendix ends a trace: the parts of the report other than the findings of detectors, and the names of addresses.
type appendix struct {
	Lockstep bool
	NoValues bool `json:",omitempty"`
	Logged   bool `json:",omitempty"` // it was made from the log of an instrumented program
	Report   report.Report
	Memory   []named            // of global memory, by decreasing precedence
	Shared   map[uint32][]named // by launch: of its shared window
	Code     []*flow.Code
	Launched map[uint32][]int // by launch: indices in Code of the functions that it may call
}

// named is an object and the bytes that belong to it: [Begin, End). The object begins at Base.
type named struct {
	Begin, End, Base uint64
	Object           report.Object // with Offset 0
	Device           string        `json:",omitempty"` // its name in messages, if the report uses another one
}

// endTrace ends the trace that is being recorded, if any.
func (r *once) endTrace() {
	if r.recorder == nil {
		return
	}
	a := appendix{Lockstep: r.recorder.lockstep, NoValues: r.opts.NoValues, Logged: r.opts.Logged, Shared: map[uint32][]named{}, Launched: map[uint32][]int{},
		Report: report.Report{Program: r.program, Kernels: r.kernels, Skipped: r.skipped, Findings: r.findings, Notes: r.notes}}
	for _, b := range r.buffers {
		n := named{Begin: b.addr, End: b.addr + b.Bytes(), Base: b.addr, Object: r.object(event.Global, b.addr, 0)}
		if alloc, ok := r.device.Memory().Find(b.addr); ok {
			n.Device = alloc.Name
		}
		a.Memory = append(a.Memory, n)
	}
	for _, m := range r.device.Memory().Known() {
		o := report.Object{Name: m.Name, Named: !strings.Contains(m.Name, " "), Size: m.Size, Freed: m.Freed}
		a.Memory = append(a.Memory, named{Begin: m.Addr, End: m.Addr + m.Size, Base: m.Addr, Object: o})
	}
	type layout struct {
		program *loader.Program
		fn      launchFunc
		dynamic bool
	}
	known := map[layout][]named{}
	numbers := map[launchFunc]int{}
	for _, id := range slices.Sorted(maps.Keys(r.launched)) { // sorted, so that equal runs give equal bytes
		l := r.launched[id]
		for _, fn := range r.codes.callable(l.fn) {
			n, ok := numbers[fn]
			if !ok {
				n = len(a.Code)
				numbers[fn] = n
				a.Code = append(a.Code, r.codes.get(fn))
			}
			a.Launched[id] = append(a.Launched[id], n)
		}
		k := layout{l.program, l.fn, l.dynamic > 0}
		if _, ok := known[k]; !ok {
			known[k] = r.sharedNames(id)
		}
		a.Shared[id] = known[k]
	}
	tail, err := json.Marshal(&a)
	if err != nil {
		panic("BUG: the end of a trace: " + err.Error())
	}
	if err := r.recorder.Close(tail); err != nil {
		r.skip("the trace", "it could not be written: "+err.Error())
	}
}

// sharedNames lists the objects of a launch's shared window.
func (r *once) sharedNames(id uint32) []named {
	const window = 228 << 10 // the largest possible
	var out []named
	for at := uint64(0); at < window; at++ {
		o := r.sharedObject(at, id)
		base := at - o.Offset
		o.Offset = 0
		if n := len(out) - 1; n >= 0 && out[n].Object == o && out[n].Base == base && out[n].End == at {
			out[n].End++
		} else if o != (report.Object{}) {
			out = append(out, named{Begin: at, End: at + 1, Base: base, Object: o})
		}
	}
	return out
}

// Analyze judges a recorded trace with o's detectors. Their findings are those that they would have made in the run. If
// a trace is truncated, it judges what is there, and the report says that the trace is incomplete. It returns an error
// if nothing could be read.
func Analyze(ctx context.Context, o *Options, from io.Reader) (*report.Report, error) {
	if o.Watch.variables() {
		return nil, errors.New("the names of variables are at the end of a trace: give " + flagsOf("variable", o.Watch.Variable, o.Watch.SkipVariable) + " to a run")
	}
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	in, err := trace.NewReader(from)
	if err != nil {
		return nil, err
	}
	r := &once{opts: o, ctx: ctx}
	for _, spec := range o.detectors() {
		r.detectors = append(r.detectors, &metered{Detector: spec.New(detect.Config{Model: o.Model, Places: in, MaxFindings: o.MaxFindings, Watch: o.Watch.detectors(nil)}), name: spec.Name})
	}
	read := r.judge(ctx, in)
	a := appendix{}
	lost := len(in.Tail()) == 0
	if !lost {
		if err := json.Unmarshal(in.Tail(), &a); err != nil {
			a, lost = appendix{}, true
			r.skip("the end of the trace", "it is damaged: "+err.Error())
		}
	}
	a.checkCode()
	if err := read; err != nil {
		r.skip("the rest of the trace", err.Error())
	}
	if lost {
		// A trace without its end does not list the kernels, but those read are known.
		a.Report.Kernels = r.kernels
		r.skip("faults", "what the emulator finds itself (out of bounds, divergence, deadlock) and the names of variables stand at the end of the trace")
	}
	for _, spec := range o.detectors() {
		if spec.Lockstep && !a.Lockstep && read == nil {
			r.skip("detector "+spec.Name, "it judges warps in lockstep, and the trace was recorded without: record it with --schedule lockstep")
		}
	}
	if note := o.Watch.note(); note != "" {
		a.Report.Notes = append(a.Report.Notes, note)
	}
	names := &traceNames{Reader: in, appendix: &a, lost: lost}
	out := a.Report
	switch {
	case a.NoValues:
		out.Notes = append(out.Notes, "The trace was recorded with --values off: racing writes of one value are reported like any others.")
	case a.Logged:
		out.Notes = append(out.Notes, "The trace is of the log of an instrumented program, which has no values: racing writes of one value are reported like any others.")
	}
	for _, d := range r.detectors {
		for _, f := range d.Findings() {
			out.Findings = append(out.Findings, resolve(names, &f))
		}
		out.More = max(out.More, more(d.Detector))
	}
	out.Skipped = append(out.Skipped, r.skipped...)
	out.Detectors = r.costs()
	return unite([]*report.Report{&out}, o), nil
}

// judge passes the events of a trace to the detectors. The error says why it did not reach the end.
func (r *once) judge(ctx context.Context, in *trace.Reader) error {
	var b event.Batch
	for {
		if ctx.Err() != nil {
			return errors.New(whyStopped(ctx))
		}
		err := in.Next(&b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range b.Launches {
			l := &b.Launches[i]
			r.addKernel(report.Kernel{Name: l.Kernel, Grid: l.Grid, Block: l.Block, Launches: 1})
		}
		for _, d := range r.detectors {
			if err := d.try(&b); err != nil {
				return err
			}
		}
		if r.opts.Progress != nil {
			r.opts.Progress(fmt.Sprintf("%d M events", in.Events()/1e6))
		}
	}
}

// try passes events of a trace to the detector and recovers panics. Engines follow rules about arrivals and waits that
// a trace may violate in more ways than the reader checks. The detector then panics because an invariant does not hold.
func (j *metered) try(b *event.Batch) (err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fmt.Errorf("detector %s gave up (%v): either the events are not those of a run, or this is a defect of Fencepost", j.name, bug)
		}
	}()
	j.Events(b)
	return nil
}

// traceNames are the names of the numbers in a trace.
type traceNames struct {
	*trace.Reader
	*appendix
	lost   bool // the end of the trace, with the names of memory, is missing
	budget budget
	// bufferNames is as in once.
	bufferNames *strings.Replacer
}

func (t *traceNames) frames(place uint32) []event.Frame {
	if place == 0 {
		return nil
	}
	return t.Frames(place)
}

// caller implements namer. A trace does not keep the places of launches.
func (t *traceNames) caller(uint32) []event.Frame { return nil }

// params implements namer. A trace does not keep the parameters of launches.
func (t *traceNames) params(uint32) [][]byte { return nil }

func (t *traceNames) object(space event.Space, addr uint64, launch uint32) report.Object {
	var in []named
	switch space {
	case event.Shared:
		in = t.Shared[launch]
	case event.Local, event.Param, event.NoSpace:
		return report.Object{}
	default:
		in = t.Memory
	}
	if t.lost {
		return report.Object{Unknown: true}
	}
	for _, n := range in {
		if addr >= n.Begin && addr < n.End {
			o := n.Object
			o.Offset = addr - n.Base
			return o
		}
	}
	return report.Object{}
}

func (t *traceNames) nameBuffers(text string) string {
	if t.bufferNames == nil {
		var pairs []string
		for _, n := range t.Memory {
			if n.Device != "" {
				pairs = append(pairs, n.Device, fmt.Sprintf("buffer %q (%d bytes)", n.Object.Name, n.Object.Size))
			}
		}
		t.bufferNames = strings.NewReplacer(pairs...)
	}
	return t.bufferNames.Replace(text)
}
