package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// checkRelations compares the happens-before of the search with that of the model on every execution at which the
// search ends, and the races that it finds with the definitions of section 2.1.
func checkRelations(t *testing.T, src string, incl model.Inclusion) (races int) {
	t.Helper()
	test, err := litmus.Parse("random.litmus", src, litmus.Options{Unroll: 4})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	type race struct {
		a, b int32
		kind explore.ErrorKind
	}
	found, want := map[race]bool{}, map[race]bool{}
	name := func(kind explore.ErrorKind, a, b *explore.Op) race {
		return race{min(a.Pos, b.Pos), max(a.Pos, b.Pos), kind}
	}
	o := explore.Options{Incl: incl, Races: true}
	o.Found = func(e explore.Error, x explore.Execution) bool {
		if e.Kind == explore.DataRace || e.Kind == explore.HeterogeneousRace {
			found[name(e.Kind, x.Step(e.A), x.Step(e.B))] = true
		}
		return true
	}
	o.Leaf = func(x explore.Execution, end explore.Ending) {
		m, locs := modelExecution(x, x.Events())
		src11 := model.SRC11{Incl: incl}
		if !src11.Consistent(m) {
			t.Fatalf("an execution that is not consistent:\n%s\n%s", identity(x, test.Locations()), src)
		}
		hb, events := src11.Relations(m).HB, x.Events()
		for a := range events {
			for b := range events {
				if got, ok := x.Before(a, b), hb.Has(locs+a, locs+b); got != ok {
					t.Fatalf("event %d happens before %d: %v, want %v\n%s\n%s", a, b, got, ok, identity(x, test.Locations()), src)
				}
				ea, eb := m.E[locs+a], m.E[locs+b]
				access := ea.Kind <= model.W && eb.Kind <= model.W && (ea.Kind == model.W || eb.Kind == model.W)
				if !access || ea.Loc != eb.Loc || ea.Thread == eb.Thread || hb.Has(locs+a, locs+b) || hb.Has(locs+b, locs+a) {
					continue
				}
				if !ea.Order.Atomic() || !eb.Order.Atomic() {
					want[name(explore.DataRace, &events[a].Op, &events[b].Op)] = true
				} else if !src11.Includes(ea, eb) {
					want[name(explore.HeterogeneousRace, &events[a].Op, &events[b].Op)] = true
				}
			}
		}
	}
	explore.Explore(context.Background(), test, o)
	if strings.Contains(src, "while") {
		return 0 // the search gives up executions in which a thread waits
	}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Fatalf("races %v, want %v\n%s", found, want, src)
	}
	return len(want)
}

func TestRelations(t *testing.T) {
	n := testsize.Of(1000, 1000, 20000)
	r := rand.New(rand.NewPCG(3, 0))
	races := 0
	for i := range n {
		races += checkRelations(t, randomProgram(r, 3+r.IntN(6)), model.Inclusion(i%2))
	}
	// The write of b's cas races with the first read of a only in an execution that is reached by a revisit.
	checkRelations(t, `C race
int y;
thread a @ cta 1 { int r0 = load(y, rlx, gpu); y = 1; int r3 = cas(y, 1, 2, sc, cluster); }
thread b @ cta 0 { int r5 = cas(y, 1, 2, acq, cta); }`, model.Each)
	for _, src := range clauses {
		checkRelations(t, src, model.Each)
	}
	if races < n/3 {
		t.Errorf("only %d races in %d programs", races, n)
	}
}
