package hb

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

// histories are the values of the option history.
var histories = Spec.Options[0].Values

// reasonOf has the oracle's names of categories.
var reasonOf = map[detect.Category]string{
	detect.VolatileRace: "volatile", detect.LockstepRace: "warp-synchronous", detect.MixedSizeRMW: "mixed-size-rmw",
	detect.SameValueRace: "same-value", detect.OneInstruction: "one-instruction", detect.LostUpdate: "lost-update", detect.CrossBlock: "cross-block",
	detect.SameBlock: "same-block", detect.AtomicWithPlain: "atomic-with-plain", detect.MixedSizeRace: "mixed-size",
	detect.ScopeRace: "atomic-scope", detect.StagedCopy: "staged-copy", detect.HostThreads: "host-threads", detect.CrossLaunch: "cross-launch",
	detect.CrossDevice: "cross-device", detect.CopyPending: "copy", detect.NoProxyFence: "proxy", detect.CopyProxyFence: "copy-proxy",
}

// races returns what hb finds with a history, in the oracle's format. Half of the runs with the interned history sweep
// at the beginning of each launch, and two thirds limit the number of deferred loads.
func races(b *event.Batch, m detect.Model, kept string) string {
	d := New(detect.Config{Model: m, Places: oracle.Places{}, Options: map[string]string{"history": kept}})
	if h, ok := d.history.(*history.Fast); ok {
		if len(b.Events)%2 == 0 {
			h.SweepFrom(1)
		}
		switch len(b.Events) % 3 {
		case 0:
			h.PutOffMost(4, 1)
		case 1:
			h.PutOffMost(100, 2)
		}
	}
	d.Events(b)
	name := func(p uint64) string {
		if p >= hostPlaces {
			return "host:" + d.hosts[p-hostPlaces]
		}
		return fmt.Sprint("p", p)
	}
	var out []string
	for _, x := range d.totals() {
		p, q := name(x.A), name(x.B)
		r := oracle.Race{A: min(p, q), B: max(p, q), Why: reasonOf[x.Category], Warning: x.Category.Severity() == detect.Warning, Count: x.Count,
			Addresses: x.Addresses}
		out = append(out, r.String())
	}
	return sorted(out)
}

func sorted(s []string) string {
	slices.Sort(s)
	return strings.Join(s, "\n")
}

func want(b *event.Batch, m detect.Model) string {
	var out []string
	for _, r := range oracle.Find(b, oracle.Model(m)) {
		out = append(out, r.String())
	}
	return sorted(out)
}

// compareWithOracle compares hb with each history to the brute-force oracle, and gives what they find.
func compareWithOracle(t *testing.T, b *event.Batch, m detect.Model, name string) string {
	t.Helper()
	exp := want(b, m)
	for _, kept := range histories {
		if races(b, m, kept) == exp {
			continue
		}
		small := oracle.Shrink(b, func(b *event.Batch) bool { return races(b, m, kept) != want(b, m) })
		t.Fatalf("%s, model %d, history %s: hb differs from the oracle\n%s\nhb:\n%s\n\noracle:\n%s", name, m, kept, oracle.Print(small),
			races(small, m, kept), want(small, m))
	}
	return exp
}

// compareHistories compares the interned history to the plain one on programs that are too large for the oracle, and
// gives what they find.
func compareHistories(t *testing.T, b *event.Batch, name string) string {
	t.Helper()
	found := races(b, detect.ModelCUDA, "interned")
	if found != races(b, detect.ModelCUDA, "plain") {
		small := oracle.Shrink(b, func(b *event.Batch) bool {
			return races(b, detect.ModelCUDA, "interned") != races(b, detect.ModelCUDA, "plain")
		})
		t.Fatalf("%s: the histories differ\n%s\ninterned:\n%s\n\nplain:\n%s", name, oracle.Print(small), races(small, detect.ModelCUDA, "interned"),
			races(small, detect.ModelCUDA, "plain"))
	}
	return found
}

// TestRandomPrograms compares hb with the brute-force oracle: races, their gravest category, counts and bytes.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	agree(t, "random", 1, 10000, func(pick func(int) int) *event.Batch {
		b := oracle.Random(pick)
		if pick(3) == 0 {
			b = oracle.Remember(b)
		}
		return b
	}, "volatile", "warp-synchronous", "mixed-size-rmw", "same-value", "one-instruction", "lost-update", "cross-block", "same-block", "atomic-with-plain",
		"mixed-size", "atomic-scope", "staged-copy", "cross-launch")
}

// TestProgrammatic compares programs whose launches may begin before the previous launch has ended.
func TestProgrammatic(t *testing.T) {
	t.Parallel()
	agree(t, "programmatic", 25, 3000, oracle.Early, "cross-launch", "cross-block", "same-block")
}

// TestNested compares programs whose threads put operations into streams of the device.
func TestNested(t *testing.T) {
	t.Parallel()
	agree(t, "nested", 55, 4000, oracle.Nested, "cross-launch", "cross-block", "same-block")
	agree(t, "nested and host threads", 56, 600, func(pick func(int) int) *event.Batch { return oracle.Threads(oracle.Nested(pick), pick) }, "host-threads")
	agree(t, "nested, remembered", 57, 1000, func(pick func(int) int) *event.Batch { return oracle.Remember(oracle.Nested(pick)) }, "cross-launch")
}

// TestHostThreads compares programs in which some of the order of agents is only assumed.
func TestHostThreads(t *testing.T) {
	t.Parallel()
	for i, program := range []func(func(int) int) *event.Batch{oracle.Random, oracle.Scatter, succession, inputs, updates} {
		agree(t, "host threads", 30+uint64(i), 600, func(pick func(int) int) *event.Batch { return oracle.Threads(program(pick), pick) },
			"host-threads", "cross-launch")
	}
	agree(t, "host threads that copy", 36, 600, func(pick func(int) int) *event.Batch {
		return oracle.Threads(oracle.Copying(oracle.Random(pick), pick), pick)
	}, "host-threads", "cross-launch")
}

// TestDevices compares programs with launches on several devices, between which only scope sys orders.
func TestDevices(t *testing.T) {
	t.Parallel()
	agree(t, "exchanges", 54, 4000, oracle.Exchanges, "cross-device", "cross-launch", "atomic-scope")
	for i, program := range []func(func(int) int) *event.Batch{oracle.Random, oracle.Scatter, oracle.Counted, succession, inputs, updates, oracle.Early,
		func(pick func(int) int) *event.Batch { return oracle.Remember(updates(pick)) }} {
		agree(t, fmt.Sprint("devices ", i), 40+uint64(i), 400, func(pick func(int) int) *event.Batch { return oracle.Devices(program(pick), pick) },
			"cross-device")
	}
	agree(t, "devices that copy", 50, 400, func(pick func(int) int) *event.Batch {
		return oracle.Devices(oracle.Copying(oracle.Random(pick), pick), pick)
	}, "copy", "cross-device")
	agree(t, "devices that copy in bulk", 51, 400, func(pick func(int) int) *event.Batch {
		return oracle.Devices(oracle.Bulking(oracle.Random(pick), pick), pick)
	}, "copy", "cross-device")
	agree(t, "devices with clusters", 52, 200, func(pick func(int) int) *event.Batch { return oracle.Devices(oracle.Clusters(pick), pick) }, "cross-device")
	agree(t, "devices and host threads", 53, 400, func(pick func(int) int) *event.Batch {
		return oracle.Devices(oracle.Threads(oracle.Random(pick), pick), pick)
	}, "host-threads", "cross-device", "cross-launch")
}

// TestCopies compares programs with asynchronous copies.
func TestCopies(t *testing.T) {
	t.Parallel()
	agree(t, "copies", 21, 10000, func(pick func(int) int) *event.Batch { return oracle.Copying(oracle.Random(pick), pick) }, "copy", "same-block",
		"cross-block", "cross-launch", "one-instruction", "warp-synchronous")
}

// TestBulks compares programs with bulk copies.
func TestBulks(t *testing.T) {
	t.Parallel()
	agree(t, "bulks", 22, 10000, func(pick func(int) int) *event.Batch { return oracle.Bulking(oracle.Random(pick), pick) }, "copy", "proxy", "same-block",
		"cross-block", "cross-launch", "warp-synchronous")
}

// TestClusters compares programs of clusters with copies of both kinds, matrix operations and proxy fences.
func TestClusters(t *testing.T) {
	t.Parallel()
	agree(t, "clusters", 26, 10000, oracle.Clusters, "copy", "proxy", "copy-proxy", "same-block", "cross-block", "cross-launch", "warp-synchronous", "atomic-scope")
}

// TestScattered compares programs with irregular addresses.
func TestScattered(t *testing.T) {
	t.Parallel()
	agree(t, "scatter", 3, 3000, oracle.Scatter, "atomic-with-plain", "atomic-scope", "cross-launch", "same-block", "mixed-size")
}

// TestCounted compares programs whose warps count together.
func TestCounted(t *testing.T) {
	t.Parallel()
	agree(t, "counted", 5, 3000, oracle.Counted, "atomic-with-plain", "atomic-scope", "cross-launch")
}

// TestLocked compares programs whose accesses are mostly ordered, one thread after the other.
func TestLocked(t *testing.T) {
	t.Parallel()
	agree(t, "locked", 4, 3000, oracle.Locked, "atomic-with-plain", "atomic-scope", "cross-launch", "same-block", "cross-block", "same-value",
		"warp-synchronous")
	agree(t, "buckets", 6, 3000, oracle.Buckets, "atomic-with-plain", "atomic-scope", "cross-launch", "same-block", "cross-block", "same-value",
		"warp-synchronous")
	remembered := func(pick func(int) int) *event.Batch { return oracle.Remember(oracle.Buckets(pick)) }
	agree(t, "remembered buckets", 7, 1500, remembered, "atomic-with-plain", "cross-block", "same-value")
}

// TestChanging compares programs in which an instruction changes its behaviour in one respect.
func TestChanging(t *testing.T) { agree(t, "changing", 17, 750, changing, "cross-block") }

// TestHandedOn compares programs whose threads hand words on. If the last access of a word happens after all others,
// the others need not be examined, and some need not be kept. Otherwise they must be.
func TestHandedOn(t *testing.T) { agree(t, "handed on", 18, 3000, handed, "cross-block") }

// TestReaders compares programs whose warps read the same lines: a write races with each read that does not happen
// before it.
func TestReaders(t *testing.T) {
	t.Parallel()
	agree(t, "readers", 15, 300, readers)
	agree(t, "divergent readers", 16, 2000, divergent)
}

// TestSuccession compares programs in which later launches follow earlier ones, or know some of their threads.
func TestSuccession(t *testing.T) {
	t.Parallel()
	agree(t, "succession", 19, 2000, succession, "cross-launch", "cross-block", "same-block")
	agree(t, "remembered succession", 20, 2000, func(pick func(int) int) *event.Batch { return oracle.Remember(succession(pick)) }, "cross-launch")
}

// TestInputs compares programs whose launches load from memory that other launches, or the host, write.
func TestInputs(t *testing.T) {
	t.Parallel()
	agree(t, "inputs", 21, 1200, inputs, "cross-launch", "cross-block", "same-block")
}

// TestUpdates compares programs whose launches update memory by relaxed atomic operations.
func TestUpdates(t *testing.T) {
	t.Parallel()
	agree(t, "updates", 23, 800, updates, "cross-launch", "atomic-with-plain", "atomic-scope")
	agree(t, "remembered updates", 24, 400, func(pick func(int) int) *event.Batch { return oracle.Remember(updates(pick)) }, "atomic-with-plain")
}

// TestUpdatedAgain has one launch that updates a word; a second that follows it and writes the word weakly and then
// strongly; and a third, in another stream, that observes the last of these writes. The observation orders only that
// write.
func TestUpdatedAgain(t *testing.T) {
	s := &stream{}
	at := event.Event{Space: event.Global, Mask: 1, Addr: heap, Size: 4, Scope: event.ScopeGPU}
	for agent, places := range [][]uint32{{1}, {2, 3}, {4, 5}} {
		s.begin(1, 32)
		s.Launches[len(s.Launches)-1].Agent = uint32(agent / 2)
		for _, place := range places {
			e := at
			e.Place, e.Kind = place, []event.Kind{event.Atomic, event.Store, event.Store, event.Load, event.Load}[place-1]
			if place == 3 || place == 4 {
				e.Order = event.Relaxed
			}
			s.memory(e)
		}
		s.end()
	}
	if got := compareWithOracle(t, &s.Batch, detect.ModelCUDA, "updated again"); !strings.Contains(got, "p1-p5") || strings.Contains(got, "p3-p5") {
		t.Errorf("found %s", got)
	}
}

// TestUpdatedAlike has two launches that update a word in the same way. The second follows the first, and the host
// writes the word in between. A launch in another stream observes the value: that orders the update of the second
// launch and not that of the first.
func TestUpdatedAlike(t *testing.T) {
	for _, between := range []bool{false, true} {
		s := &stream{}
		e := event.Event{Space: event.Global, Mask: 1, Addr: heap, Size: 4, Scope: event.ScopeGPU}
		launch := func(agent uint32, places ...uint32) {
			s.begin(1, 32)
			s.Launches[len(s.Launches)-1].Agent = agent
			for _, e.Place = range places {
				e.Kind, e.Order = event.Load, event.Weak
				if e.Place == 1 {
					e.Kind = event.Atomic
				} else if e.Place == 2 {
					e.Order = event.Relaxed
				}
				s.memory(e)
			}
			s.end()
		}
		launch(0, 1)
		if between {
			s.Hosts = append(s.Hosts, event.HostOp{Kind: event.HostWrite, Addr: heap, Size: 4, Name: "copy"})
			s.Events = append(s.Events, event.Event{Kind: event.Host})
		}
		launch(0, 1)
		launch(1, 2, 3)
		if got := compareWithOracle(t, &s.Batch, detect.ModelCUDA, "updated alike"); strings.Contains(got, "p1-p3") != between {
			t.Errorf("the host writes: %v; found %s", between, got)
		}
	}
}

// agree compares hb with the oracle on n programs: some must have a race of each of reasons, and some none. Unless
// tests may take long, n is divided by up to 20, but is at least 50.
func agree(t *testing.T, name string, stream uint64, n int, program func(func(int) int) *event.Batch, reasons ...string) {
	t.Helper()
	if !testsize.Long() {
		n = max(n/testsize.Of(20, 14, 1), 50)
	}
	kinds := map[string]int{}
	clean := 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), stream))
		got := compareWithOracle(t, program(rng.IntN), detect.Model(max(seed%8-5, 0)), fmt.Sprint(name, " ", seed))
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
	for _, why := range reasons {
		if kinds[why] == 0 {
			t.Errorf("no program has a race of reason %s", why)
		}
	}
	if clean == 0 || clean == n {
		t.Errorf("%d programs of %d without a race", clean, n)
	}
}

// TestHistories compares the histories on larger programs of all kinds.
func TestHistories(t *testing.T) {
	t.Parallel()
	simple := func(f func(func(int) int) *event.Batch) func(*rand.Rand) *event.Batch {
		return func(r *rand.Rand) *event.Batch { return f(r.IntN) }
	}
	for name, x := range map[string]struct {
		n    int
		make func(*rand.Rand) *event.Batch
	}{
		"regular": {500, simple(regular)}, "stages": {250, simple(stages)}, "iterations": {250, iterations}, "copies": {1000, largeCopies},
		"counting": {25, func(r *rand.Rand) *event.Batch { return &counting(r).Batch }}, "traffic": {250, simple(oracle.Traffic)}, "crowd": {25, simple(crowd)},
		"grid barriers": {400, simple(gridBarriers)},
	} {
		t.Run(name, func(t *testing.T) {
			n, clean := x.n, 0
			if !testsize.Long() {
				n /= testsize.Of(20, 10, 1)
			}
			for seed := range uint64(n) {
				b := x.make(rand.New(rand.NewPCG(seed, 77)))
				if seed%3 != 0 {
					b = oracle.Remember(b)
				}
				if compareHistories(t, b, fmt.Sprint(name, " ", seed)) == "" {
					clean++
				}
			}
			if t.Logf("%d programs, %d without a race", n, clean); clean == n {
				t.Error("nothing was tested")
			}
		})
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
