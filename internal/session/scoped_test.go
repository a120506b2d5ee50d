package session

import (
	"maps"
	"strings"
	"testing"
)

// TestScoped holds the suite of scoped races to table I of the ScoRD paper: as many programs of each class, of which scord
// finds every racy one and no other. What it does not judge like the memory model stands apart, as beyond_NAME.
func TestScoped(t *testing.T) {
	type counts struct{ racy, clean int }
	want := map[string]counts{"fence": {2, 4}, "atomic": {4, 5}, "lock": {12, 5}}
	got := map[string]counts{}
	results := suiteResults(t, "scoped")
	for i := range results {
		p, r := results[i].Program, results[i].Report
		class, _, _ := strings.Cut(p.Name, "_")
		missing, unexpected := 0, 0
		for _, d := range r.Detectors {
			switch {
			case d.Name == "hb" && d.Misses+d.FalseAlarms > 0:
				t.Errorf("%s: hb misses %d lines and has %d false alarms", p.Path(), d.Misses, d.FalseAlarms)
			case d.Name == "scord":
				missing, unexpected = d.Misses, d.FalseAlarms
			}
		}
		races, c := len(raceLines(p, true)), got[class]
		wrong := unexpected > 0 || races > 0 && missing == races
		switch {
		case class == "beyond":
			if !wrong {
				t.Errorf("%s: scord is right; then it is not beyond it", p.Path())
			}
			continue
		case wrong:
			t.Errorf("%s: scord misses %d of %d lines and has %d false alarms", p.Path(), missing, races, unexpected)
		}
		if races > 0 {
			c.racy++
		} else {
			c.clean++
		}
		got[class] = c
	}
	if !maps.Equal(got, want) {
		t.Errorf("racy and clean programs by class: %v, want %v", got, want)
	}
}

// TestScopedApps holds the seven applications to table II of the ScoRD paper: as many planted races in each, every one of them
// found by hb and by scord, and nothing named where nothing is planted.
func TestScopedApps(t *testing.T) {
	want := map[string]int{"matmul": 4, "reduction": 2, "rule110": 2, "colouring": 6, "connectivity": 5, "convolution": 1, "treesearch": 6}
	got := map[string]int{}
	results := suiteResults(t, "scopedapps")
	for i := range results {
		p, r := results[i].Program, results[i].Report
		for _, d := range r.Detectors {
			switch {
			case d.Name == "hb" && d.Misses > 0:
				t.Errorf("%s: hb misses %d lines", p.Path(), d.Misses)
			case (d.Name == "hb" || d.Name == "gwcp" || d.Name == "scord") && d.FalseAlarms > 0:
				t.Errorf("%s: %s has %d false alarms", p.Path(), d.Name, d.FalseAlarms)
			case d.Name == "scord" && p.Plant > 0 && d.Misses == len(raceLines(p, true)):
				t.Errorf("%s: scord misses it", p.Path())
			}
		}
		if p.Plant > 0 {
			name, _, _ := strings.Cut(p.Name, "@")
			got[name]++
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("planted races: %v, want %v", got, want)
	}
}
