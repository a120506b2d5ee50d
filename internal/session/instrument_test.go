package session

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/detect/hirace"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/warp"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/instrument/emulated"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/testsize"
)

// unlogged has the programs of the corpus whose logs lack something, so that the findings differ from those on the
// emulator.
var unlogged = map[string]string{
	"fault/flag_unset":        "that a loop waits for what nobody writes: it ends when the time is over",
	"fault/lock_kept":         "that a loop waits for what nobody writes: it ends when the time is over",
	"fault/mbarrier_count":    "that a loop waits for what nobody writes: it ends when the time is over",
	"scopedapps/treesearch@4": "nothing; but the threads come in another order",
}

// TestCorpusLogged judges instrumented programs by their logs, and compares results in memory and findings with the
// expected ones, except for the programs in unlogged. Programs that cannot be instrumented must report this.
func TestCorpusLogged(t *testing.T) {
	t.Parallel()
	programs := instrumentable(t, testsize.Of(10, 12, 1), 0)
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Timeout: 10 * time.Minute}
	var judged []CorpusResult
	for _, r := range CheckCorpus(context.Background(), o, programs) {
		if !refused(&r) {
			judged = append(judged, r)
		}
	}
	t.Logf("%d of %d programs were instrumented", len(judged), len(programs))
	if 3*len(judged) < 2*len(programs) { // asynchronous copies and tensor cores cannot be
		t.Errorf("only %d of %d programs were instrumented", len(judged), len(programs))
	}
	requireAsWanted(t, judged)
}

// refused reports whether a program, or a kernel of it, was not instrumented.
func refused(r *CorpusResult) bool {
	const what = "cannot be instrumented"
	return r.Err != nil && strings.Contains(r.Err.Error(), what) ||
		r.Report != nil && slices.ContainsFunc(r.Report.Skipped, func(s report.Skipped) bool { return strings.Contains(s.Reason, what) })
}

// withLog gives the emulated device a log of another shape until the test ends. The test must not be parallel.
func withLog(t *testing.T, s instrument.Shape) {
	t.Helper()
	before := emulated.DefaultShape
	emulated.DefaultShape = s
	t.Cleanup(func() { emulated.DefaultShape = before })
}

// instrumentable returns every nth program of some folders of the corpus, or of all if none is given, without those in
// unlogged. Tests that begin with different first programs use different ones when they use few.
func instrumentable(t *testing.T, n, first int, folders ...string) (some []*corpus.Program) {
	t.Helper()
	for i, p := range corpusPrograms(t) {
		if i%n == first%n && (len(folders) == 0 || slices.Contains(folders, folder(p))) && unlogged[unloggedName(p)] == "" {
			some = append(some, p)
		}
	}
	return some
}

// unloggedName returns the name of a program in unlogged: that of one of its compilations, or of all.
func unloggedName(p *corpus.Program) string {
	if unlogged[p.Path()] != "" {
		return p.Path()
	}
	name, _, _ := strings.Cut(p.Path(), "@")
	return name
}

// watcher executes instrumented programs. hb judges them, including the device code.
type watcher struct {
	engine.Engine
	mode     instrument.Mode
	mu       sync.Mutex
	findings []string // with an access in device code
	launches int
	wrapped  int // launches that hb cannot judge
}

// Run implements engine.Engine. hb does not know that the host has read a slot of a log before it is reused, so a
// launch in which this happens is not judged.
func (w *watcher) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	watched := *l
	d := hb.Spec.New(detect.Config{Places: l.Places})
	watched.Sink, watched.Needs = d, hb.Spec.Needs
	stats, err := w.Engine.Run(ctx, &watched)
	wrapped := w.mode == instrument.Log && wrappedLog(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.launches++
	if wrapped {
		w.wrapped++
		return stats, err
	}
	for _, f := range d.Findings() {
		if slices.ContainsFunc(f.Accesses, func(a detect.Access) bool {
			frames := l.Places.Frames(a.Place)
			return len(frames) > 0 && instrument.Ours(frames[0].Function)
		}) {
			w.findings = append(w.findings, fmt.Sprintf("%s: %s: %s", l.Func.Name, f.Kind, f.Message))
		}
	}
	return stats, err
}

// wrappedLog reports whether slots of the log of a launch were reused.
func wrappedLog(l *engine.Launch) bool {
	at, size, _ := l.Program.Symbol(instrument.LogSymbol)
	pointer, err := l.Program.Memory.Bytes(at, size)
	if err != nil {
		return true
	}
	s := emulated.DefaultShape
	log, err := l.Program.Memory.Bytes(binary.LittleEndian.Uint64(pointer), s.Bytes())
	return err != nil || s.Wrapped(log)
}

// TestDeviceCodeIsOrdered checks with hb that the device code of instrumented programs has no races.
func TestDeviceCodeIsOrdered(t *testing.T) {
	sequential(t)
	withLog(t, instrument.Shape{Queues: 4, Slots: 1 << 16})
	n := testsize.Of(32, 32, 4)
	for mode, detectors := range map[instrument.Mode][]detect.Spec{instrument.Log: nil, instrument.HiRace: {hirace.Spec}} {
		w := &watcher{Engine: warp.New(), mode: mode}
		o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Mode: mode, Detectors: detectors, Engine: func() engine.Engine { return w },
			Timeout: 10 * time.Minute}
		CheckCorpus(context.Background(), o, instrumentable(t, n, 0, "norace", "race"))
		t.Logf("mode %d: %d launches watched, %d not judged", mode, w.launches, w.wrapped)
		if w.launches-w.wrapped < 80/n || w.wrapped > max(1, w.launches/10) { // one of few says nothing
			t.Errorf("mode %d: %d launches watched, and %d of them not judged", mode, w.launches, w.wrapped)
		}
		for _, f := range w.findings {
			t.Errorf("mode %d: %s", mode, f)
		}
	}
}

// TestUnlogged checks that each program in unlogged still belongs there: some compilation of it is not judged as its
// source wants. It takes all programs in long mode, otherwise one of three.
func TestUnlogged(t *testing.T) {
	if testing.Short() {
		t.Skip("programs that wait for ever end by a timeout")
	}
	t.Parallel()
	listed := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(unlogged)) {
		if i%3 == 0 || testsize.Long() {
			listed[name] = unlogged[name]
		}
	}
	wrong := map[string]bool{}
	for _, p := range corpusPrograms(t) {
		name := unloggedName(p)
		if listed[name] == "" || wrong[name] {
			continue
		}
		o := &Options{Seeds: 1, Jobs: 1, Logged: true, Timeout: 10 * time.Second}
		if strings.Contains(unlogged[name], "waits") {
			o.Timeout = time.Second
		}
		r := CheckCorpus(context.Background(), o, []*corpus.Program{p})[0]
		wrong[name] = !r.OK()
	}
	for name, what := range listed {
		if !wrong[name] {
			t.Errorf("%s is judged as its source wants, or is gone: it has no place in the list of what a log does not tell (%s)", name, what)
		}
	}
}

// TestFullLog checks the findings and results if each record must wait for the host to make room. Nothing may hang, and
// nothing may be lost.
func TestFullLog(t *testing.T) {
	sequential(t)
	withLog(t, instrument.Shape{Queues: 1, Slots: 16})
	n := testsize.Of(20, 20, 5)
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Timeout: 5 * time.Minute}
	var judged []CorpusResult
	programs := slices.DeleteFunc(instrumentable(t, n, 0, "race", "norace"), func(p *corpus.Program) bool {
		// Its one reader comes last where threads wait, and has then observed all that it would race with.
		return p.Path() == "race/histogram_shared"
	})
	for _, r := range CheckCorpus(context.Background(), o, programs) {
		if !refused(&r) {
			judged = append(judged, r)
		}
	}
	if len(judged) < 5 {
		t.Errorf("only %d programs were instrumented", len(judged))
	}
	requireAsWanted(t, judged)
}

// threads is a detector without findings. It records the operations of each thread, and how often the barriers of each
// block completed.
type threads struct {
	c        detect.Config
	logged   bool
	names    map[uint32]string // of places
	launches []event.Launch
	did      map[thread]string // a hash of all operations, and the last one
	ops      map[thread]int
	strong   bool // there were operations by which threads can learn what others did
}

type thread struct {
	launch, warp uint32 // warp: block for barriers
	lane         int    // -1 - N for barrier N
}

func (t *threads) Findings() []detect.Finding { return nil }

func (t *threads) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.KernelBegin:
			t.launches = append(t.launches, b.Launches[e.Side])
			continue
		case event.KernelEnd:
			continue
		case event.BarrierDone:
			l := t.launches[len(t.launches)-1]
			t.add(thread{e.Launch, e.Warp / l.WarpsPerBlock(), -1 - int(e.Barrier)}, "complete")
			continue
		case event.Atomic:
			t.strong = true
		case event.Load:
			t.strong = t.strong || e.Order != event.Weak
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			t.add(thread{e.Launch, e.Warp, l}, t.operation(b, e, l))
		}
	}
}

// logVariable is the distance by which the variable of the log moves the program's memory, which is allocated after its
// variables.
const logVariable = 0x400

// operation describes an operation of a lane, without values and without the other lanes that took part.
func (t *threads) operation(b *event.Batch, e *event.Event, lane int) string {
	name, ok := t.names[e.Place]
	if !ok {
		for _, f := range t.c.Places.Frames(e.Place) {
			name += fmt.Sprintf("%s:%d ", f.Function, f.PTXLine)
		}
		t.names[e.Place] = name
	}
	addr, flags := uint64(0), e.Flags&(event.FlagWait|event.FlagAligned)
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		addr, flags = b.AddrOf(e, lane), e.Flags&(event.FlagRead|event.FlagWrite|event.FlagRed|event.FlagVector|event.FlagNonCoherent)
		if t.logged && e.Space == event.Global {
			addr -= logVariable
		}
	}
	return fmt.Sprintf("%skind %d addr %#x size %d space %d order %d scope %d aux %d barrier %d rmw %d flags %#x",
		name, e.Kind, addr, e.Size, e.Space, e.Order, e.Scope, e.Aux, e.Barrier, e.RMW, flags)
}

func (t *threads) add(k thread, what string) {
	h := fnv.New64a()
	h.Write([]byte(t.did[k] + what))
	t.did[k] = fmt.Sprintf("%x %s", h.Sum64(), what)
	t.ops[k]++
}

// threadsOf runs a program and returns the operations of its threads, or nil if the program cannot be instrumented.
func threadsOf(t *testing.T, p *corpus.Program, logged bool) (got *threads) {
	spec := detect.Spec{Name: "threads", Needs: event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch,
		New: func(c detect.Config) detect.Detector {
			got = &threads{c: c, logged: logged, names: map[uint32]string{}, did: map[thread]string{}, ops: map[thread]int{}}
			return got
		}}
	o := &Options{Seeds: 1, Jobs: 1, Logged: logged, Detectors: []detect.Spec{spec}, Timeout: time.Minute}
	r := CheckCorpus(context.Background(), o, []*corpus.Program{p})[0]
	if refused(&r) {
		return nil
	}
	if r.Err != nil {
		t.Errorf("%s: %v", p.Path(), r.Err)
		return nil
	}
	return got
}

// TestLogIsWhatHappened checks that in the log each thread has the same operations as on the emulator, in the same
// order. It omits threads that can observe others by atomics or strong loads: they may act differently under another
// schedule, and an instrumented program has another schedule.
func TestLogIsWhatHappened(t *testing.T) {
	sequential(t)
	t.Parallel()
	n := testsize.Of(10, 12, 3)
	judged := 0
	for _, p := range instrumentable(t, n, 2, "race", "norace", "bugs", "fault", "predict") {
		if strings.HasPrefix(p.Path(), "race/message_plain") { // waits for a weak store
			continue
		}
		logged := threadsOf(t, p, true)
		if logged == nil {
			continue
		}
		plain := threadsOf(t, p, false)
		if plain.strong {
			continue
		}
		judged++
		if len(plain.did) != len(logged.did) {
			t.Errorf("%s: %d threads and barriers, logged %d", p.Path(), len(plain.did), len(logged.did))
		}
		for k, did := range plain.did {
			if logged.did[k] != did {
				t.Errorf("%s: %+v: %d operations to %q, logged %d to %q", p.Path(), k, plain.ops[k], did, logged.ops[k], logged.did[k])
				break
			}
		}
	}
	t.Logf("%d programs judged", judged)
	if judged < 100/n { // of one program in n; which, changes with the corpus
		t.Errorf("%d programs judged", judged)
	}
}

// TestPrunedLog checks that instrumented programs without redundant records have the same findings.
func TestPrunedLog(t *testing.T) {
	sequential(t)
	t.Parallel()
	n := testsize.Of(10, 12, 3)
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Prune: true, Timeout: 10 * time.Minute}
	var judged []CorpusResult
	for _, r := range CheckCorpus(context.Background(), o, instrumentable(t, n, 4, "race", "norace", "bugs", "predict", "predict_norace")) {
		if !refused(&r) {
			judged = append(judged, r)
		}
	}
	t.Logf("%d programs judged", len(judged))
	if len(judged) < 300/n {
		t.Errorf("only %d programs were instrumented", len(judged))
	}
	requireAsWanted(t, judged)
}
