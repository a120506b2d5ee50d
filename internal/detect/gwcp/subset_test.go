package gwcp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// TestNoFalseRace checks that races of the observed order are races of the memory model, and that nothing is predicted
// without locks.
func TestNoFalseRace(t *testing.T) {
	t.Run("without locks", func(t *testing.T) { noFalseRace(t, oracle.Random, 0, 2500, false) })
	t.Run("with locks", func(t *testing.T) { noFalseRace(t, oracle.Random, 0, 2500, true) })
	// Seed 2440 has elements of vectors, and 6276 an exchange whose result is not used.
	t.Run("early", func(t *testing.T) { noFalseRace(t, oracle.Early, 1500, 1000, false) })
	t.Run("later", func(t *testing.T) { noFalseRace(t, oracle.Random, 6000, 500, false) })
}

func noFalseRace(t *testing.T, program func(func(int) int) *event.Batch, first, rounds int, locks bool) {
	if testing.Short() {
		rounds /= 5
	}
	races := 0
	for seed := first; seed < first+rounds; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		b := program(r.IntN)
		if len(b.Events) > 150 {
			continue
		}
		b.Events = slices.DeleteFunc(b.Events, func(e event.Event) bool { return e.Kind == event.Host })
		for i := range b.Events {
			if e := &b.Events[i]; locks && e.Kind <= event.Fence && e.Scope != event.NoScope {
				e.RMW, e.Scope = event.RMW(r.IntN(3)), event.ScopeGPU
			}
		}
		d := New(detect.Config{})
		d.Events(b)
		found := d.Findings()
		if len(found) == 0 {
			continue
		}
		want := map[string]bool{}
		for _, x := range oracle.Find(b, oracle.CUDA) {
			want[x.A+" "+x.B] = true
			want[x.B+" "+x.A] = true
		}
		for _, f := range found {
			races++
			if p := fmt.Sprintf("p%d p%d", f.Accesses[0].Place, f.Accesses[1].Place); !want[p] && !f.Predicted || f.Predicted && !locks {
				t.Fatalf("seed %d: %s, predicted %v: %s\n%s", seed, p, f.Predicted, f.Message, oracle.Print(b))
			}
		}
	}
	if races < rounds/4 {
		t.Errorf("only %d races", races)
	}
}
