package session

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/event/trace"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/testsize"
)

func jsonOf(t *testing.T, r *report.Report) string {
	var b bytes.Buffer
	if err := report.JSON(&b, r, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func record(t *testing.T, p *corpus.Program) []byte {
	in, err := CorpusInput(p)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Check(context.Background(), &Options{Bare: true, Record: &out}, in); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// independent returns the detectors that do not judge lockstep.
func independent() (specs []detect.Spec) {
	for _, d := range all.Detectors() {
		if !d.Lockstep {
			specs = append(specs, d)
		}
	}
	return specs
}

// TestAnalyzeIsTheRun judges each program of the corpus from a trace. The report and the findings must be those of the
// run.
func TestAnalyzeIsTheRun(t *testing.T) {
	sequential(t)
	t.Parallel()
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range some(6, programs) {
		in, err := CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		data := record(t, p)
		for _, d := range independent() {
			o := &Options{Detectors: []detect.Spec{d}}
			live, err := Check(context.Background(), o, in)
			if err != nil {
				t.Fatal(err)
			}
			later, err := Analyze(context.Background(), o, bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			// What old values save is the one thing in which the two may differ.
			for i := range live.Detectors {
				live.Detectors[i].Metadata, later.Detectors[i].Metadata = 0, 0
			}
			if a, b := jsonOf(t, live), jsonOf(t, later); a != b {
				t.Errorf("%s: %s reports\n%s\nof the run and of its trace\n%s", p.Path(), d.Name, a, b)
			}
		}
	}
}

// TestCutTrace truncates a trace. The complete part must be judged, and the verdict must not be clean.
func TestCutTrace(t *testing.T) {
	sequential(t)
	t.Parallel()
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	data := record(t, programs[len(programs)-1])
	for n := len(trace.Magic); n < len(data); n += 1 + n/5 {
		r, err := Analyze(context.Background(), &Options{}, bytes.NewReader(data[:n]))
		if err != nil || len(r.Skipped) == 0 || r.Verdict == report.Clean {
			t.Errorf("%d of %d bytes: %v, %+v", n, len(data), err, r)
		}
	}
	o := &Options{FailOn: detect.Error}
	// Without its end a trace still tells which kernels ran, and what races in them.
	for _, p := range some(3, programs) {
		data := record(t, p)
		whole, err := Analyze(context.Background(), o, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		cut, err := Analyze(context.Background(), o, bytes.NewReader(data[:len(data)-1]))
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole.Kernels {
			whole.Kernels[i].Seconds = 0
		}
		if !reflect.DeepEqual(cut.Kernels, whole.Kernels) || len(cut.Skipped) != 2+len(whole.Skipped) {
			t.Errorf("%s: kernels %+v, want %+v; not checked: %+v", p.Path(), cut.Kernels, whole.Kernels, cut.Skipped)
		}
		races := func(r *report.Report) (ids []string) {
			for _, f := range r.Findings {
				if f.Detector != engineName {
					ids = append(ids, f.ID)
				}
			}
			return ids
		}
		if !slices.Equal(races(cut), races(whole)) {
			t.Errorf("%s: races %v, want %v", p.Path(), races(cut), races(whole))
		}
		want := report.NotChecked
		if len(cut.Findings) > 0 && cut.Findings[0].Severity == detect.Error {
			want = report.Found
		}
		if cut.Verdict != want {
			t.Errorf("%s: verdict %s, want %s", p.Path(), cut.Verdict, want)
		}
	}
}

// TestHostileTraces changes events of recorded runs at random. No detector may fail on what the reader accepts.
func TestHostileTraces(t *testing.T) {
	sequential(t)
	t.Parallel()
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	passed, turns := 0, testsize.Of(100, 150, 600)
	traces := make([][]byte, 40)
	for i := range traces {
		traces[i] = record(t, programs[rng.IntN(len(programs))])
	}
	for range turns {
		in, err := trace.NewReader(bytes.NewReader(traces[rng.IntN(len(traces))]))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := trace.NewWriter(&out, in)
		if err != nil {
			t.Fatal(err)
		}
		var b event.Batch
		for in.Next(&b) == nil {
			for range 1 + rng.IntN(4) {
				spoil(&b.Events[rng.IntN(len(b.Events))], rng)
			}
			w.Events(&b)
		}
		if err := w.Close(in.Tail()); err != nil {
			t.Fatal(err)
		}
		r, err := Analyze(context.Background(), &Options{Detectors: independent()}, &out)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if len(r.Skipped) == 0 {
			passed++
		}
	}
	if passed < turns/20 {
		t.Errorf("%d of %d traces were let pass: the detectors saw next to nothing", passed, turns)
	}
}

// spoil changes a field of an event to a value that can be written.
func spoil(e *event.Event, rng *rand.Rand) {
	switch rng.IntN(9) {
	case 0:
		e.Warp ^= 1 << rng.IntN(8)
	case 1:
		if e.Affine() && e.Flags&event.FlagValues == 0 {
			e.Mask ^= 1 << rng.IntN(32)
		}
	case 2:
		e.Addr += uint64(rng.IntN(64)) * 4
	case 3:
		e.Barrier = uint8(rng.IntN(16))
	case 4:
		e.Order, e.Scope = event.Order(rng.IntN(7)), event.Scope(rng.IntN(5))
	case 5:
		e.Stride = int64(rng.IntN(33)-16) * 4
	case 6:
		e.Aux = uint32(rng.IntN(100))
	case 7:
		if e.Kind > event.Atomic && e.Kind < event.KernelBegin {
			e.Kind = event.Fence + event.Kind(rng.IntN(int(event.KernelBegin-event.Fence)))
		}
	case 8:
		e.Place = uint32(rng.IntN(40))
	}
}

// TestNoValues records writes of the same value without values. They must be reported as different writes, and the
// report must tell the reason.
func TestNoValues(t *testing.T) {
	sequential(t)
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, p := range programs {
		if !strings.Contains(p.Source, "same-value") {
			continue
		}
		in, err := CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		var reports [2]*report.Report
		for i, without := range []bool{false, true} {
			var out bytes.Buffer
			if _, err := Check(context.Background(), &Options{Bare: true, Record: &out, NoValues: without}, in); err != nil {
				t.Fatal(err)
			}
			if reports[i], err = Analyze(context.Background(), &Options{FailOn: detect.Error}, &out); err != nil {
				t.Fatal(err)
			}
		}
		with, without := sameValues(reports[0]), sameValues(reports[1])
		if told += with; without != 0 || len(reports[1].Findings) < len(reports[0].Findings) {
			t.Errorf("%s: %d findings of one value, %d without values", p.Name, with, without)
		}
		if !strings.Contains(fmt.Sprint(reports[1].Notes), "--values off") || strings.Contains(fmt.Sprint(reports[0].Notes), "--values off") {
			t.Errorf("%s: notes %q and without values %q", p.Name, reports[0].Notes, reports[1].Notes)
		}
	}
	if told == 0 {
		t.Error("no program has racing writes of one value")
	}
}

func sameValues(r *report.Report) (n int) {
	for i := range r.Findings {
		if r.Findings[i].Kind == detect.SameValue {
			n++
		}
	}
	return n
}
