package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify"
)

// replaysTo reports whether a run with a schedule has a finding of the class of a finding of verify, and, for a race or
// fault, with its places.
func replaysTo(f *verify.Finding, findings []report.Finding) bool {
	places := func(g *report.Finding) (out []string) {
		for i := range g.Accesses {
			file, line := session.ScheduledPlace(g.Accesses[i].Frames)
			out = append(out, fmt.Sprintf("%s:%d", filepath.Base(file), line))
		}
		slices.Sort(out)
		return out
	}
	var want []string
	for _, s := range f.Sides {
		want = append(want, fmt.Sprintf("%s:%d", filepath.Base(s.File), s.Line))
	}
	slices.Sort(want)
	return slices.ContainsFunc(findings, func(g report.Finding) bool {
		switch f.Class {
		case detect.Deadlock, detect.Divergence:
			return g.Class == detect.Deadlock || g.Class == detect.Divergence
		case detect.Race:
			return g.Class == detect.Race && slices.Equal(places(&g), want)
		}
		return g.Class == f.Class && len(g.Accesses) > 0 && places(&g)[0] == want[0]
	})
}

// TestSchedules replays the schedule file of every finding of programs of the corpus, and checks that the finding
// occurs again.
func TestSchedules(t *testing.T) {
	every := testsize.Of(25, 12, 1)
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	replayed, without := map[detect.Class]int{}, 0
	for i, p := range programs {
		if i%every != 0 {
			continue
		}
		in, err := session.CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		model := []string{verify.SRC11, verify.PTX}[i/every%2]
		if len(in.Launch.Launches) != 1 || in.Launch.Launches[0].Grid.Count()*in.Launch.Launches[0].Block.Count() > 4 {
			continue
		}
		r, _, err := exploreLaunch(context.Background(), session.Options{Timeout: time.Second}, in, verify.Options{Model: model, Unroll: 4, Schedules: true})
		if err != nil || r == nil {
			t.Fatalf("%s: %v", p.Path(), err)
		}
		for k := range r.Findings {
			f := &r.Findings[k]
			if f.Schedule == nil {
				without++
				t.Logf("%s: %s: no schedule:\n%s", p.Path(), f.Title, f.Graph)
				continue
			}
			text := scheduleFile(f, 1).String()
			file, err := session.ReadScheduleFile("schedule", []byte(text))
			if err != nil {
				t.Fatalf("%s: %v", p.Path(), err)
			}
			in, _ := session.CorpusInput(p)
			rep, err := session.Check(context.Background(), &session.Options{Replay: file, Timeout: 20 * time.Second}, in)
			if err != nil {
				t.Fatalf("%s: %v\n%s", p.Path(), err, text)
			}
			if len(rep.Skipped) > 0 {
				t.Errorf("%s: %+v\n%s", p.Path(), rep.Skipped, text)
			}
			replayed[f.Class]++
			if !replaysTo(f, rep.Findings) {
				t.Errorf("%s: the schedule of %s %s comes to", p.Path(), f.Title, f.Class)
				for i := range rep.Findings {
					for _, a := range rep.Findings[i].Accesses {
						file, line := session.ScheduledPlace(a.Frames)
						t.Errorf("  %s %s:%d %s", rep.Findings[i].Kind, file, line, rep.Findings[i].Detector)
					}
				}
				t.Log(text)
			}
		}
	}
	t.Logf("%v replayed, %d without schedule", replayed, without)
}
