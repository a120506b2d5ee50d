package session

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/report"
)

// score is the result of a detector on one of the two suites of scoped races.
type score struct{ racy, found, clean, alarmed int }

func (s *score) add(p *corpus.Program, misses, alarms int) {
	if races := len(raceLines(p, true)); races == 0 {
		s.clean++
	} else {
		s.racy++
		if misses < races {
			s.found++
		}
	}
	if alarms > 0 && len(p.Wants) == 0 {
		s.alarmed++
	}
}

// right reports whether every race was found and nothing else.
func (s *score) right() bool { return s.found == s.racy && s.alarmed == 0 }

// scopedScores are the counts of TestScoped.
type scopedScores struct {
	micro, apps map[string]*score // by detector
	classes     map[string]*score // of scord, by class
	plants      map[string]int    // by application
}

// of returns the score of a key, initially empty.
func of(scores map[string]*score, key string) *score {
	if scores[key] == nil {
		scores[key] = &score{}
	}
	return scores[key]
}

// TestScoped compares the suites of scoped races with tables I, II and VI of the ScoRD paper: the number of programs of
// each class and application, of which hb and scord find exactly the racy ones. Programs that scord judges unlike the
// memory model are listed separately as beyond_NAME. The page docs/compare.md has the results of all detectors.
func TestScoped(t *testing.T) {
	sequential(t)
	s := scopedScores{map[string]*score{}, map[string]*score{}, map[string]*score{}, map[string]int{}}
	for _, suite := range []string{"scoped", "scopedapps"} {
		for _, r := range suiteResults(t, suite) {
			for _, d := range r.Report.Detectors {
				s.add(t, r.Program, d)
			}
		}
	}
	classes := map[string]score{}
	for class, c := range s.classes {
		classes[class] = *c
	}
	if want := (map[string]score{"fence": {2, 2, 4, 0}, "atomic": {4, 4, 5, 0}, "lock": {12, 12, 5, 0}}); !maps.Equal(classes, want) {
		t.Errorf("scord by class: %v, want %v", classes, want)
	}
	if want := (map[string]int{"matmul": 4, "reduction": 2, "rule110": 2, "colouring": 6, "connectivity": 5, "convolution": 1, "treesearch": 6}); !maps.Equal(s.plants, want) {
		t.Errorf("planted races: %v, want %v", s.plants, want)
	}
	page, err := os.ReadFile("../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Detectors() {
		m, a := of(s.micro, d.Name), of(s.apps, d.Name)
		row := fmt.Sprintf("| %s | %d of %d | %d of %d | %d of %d | %d of %d |\n", d.Name, m.found, m.racy, m.alarmed, m.clean, a.found, a.racy, a.alarmed, a.clean)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/compare.md does not say\n%s", row)
		}
	}
}

// byTheLetter is the program that ScoRD judges unlike the memory model only by the letter of its tables.
const byTheLetter = "beyond_two_readers"

// TestScopedLetter checks that with flags that are never reset, scord also finds everything in tables I, II and VI. Its
// false alarms are two readers after one fence.
func TestScopedLetter(t *testing.T) {
	sequential(t)
	spec, err := detect.Choose(all.Detectors(), "scord:reset=off")
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range []string{"scoped", "scopedapps"} {
		programs, err := corpus.Suite(suite)
		if err != nil {
			t.Fatal(err)
		}
		o := &Options{Jobs: runtime.GOMAXPROCS(0), Detectors: []detect.Spec{spec}}
		for _, r := range CompareCorpus(context.Background(), o, programs) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			var s score
			s.add(r.Program, r.Report.Detectors[0].Misses, r.Report.Detectors[0].FalseAlarms)
			if s.right() == strings.HasPrefix(r.Program.Name, "beyond_") {
				t.Errorf("%s: %+v", r.Program.Path(), s)
			}
		}
	}
}

// add counts a detector's verdict on a program, and checks the promised verdicts of hb, gwcp and scord.
func (s *scopedScores) add(t *testing.T, p *corpus.Program, d report.Detector) {
	class, _, _ := strings.Cut(p.Name, "_")
	var one score
	one.add(p, d.Misses, d.FalseAlarms)
	switch {
	case d.Name == "hb" && d.Misses+d.FalseAlarms > 0, d.Name == "gwcp" && d.FalseAlarms > 0, d.Name == "scord" && one.right() == (class == "beyond" && p.Name != byTheLetter):
		t.Errorf("%s: %s misses %d lines and has %d false alarms", p.Path(), d.Name, d.Misses, d.FalseAlarms)
	}
	switch {
	case class == "beyond":
	case p.Dir == "scopedapps":
		of(s.apps, d.Name).add(p, d.Misses, d.FalseAlarms)
		if app, _, planted := strings.Cut(p.Name, "@"); planted && d.Name == "hb" {
			s.plants[app]++
		}
	default:
		of(s.micro, d.Name).add(p, d.Misses, d.FalseAlarms)
		if d.Name == "scord" {
			of(s.classes, class).add(p, d.Misses, d.FalseAlarms)
		}
	}
}
