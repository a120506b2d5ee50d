package hb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/reference"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// interned gives what hb finds with that history, as races does with the default one.
func interned(b *event.Batch, m detect.Model) string {
	d := reference.New(detect.Config{Places: oracle.Places{}, Model: m}, "hb", true)
	d.Events(b)
	name := func(p uint64) string {
		if p >= reference.HostPlaces {
			return "host:" + d.HostName(p)
		}
		return fmt.Sprint("p", p)
	}
	var out []string
	for _, x := range d.Totals() {
		p, q := name(x.A), name(x.B)
		r := oracle.Race{A: min(p, q), B: max(p, q), Why: reasonOf[x.Category], Warning: x.Category.Severity() == detect.Warning, Count: x.Count, Addresses: x.Addresses}
		out = append(out, r.String())
	}
	return sorted(out)
}

// TestInterned compares the history of interned segments with the default one on random programs of all sorts.
func TestInterned(t *testing.T) {
	n := uint64(150)
	if testsize.Long() {
		n = 1500
	}
	simple := func(f func(func(int) int) *event.Batch) func(*rand.Rand) *event.Batch {
		return func(r *rand.Rand) *event.Batch { return f(r.IntN) }
	}
	for name, make := range map[string]func(*rand.Rand) *event.Batch{
		"regular": simple(regular), "stages": simple(stages), "readers": simple(readers), "divergent": simple(divergent), "changing": simple(changing),
		"iterations": iterations, "counting": func(r *rand.Rand) *event.Batch { return &counting(r).Batch }, "copies": largeCopies,
		"scatter": simple(oracle.Scatter), "counted": simple(oracle.Counted), "traffic": simple(oracle.Traffic),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range n {
				rng := rand.New(rand.NewPCG(seed, 77))
				plain := make(rng)
				b := plain
				if seed%3 != 0 {
					b = oracle.Remember(plain)
				}
				m := detect.ModelCUDA
				if races(b, m) != interned(b, m) {
					remember := func(b *event.Batch) *event.Batch {
						if seed%3 != 0 {
							return oracle.Remember(b)
						}
						return b
					}
					b := remember(oracle.Shrink(plain, func(b *event.Batch) bool { b = remember(b); return races(b, m) != interned(b, m) }))
					t.Fatalf("seed %d:\n%s\nold:\n%s\n\nnew:\n%s", seed, oracle.Print(b), races(b, m), interned(b, m))
				}
			}
		})
	}
}
