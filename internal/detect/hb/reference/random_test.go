package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// reasons are the oracle's names of categories.
var reasons = map[detect.Category]string{
	detect.VolatileRace: "volatile", detect.LockstepRace: "warp-synchronous", detect.MixedSizeRMW: "mixed-size-rmw",
	detect.SameValueRace: "same-value", detect.OneInstruction: "one-instruction", detect.CrossBlock: "cross-block",
	detect.SameBlock: "same-block", detect.AtomicWithPlain: "atomic-with-plain", detect.MixedSizeRace: "mixed-size",
	detect.ScopeRace: "atomic-scope", detect.StagedCopy: "staged-copy", detect.CrossLaunch: "cross-launch",
}

// found gives what the detector finds, as the oracle writes it.
func found(b *event.Batch, m detect.Model, fast bool) string {
	d := New(detect.Config{Model: m, Places: oracle.Places{}}, "reference", fast)
	if h, ok := d.history.(*history.Fast); ok && len(b.Events)%2 == 0 {
		h.SweepFrom(1)
	}
	d.Events(b)
	name := func(p uint64) string {
		if p >= HostPlaces {
			return "host:" + d.HostName(p)
		}
		return fmt.Sprint("p", p)
	}
	var out []string
	for _, x := range d.Totals() {
		p, q := name(x.A), name(x.B)
		r := oracle.Race{A: min(p, q), B: max(p, q), Why: reasons[x.Category], Warning: x.Category.Severity() == detect.Warning, Count: x.Count, Addresses: x.Addresses}
		out = append(out, r.String())
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func want(b *event.Batch, m detect.Model) string {
	var out []string
	for _, r := range oracle.Find(b, oracle.Model(m)) {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestRandomPrograms compares the reference with the brute-force oracle: races, their gravest category, counts and bytes.
func TestRandomPrograms(t *testing.T) {
	n := 12000
	if !testsize.Long() {
		n = 1500
	}
	kinds := map[string]int{}
	makers := []func(func(int) int) *event.Batch{oracle.Random, oracle.Locked, oracle.Buckets, oracle.Random}
	models := []detect.Model{detect.ModelCUDA, detect.ModelCUDA, detect.ModelPTX, detect.ModelHRF}
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 17))
		b := makers[seed/4%4](rng.IntN)
		if seed%3 == 0 {
			b = oracle.Remember(b)
		}
		m := models[seed%4]
		exp := want(b, m)
		for _, fast := range []bool{false, true} {
			if got := found(b, m, fast); got != exp {
				small := oracle.Shrink(b, func(b *event.Batch) bool { return found(b, m, fast) != want(b, m) })
				t.Fatalf("seed %d, model %d, fast %t: the detector differs from the oracle\n%s\ndetector:\n%s\n\noracle:\n%s", seed, m, fast, oracle.Print(small), found(small, m, fast), want(small, m))
			}
		}
		for _, why := range reasons {
			if strings.Contains(exp, why) {
				kinds[why]++
			}
		}
	}
	for _, why := range reasons {
		if kinds[why] == 0 {
			t.Errorf("no program has a race of reason %s", why)
		}
	}
}
