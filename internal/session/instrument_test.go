package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/instrument"
	"fencepost.dev/fencepost/internal/instrument/emulated"
	"fencepost.dev/fencepost/internal/simt"
)

// unlogged is what a log does not tell, by program of the corpus: what is found instead differs from what the emulator finds.
var unlogged = map[string]string{
	"bugs/global_warps_same_widths":         "the values of stores",
	"bugs/shared_lanes_plain_same":          "the values of stores",
	"race/found":                            "the values of stores",
	"norace/byte_flag":                      "the values of compare-and-swaps, by which one of a byte is known",
	"norace/byte_lock":                      "the values of compare-and-swaps, by which one of a byte is known",
	"norace/byte_mixed":                     "the values of compare-and-swaps, by which one of a byte is known",
	"race/byte_flag":                        "the values of compare-and-swaps, by which one of a byte is known",
	"race/byte_lock":                        "the values of compare-and-swaps, by which one of a byte is known",
	"bugs/global_lanes_exit_syncwarp":       "when lanes part and reconverge, but for what they do next",
	"bugs/shared_lanes_coalesced_path":      "when lanes part and reconverge, but for what they do next",
	"bugs/shared_lanes_syncwarp_halves":     "when lanes part and reconverge, but for what they do next",
	"race/bitonic":                          "when lanes part and reconverge, but for what they do next",
	"fault/flag_unset":                      "that a loop waits for what nobody writes: it ends when the time is over",
	"fault/lock_kept":                       "that a loop waits for what nobody writes: it ends when the time is over",
	"bugs/global_blocks_lock_plain_release": "nothing; but the threads come in another order",
	"predict/gap_composed":                  "nothing; but the threads come in another order",
	"scopedapps/treesearch":                 "nothing; but the threads come in another order",
}

// TestCorpusLogged wants of instrumented programs, judged by their logs, what is wanted of the programs as they are: results in
// memory, and findings but for those of unlogged. What cannot be instrumented yet says so.
func TestCorpusLogged(t *testing.T) {
	t.Parallel()
	var programs []*corpus.Program
	for i, p := range corpusPrograms(t) {
		name, _, _ := strings.Cut(p.Path(), "@")
		if unlogged[name] == "" && (!testing.Short() || i%10 == 0) {
			programs = append(programs, p)
		}
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Timeout: 10 * time.Minute}
	var judged []CorpusResult
	for _, r := range CheckCorpus(context.Background(), o, programs) {
		if r.Err == nil || !strings.Contains(r.Err.Error(), "cannot be instrumented") {
			judged = append(judged, r)
		}
	}
	t.Logf("%d of %d programs were instrumented", len(judged), len(programs))
	if 5*len(judged) < 4*len(programs) {
		t.Errorf("only %d of %d programs were instrumented", len(judged), len(programs))
	}
	requireAsWanted(t, judged)
}

// withLog gives the emulated device a log of another shape until the test ends. The test must not be parallel.
func withLog(t *testing.T, s instrument.Shape) {
	t.Helper()
	before := emulated.DefaultShape
	emulated.DefaultShape = s
	t.Cleanup(func() { emulated.DefaultShape = before })
}

// instrumentable gives every nth program of folders of the corpus, but for those of unlogged.
func instrumentable(t *testing.T, n int, folders ...string) (some []*corpus.Program) {
	t.Helper()
	for i, p := range corpusPrograms(t) {
		name, _, _ := strings.Cut(p.Path(), "@")
		if i%n == 0 && slices.Contains(folders, folder(p)) && unlogged[name] == "" {
			some = append(some, p)
		}
	}
	return some
}

// watcher executes instrumented programs and has hb watch them all the same: the device code of the log included.
type watcher struct {
	simt.Engine
	mu       sync.Mutex
	findings []string // with an access in device code
	launches int
	wrapped  int // launches that hb cannot judge
}

// Run implements simt.Engine. That the host has read a slot before it is written again is not told to hb: where that happens,
// the launch is not judged.
func (w *watcher) Run(ctx context.Context, l *simt.Launch) (simt.Stats, error) {
	watched := *l
	d := hb.Spec.New(detect.Config{Places: l.Places})
	watched.Sink, watched.Needs = d, hb.Spec.Needs
	stats, err := w.Engine.Run(ctx, &watched)
	at, size, _ := l.Program.Symbol(instrument.LogSymbol)
	pointer, e := l.Program.Memory.Bytes(at, size)
	if e != nil {
		return stats, errors.Join(err, e)
	}
	s := emulated.DefaultShape
	log, e := l.Program.Memory.Bytes(binary.LittleEndian.Uint64(pointer), s.Bytes())
	if e != nil {
		return stats, errors.Join(err, e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.launches++
	if s.Wrapped(log) {
		w.wrapped++
		return stats, err
	}
	for _, f := range d.Findings() {
		if slices.ContainsFunc(f.Accesses, func(a detect.Access) bool {
			frames := l.Places.Frames(a.Place)
			return len(frames) > 0 && strings.HasPrefix(frames[0].Function, "__fencepost_")
		}) {
			w.findings = append(w.findings, fmt.Sprintf("%s: %s: %s", l.Func.Name, f.Kind, f.Message))
		}
	}
	return stats, err
}

// TestDeviceCodeIsOrdered has hb watch instrumented programs, which race on nothing that is ours.
func TestDeviceCodeIsOrdered(t *testing.T) {
	withLog(t, instrument.Shape{Queues: 4, Slots: 1 << 16})
	w := &watcher{Engine: simt.NewWarp()}
	n := 3
	if testing.Short() {
		n = 12
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Engine: func() simt.Engine { return w }, Timeout: 10 * time.Minute}
	CheckCorpus(context.Background(), o, instrumentable(t, n, "norace", "race"))
	t.Logf("%d launches watched, %d not judged", w.launches, w.wrapped)
	if w.launches-w.wrapped < 10 || w.wrapped > w.launches/10 {
		t.Errorf("%d launches watched, and %d of them not judged", w.launches, w.wrapped)
	}
	for _, f := range w.findings {
		t.Error(f)
	}
}

// TestUnlogged wants of each program of unlogged that its log still does not tell what the list says: some compilation of it is judged
// otherwise than as its source wants. One that is judged well has no place in the list.
func TestUnlogged(t *testing.T) {
	if testing.Short() {
		t.Skip("programs that wait for ever end by a timeout")
	}
	t.Parallel()
	wrong := map[string]bool{}
	for _, p := range corpusPrograms(t) {
		name, _, _ := strings.Cut(p.Path(), "@")
		if unlogged[name] == "" || wrong[name] {
			continue
		}
		o := &Options{Seeds: 1, Jobs: 1, Logged: true, Timeout: 10 * time.Second}
		r := CheckCorpus(context.Background(), o, []*corpus.Program{p})[0]
		wrong[name] = !r.OK()
	}
	for name, what := range unlogged {
		if !wrong[name] {
			t.Errorf("%s is judged as its source wants, or is gone: it has no place in the list of what a log does not tell (%s)", name, what)
		}
	}
}

// TestFullLog wants the same findings and results where each record has to wait for the host to make room: nothing hangs, and nothing
// is lost.
func TestFullLog(t *testing.T) {
	withLog(t, instrument.Shape{Queues: 1, Slots: 8})
	n := 5
	if testing.Short() {
		n = 20
	}
	o := &Options{Seeds: 1, Jobs: runtime.NumCPU(), Logged: true, Timeout: 5 * time.Minute}
	var judged []CorpusResult
	for _, r := range CheckCorpus(context.Background(), o, instrumentable(t, n, "race", "norace")) {
		if r.Err == nil || !strings.Contains(r.Err.Error(), "cannot be instrumented") {
			judged = append(judged, r)
		}
	}
	if len(judged) < 5 {
		t.Errorf("only %d programs were instrumented", len(judged))
	}
	requireAsWanted(t, judged)
}
