package simulate

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/oracle"
	"fencepost.dev/fencepost/internal/hw/machine"
	"fencepost.dev/fencepost/internal/hw/programs"
)

// TestDesignsAgree compares the racy variables of every design with the definition.
func TestDesignsAgree(t *testing.T) {
	for seed := range 300 {
		events := oracle.Random(rand.New(rand.NewPCG(uint64(seed), 44)))
		want := len(oracle.First(events, oracle.Races(events, oracle.HappensBefore(events))))
		r, err := Run("random", machine.Thesis(), Designs(), func(out func([]cpu.Event)) error { out(events); return nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Designs {
			if d.RacyVariables != want {
				t.Fatalf("trace %d: %s finds %d racy variables, and there are %d", seed, d.Design, d.RacyVariables, want)
			}
			if d.Counts.Events != uint64(len(events)) || d.Counts.Instructions != r.Base.Instructions {
				t.Fatalf("%s has run %+v, without race detection it is %+v", d.Design, d.Counts, r.Base)
			}
		}
	}
}

// TestShapes checks on the programs what section 4.4 observes on its own: parsnip is faster than radish, type safety
// makes radish faster, and the variants of parsnip are slower on average. It also checks that the sums of parsnip's
// counts agree.
func TestShapes(t *testing.T) {
	var runs []*Result
	for _, p := range programs.List() {
		r, err := Run(p.Name, machine.Thesis(), Designs(), func(out func([]cpu.Event)) error { p.Events(16, 300_000, out); return nil })
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
		for _, d := range r.Designs {
			if d.Races != 0 || d.Slowdown < 1 {
				t.Errorf("%s, %s: %d races, %.2f times", p.Name, d.Design, d.Races, d.Slowdown)
			}
			if q := d.Parsnip; q != nil {
				s, o := q.Resolved, q.Overhead
				if sum := s.Capability + s.Local + s.Remote + s.Buffer + s.Software + s.Missing; sum != d.Counts.Accesses {
					t.Errorf("%s, %s: %d checks are resolved, of %d", p.Name, d.Design, sum, d.Counts.Accesses)
				}
				if s.Software+s.Missing != q.Checks {
					t.Errorf("%s, %s: %d checks by software, %+v", p.Name, d.Design, q.Checks, s)
				}
				if o.MissingLine+o.SoftwareCheck < 500*q.Checks {
					t.Errorf("%s, %s: software costs %+v", p.Name, d.Design, o)
				}
			}
		}
	}
	var out bytes.Buffer
	if err := Write(&out, runs); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"figure 4.7", "figure 4.9", "figure 4.10", "figure 4.11", "table 4.3", "figure 4.1)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %s:\n%s", want, &out)
		}
	}
	t.Logf("\n%s", &out)
}

func TestErrors(t *testing.T) {
	events := []cpu.Event{{Op: cpu.Write}, {Op: cpu.Write, Thread: 63}, {Op: cpu.Write, Object: 1}}
	broken := errors.New("broken")
	r, err := Run("x", machine.Thesis(), Designs()[:2], func(out func([]cpu.Event)) error { out(events); return broken })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "parsnip: the trace has more than 63 threads") {
		t.Errorf("the error is %v", err)
	}
	if r.Designs[0].Counts.Events != 1 || r.Designs[1].Counts.Events != 3 {
		t.Errorf("run are %d and %d events", r.Designs[0].Counts.Events, r.Designs[1].Counts.Events)
	}
	events = []cpu.Event{{Op: cpu.Write}, {Op: cpu.Write, Object: machine.MaxVariables}}
	r, err = Run("x", machine.Thesis(), Designs()[:2], func(out func([]cpu.Event)) error { out(events); return nil })
	if err == nil || r.Base.Events != 1 || r.Designs[1].Counts.Events != 1 {
		t.Errorf("a trace of too many variables: %v, %+v", err, r)
	}
}
