package findings

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

func TestOneFindingPerPairOfPlaces(t *testing.T) {
	launch := event.Launch{ID: 1, Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}}
	access := func(place uint32, op detect.Op, addr uint64) detect.Access {
		return detect.Access{Op: op, Place: place, Space: event.Global, Address: addr, Size: 4, Launch: launch}
	}
	c := New("example", detect.Config{})
	add := func(cat detect.Category, p, q uint32, addr uint64, predicted bool) {
		c.Add(&Race{Facts: detect.Facts{Category: cat, Earlier: access(p, detect.Write, addr), Later: access(q, detect.Read, addr+2)},
			Predicted: predicted, Note: "inter-block"})
	}
	add(detect.CrossBlock, 7, 3, 0x100, true)
	add(detect.CrossBlock, 3, 7, 0x100, false)
	add(detect.SameBlock, 3, 7, 0x200, false)
	add(detect.CrossBlock, 2, 9, 0x100, true)
	fs := c.Findings()
	if len(fs) != 2 {
		t.Fatalf("%d findings, want 2", len(fs))
	}
	if f := fs[0]; f.Accesses[0].Place != 2 || !f.Predicted || f.Count != 1 || f.Addresses != 2 {
		t.Errorf("the first is %+v", f)
	}
	if !fs[0].NoSync {
		t.Error("accesses of which no synchronisation is known are as if there was none")
	}
	f := fs[1]
	if f.Predicted || f.Kind != detect.Unordered || f.Count != 3 || f.Addresses != 4 || f.Detector != "example" {
		t.Errorf("the second is %+v", f)
	}
	if !strings.HasSuffix(f.Message, "(example: inter-block)") {
		t.Errorf("message %q", f.Message)
	}
}

// TestBytes compares the number of bytes with that of a simple set.
func TestBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	type byteOf struct {
		block uint32
		at    uint64
	}
	for range 200 {
		c, want := New("example", detect.Config{}), [2]map[byteOf]bool{{}, {}}
		warps := 1 + rng.Uint32N(2) // in a block
		for range 60 {
			at, size, space, warp, place := rng.Uint64N(300), 1<<rng.IntN(6), []event.Space{event.Global, event.Shared}[rng.IntN(2)], rng.Uint32N(4), rng.IntN(2)
			a := detect.Access{Op: detect.Write, Place: 1, Space: space, Address: at, Size: size, Warp: warp,
				Launch: event.Launch{ID: 1, Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 32 * warps, Y: 1, Z: 1}}}
			b := a
			b.Address, b.Size, b.Place = at+rng.Uint64N(5), 1<<rng.IntN(6), 2+uint32(place)
			c.Add(&Race{Facts: detect.Facts{Category: detect.CrossBlock, Earlier: a, Later: b}})
			for n := b.Address; n < min(at+uint64(size), b.Address+uint64(b.Size)); n++ {
				k := byteOf{0, n}
				if space == event.Shared {
					k.block = 1 + warp/warps
				}
				want[place][k] = true
			}
		}
		for _, f := range c.Findings() {
			if w := len(want[f.Accesses[1].Place-2]); f.Addresses != w {
				t.Fatalf("%d bytes concerned, want %d", f.Addresses, w)
			}
		}
	}
}

// TestExample adds random races at a few places. The example of a finding must be the first of the gravest: severity
// info comes last, then the graver category wins, then observed races win over predicted ones. Takes must predict
// whether Add uses a race.
func TestExample(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	categories := []detect.Category{detect.VolatileRace, detect.SameBlock, detect.CrossBlock}
	side := func() detect.Access {
		a := detect.Access{Op: detect.Write, Place: 1 + rng.Uint32N(2), Space: event.Global, Size: 4, Launch: event.Launch{ID: 1}}
		if rng.IntN(4) == 0 {
			a.Place, a.Host = 0, []string{"cudaMemcpy", "cudaFree"}[rng.IntN(2)]
		}
		return a
	}
	taken, refused := 0, 0
	for range 300 {
		c := New("example", detect.Config{})
		type state struct {
			race  Race
			count int
		}
		want := map[[4]any]state{}
		for n := range 20 {
			r := Race{Facts: detect.Facts{Category: categories[rng.IntN(3)], Earlier: side(), Later: side()},
				Info: rng.IntN(3) == 0, Predicted: rng.IntN(2) == 0, Lanes: rng.IntN(3), Sections: make([]detect.Section, n)}
			x, y := &r.Facts.Earlier, &r.Facts.Later
			key := [4]any{x.Host, x.Place, y.Host, y.Place}
			if x.Host > y.Host || x.Host == y.Host && x.Place > y.Place {
				key = [4]any{y.Host, y.Place, x.Host, x.Place}
			}
			s, known := want[key]
			was := &s.race
			better := !known
			switch {
			case !known:
			case r.Info != was.Info:
				better = !r.Info
			default:
				better = r.Facts.Category > was.Facts.Category || was.Predicted && !r.Predicted
			}
			if c.Takes(&r) != better {
				t.Fatalf("%+v after %+v: taken %v, want %v", r, was, !better, better)
			}
			if better {
				s.race = r
				taken++
			} else {
				refused++
			}
			s.count += max(1, r.Lanes)
			want[key] = s
			c.Add(&r)
		}
		fs := c.Findings()
		if len(fs) != len(want) {
			t.Fatalf("%d findings, want %d", len(fs), len(want))
		}
		for i, f := range fs {
			x, y := f.Accesses[0], f.Accesses[1]
			s, ok := want[[4]any{x.Host, x.Place, y.Host, y.Place}]
			if !ok {
				s, ok = want[[4]any{y.Host, y.Place, x.Host, x.Place}]
			}
			if !ok || f.Count != s.count || f.Predicted != s.race.Predicted || len(f.Sections) != len(s.race.Sections) ||
				(f.Severity == detect.Info) != s.race.Info {
				t.Fatalf("finding %d is %+v, want %+v", i, f, s)
			}
		}
		if !slices.IsSortedFunc(fs, func(f, g detect.Finding) int { return cmp.Compare(order(&f), order(&g)) }) {
			t.Fatal("findings are not in the order of their places")
		}
	}
	if taken < 1000 || refused < 1000 {
		t.Errorf("%d races taken as the example, %d not", taken, refused)
	}
}

// order formats the places of a finding so that the strings sort like the findings.
func order(f *detect.Finding) string {
	x, y := &f.Accesses[0], &f.Accesses[1]
	p, q := fmt.Sprintf("%s %09d", x.Host, x.Place), fmt.Sprintf("%s %09d", y.Host, y.Place)
	return min(p, q) + ", " + max(p, q)
}

// TestNames checks that a finding has the race's own kind and note, and that synchronisation known on one side only is
// kept.
func TestNames(t *testing.T) {
	find := func(change func(*Race)) detect.Finding {
		r := Race{Facts: detect.Facts{Category: detect.CrossBlock, Earlier: detect.Access{Op: detect.Write, Place: 1}, Later: detect.Access{Op: detect.Write, Place: 2}}}
		change(&r)
		c := New("example", detect.Config{})
		c.Add(&r)
		return c.Findings()[0]
	}
	if f := find(func(*Race) {}); f.Kind != detect.Unordered || strings.Contains(f.Message, "example") || !f.NoSync || f.Severity != detect.Error {
		t.Errorf("a plain race is %+v", f)
	}
	if f := find(func(r *Race) { r.Kind = detect.MissingFence }); f.Kind != detect.MissingFence {
		t.Errorf("its own kind is %s", f.Kind)
	}
	if f := find(func(r *Race) { r.Facts.Earlier.Place, r.Facts.Later.Place = 0, 0 }); f.Count != 1 {
		t.Errorf("a race of unknown places is %+v", f)
	}
	unknown := func(r *Race) { r.Facts.Earlier.Space, r.Facts.Later.Space = event.Shared, event.Shared }
	if f := find(unknown); f.Count != 1 {
		t.Errorf("a race in shared memory of a launch that is not known is %+v", f)
	}
	for _, change := range []func(*Race){func(r *Race) { r.Facts.Earlier.Sync = &detect.Sync{} }, func(r *Race) { r.Facts.Later.Sync = &detect.Sync{} }} {
		if f := find(change); f.NoSync {
			t.Error("one side has synchronisation, and the finding has none")
		}
	}
}
