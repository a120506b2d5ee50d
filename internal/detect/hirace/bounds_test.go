package hirace

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// TestGroups lets the threads of some blocks represent all.
func TestGroups(t *testing.T) {
	for _, c := range []struct{ groups, line, want string }{
		{"all", "0 st; 4 st", "unordered"},
		{"2", "0 st; 4 st", ""},
		{"2", "0 st; 2 st", "unordered"},
		{"4", "0 st; 4 st", "unordered"},
		{"2", "4 st; 0 st; 0 bar; 1 ld", ""},
	} {
		b := do(litmus.Launch(4), c.line)
		d := Spec.New(detect.Config{Options: map[string]string{"groups": c.groups}})
		d.Events(b)
		if got := kinds(d.Findings()); got != c.want {
			t.Errorf("groups=%s, %s: %q, want %q", c.groups, c.line, got, c.want)
		}
		if notes := d.(detect.Noted).Notes(); (len(notes) > 0) != (c.groups == "2") {
			t.Errorf("groups=%s, %s: notes %q", c.groups, c.line, notes)
		}
	}
}

// TestGranularity makes two threads write different bytes of a word, or of two words.
func TestGranularity(t *testing.T) {
	for _, c := range []struct {
		granularity string
		size        uint8
		apart       uint64
		want        string
	}{
		{"1", 1, 0, "unordered"}, {"1", 1, 1, ""}, {"1", 2, 2, ""}, {"1", 4, 4, ""},
		{"4", 1, 0, "unordered"}, {"4", 1, 1, "unordered"}, {"4", 2, 2, "unordered"}, {"4", 1, 4, ""}, {"4", 4, 4, ""}, {"4", 2, 6, ""},
	} {
		b := do(litmus.Launch(4), "0 st; 4 st")
		at := uint64(0)
		for i := range b.Events {
			if e := &b.Events[i]; e.Kind == event.Store {
				e.Size, e.Addr = c.size, e.Addr+at
				at = c.apart
			}
		}
		d := Spec.New(detect.Config{Options: map[string]string{"granularity": c.granularity}})
		d.Events(b)
		if got := kinds(d.Findings()); got != c.want {
			t.Errorf("granularity=%s, %d bytes, %d apart: %q, want %q", c.granularity, c.size, c.apart, got, c.want)
		}
	}
}

// TestWords compares a detector with metadata for few words with one that does not receive the accesses to others.
func TestWords(t *testing.T) {
	left := 0
	for seed := range 300 {
		b := oracle.Traffic(rand.New(rand.NewPCG(uint64(seed), 3)).IntN)
		bounded := Spec.New(detect.Config{Options: map[string]string{"words": "1K"}}).(*Detector)
		bounded.bounds.lines = 2
		bounded.Events(b)
		plain := Spec.New(detect.Config{})
		plain.Events(without(b, 2))
		if got, want := places(bounded.Findings()), places(plain.Findings()); got != want {
			t.Fatalf("seed %d: %q with the bound, %q without the accesses\n%s", seed, got, want, oracle.Print(b))
		}
		if notes := strings.Join(bounded.Notes(), " "); strings.Contains(notes, "first 64 words") {
			left++
		}
	}
	if left < 100 {
		t.Errorf("%d of 300 streams touch more words than have metadata", left)
	}
}

func kinds(findings []detect.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, string(f.Kind))
	}
	return strings.Join(all, ", ")
}

// places returns the pairs of places that race. It ignores kinds, since lanes of one instruction that are handled one
// by one race with another kind.
func places(findings []detect.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, fmt.Sprint(f.Accesses[0].Place, "-", f.Accesses[1].Place))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestWatched compares a detector that watches some threads with one that does not receive the accesses of others:
// accesses of other threads must not hide races.
func TestWatched(t *testing.T) {
	found, more := 0, 0
	for seed := range 500 {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		b := oracle.Traffic(rng.IntN)
		w := &detect.Watch{}
		if from := rng.Uint64N(64); seed%3 != 0 {
			w.Threads = []detect.Range{{First: from, Last: from + rng.Uint64N(32)}}
		}
		if seed%3 != 1 {
			w.Blocks = []detect.Range{{First: 0, Last: 0}, {First: 2, Last: 3}}
		}
		watching := Spec.New(detect.Config{Watch: w})
		watching.Events(b)
		plain := Spec.New(detect.Config{})
		plain.Events(watched(b, w))
		got, want := places(watching.Findings()), places(plain.Findings())
		if got != want {
			t.Fatalf("seed %d, %+v: %q, and without the accesses of others %q\n%s", seed, w, got, want, oracle.Print(b))
		}
		found += len(plain.Findings())
		all := Spec.New(detect.Config{})
		all.Events(b)
		for _, f := range plain.Findings() {
			if !strings.Contains(places(all.Findings()), places([]detect.Finding{f})) {
				more++
			}
		}
	}
	if found < 100 || more == 0 {
		t.Errorf("%d findings, %d of them hidden by what others do", found, more)
	}
}

// watched returns a stream lane by lane, without accesses by threads that are not watched.
func watched(b *event.Batch, w *detect.Watch) *event.Batch {
	launches := map[uint32]*event.Launch{}
	for i := range b.Launches {
		launches[b.Launches[i].ID] = &b.Launches[i]
	}
	return lanes(b, func(e *event.Event) bool {
		return e.Kind == event.KernelBegin || w.Thread(launches[e.Launch], e.Warp, bits.TrailingZeros32(e.Mask))
	})
}

// without returns a stream lane by lane, without accesses to global memory beyond a number of segments in each launch.
func without(b *event.Batch, segments int) *event.Batch {
	seen := map[uint64]bool{} // in one launch: the detector handles one at a time
	fits := func(at uint64) bool {
		at /= lineBytes
		if !seen[at] && len(seen) < segments {
			seen[at] = true
		}
		return seen[at]
	}
	return lanes(b, func(e *event.Event) bool {
		if e.Kind == event.KernelBegin {
			clear(seen)
		}
		return e.Space != event.Global || fits(e.Addr) && fits(e.Addr+uint64(e.Size)-1)
	})
}

// lanes returns a stream lane by lane, with the accesses for which keep returns true. keep is also called for the
// beginnings of launches.
func lanes(b *event.Batch, keep func(e *event.Event) bool) *event.Batch {
	out := &event.Batch{Launches: b.Launches, Hosts: b.Hosts}
	launch := uint32(0)
	for i := range b.Events {
		e := b.Events[i]
		if e.Kind == event.KernelBegin {
			launch = e.Launch
			keep(&e)
		}
		if e.Launch != launch || e.Kind == event.None || e.Kind > event.Atomic {
			out.Events = append(out.Events, e)
			continue
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			one := e
			one.Mask, one.Addr, one.Stride = m&-m, b.AddrOf(&e, bits.TrailingZeros32(m)), 0
			one.Flags &^= event.FlagScattered | event.FlagRows | event.FlagValues | event.FlagOld
			if keep(&one) {
				out.Events = append(out.Events, one)
			}
		}
	}
	return out
}
