package oracle

import (
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestSharedAddresses checks that accesses to shared memory are at addresses that an engine can produce.
func TestSharedAddresses(t *testing.T) {
	for name, program := range map[string]func(func(int) int) *event.Batch{"random": Random, "early": Early, "traffic": Traffic, "clusters": Clusters} {
		for seed := range uint64(8000) {
			b := program(rand.New(rand.NewPCG(seed, 30)).IntN)
			for i := range b.Events {
				e := &b.Events[i]
				if e.Kind < event.Load || e.Kind > event.Atomic || e.Space != event.Shared {
					continue
				}
				for _, lane := range lanesOf(e.Mask) {
					if at := b.AddrOf(e, lane) % (1 << event.PeerShift); at > 1<<20 || b.AddrOf(e, lane) >= 32<<event.PeerShift {
						t.Fatalf("%s, seed %d: lane %d accesses %#x\n%+v", name, seed, lane, at, e)
					}
				}
			}
		}
	}
}

// TestClustersAreLegal checks that in random programs with clusters threads arrive and wait as engines allow.
func TestClustersAreLegal(t *testing.T) {
	for seed := range uint64(1000) {
		if b := Clusters(rand.New(rand.NewPCG(seed, 31)).IntN); !Legal(b) {
			t.Fatalf("seed %d:\n%s", seed, Print(b))
		}
	}
}
