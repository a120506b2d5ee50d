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

// TestGroups has the threads of some blocks stand for all.
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

// TestWords compares a detector that may keep metadata for few words with one that does not see the accesses to others.
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

// places names the pairs of places that race: one instruction's lanes, taken one by one, race by another kind.
func places(findings []detect.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, fmt.Sprint(f.Accesses[0].Place, "-", f.Accesses[1].Place))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// without gives a stream lane by lane, without accesses to global memory beyond the first so many segments of each launch.
func without(b *event.Batch, segments int) *event.Batch {
	out := &event.Batch{Launches: b.Launches, Hosts: b.Hosts}
	seen, launch := map[uint64]bool{}, uint32(0) // of which the detector knows one at a time
	fits := func(at uint64) bool {
		at /= lineBytes
		if !seen[at] && len(seen) < segments {
			seen[at] = true
		}
		return seen[at]
	}
	for i := range b.Events {
		e := b.Events[i]
		if e.Kind == event.KernelBegin {
			clear(seen)
			launch = e.Launch
		}
		if e.Launch != launch || e.Kind == event.None || e.Kind > event.Atomic {
			out.Events = append(out.Events, e)
			continue
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			one := e
			one.Mask, one.Addr, one.Stride = m&-m, b.AddrOf(&e, bits.TrailingZeros32(m)), 0
			one.Flags &^= event.FlagScattered | event.FlagRows | event.FlagValues | event.FlagOld
			if e.Space != event.Global || fits(one.Addr) && fits(one.Addr+uint64(one.Size)-1) {
				out.Events = append(out.Events, one)
			}
		}
	}
	return out
}
