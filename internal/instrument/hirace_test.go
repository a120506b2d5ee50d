package instrument_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
)

// ordered executes programs that check themselves. Detector hirace judges their accesses in the order in which the
// device code replaces shadow words. It judges accesses that the device code omits when they are made: it should omit
// them too. Other events are those of the program without the device code.
type ordered struct {
	engine.Engine
	detector *hirace.Detector // of this engine
	config   detect.Config
	launch   *engine.Launch
	queue    []*step
	lanes    map[[2]uint32]*laneState // by warp and lane
	ours     map[uint32]string        // by place: the name of the device code function, or ""
	sequence uint32
	state    []byte
	addr     uint64 // of state
	variable uint64 // address of the variable that points to the state
	unknown  int    // number of shadow words of no location
}

// step is an event to judge, or an access to one location.
type step struct {
	e        event.Event // Kind None: not known yet
	lane     int
	addr     uint64 // of the access
	at, size uint64 // of the location; if size is 0, the step is an event
	shared   bool
	sequence uint32
	begin    *event.Launch
}

// laneState is the state of a lane between its checks and its access.
type laneState struct {
	word     uint64 // the location of the shadow word that it read last
	shared   bool   // the location is in shared memory
	sequence uint32 // of the access that it checks
	pending  []*step
}

// Run implements engine.Engine.
func (o *ordered) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	at, size, _ := l.Program.Symbol(instrument.StateSymbol)
	pointer, err := l.Program.Memory.Bytes(at, size)
	if err != nil {
		return engine.Stats{}, err
	}
	o.addr, o.variable = binary.LittleEndian.Uint64(pointer), at
	if o.addr == 0 {
		return o.Engine.Run(ctx, l)
	}
	state, ok := l.Program.Memory.Find(o.addr)
	if !ok {
		panic("the state is no allocation")
	}
	if o.state, err = l.Program.Memory.Bytes(o.addr, state.Size); err != nil {
		return engine.Stats{}, err
	}
	if o.detector == nil {
		o.config.Places = l.Places
		o.detector = hirace.Spec.New(o.config).(*hirace.Detector)
	}
	o.launch, o.queue, o.lanes, o.ours = l, nil, map[[2]uint32]*laneState{}, map[uint32]string{}
	watched := *l
	watched.Sink, watched.Needs = o, hirace.Spec.Needs
	stats, err := o.Engine.Run(ctx, &watched)
	o.judge()
	return stats, err
}

// device returns the name of the device code function of a place, or "" if there is none.
func (o *ordered) device(place uint32) string {
	name, ok := o.ours[place]
	if !ok {
		if f := o.launch.Places.Frames(place); len(f) > 0 && instrument.Ours(f[0].Function) {
			name = f[0].Function
		}
		o.ours[place] = name
	}
	return name
}

// Events implements event.Sink.
func (o *ordered) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		access := e.Kind == event.Load || e.Kind == event.Store || e.Kind == event.Atomic
		switch {
		case e.Kind == event.KernelBegin:
			l := b.Launches[e.Side]
			o.queue = append(o.queue, &step{e: *e, begin: &l})
		case e.Kind == event.KernelEnd || !access && o.device(e.Place) == "":
			o.queue = append(o.queue, &step{e: *e})
		case !access:
		case o.device(e.Place) != "":
			o.checks(b, e)
		default:
			for m := e.Mask; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				s := o.lane(e.Warp, lane)
				addr := b.AddrOf(e, lane)
				taken, rest := map[uint64]bool{}, []*step(nil) // by byte
				sequence := s.sequence
				for _, p := range s.pending { // the locations of one check, which are of the accessed memory
					mine := p.at < addr+uint64(e.Size) && addr < p.at+p.size && p.shared == (e.Space == event.Shared)
					if !mine || len(taken) > 0 && p.sequence != sequence {
						rest = append(rest, p)
						continue
					}
					p.e, p.addr, sequence = *e, addr, p.sequence
					for at := p.at; at < p.at+p.size; at++ {
						taken[at] = true
					}
				}
				s.pending = rest
				o.others(e, lane, addr, sequence, taken)
			}
		}
	}
}

// others adds the locations of an access whose shadow words the device has not replaced, because a race is known there
// or they are not selected.
func (o *ordered) others(e *event.Event, lane int, addr uint64, sequence uint32, taken map[uint64]bool) {
	if e.Space != event.Global && e.Space != event.Shared {
		return
	}
	coarse := o.config.Options["granularity"] == "4"
	from := addr
	if coarse {
		from &^= 3
	}
	for at, size := from, uint64(0); at < addr+uint64(e.Size); at += size {
		if size = 1; coarse {
			size = 4
		} else if e.Size >= 4 && at%4 == 0 && !taken[at] && !taken[at+1] && !taken[at+2] && !taken[at+3] {
			size = 4
		}
		if !taken[at] {
			o.queue = append(o.queue, &step{e: *e, lane: lane, addr: addr, at: at, size: size, sequence: sequence})
		}
	}
}

func (o *ordered) lane(warp uint32, lane int) *laneState {
	k := [2]uint32{warp, uint32(lane)}
	if o.lanes[k] == nil {
		o.lanes[k] = &laneState{}
	}
	return o.lanes[k]
}

// checks follows the changes of shadow words by the device code.
func (o *ordered) checks(b *event.Batch, e *event.Event) {
	if e.Space != event.Global {
		return
	}
	// Lanes that begin to check together make one access, even if the emulator then executes each access separately.
	begins := e.Kind == event.Load && o.device(e.Place) == "__fencepost_access" && b.AddrOf(e, bits.TrailingZeros32(e.Mask)) == o.variable
	if begins {
		o.sequence++
	}
	replaces := e.Kind == event.Atomic && e.RMW == event.CompareAndSwap && e.Flags&event.FlagWrite != 0 &&
		strings.HasPrefix(o.device(e.Place), "__fencepost_update")
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		w, ok := instrument.ShadowOf(o.state, o.addr, b.AddrOf(e, lane))
		s := o.lane(e.Warp, lane)
		if begins {
			s.sequence = o.sequence
		}
		if ok && !w.Byte {
			s.word, s.shared = w.Addr, w.Space == event.Shared
		}
		if !replaces {
			continue
		}
		if !ok {
			o.unknown++
			continue
		}
		step := &step{lane: lane, at: w.Addr, size: 4, shared: s.shared, sequence: s.sequence}
		if w.Byte {
			step.at, step.size = s.word+w.Addr, 1
		}
		s.pending = append(s.pending, step)
		o.queue = append(o.queue, step)
	}
}

// judge passes the steps to the detector.
func (o *ordered) judge() {
	for _, s := range o.queue {
		switch {
		case s.size > 0 && s.e.Kind == event.None: // the thread ended between check and access
		case s.size > 0:
			o.detector.Location(&s.e, s.lane, s.addr, s.at, s.size, s.sequence)
		default:
			b := &event.Batch{Events: []event.Event{s.e}}
			if s.begin != nil {
				b.Launches, b.Events[0].Side = []event.Launch{*s.begin}, 0
			}
			o.detector.Events(b)
		}
	}
}

// told returns what a device knows of findings: places, kind, severity and number.
func told(places event.Places, list []detect.Finding) (out []string) {
	for _, f := range list {
		s := fmt.Sprintf("%s %v, %d times:", f.Kind, f.Severity, f.Count)
		var sides []string
		for _, a := range f.Accesses {
			side := fmt.Sprint(a.Op)
			for _, fr := range places.Frames(a.Place) {
				side += fmt.Sprintf(" %s:%d", fr.Function, fr.PTXLine)
			}
			sides = append(sides, side)
		}
		slices.Sort(sides)
		out = append(out, s+" "+strings.Join(sides, ", "))
	}
	slices.Sort(out)
	return out
}

// endless are the programs that wait for a value that nobody writes. Their instrumented loops run until the time limit.
// Only long mode includes them.
var endless = map[string]bool{"fault/flag_unset": true, "fault/lock_kept": true}

// onBoth runs a program of the corpus that checks what is watched. It returns the findings of the program and those of
// detector hirace on the same schedule. ok is false if the program cannot be instrumented.
func onBoth(t *testing.T, p *corpus.Program, w session.Watch, options map[string]string) (device, detector []string, ok bool) {
	o := &ordered{Engine: warp.New(), config: detect.Config{Options: options}}
	timeout := 20 * time.Second
	if endless[p.Path()] {
		timeout = 5 * time.Second
	}
	var d *hirace.Detector
	spec := hirace.Spec
	spec.New = func(c detect.Config) detect.Detector {
		c.Options = options
		d = hirace.Spec.New(c).(*hirace.Detector)
		o.config.Watch = c.Watch
		return d
	}
	r := session.CheckCorpus(context.Background(), &session.Options{Seeds: 1, Jobs: 1, Logged: true, Mode: instrument.HiRace, Detectors: []detect.Spec{spec}, Watch: w,
		Engine: func() engine.Engine { return o }, Timeout: timeout}, []*corpus.Program{p})[0]
	switch {
	case r.Err != nil && strings.Contains(r.Err.Error(), "cannot be instrumented"), r.Report != nil && skipped(r.Report, "cannot be instrumented"):
		return nil, nil, false
	case o.detector == nil || o.unknown > 0:
		t.Errorf("nothing was judged, or %d shadow words are unknown: %v", o.unknown, r.Err)
		return nil, nil, false
	case len(d.Notes()) > 0 || r.Report != nil && skipped(r.Report, "not checked"):
		t.Errorf("not all was checked: %q", d.Notes())
	case r.WrongResult() && r.Report.Skipped == nil:
		t.Errorf("it computes something else: %q", r.Report.Notes)
	}
	return told(o.config.Places, d.Findings()), told(o.config.Places, o.detector.Findings()), true
}

// TestHiRace checks that programs that check themselves find exactly what detector hirace finds on the same schedule.
func TestHiRace(t *testing.T) {
	onAll(t, testsize.Of(18, 14, 1), 0, nil, func(int) session.Watch { return session.Watch{} })
}

// TestGranularity checks the same if words are not split.
func TestGranularity(t *testing.T) {
	onAll(t, testsize.Of(20, 18, 5), 2, map[string]string{"granularity": "4"}, func(int) session.Watch { return session.Watch{} })
}

// TestSelection checks the same if only some threads or some variables are watched.
func TestSelection(t *testing.T) {
	all := watches()
	onAll(t, testsize.Of(19, 17, 4), 1, nil, func(i int) session.Watch { return all[i%len(all)] })
}

// watches are selections of threads and memory.
func watches() []session.Watch {
	odd := make([]detect.Range, 512)
	for i := range odd {
		odd[i] = detect.Range{First: uint64(2*i + 1), Last: uint64(2*i + 1)}
	}
	var pieces []detect.Range // of 44 bytes, from odd words on
	for i := range uint64(4000) {
		pieces = append(pieces, detect.Range{First: isa.GlobalBase + 60*i + 3, Last: isa.GlobalBase + 60*i + 46})
	}
	first, others := []detect.Range{{First: 0, Last: 0}}, []detect.Range{{First: 1, Last: 1 << 30}}
	return []session.Watch{{Blocks: first}, {Blocks: others}, {Threads: []detect.Range{{First: 0, Last: 31}}}, {Threads: odd}, {Threads: others, Blocks: others},
		{Addresses: pieces}, {Variable: regexp.MustCompile("^[a-m]")}, {SkipVariable: regexp.MustCompile("^[a-m]")}, {Variable: regexp.MustCompile("[aeiou]"), Threads: odd}}
}

// onAll compares findings for every nth program of the corpus from first on: those of the program, which checks what
// watch selects, and those of detector hirace with the given options.
func onAll(t *testing.T, n, first int, options map[string]string, watch func(i int) session.Watch) {
	t.Helper()
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	var programs, found atomic.Int64
	t.Run("corpus", func(t *testing.T) {
		for i, p := range all {
			if i%n != first%n || endless[p.Path()] && !testsize.Long() {
				continue
			}
			t.Run(p.Path(), func(t *testing.T) {
				t.Parallel()
				got, want, ok := onBoth(t, p, watch(i), options)
				if !ok {
					return
				}
				if !slices.Equal(got, want) {
					t.Errorf("the device found\n%s\nbut detector hirace\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				programs.Add(1)
				found.Add(int64(len(got)))
			})
		}
	})
	t.Logf("%d programs, %d findings", programs.Load(), found.Load())
	if programs.Load() < 20 || found.Load() < 5 {
		t.Errorf("%d programs, %d findings", programs.Load(), found.Load())
	}
}
