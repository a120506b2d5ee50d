package hb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// iterations are launches on a few streams, with and without order between them, that access the same few words here and there,
// mostly by loads and relaxed atomics.
func iterations(rng *rand.Rand) *event.Batch {
	s := &stream{}
	host := func(op event.HostOp) {
		s.Hosts = append(s.Hosts, op)
		s.Events = append(s.Events, event.Event{Kind: event.Host, Side: uint32(len(s.Hosts) - 1)})
	}
	pick := rng.IntN
	words, calm, kinds := 1+pick(24), 1+pick(20), 1+pick(5)
	streams := uint32(1 + pick(2))
	for range 2 + pick(8) {
		if pick(3) == 0 {
			from, to := uint32(pick(int(streams))), uint32(pick(int(streams)))
			host(event.HostOp{Kind: event.HostSignal, Agent: from, Token: 1})
			host(event.HostOp{Kind: event.HostWait, Agent: to, Token: 1})
		}
		s.begin(uint32(1+pick(2)), 64)
		s.Launches[len(s.Launches)-1].Agent = uint32(pick(int(streams)))
		for range 1 + pick(12) {
			e := event.Event{Warp: uint32(pick(int(s.launch.Grid.X) * 2)), Mask: rng.Uint32() | 1, Size: 4, Space: event.Global,
				Kind: event.Load, Flags: event.FlagRead | event.FlagScattered, Side: uint32(len(s.Addrs))}
			switch pick(4) {
			case 0:
				e.Mask = 1 << pick(32)
			case 1:
				e.Mask &= 0x11111111
			}
			e.Place = uint32(1 + pick(kinds))
			switch e.Place {
			case 2, 3:
				e.Kind, e.Order, e.Scope, e.RMW = event.Atomic, event.Relaxed, event.ScopeGPU, event.CompareAndSwap
				if pick(3) == 0 {
					e.Flags |= event.FlagWrite
				}
			case 4:
				e.Kind, e.Order, e.Scope = event.Atomic, event.Relaxed, event.ScopeGPU
				e.Flags |= event.FlagWrite | event.FlagRed
			}
			if pick(4*calm) == 0 {
				e.Kind, e.Flags, e.Place, e.Order, e.Scope = event.Store, event.FlagWrite|event.FlagScattered, 6, event.Weak, event.NoScope
			}
			if pick(8*calm) == 0 && e.Order != event.Weak {
				e.Order, e.Place = event.AcqRel, 7
			}
			at := uint64(pick(3)) // one of three parts of memory, which overlap
			for m := e.Mask; m != 0; m &= m - 1 {
				s.Addrs = append(s.Addrs, heap+at*40+uint64(pick(words))*4+uint64(pick(2))*pageBytes)
			}
			s.add(e)
		}
		s.end()
		if pick(2*calm) == 0 {
			host(event.HostOp{Kind: event.HostKind(int(event.HostRead) + pick(2)), Agent: uint32(pick(int(streams) + 1)), Addr: heap + uint64(pick(40)),
				Size: uint64(1 + pick(100)), Name: "copy"})
		}
	}
	return &s.Batch
}

// TestIterations compares hb with itself where it notes nothing, on launches that use the same words again and again, and on the
// smaller ones with the brute-force oracle.
func TestIterations(t *testing.T) {
	n := 6000
	if !testsize.Long() {
		n /= 8
	}
	clean, judged := 0, 0
	for seed := range n {
		b := iterations(rand.New(rand.NewPCG(uint64(seed), 11)))
		got := races(b, detect.ModelCUDA)
		if exp := racesOf(b, detect.ModelCUDA, func(d *Detector) { d.cellsOnly = true }); got != exp {
			small := oracle.Shrink(b, func(b *event.Batch) bool {
				return races(b, detect.ModelCUDA) != racesOf(b, detect.ModelCUDA, func(d *Detector) { d.cellsOnly = true })
			})
			t.Fatalf("seed %d: notes\n%s\n\ncells\n%s\n\n%s", seed, races(small, detect.ModelCUDA),
				racesOf(small, detect.ModelCUDA, func(d *Detector) { d.cellsOnly = true }), oracle.Print(small))
		}
		if oracle.Size(b) < 700 && seed%4 == 0 {
			compareWithOracle(t, b, detect.ModelCUDA, fmt.Sprint("iterations ", seed))
			judged++
		}
		if got == "" {
			clean++
		}
	}
	t.Logf("%d programs, %d without a race, %d judged by the oracle", n, clean, judged)
	if clean < n/20 || judged < n/200 {
		t.Errorf("%d programs without a race, %d judged by the oracle", clean, judged)
	}
}
