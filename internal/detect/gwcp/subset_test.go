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

// TestNoFalseRace: where no locks are inferred, what races is a race of the memory model, and nothing is predicted.
func TestNoFalseRace(t *testing.T) {
	rounds := 4000
	if testing.Short() {
		rounds = 500
	}
	races := 0
	for seed := 0; seed < rounds; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		b := oracle.Random(r.IntN)
		if len(b.Events) > 150 {
			continue
		}
		b.Events = slices.DeleteFunc(b.Events, func(e event.Event) bool { return e.Kind == event.Host })
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
			if p := fmt.Sprintf("p%d p%d", f.Accesses[0].Place, f.Accesses[1].Place); !want[p] || f.Predicted {
				t.Fatalf("seed %d: %s, predicted %v: %s\n%s", seed, p, f.Predicted, f.Message, oracle.Print(b))
			}
		}
	}
	if races < rounds/4 {
		t.Errorf("only %d races", races)
	}
}
