package iguard

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/event"
)

// notesOf returns the classes of races that a detector finds on a litmus line, sorted.
func notesOf(d detect.Detector, line string) string {
	b := litmus.Launch(2)
	litmus.Do(b, line)
	d.Events(b)
	var out []string
	for _, f := range d.Findings() {
		at := strings.LastIndex(f.Message, "(iguard: ")
		out = append(out, strings.TrimSuffix(f.Message[at+9:], ")"))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestRules(t *testing.T) {
	for _, c := range []struct{ what, line, want string }{
		{"first accesses", "0 st; 1 st 1", ""},
		{"program order", "0 st; 0 ld; 0 st", ""},
		{"barrier", "0 st; 0 bar; 1 ld; 0 bar; 0 st", ""},
		{"shared memory, barrier", "0 sts; 0 bar; 1 lds", ""},
		{"shared memory", "0 sts; 1 lds", "missing block fence"},
		{"shared memory of two blocks", "0 sts; 2 lds", ""},
		{"reads alone", "0 ld; 1 ld; 2 ld", ""},
		{"block fence missing", "0 stv; 1 ldv", "missing block fence"},
		{"block fence", "0 stv; 0 fenceb; 1 ldv", ""},
		{"device fence missing", "0 stv; 0 fenceb; 2 ldv", "missing device fence"},
		{"device fence", "0 stv; 0 fence; 2 ldv", ""},
		{"weak", "0 st; 0 fence; 2 ldv", "not strong access"},
		{"scoped atomic", "0 addb; 2 add", "scoped atomic"},
		{"scoped atomic, then a load", "0 addb; 2 ldv", "scoped atomic"},
		{"scoped atomic, then a load, fenced", "0 addb; 0 fence; 2 ldv", "scoped atomic"},
		{"scoped atomic, then a store, fenced", "0 addb; 0 fence; 2 stv", "scoped atomic"},
		{"scoped atomic, then a load of the block, fenced", "0 addb; 0 fence; 1 ldv", ""},
		{"atomic of the device, then a load, fenced", "0 add; 0 fence; 2 ldv", ""},
		{"a load has no scope", "0 ldv; 0 fence; 2 stv", ""},
		{"atomics", "0 add; 2 add; 1 addb", ""},
		{"write after read by another", "0 ldv; 1 stv", "missing block fence"},
		{"one reader: the first is forgotten", "0 ldv; 1 ldv; 1 stv", ""},
		{"lock", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 stv; 2 fence; 2 exch 9", ""},
		{"no lock", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 stv", "missing common lock"},
		{"PreDataR, figure 10", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 9; 2 fence; 2 stv; 2 fence; 2 exch 9; 2 stv", ""},
		{"PreDataR, figure 10, the other order", "2 stv; 2 fence; 0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9", "missing common lock"},
		{"lanes that parted", "0.0 st; 0.1 ld", "lanes that had parted"},
		{"lanes that met", "0.0 st; 0 sync; 0.1 ld", ""},
		{"lanes of a barrier", "0.0 st; 0 bar; 0.1 ld", ""},
		{"lanes with atomics", "0.0 add; 0.1 add", ""},
		{"device fence, for the block too", "0 stv; 0 fence; 1 ldv", ""},
		{"the other warp's fence does not help", "0 stv; 1 fence; 1 ldv", "missing block fence"},
		{"barrier of another block", "0 stv; 2 bar; 1 ldv", "missing block fence"},
		{"barrier between blocks orders nothing", "0 stv; 0 bar; 2 bar; 2 ldv", "missing device fence"},
		{"weak load", "0 stv; 0 fence; 2 ld", "not strong access"},
		{"scoped atomic, the later of the block", "0 add; 2 addb", ""},
		{"scoped atomic in its block", "0 addb; 1 addb", ""},
		{"atomic, then weak", "0 add; 2 ld", "missing device fence"},
		{"a write hides the readers before", "0 ldv; 0 stv; 0 fence; 2 stv", ""},
		{"program order of a lane between others", "0.1 st; 0.1 ld; 0.1 st", ""},
		{"lanes that parted, a barrier of another block", "0.0 st; 2 bar; 0.1 ld", "lanes that had parted"},
		{"lanes that parted, met in another warp", "0.0 st; 1 sync; 0.1 ld", "lanes that had parted"},
		{"lanes, one atomic", "0.0 add; 0.1 ld", "lanes that had parted"},
		{"two locks, one in common", "0 cas 9; 0 cas 8; 0 fence; 0 stv; 0 fence; 0 exch 9; 0 exch 8; 2 cas 8; 2 fence; 2 stv", ""},
		{"two locks, none in common", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 cas 8; 2 fence; 2 stv", "missing common lock"},
		{"a lock given back", "0 cas 9; 0 fence; 0 exch 9; 0 stv; 0 fence; 2 cas 9; 2 fence; 2 stv", "missing common lock"},
		{"the scope is of the lock's name", "0 casb 9; 0 fence; 0 stv; 0 fence; 1 cas 9; 1 fence; 1 stv", "missing common lock"},
		{"a lock without a fence is not held", "0 cas 9; 0 stv; 0 fence; 2 cas 9; 2 fence; 2 stv", "missing common lock"},
		{"a lock, then an atomic", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2 add", ""},
	} {
		if got := notesOf(Spec.New(detect.Config{}), c.line); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.what, c.line, got, c.want)
		}
	}
	off, err := detect.Choose([]detect.Spec{Spec}, "iguard:its=off")
	if err != nil {
		t.Fatal(err)
	}
	if got := notesOf(off.New(detect.Config{}), "0.0 st; 0.1 ld"); got != "" {
		t.Errorf("without thread scheduling lanes race: %s", got)
	}
}

// TestCounters checks that counters wrap around as in the authors' release.
func TestCounters(t *testing.T) {
	for _, c := range []struct {
		first, step, last string
		wraps             int
	}{
		{"0 stv", "0 bar", "1 ldv", 256},
		{"0 stv", "0 fenceb", "1 ldv", 64},
		{"0 stv", "0 fence", "2 ldv", 64},
		{"0.0 st", "0 sync", "0.1 ld", 64},
	} {
		for n, race := range map[int]bool{0: true, 1: false, c.wraps / 2: false, c.wraps - 1: false, c.wraps: true, c.wraps + 1: false} {
			got := notesOf(Spec.New(detect.Config{}), c.first+strings.Repeat("; "+c.step, n)+"; "+c.last)
			if (got != "") != race {
				t.Errorf("%s, %d times %s, %s: %q", c.first, n, c.step, c.last, got)
			}
		}
	}
}

// TestBlockLocks makes two warps acquire a lock of block scope at one address, with fences wide enough for any two. The
// atomic operations on the lock race if the blocks differ.
func TestBlockLocks(t *testing.T) {
	for _, c := range []struct {
		text  string
		other int
		want  string
	}{
		{"iguard", 1, ""},
		{"iguard", 2, "missing common lock, scoped atomic"},
		{"iguard:block-lock=per-address", 1, ""},
		{"iguard:block-lock=per-address", 2, "scoped atomic"},
	} {
		spec, err := detect.Choose([]detect.Spec{Spec}, c.text)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("0 casb 9; 0 fence; 0 stv; 0 fence; 0 exchb 9; %[1]d casb 9; %[1]d fence; %[1]d stv; %[1]d fence; %[1]d exchb 9", c.other)
		if got := notesOf(spec.New(detect.Config{}), line); got != c.want {
			t.Errorf("%s, warps 0 and %d: %q, want %q", c.text, c.other, got, c.want)
		}
	}
}

// TestLocksOfLanes checks that threads hold locks, not warps (PreDataR, section 3: iGUARD's analysis is ScoRD's for
// independently scheduled threads). A lock that one lane acquires is not held by the others, and releasing it does not
// release theirs.
func TestLocksOfLanes(t *testing.T) {
	for _, c := range []struct{ what, line, want string }{
		{"the lane that has it", "0.3 cas 9; 0.3 fence; 0.3 stv; 0.3 fence; 0.3 exch 9; 2 cas 9; 2 fence; 2 stv", ""},
		{"a lane that has none beside it", "0.3 cas 9; 0.3 fence; 0.4 stv; 0.4 fence; 0.3 exch 9; 2 cas 9; 2 fence; 2 stv", "missing common lock"},
		{"the later one", "0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 2.3 cas 9; 2.3 fence; 2.4 stv", "missing common lock"},
		{"another lane's fence completes no acquire", "0.3 cas 9; 0.4 fence; 0.3 stv; 0.3 fence; 2 cas 9; 2 fence; 2 stv", "missing common lock"},
		{"another lane's exchange gives nothing back", "0.3 cas 9; 0.3 fence; 0.4 fence; 0.4 exch 9; 0.3 stv; 0.3 fence; 2 cas 9; 2 fence; 2 stv", ""},
		{"two lanes, each its own", "0.3 cas 9; 0.4 cas 8; 0.3 fence; 0.4 fence; 0.3 exch 9; 0.4 stv; 0.4 fence; 2 cas 8; 2 fence; 2 stv", ""},
		{"two lanes, the other's", "0.3 cas 9; 0.4 cas 8; 0.3 fence; 0.4 fence; 0.4 stv; 0.4 fence; 2 cas 9; 2 fence; 2 stv", "missing common lock"},
		{"one lane, two locks, the first given back", "0.3 cas 9; 0.3 cas 8; 0.3 fence; 0.3 exch 9; 0.3 stv; 0.3 fence; 2 cas 8; 2 fence; 2 stv", ""},
		{"the same of lane 0", "0 cas 9; 0 cas 8; 0 fence; 0 exch 9; 0 stv; 0 fence; 2 cas 8; 2 fence; 2 stv", ""},
		{"one lock after another of two lanes", "0.3 cas 9; 0.3 fence; 0.3 exch 9; 0.4 cas 9; 0.4 fence; 0.3 stv; 0.3 fence; 2 cas 9; 2 fence; 2 stv", "missing common lock"},
	} {
		if got := notesOf(Spec.New(detect.Config{}), c.line); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.what, c.line, got, c.want)
		}
	}
}

// TestKinds checks that the kind of a finding says what is missing, and that the message says where the threads are.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		line string
		kind detect.Kind
		says string
	}{
		{"0 stv; 1 ldv", detect.MissingFence, "threads of one block"},
		{"0 stv; 2 ldv", detect.MissingFence, "different blocks"},
		{"0 stv; 0 fenceb; 2 ldv", detect.FenceScope, "different blocks"},
		{"0 st; 0 fence; 1 ldv", detect.Unordered, "threads of one block"},
		{"0 st; 0 fence; 2 ldv", detect.Unordered, "different blocks"},
		{"0 addb; 2 add", detect.AtomicScope, ""},
		{"0 cas 9; 0 fence; 0 stv; 0 fence; 0 exch 9; 1 stv", detect.MissingLock, "threads of one block"},
		{"0.0 st; 0.1 ld", detect.MissingBarrier, "threads of one warp"},
	} {
		b := litmus.Launch(2)
		litmus.Do(b, c.line)
		d := Spec.New(detect.Config{})
		d.Events(b)
		if f := d.Findings(); len(f) != 1 || f[0].Kind != c.kind || !strings.Contains(f[0].Message, c.says) {
			t.Errorf("%q gives %+v, want one finding %s of threads of %q", c.line, f, c.kind, c.says)
		}
	}
}

// TestSides checks that a finding describes both accesses correctly.
func TestSides(t *testing.T) {
	b := litmus.Launch(2)
	litmus.Do(b, "0.3 stv 1; 2.5 ld 1")
	litmus.Do(b, "0.4 addb 2; 3.6 add 2")
	litmus.Do(b, "1.7 st 3; 1.7 fence; 2.8 add 3")
	d := Spec.New(detect.Config{})
	d.Events(b)
	var got []string
	for _, f := range d.Findings() {
		for _, a := range f.Accesses {
			got = append(got, fmt.Sprintf("%v %v %v %d.%d +%d of %d", a.Op, a.Order, a.Scope, a.Warp, a.Lane, a.Address-litmus.Base, a.Size))
		}
	}
	side := func(op detect.Op, order event.Order, scope event.Scope, rest string) string {
		return fmt.Sprintf("%v %v %v %s", op, order, scope, rest)
	}
	want := []string{
		side(detect.Write, event.Volatile, event.NoScope, "0.3 +4 of 4"), side(detect.Read, event.Weak, event.NoScope, "2.5 +4 of 4"),
		side(detect.AtomicOp, event.Relaxed, event.ScopeCTA, "0.4 +8 of 4"), side(detect.AtomicOp, event.Relaxed, event.ScopeGPU, "3.6 +8 of 4"),
		side(detect.Write, event.Weak, event.NoScope, "1.7 +12 of 4"), side(detect.AtomicOp, event.Relaxed, event.ScopeGPU, "2.8 +12 of 4"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("accesses\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestWarpsTogether checks that lanes that run together do not race, whatever they share. Lanes that had parted at one
// of the two accesses race, except for lanes of one instruction. Lanes that do not exist or have exited do not part a
// warp.
func TestWarpsTogether(t *testing.T) {
	const all = ^uint32(0)
	for _, c := range []struct {
		what          string
		threads, gone uint32 // in a block; lanes of warp 0 that exit first
		first, second uint32 // lanes that store, and lanes that load the next lane's word
		races         bool
	}{
		{"all lanes", 64, 0, all, all, false},
		{"parted at the first", 64, 0, 0x7fffffff, all, true},
		{"parted at the second", 64, 0, all, 0x7fffffff, true},
		{"all that are left", 64, 0x3, all &^ 3, all &^ 3, false},
		{"some of those left", 64, 0x3, all &^ 3, all &^ 7, true},
		{"all that there are", 48, 0, 0xffff, 0xffff, false},
		{"some of those", 48, 0, 0xffff, 0x7fff, true},
	} {
		warp := (c.threads - 1) / 32
		if c.gone != 0 {
			warp = 0
		}
		b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: c.threads, Y: 1, Z: 1}}},
			Events: []event.Event{{Kind: event.KernelBegin, Launch: 1}}}
		if c.gone != 0 {
			litmus.Add(b, event.Event{Kind: event.Exit, Warp: warp, Mask: c.gone})
		}
		lanes := func(kind event.Kind, mask uint32, addr uint64) {
			litmus.Add(b, event.Event{Kind: kind, Warp: warp, Mask: mask, Addr: litmus.Base + addr + 4*uint64(bits.TrailingZeros32(mask)), Stride: 4, Size: 4, Space: event.Global})
		}
		lanes(event.Store, c.first, 4)
		lanes(event.Load, c.second, 8)
		d := Spec.New(detect.Config{})
		d.Events(b)
		if f := d.Findings(); len(f) > 0 != c.races {
			t.Errorf("%s: found %v, want a race: %v", c.what, f, c.races)
		}
	}
	for _, at := range []uint64{0, 1, 2, 3} { // lanes of one instruction, which share words or not
		b := litmus.Launch(1)
		litmus.Add(b, event.Event{Kind: event.Store, Mask: 0xff, Addr: litmus.Base + at, Stride: 4, Size: 4, Space: event.Global})
		d := Spec.New(detect.Config{})
		d.Events(b)
		if f := d.Findings(); len(f) > 0 {
			t.Errorf("lanes of one instruction race: %v", f)
		}
	}
}

// TestFilterBits checks that the filter of the locks that a lane holds has 16 bits (003, section IV), all of which are
// used by locks of either scope.
func TestFilterBits(t *testing.T) {
	var used uint16
	for n := range 200 {
		b := litmus.Launch(1)
		litmus.Do(b, fmt.Sprintf([]string{"0 cas %d; 0 fence", "0 casb %d; 0 fence"}[n%2], n/2))
		d := Spec.New(detect.Config{}).(*Detector)
		d.Events(b)
		f := d.warps[0].filter(0)
		if bits.OnesCount16(f) != 1 || d.warps[0].filter(1) != 0 {
			t.Fatalf("lock %d has the filter %b, and another lane %b", n, f, d.warps[0].filter(1))
		}
		used |= f
	}
	if used != 0xffff {
		t.Errorf("bits %b are used", used)
	}
}

// TestMemoryBytes checks that the memory for each warp, block and word is counted.
func TestMemoryBytes(t *testing.T) {
	bytes := func(blocks uint32, line string) uint64 {
		b := litmus.Launch(blocks)
		litmus.Do(b, line)
		d := Spec.New(detect.Config{}).(*Detector)
		d.Events(b)
		return d.MemoryBytes()
	}
	few, many := bytes(10, "0 st"), bytes(1010, "0 st")
	if each, least := (many-few)/1000, 2*uint64(unsafe.Sizeof(warp{}))+5; each < least || each > 2*least {
		t.Errorf("a block of two warps takes %d bytes, want %d or a little more", each, least)
	}
	if one, two := bytes(1, "0 st"), bytes(1, "0 st; 0 sts"); two < one+uint64(unsafe.Sizeof(cell{})) {
		t.Errorf("%d bytes with a word of shared memory, %d without", two, one)
	}
}
