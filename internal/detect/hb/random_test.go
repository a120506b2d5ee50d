package hb

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

var reasonOf = map[detect.Category]string{
	detect.VolatileRace: "volatile", detect.LockstepRace: "warp-synchronous", detect.MixedSizeRMW: "mixed-size-rmw",
	detect.SameValueRace: "same-value", detect.OneInstruction: "one-instruction", detect.CrossBlock: "cross-block",
	detect.SameBlock: "same-block", detect.AtomicWithPlain: "atomic-with-plain", detect.MixedSizeRace: "mixed-size",
	detect.ScopeRace: "atomic-scope", detect.StagedCopy: "staged-copy", detect.CrossLaunch: "cross-launch",
}

// races gives what hb finds, as the oracle writes it.
func races(b *event.Batch, m detect.Model) string {
	return racesOf(b, m, func(*Detector) {})
}

func racesOf(b *event.Batch, m detect.Model, set func(*Detector)) string {
	d := New(detect.Config{Model: m, Places: oracle.Places{}})
	set(d)
	if len(b.Events)%3 == 0 {
		d.patience = 0 // sets that are changed in place
	}
	if len(b.Events)%5 == 0 {
		d.mem.notebook.ones = 0
	}
	d.manyLanes = len(b.Events) % 2 * manyLanes        // tallies of few lanes too
	d.mem.forms.few = len(b.Events) / 2 % 2 * minForms // forms of no line are looked for all the time
	if len(b.Events)%11 < 4 {
		d.mem.forms.steps = make([]step, 1) // steps displace others and get more room
	}
	if len(b.Events)%7 == 0 {
		d.linger = 1
	}
	d.Events(b)
	d.performAll()
	names := make([]string, len(d.hostPlaces))
	for n, i := range d.hostPlaces {
		names[i] = "host:" + n
	}
	name := func(p uint64) string {
		if p >= hostPlaceBase {
			return names[p-hostPlaceBase]
		}
		return fmt.Sprint("p", p)
	}
	var out []string
	for _, f := range d.findings.Totals() {
		x, y := name(f.A), name(f.B)
		r := oracle.Race{A: min(x, y), B: max(x, y), Why: reasonOf[f.Category], Warning: f.Category.Severity() == detect.Warning,
			Count: f.Count, Addresses: f.Addresses}
		out = append(out, r.String())
	}
	return sorted(out)
}

func sorted(s []string) string {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return strings.Join(s, "\n")
}

func want(b *event.Batch, m detect.Model) string {
	var out []string
	for _, r := range oracle.Find(b, oracle.Model(m)) {
		out = append(out, r.String())
	}
	return sorted(out)
}

func compareWithOracle(t *testing.T, b *event.Batch, m detect.Model, name string) (races_ string) {
	t.Helper()
	got, exp := races(b, m), want(b, m)
	if got == exp {
		return got
	}
	small := oracle.Shrink(b, func(b *event.Batch) bool { return races(b, m) != want(b, m) })
	t.Fatalf("%s, model %d: hb differs from the oracle\n%s\nhb:\n%s\n\noracle:\n%s", name, m, oracle.Print(small), races(small, m), want(small, m))
	return ""
}

// TestRandomPrograms compares hb with the brute-force oracle.
func TestRandomPrograms(t *testing.T) {
	n := 24000
	if !testsize.Long() {
		n = 2000
	}
	kinds := map[string]int{}
	clean := 0
	for seed := 0; seed < n; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		b := oracle.Random(rng.IntN)
		if seed%3 == 0 {
			b = oracle.Remember(b)
		}
		m := detect.ModelCUDA
		switch seed % 8 {
		case 6:
			m = detect.ModelPTX
		case 7:
			m = detect.ModelHRF
		}
		got := compareWithOracle(t, b, m, fmt.Sprint("seed ", seed))
		if got == "" {
			clean++
		}
		for _, why := range reasonOf {
			if strings.Contains(got, why) {
				kinds[why]++
			}
		}
	}
	t.Logf("%d programs, %d without a race, programs with a race by reason: %v", n, clean, kinds)
	for _, why := range reasonOf {
		if kinds[why] == 0 {
			t.Errorf("no program has a race of reason %s", why)
		}
	}
}

// FuzzAgainstOracle lets the fuzzer choose the program.
func FuzzAgainstOracle(f *testing.F) {
	f.Add([]byte("fencepost"), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, model uint8) {
		i := 0
		b := oracle.Random(func(n int) int {
			i++
			if i > len(data) {
				return int(uint32(i)*2654435761>>16) % n
			}
			return int(data[i-1]) % n
		})
		compareWithOracle(t, b, detect.Model(model%3), "fuzz")
	})
}
