package session

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
)

// TestBugs counts each detector's verdicts on the suite of concurrency bugs, and compares them with docs/detectors.md.
func TestBugs(t *testing.T) {
	results := suiteResults(t, "bugs")
	type verdict struct{ racy, clean, exact int } // programs
	var racy, clean int
	of := map[string]*verdict{}
	for _, d := range all.Detectors() {
		of[d.Name] = &verdict{}
	}
	for i := range results {
		p, r := results[i].Program, results[i].Report
		requireName(t, p.Name, len(p.Wants) == 0)
		for _, f := range r.Findings {
			if f.Class != detect.Race && !strings.Contains(p.Source, string(f.Kind)) {
				t.Errorf("%s: %s", p.Path(), f.Kind)
			}
		}
		races, mild := len(raceLines(p, false)), len(raceLines(p, true))
		if races == 0 && mild > 0 {
			continue // whether it is racy is a matter of reading
		}
		if races > 0 {
			racy++
		} else {
			clean++
		}
		for _, d := range r.Detectors {
			v := of[d.Name]
			switch {
			case races > 0 && d.Misses < mild:
				v.racy++
			case races == 0 && d.FalseAlarms == 0:
				v.clean++
			}
			if d.Misses+d.FalseAlarms == 0 {
				v.exact++
			} else if d.Name == "hb" {
				t.Errorf("%s: hb misses %d lines and has %d false alarms", p.Path(), d.Misses, d.FalseAlarms)
			}
		}
	}
	if racy < 66 || clean < 66 {
		t.Errorf("%d racy programs and %d clean ones", racy, clean)
	}
	n := racy + clean
	var b strings.Builder
	fmt.Fprintf(&b, "| detector | right, of %d | races seen, of %d | nothing named, of %d without | every race and no other | thesis: right, of 66 |\n|---|--:|--:|--:|--:|--:|\n", n, racy, clean)
	published := map[string]string{"barracuda": "66", "racecheck": "19"}
	for _, d := range all.Detectors() {
		v := of[d.Name]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s |\n", d.Name, v.racy+v.clean, v.racy, v.clean, v.exact, published[d.Name])
	}
	requireInDoc(t, "../../docs/detectors.md", "bugs", b.String())
}

// TestBugsUnderOtherSchedules compares the findings with the sources under other schedules, also for racy programs.
func TestBugsUnderOtherSchedules(t *testing.T) {
	sequential(t)
	t.Parallel()
	programs, err := corpus.Suite("bugs")
	if err != nil {
		t.Fatal(err)
	}
	for _, schedule := range []engine.Schedule{engine.Fair, engine.PCT} {
		underSeeds(t, schedule, 4, programs)
	}
}

// requireName checks that the name of a program follows the scheme of the suite: memory, threads, mechanism and
// mistake, or ok if there is none.
func requireName(t *testing.T, name string, right bool) {
	t.Helper()
	words := strings.Split(name, "_")
	memory := map[string]bool{"global": true, "shared": true, "both": true, "generic": true}
	threads := map[string]bool{"lanes": true, "warps": true, "blocks": true, "chain": true}
	if len(words) < 3 || !memory[words[0]] || !threads[words[1]] {
		t.Errorf("%s: a name begins with the memory and the threads", name)
	}
	if strings.HasSuffix(name, "_ok") != right {
		t.Errorf("%s: the names of programs without a mistake, and no others, end with _ok", name)
	}
}

// requireInDoc compares text with what is in a page between <!-- NAME --> and <!-- /NAME -->, or writes it there.
func requireInDoc(t *testing.T, page, name, text string) {
	t.Helper()
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), "<!-- "+name+" -->\n")
	was, tail, ends := strings.Cut(rest, "<!-- /"+name+" -->\n")
	switch {
	case !ok || !ends:
		t.Errorf("%s has no marks for %s", page, name)
	case was != text && *update:
		doc := head + "<!-- " + name + " -->\n" + text + "<!-- /" + name + " -->\n" + tail
		if err := os.WriteFile(page, []byte(doc), 0o666); err != nil {
			t.Fatal(err)
		}
	case was != text:
		t.Errorf("%s should have (go test ./internal/session -run %s -update writes it)\n%s", page, t.Name(), text)
	}
}
