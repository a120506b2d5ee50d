package session

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus/irregular"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// wholeStream keeps the events of a run as one batch and finds nothing.
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

// placesOf are the pairs of places of races.
func placesOf(findings []detect.Finding) (out []string) {
	for i := range findings {
		a := findings[i].Accesses
		x, y := fmt.Sprint("p", a[0].Place), fmt.Sprint("p", a[1].Place)
		out = append(out, min(x, y)+" "+max(x, y))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestIrregularTruth compares the judge of the suite, and hb, with brute force over whole executions: the same pairs of
// places race.
func TestIrregularTruth(t *testing.T) {
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
		if r.Graph.Vertices() > 9 || testing.Short() && r.Graph.Name != "dag-3" {
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

var _ = os.Args
var _ = runtime.NumCPU
var _ = strings.Cut
var _ = time.Now
