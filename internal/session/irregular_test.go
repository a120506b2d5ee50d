package session

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus/irregular"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// wholeStream records the events of a run as one batch.
type wholeStream struct{ event.Batch }

func (w *wholeStream) Findings() []detect.Finding { return nil }

// Events implements event.Sink.
func (w *wholeStream) Events(b *event.Batch) {
	for _, e := range b.Events {
		if e.Kind == event.KernelBegin {
			e.Side += uint32(len(w.Launches))
		}
		if e.Kind == event.Host {
			e.Side += uint32(len(w.Hosts))
		}
		if e.Flags&event.FlagScattered != 0 {
			e.Side += uint32(len(w.Addrs))
		}
		if e.Flags&event.FlagValues != 0 {
			e.Val += uint32(len(w.Values))
		}
		w.Batch.Events = append(w.Batch.Events, e)
	}
	w.Addrs, w.Values = append(w.Addrs, b.Addrs...), append(w.Values, b.Values...)
	w.Launches, w.Hosts = append(w.Launches, b.Launches...), append(w.Hosts, b.Hosts...)
}

// placesOf returns the pairs of places of races.
func placesOf(findings []detect.Finding) (out []string) {
	for i := range findings {
		a := findings[i].Accesses
		x, y := fmt.Sprint("p", a[0].Place), fmt.Sprint("p", a[1].Place)
		out = append(out, min(x, y)+" "+max(x, y))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestIrregularTruth compares the racing pairs of places according to the judge of the suite, to hb, and to brute force
// over whole executions.
func TestIrregularTruth(t *testing.T) {
	sequential(t)
	t.Parallel()
	runs, err := IrregularRuns("int")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs[:len(runs)/len(irregular.Graphs())] { // small enough for blocks too
		runs = append(runs, IrregularRun{r.Kernel, irregular.DAG("dag-3", 3, 2)})
	}
	const most = 2200 // operations; time grows with the cube
	hb, err := detect.Choose(all.Detectors(), "hb")
	if err != nil {
		t.Fatal(err)
	}
	checked, racy := map[string]int{}, 0
	for _, r := range runs {
		if r.Graph.Vertices() > 9 || !testsize.Long() && r.Graph.Name != "dag-3" {
			continue
		}
		var stream wholeStream
		var found [2]detect.Detector
		o := &Options{Detectors: []detect.Spec{
			{Name: "stream", Needs: definitionSpec.Needs | event.NeedValues | event.NeedHost, New: func(detect.Config) detect.Detector { return &stream }},
			{Name: "judge", Needs: definitionSpec.Needs, New: func(c detect.Config) detect.Detector {
				found[0] = definitionSpec.New(c)
				return found[0]
			}},
			{Name: "hb", Needs: hb.Needs, New: func(c detect.Config) detect.Detector {
				c.Places = nil // places themselves, not source lines
				found[1] = hb.New(c)
				return found[1]
			}},
		}}
		if _, err := Check(context.Background(), o, r.input()); err != nil {
			t.Fatal(err)
		}
		if oracle.Size(&stream.Batch) > most {
			continue
		}
		var want []string
		for _, race := range oracle.Find(&stream.Batch, oracle.CUDA) {
			want = append(want, race.A+" "+race.B)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		for i, name := range []string{"the judge", "hb"} {
			if got := placesOf(found[i].Findings()); !slices.Equal(got, want) {
				t.Errorf("%s on %s: %s says %q race, brute force %q", r.Kernel.Name(), r.Graph.Name, name, got, want)
			}
		}
		checked[r.Kernel.Pattern+"/"+r.Kernel.Unit]++
		if len(want) > 0 {
			racy++
		}
	}
	t.Logf("%v, %d racy", checked, racy)
	if len(checked) < 6*3 {
		t.Error("no execution of some patterns was small enough")
	}
}

// TestIrregular runs every kernel on small graphs with all detectors, and compares their verdicts with
// testdata/irregular.txt, so that every change of a verdict is seen.
func TestIrregular(t *testing.T) {
	if !testsize.Long() {
		t.Skip("takes half a minute under the race detector")
	}
	var runs []IrregularRun
	for _, g := range []string{"dag-5", "counterdag-5", "powerlaw-8", "grid-9"} {
		rs, err := IrregularRuns(g)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, rs...)
	}
	results := CompareIrregular(context.Background(), &Options{Jobs: runtime.GOMAXPROCS(0)}, runs)
	requireSound(t, results, "hb")
	var b strings.Builder
	b.WriteString("Kernels of corpus/irregular on small graphs (fencepost compare corpus/irregular; docs/irregular.md).\n\n")
	WriteIrregular(&b, results)
	b.WriteString("\nFalse alarms, on any graph and type of data\n")
	writeAlarms(&b, results)
	requireGolden(t, "irregular", b.String())
}

// writeAlarms writes which detectors report a race in which kernels, in executions that have none.
func writeAlarms(b *strings.Builder, results []IrregularResult) {
	alarms := map[string][]string{}
	for i := range results {
		k := results[i].Kernel
		name := k.Pattern + " " + k.Unit + " " + k.Planted()
		for _, v := range results[i].Judged {
			if v.Found && !v.Racy && !slices.Contains(alarms[name], v.Detector) {
				alarms[name] = append(alarms[name], v.Detector)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(alarms)) {
		slices.Sort(alarms[name])
		fmt.Fprintf(b, "%s: %s\n", name, strings.Join(alarms[name], " "))
	}
}

// requireSound checks that kernels without a bug have no race, fault or wrong result, and that a detector finds exactly
// the true races.
func requireSound(t *testing.T, results []IrregularResult, detector string) {
	t.Helper()
	for i := range results {
		r := &results[i]
		name := r.Kernel.Name() + " on " + r.Graph.Name
		if r.Err != nil {
			t.Errorf("%s: %v", name, r.Err)
			continue
		}
		if len(r.Kernel.Bugs) == 0 && (r.Racy || r.Faults || r.Differs != "") {
			t.Errorf("%s is right, and not: racy %v, faults %v, %s", name, r.Racy, r.Faults, r.Differs)
		}
		if r.Kernel.Has("bounds") && !r.Faults {
			t.Errorf("%s leaves no bounds", name)
		}
		for _, v := range r.Judged {
			if v.Detector == detector && (v.Missed > 0 || v.False > 0) {
				t.Errorf("%s: %s misses %d pairs of places and names %d that do not race", name, detector, v.Missed, v.False)
			}
		}
	}
}

// TestIrregularOnLargerGraphs compares hb, and kernels without a bug, with the truth on some runs with graphs of 100
// and 200 vertices.
func TestIrregularOnLargerGraphs(t *testing.T) {
	sequential(t)
	hb, err := detect.Choose(all.Detectors(), "hb")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := IrregularRuns("int")
	if err != nil {
		t.Fatal(err)
	}
	runs = slices.DeleteFunc(runs, func(r IrregularRun) bool {
		return r.Graph.Vertices() < 100 || len(r.Kernel.Bugs) > 0 && r.Graph.Name != "dag-200" || !testsize.Long() && r.Kernel.Unit != "warp"
	})
	requireSound(t, CompareIrregular(context.Background(), &Options{Jobs: runtime.GOMAXPROCS(0), Detectors: []detect.Spec{hb}}, runs), "hb")
}
