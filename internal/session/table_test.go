package session

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect/all"
)

var update = flag.Bool("update", false, "rewrite testdata/detectors.txt")

// TestDetectorTable compares what each detector misses and falsely reports on each program of the corpus with
// testdata/detectors.txt: a detector that changes its mind is seen, whichever way.
func TestDetectorTable(t *testing.T) {
	programs, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("Programs of the corpus on which detectors miss races (-) or name some that are none (+); the others all judge right.\n\n")
	type sum struct{ misses, alarms int }
	found, sums := map[string]int{}, map[string]*sum{}
	for _, d := range all.Detectors() {
		sums[d.Name] = &sum{}
	}
	for _, r := range CompareCorpus(context.Background(), &Options{Jobs: runtime.GOMAXPROCS(0)}, programs) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Program.Path(), r.Err)
			continue
		}
		line := ""
		for _, d := range r.Report.Detectors {
			s := sums[d.Name]
			s.misses += d.Misses
			s.alarms += d.FalseAlarms
			if d.Misses > 0 {
				line += fmt.Sprintf(" %s-%d", d.Name, d.Misses)
			}
			if d.FalseAlarms > 0 {
				line += fmt.Sprintf(" %s+%d", d.Name, d.FalseAlarms)
			}
			if r.Program.Dir == corpus.Predict && len(r.Report.IDs(d.Name)) > 0 {
				found[d.Name]++
			}
		}
		if line != "" {
			fmt.Fprintf(&b, "%s:%s\n", r.Program.Path(), line)
		}
	}
	b.WriteString("\ndetector, lines with races missed, false alarms, programs of predict with a finding\n")
	for _, d := range all.Detectors() {
		fmt.Fprintf(&b, "%s %d %d %d\n", d.Name, sums[d.Name].misses, sums[d.Name].alarms, found[d.Name])
	}
	const name = "testdata/detectors.txt"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the table is now (go test ./internal/session -run DetectorTable -update writes it)\n%s", b.String())
	}
	if sums["hb"].alarms+sums["gwcp"].alarms > 0 {
		t.Error("a detector of ours has a false alarm")
	}
}
