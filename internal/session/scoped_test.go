package session

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect/all"
)

// score is how a detector does on one of the two suites of scoped races.
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

// right says that every race was found and nothing else.
func (s *score) right() bool { return s.found == s.racy && s.alarmed == 0 }

// TestScoped holds the suites of scoped races to tables I, II and VI of the ScoRD paper: as many programs of each class and
// application, of which hb and scord find every racy one and no other. What scord does not judge like the memory model stands
// apart, as beyond_NAME. The page on comparing says how all detectors do.
func TestScoped(t *testing.T) {
	classes, apps := map[string]score{}, map[string]int{}
	micro, app := map[string]*score{}, map[string]*score{}
	for _, d := range all.Detectors() {
		micro[d.Name], app[d.Name] = &score{}, &score{}
	}
	for _, suite := range []string{"scoped", "scopedapps"} {
		results := suiteResults(t, suite)
		for i := range results {
			p := results[i].Program
			class, _, _ := strings.Cut(p.Name, "_")
			scores := micro
			if suite == "scopedapps" {
				class, _, _ = strings.Cut(p.Name, "@")
				scores = app
				apps[class] += min(p.Plant, 1)
			}
			for _, d := range results[i].Report.Detectors {
				var one score
				one.add(p, d.Misses, d.FalseAlarms)
				switch {
				case d.Name == "hb" && d.Misses+d.FalseAlarms > 0, d.Name == "gwcp" && d.FalseAlarms > 0:
					t.Errorf("%s: %s misses %d lines and has %d false alarms", p.Path(), d.Name, d.Misses, d.FalseAlarms)
				case d.Name == "scord" && one.right() == (class == "beyond"):
					t.Errorf("%s: scord misses %d lines and has %d false alarms", p.Path(), d.Misses, d.FalseAlarms)
				}
				if class == "beyond" {
					continue
				}
				scores[d.Name].add(p, d.Misses, d.FalseAlarms)
				if suite == "scoped" && d.Name == "scord" {
					c := classes[class]
					c.add(p, d.Misses, d.FalseAlarms)
					classes[class] = c
				}
			}
		}
	}
	if want := (map[string]score{"fence": {2, 2, 4, 0}, "atomic": {4, 4, 5, 0}, "lock": {12, 12, 5, 0}}); !maps.Equal(classes, want) {
		t.Errorf("scord by class: %v, want %v", classes, want)
	}
	if want := (map[string]int{"matmul": 4, "reduction": 2, "rule110": 2, "colouring": 6, "connectivity": 5, "convolution": 1, "treesearch": 6}); !maps.Equal(apps, want) {
		t.Errorf("planted races: %v, want %v", apps, want)
	}
	page, err := os.ReadFile("../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Detectors() {
		m, a := micro[d.Name], app[d.Name]
		row := fmt.Sprintf("| %s | %d of %d | %d of %d | %d of %d | %d of %d |\n", d.Name, m.found, m.racy, m.alarmed, m.clean, a.found, a.racy, a.alarmed, a.clean)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/compare.md does not say\n%s", row)
		}
	}
}
