package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb"
	"fencepost.dev/fencepost/internal/event"
)

// A program is a sequence of steps of threads: "0.1 st x" is a store by lane 1 of warp 0, "0.* st x" one by all its
// lanes. Blocks have two warps. An operation may have suffixes: an order, a scope (default gpu), and "fails" for a
// compare-and-swap. Variables are x and y, flags f and g, and locks m and n. Capitals are in shared memory, and doubled
// letters in other pages. Step i, counted from 1, is at place i; "=7" at its end makes that 7. "0 bar" is a barrier of
// a block. "next" ends the launch and begins one on another device that is not ordered with it.
var (
	orders = map[string]event.Order{"relaxed": event.Relaxed, "acquire": event.Acquire, "release": event.Release, "volatile": event.Volatile}
	scopes = map[string]event.Scope{"cta": event.ScopeCTA, "gpu": event.ScopeGPU, "sys": event.ScopeSys}
)

// parse returns the events of a program, without the end of its launch.
func parse(t *testing.T, program string) *event.Batch {
	t.Helper()
	launch := event.Launch{ID: 1, Kernel: "k", Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}
	if strings.Contains(program, "next") {
		launch.Device = 1
	}
	b := &event.Batch{Launches: []event.Launch{launch}, Events: []event.Event{{Kind: event.KernelBegin, Launch: 1}}}
	for i, step := range strings.Split(strings.TrimSuffix(program, "; "), ";") {
		step, place, _ := strings.Cut(strings.TrimSpace(step), "=")
		words := strings.Fields(step)
		if words[0] == "next" {
			b.Events = append(b.Events, event.Event{Kind: event.KernelEnd, Launch: launch.ID},
				event.Event{Kind: event.KernelBegin, Launch: launch.ID + 1, Side: launch.ID})
			launch.ID, launch.Agent, launch.Device = launch.ID+1, launch.Agent+1, launch.Device+1
			b.Launches = append(b.Launches, launch)
			continue
		}
		e := event.Event{Launch: launch.ID, Place: uint32(i + 1), Mask: 1, Size: 4, Scope: event.ScopeGPU, Space: event.Global}
		fmt.Sscan(place, &e.Place)
		lane := 0
		if n, _ := fmt.Sscanf(words[0], "%d.%d", &e.Warp, &lane); n == 2 {
			e.Mask = 1 << lane
		} else if strings.HasSuffix(words[0], ".*") {
			e.Mask = ^uint32(0)
		}
		parts := strings.Split(words[1], ".")
		for _, p := range parts[1:] {
			if o, ok := orders[p]; ok {
				e.Order = o
			} else if s, ok := scopes[p]; ok {
				e.Scope = s
			}
		}
		atomic := func(r event.RMW) {
			e.Kind, e.RMW, e.Order, e.Flags = event.Atomic, r, max(e.Order, event.Relaxed), event.FlagRead|event.FlagWrite
		}
		switch parts[0] {
		case "ld":
			e.Kind, e.Flags = event.Load, event.FlagRead
		case "st":
			e.Kind, e.Flags = event.Store, event.FlagWrite
		case "add":
			atomic(event.OtherRMW)
		case "exch":
			atomic(event.Exchange)
		case "cas":
			if atomic(event.CompareAndSwap); slices.Contains(parts, "fails") {
				e.Flags = event.FlagRead
			}
		case "fence":
			e.Kind, e.Order = event.Fence, event.SC
		case "exit":
			e.Kind, e.Mask = event.Exit, ^uint32(0)
		case "bar":
			e.Mask, e.Kind, e.Flags, e.Warp = ^uint32(0), event.Arrive, event.FlagWait, 2*e.Warp
			b.Events = append(b.Events, e)
			e.Warp++
			b.Events = append(b.Events, e)
			e.Kind = event.BarrierDone
		default:
			t.Fatalf("step %q", step)
		}
		if len(words) > 2 {
			if e.Addr = uint64(words[2][0])*64 + uint64(len(words[2])-1)<<20; words[2] < "a" {
				e.Space = event.Shared
			}
		}
		b.Events = append(b.Events, e)
	}
	return b
}

// places implements event.Places for some places.
type places struct {
	updates  map[uint32]uint32 // loads by stores
	discards map[uint32]bool
	lines    map[uint32][]int // PTX lines, innermost first
}

func (p places) Frames(place uint32) (out []event.Frame) {
	for _, line := range p.lines[place] {
		out = append(out, event.Frame{PTXLine: line})
	}
	return out
}
func (places) Arms(uint32) []event.Arm { return nil }
func (p places) Updates(place uint32) (load uint32, ok bool) {
	load, ok = p.updates[place]
	return load, ok
}
func (p places) Discards(place uint32) bool { return p.discards[place] }
func (places) Dereferences(uint32) bool     { return false }

// TestPlaces checks findings that depend on properties of the code.
func TestPlaces(t *testing.T) {
	gives := places{discards: map[uint32]bool{29: true}}
	ticket := func(thread, next, serving, in string) string { // a critical section of a ticket lock
		return fmt.Sprintf("%[1]s add %[2]s =21; %[1]s ld.relaxed %[3]s =22; %[1]s ld.relaxed %[3]s =22; %[1]s fence =23; %[4]s; %[1]s fence =28; %[1]s add %[3]s =29; ",
			thread, next, serving, in)
	}
	exchanged := func(thread, in string) string { // one of a lock that is taken by an exchange
		return fmt.Sprintf("%[1]s exch m =21; %[1]s exch m =21; %[1]s fence =23; %[2]s; %[1]s fence =28; %[1]s exch m =29; ", thread, in)
	}
	sequence := func(fence string) string { // one writes y, x and again y while another reads the counter, y and x
		return "0.0 st.volatile f =7; 0.0 fence; 0.0 st.volatile y =3; 0.0 st.volatile x =4; 0.0 fence; 0.0 st.volatile f =8; 0.0 fence; 2.0 ld.volatile f =1; " + fence +
			"0.0 st.volatile f =7; 0.0 fence; 0.0 st.volatile y =3; 0.0 st.volatile x =4; 0.0 st.volatile y =3; 0.0 fence; 0.0 st.volatile f =8; " +
			"2.0 ld.volatile y =5; 2.0 ld.volatile x =6"
	}
	const polled = "2.0 add g =30; 2.0 ld x =1; 2.0 fence =31; 0.0 add g =5; 2.0 add g =30; 0.0 fence; 0.0 st x =2"
	const queued = "0.0 exch m =21; 0.0 fence =23; 2.0 exch m =21; 2.0 ld.relaxed g =22; 2.0 ld.relaxed g =22; " // one has the lock, another waits for it
	for _, tt := range []struct {
		name, program string
		places        places
		want          string
	}{
		{"two ticket locks", ticket("0.0", "f", "g", "0.0 st x =1") + ticket("2.0", "m", "n", "2.0 ld x =2"), gives, "1-2 missing-lock two"},
		{"one ticket lock", ticket("0.0", "f", "g", "0.0 st x =1") + ticket("2.0", "f", "g", "2.0 ld x =2"), gives, ""},
		{"without the ticket lock", ticket("0.0", "f", "g", "0.0 st x =1") + "2.0 ld x =2", gives, "1-2 missing-lock"},
		{"after the critical section of a ticket lock", ticket("0.0", "f", "g", "0.0 st x =1") + "0.0 st x =3; " + ticket("2.0", "f", "g", "2.0 ld x =2"), gives, "3-2 missing-lock"},
		{"a number drawn, and a flag set that others have not read", "0.0 add f =21; 0.0 ld.relaxed g =22; 0.0 fence =23; 0.0 st x =1; 2.0 ld x =2", gives, "1-2 unordered"},
		{"a barrier of blocks", "0.0 add f =21; 0.0 ld.relaxed g =22; 0.0 ld.relaxed g =22; 2.0 add f =21; 2.0 fence; 2.0 st.relaxed g =24; 0.0 ld.relaxed g =22; 0.0 fence =23; " +
			"0.0 add f =21; 0.0 fence; 0.0 st.relaxed g =24; 0.0 st x =1; 4.0 ld x =2", gives, "1-2 unordered"},
		{"a barrier of blocks that is polled by adding nothing", "0.0 add g =25; 0.0 add f =21; 0.0 add g =22; 0.0 add g =22; 2.0 add f =21; 2.0 fence; 2.0 add g =29; 0.0 add g =22; 0.0 fence =23; " +
			"0.0 add g =25; 0.0 add f =21; 0.0 add g =22; 0.0 fence =23; 0.0 st x =1; 4.0 ld x =2", gives, "1-2 unordered"},
		{"a lock taken by an exchange", exchanged("0.0", "0.0 st x =1") + exchanged("2.0", "2.0 ld x =2"), gives, ""},
		{"without the lock that is taken by an exchange", exchanged("0.0", "0.0 st x =1") + "2.0 ld x =2", gives, "1-2 missing-lock"},
		{"before a lock is taken by an exchange", exchanged("4.0", "4.0 st y") + "0.0 st x =1; 0.0 exch m =21; 0.0 exch m =21; " + exchanged("2.0", "2.0 ld x =2"), gives, "1-2 missing-lock"},
		{"a value put by an exchange, without a fence", "0.0 st x =1; 0.0 exch m =21; 2.0 exch m =21; 2.0 fence; 2.0 ld x =2", gives, "1-2 missing-fence"},
		{"a lock with a queue", queued + "0.0 st x =1; 0.0 fence =28; 0.0 exch g =29; 2.0 ld.relaxed g =22; 2.0 fence =23; 2.0 ld x =2", gives, ""},
		{"a lock with a queue, and an access after it was given back", queued + "0.0 fence =28; 0.0 exch g =29; 0.0 st x =1; 2.0 ld.relaxed g =22; 2.0 fence =23; 2.0 ld x =2", gives, "1-2 missing-lock"},
		{"a volatile variable of a lock with a queue", queued + "0.0 st.volatile x =1; 0.0 fence =28; 0.0 exch g =29; 4.0 ld.volatile x =2", gives, "1-2 volatile"},
		{"a lock with a queue, given back without a fence", queued + "0.0 st x =1; 0.0 exch g =29; 2.0 ld.relaxed g =22; 2.0 fence =23; 2.0 ld x =2", gives, "1-2 missing-fence"},
		{"volatile data of a sequence lock", sequence("2.0 fence; "), gives, "3-5 volatile; 4-6 volatile; 7-1 volatile; 8-1 volatile"},
		{"volatile data of a sequence lock, without a fence", sequence(""), gives, "3-5 missing-fence; 4-6 missing-fence; 7-1 volatile; 8-1 volatile"},
		{"a counter polled by calls, before the access in the code", polled, places{}, "1-2 missing-fence"},
		{"the same, and the code is known", polled, places{lines: map[uint32][]int{1: {20}, 30: {100, 10}, 31: {200, 30}}}, "1-2 unordered"},
		{"an update", "0.* ld x; 0.* st x", places{}, "1-2 warp-synchronous; 2-2 same-value"},
		{"an update that is lost", "0.* ld x; 0.* st x", places{updates: map[uint32]uint32{2: 1}}, "1-2 warp-synchronous lost; 2-2 unordered lost"},
		{"an update of what another load gave", "0.* ld x; 0.* ld x; 0.* st x", places{updates: map[uint32]uint32{3: 2}}, "1-3 warp-synchronous; 2-3 warp-synchronous lost; 3-3 unordered lost"},
		{"updates by turns", "0.0 ld x =1; 0.0 st x =2; 0.1 ld x =1; 0.1 st x =2", places{updates: map[uint32]uint32{2: 1}}, "2-1 warp-synchronous; 2-2 same-value"},
		{"a sum", "0.0 ld X; 0.0 add F; 1.0 add F; 1.0 st X", places{}, "1-4 missing-fence"},
		{"a sum that nobody looks at", "0.0 ld X; 0.0 add F =5; 1.0 add F =5; 1.0 st X", places{discards: map[uint32]bool{5: true}}, "1-4 missing-barrier"},
		{"a count of blocks that is polled", "0.0 ld x; 0.0 add f =5; 2.0 add f =5; 2.0 st x", places{discards: map[uint32]bool{5: true}}, "1-4 missing-fence"},
	} {
		d := hb.New(detect.Config{Places: tt.places})
		b := parse(t, tt.program)
		for i := range b.Events {
			if e := &b.Events[i]; e.Kind == event.Store && e.Order == event.Weak { // all store the same value
				e.Flags |= event.FlagValues
				e.Val = uint32(len(b.Values))
				b.Values = append(b.Values, make([]uint64, 32)...)
			}
		}
		d.Events(b)
		var got []string
		for _, f := range d.Findings() {
			text := fmt.Sprintf("%d-%d %s", f.Accesses[0].Place, f.Accesses[1].Place, f.Kind)
			if strings.Contains(f.Message, "different locks") {
				text += " two"
			}
			if strings.HasPrefix(f.Fix, "make the whole update one atomic operation") {
				text += " lost"
			}
			got = append(got, text)
		}
		if slices.Sort(got); strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %s\n  gives %s\n  not   %s", tt.name, tt.program, strings.Join(got, "; "), tt.want)
		}
	}
}

// TestKinds checks that the kind of a race follows from the synchronisation between the two accesses.
func TestKinds(t *testing.T) {
	const release, acquire = "0.0 st x; 0.0 fence; 0.0 st.relaxed f; ", "2.0 ld.relaxed f; 2.0 fence; 2.0 ld x"
	locked := func(thread, in string) string { // a critical section of m
		return fmt.Sprintf("%[1]s cas m; %[1]s fence; %[2]s; %[1]s fence; %[1]s exch m; ", thread, in)
	}
	tests := []struct{ name, program, want string }{
		{"nothing", "0.0 st x; 2.0 ld x", "1-2 unordered"},
		{"handed over", release + acquire, ""},
		{"no release", "0.0 st x; 0.0 st.relaxed f; " + acquire, "1-5 missing-fence"},
		{"no acquire", release + "2.0 ld.relaxed f; 2.0 ld x", "1-5 missing-fence"},
		{"a flag that was not observed", "0.0 st x; 2.0 ld.relaxed f; 0.0 st.relaxed f; 2.0 ld x", "1-4 unordered"},
		{"written before the access", "0.0 st.relaxed f; 0.0 st x; 2.0 ld.relaxed f; 2.0 ld x", "2-4 unordered"},
		{"written by a third thread", "0.0 st x; 4.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 ld x", "1-4 unordered"},
		{"its own flag", "0.0 st x; 2.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 ld x", "1-4 unordered"},
		{"narrow flag", "0.0 st x; 0.0 fence; 0.0 st.relaxed.cta f; " + acquire, "1-6 insufficient-atomic-scope; 3-4 insufficient-atomic-scope"},
		{"narrow fence", "0.0 st x; 0.0 fence.cta; 0.0 st.relaxed f; " + acquire, "1-6 insufficient-fence-scope"},
		{"narrow acquire", release + "2.0 ld.relaxed f; 2.0 fence.cta; 2.0 ld x", "1-6 insufficient-fence-scope"},
		{"narrow release operation", "0.0 st x; 0.0 st.release.cta f; " + acquire, "1-5 insufficient-atomic-scope; 2-3 insufficient-atomic-scope"},
		{"the other flag", "0.0 st x; 0.0 st.relaxed f; 4.0 st.relaxed g; 2.0 ld.relaxed f; 2.0 ld.relaxed g; 2.0 ld x", "1-6 missing-fence"},
		{"an element of a queue, and the end of the queue with a narrow fence", "0.0 st x; 0.0 st.relaxed g; 0.0 fence.cta; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 2.0 ld.relaxed g; 2.0 ld x",
			"1-8 insufficient-fence-scope"},
		{"a counter, and a narrow flag", "0.0 st x; 0.0 st.release.cta f; 0.0 add g =9; 2.0 ld.acquire.cta f; 2.0 add g =9; 2.0 st x", "1-6 insufficient-atomic-scope; 2-4 insufficient-atomic-scope"},
		{"flags of others", "0.0 st x; 4.0 st.relaxed f; 5.0 st.relaxed g; 2.0 ld.relaxed f; 2.0 ld.relaxed g; 2.0 ld x", "1-6 unordered"},
		{"two flags, one with fences", "0.0 st x; 0.0 fence.gpu; 0.0 st.relaxed f; 4.0 st.relaxed g; 2.0 ld.relaxed f; 2.0 ld.relaxed g; 2.0 fence.gpu; 2.0 ld x", ""},
		{"a volatile flag itself", "0.0 st x; 0.0 st.volatile f; 4.0 st.volatile g; 2.0 ld.volatile g; 2.0 ld.volatile f; 2.0 ld x",
			"1-6 missing-fence; 2-5 volatile; 3-4 volatile"},
		{"the flag before it", "0.0 st.volatile y; 0.0 st.volatile f; 2.0 ld.volatile f; 2.0 ld.volatile y", "1-4 missing-fence; 2-3 volatile"},
		{"volatile data handed over", "0.0 st.volatile x; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 ld.volatile x", "1-4 missing-fence"},
		{"volatile data, read by others without the flag", "0.0 st.volatile x; 0.0 st.relaxed f; 4.0 ld.volatile x =9; 2.0 ld.relaxed f; 2.0 ld.volatile x =9", "1-9 missing-fence"},
		{"volatile data, read by others after the flag", "0.0 st.volatile x; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 ld.volatile x =9; 4.0 ld.volatile x =9", "1-9 missing-fence"},
		{"a volatile array", "0.0 st.volatile x =1; 0.0 st.volatile f =1; 2.0 ld.volatile f =2; 2.0 ld.volatile x =2", "1-2 volatile"},
		{"a volatile array, updated", "0.0 ld.volatile x =1; 0.0 st.volatile x =2; 0.0 st.volatile f =2; 2.0 ld.volatile f =1; 2.0 st.volatile f =2; 2.0 ld.volatile x =1; 2.0 st.volatile x =2",
			"2-1 volatile"},
		{"a volatile array, and a flag", "0.0 st.volatile x =1; 0.0 st.volatile y =1; 0.0 st.volatile f; 2.0 ld.volatile f; 2.0 ld.volatile y =2; 2.0 ld.volatile x =2",
			"1-2 missing-fence; 3-4 volatile"},
		{"after the critical section, another of the block in one since", locked("0.0", "0.0 st y") + "0.0 ld x =40; " + locked("4.0", "4.0 st y") + locked("1.0", "1.0 st y") + locked("2.0", "2.0 st x =41"), "40-41 missing-lock"},
		{"the same, and then outside of one", locked("0.0", "0.0 st y") + "0.0 ld x =40; " + locked("4.0", "4.0 st y") + locked("1.0", "1.0 st y") + locked("2.0", "2.0 st y") + "2.0 st x =41", "40-41 unordered"},
		{"without the lock, another of the block in a critical section since", "0.0 st x =20; " + locked("1.0", "1.0 st y") + locked("2.0", "2.0 st x =21"), "20-21 missing-lock"},
		{"narrow fences of a barrier that is passed twice", "0.0 add f =1; 0.0 add f =2; 0.0 st x; 0.0 fence.cta; 0.0 add f =1; 2.0 add f =2; 2.0 fence; 2.0 ld x", "3-8 insufficient-fence-scope"},
		{"a flag set twice, and polled by adding nothing", "0.0 exch f =1; 0.0 st x; 0.0 fence.cta; 0.0 exch f =3; 2.0 add f =4; 2.0 fence; 2.0 ld x =6", "2-6 insufficient-fence-scope"},
		{"a flag read by adding nothing, then set", "0.0 st x; 0.0 add f =7; 0.0 fence.cta; 0.0 exch f =8; 2.0 add f =9; 2.0 fence; 2.0 ld x =6", "1-6 insufficient-fence-scope"},
		{"a volatile array, updated in two steps", "0.0 cas x =1; 0.0 add x =7; 0.0 add f =7; 2.0 ld.volatile f =2; 2.0 ld.volatile x =2", "1-2 volatile; 7-2 volatile"},
		{"a volatile flag, written between two tickets", "0.0 add f =1; 0.0 st.volatile x; 0.0 fence; 0.0 add f =1; 2.0 add f =1; 2.0 ld.volatile x", "2-6 volatile"},
		{"volatile data, written between two counts that are polled", "0.0 add f =1; 0.0 st.volatile x; 2.0 add f =1; 0.0 fence; 0.0 add f =1; 2.0 ld.relaxed f; 2.0 ld.volatile x",
			"2-7 missing-fence"},
		{"volatile data, counted since", "0.0 ld.volatile x; 0.0 add f; 2.0 add f; 2.0 st.volatile x", "1-4 volatile"},
		{"a volatile flag, counted before it was written", "0.0 add f; 2.0 add f; 0.0 st.volatile x; 0.0 add f; 2.0 ld.volatile x", "3-5 volatile"},
		{"an access after what was observed", "0.0 add f; 2.0 add f; 0.0 st.relaxed.cta x; 0.0 add f; 2.0 ld.relaxed x", "3-5 insufficient-atomic-scope"},
		{"a volatile index, read again after the slot was handed over", "0.0 ld.volatile x =1; 0.0 fence; 0.0 st.volatile f =3; 0.0 ld.volatile x =1; 2.0 ld.volatile f; " +
			"2.0 fence; 2.0 st.volatile x", "1-7 volatile; 3-5 volatile"},
		{"volatile data, read before the slot was handed over", "0.0 ld.volatile x =1; 0.0 st.volatile f =2; 0.0 fence; 0.0 ld.volatile x =1; 0.0 st.volatile f =2; 2.0 ld.volatile f; " +
			"2.0 fence; 2.0 st.volatile x", "1-8 missing-fence; 2-6 volatile"},
		{"handed over after it was observed", "0.0 st.relaxed f =1; 2.0 ld.relaxed f; 0.0 st x; 0.0 fence; 0.0 st.relaxed f =1; 2.0 ld x", "3-6 unordered"},
		{"passed on by a third block, without a fence", release + "4.0 ld.relaxed f =21; 4.0 ld.relaxed f =21; 4.0 st.relaxed g; 2.0 ld.relaxed g; 2.0 fence; 2.0 ld x", "1-9 unordered passes"},
		{"passed on by a third block, which has ended", release + "4.0 ld.relaxed f =21; 4.0 ld.relaxed f =21; 4.0 st.relaxed g; 4.0 exit; 5.0 exit; 2.0 ld.relaxed g; 2.0 fence; 2.0 ld x",
			"1-11 unordered passes"},
		{"passed on by a third block, for another thread of it", release + "4.0 ld.relaxed f =21; 4.0 ld.relaxed f =21; 2 bar; 5.0 st.relaxed g; 2.0 ld.relaxed g; 2.0 fence; 2.0 ld x", "1-10 unordered passes"},
		{"passed on by a third block", release + "4.0 ld.relaxed f =21; 4.0 ld.relaxed f =21; 4.0 fence; 4.0 st.relaxed g; 2.0 ld.relaxed g; 2.0 fence; 2.0 ld x", ""},
		{"a third block, which has not read what the first wrote", "4.0 ld.relaxed f =21; 4.0 ld.relaxed f =21; 4.0 st.relaxed g; 0.0 st x; 2.0 ld.relaxed g; 2.0 fence; 2.0 ld x", "4-7 unordered"},
		{"within a block", "0.0 st X; 0.0 st.volatile.cta F; 1.0 ld.volatile.cta F; 1.0 ld X", "1-4 missing-fence; 2-3 volatile"},
		{"a lane for another", "0.0 st x; 0.0 st.relaxed f; 2.0 ld.relaxed f; 1 bar; 3.5 ld x", "1-5 missing-fence"},
		{"a lane for another, without a barrier", "0.0 st x; 0.0 st.relaxed f; 2.0 ld.relaxed f; 3.5 ld x", "1-4 unordered"},
		{"a lane that does not wait for another of its block", release + "2.0 ld.relaxed f; 2.0 fence; 3.5 ld x", "1-6 missing-barrier waits"},
		{"one that does not, and one that was early", "0.0 st x; 2.5 ld x =9; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 3.5 ld x =9", "1-9 missing-barrier waits"},
		{"one that does not, and one that is early", release + "2.0 ld.relaxed f; 2.0 fence; 3.5 ld x =9; 4.0 ld x =9", "1-9 missing-barrier waits"},
		{"one that is early, and has exited when another of its block has waited", "0.0 st x; 3.5 ld x; 3.0 exit; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 2.0 exit", "1-2 missing-barrier waits"},
		{"one that is early, and meets its block after another of it has waited", "0.0 st x; 3.5 ld x; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 1 bar", "1-2 missing-barrier waits"},
		{"one that is early, and reads before the other writes", "3.5 ld x; 0.0 st x; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 1 bar", "1-2 missing-barrier awaits"},
		{"one that writes what the other has read", "0.0 ld x; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 3.5 st x", "1-6 missing-barrier waits"},
		{"one that reads early, and meets its block before the other writes", "3.5 ld x; 1 bar; 0.0 st x; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 1 bar", "1-3 unordered"},
		{"one that meets its block before another of it waits", "0.0 st x; 3.5 ld x; 1 bar; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 1 bar", "1-2 unordered"},
		{"one that another of its block tells, without a fence", release + "2.0 ld.relaxed f; 2.0 fence; 2.0 st.relaxed G; 3.5 ld.relaxed G; 3.5 ld x", "1-8 unordered"},
		{"one that another of its block told something before", release + "2.0 st.relaxed G; 3.5 ld.relaxed G; 1 bar; 2.0 ld.relaxed f; 2.0 fence; 3.5 ld x", "1-9 missing-barrier waits"},
		{"the same, without a fence", release + "2.0 ld.relaxed f; 3.5 ld x", "1-5 unordered"},
		{"one that has waited for its block", release + "2.0 ld.relaxed f; 2.0 fence; 1 bar; 3.5 ld x", ""},
		{"who did not get the lock", locked("0.0", "0.0 st x =20") + "2.0 cas.fails m; 2.0 st x =21", "20-21 missing-lock"},
		{"neither got the lock", locked("0.0", "0.0 st y") + "0.0 cas.fails m; 0.0 st x =20; " + locked("0.0", "0.0 st y") + "2.0 cas.fails m; 2.0 st x =21", "20-21 unordered"},
		{"a flag polled by a swap that fails", "0.0 st x; 0.0 exch f; 2.0 cas.fails f; 2.0 ld x", "1-4 missing-fence"},
		{"a volatile array, whose elements one instruction reads", "0.0 ld.volatile x =1; 0.0 st.volatile f =2; 2.0 ld.volatile f =1; 2.0 st.volatile x =4", "1-4 volatile; 2-1 volatile"},
		{"the same, read by a third thread", "0.0 ld.volatile x =1; 4.0 ld.volatile x =3; 0.0 st.volatile f =2; 2.0 ld.volatile f =3; 2.0 st.volatile x =4", "1-4 volatile; 2-3 volatile; 3-4 volatile"},
		{"a lane's own, though others have observed since", "0.0 st x; 0.0 st.relaxed f; 4.0 st.relaxed g; 2.0 ld.relaxed f; 2.1 ld.relaxed g; 2.0 ld x", "1-6 missing-fence"},
		{"for a block", "0.1 st x; 0 bar; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 2.0 ld x", "1-6 missing-fence"},
		{"for a block, with a fence before the barrier alone", "0.1 st x; 0.0 fence; 0 bar; 0.0 st.relaxed f; " + acquire, "1-7 missing-fence"},
		{"for a block, and a thread that comes late", "0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 1 bar; 2.5 st x =20; 0.5 st x =20; " +
			"2.0 fence; 2.0 st.relaxed g; 4.0 ld.relaxed g; 4.0 fence; 2 bar; 4.5 st x =20", "20-20 missing-barrier"},
		{"for a block, before a barrier", "0.1 st x; 0.0 fence; 0.0 st.relaxed f; " + acquire, "1-6 missing-barrier"},
		{"for a block that hands over by itself", "1.1 st.relaxed g; 1.2 ld.relaxed g; 0.1 st x; 0.0 fence; 0.0 st.relaxed f; " + acquire, "3-8 unordered"},
		{"for a block that counted before a barrier", "1.1 add G; 1.2 add G; 0 bar; 0.1 st x; 0.0 fence; 0.0 st.relaxed f; " + acquire, "4-9 missing-barrier"},
		{"for a block that counts since", "0.1 st x; 1.1 add G; 1.2 add G; 0.0 fence; 0.0 st.relaxed f; " + acquire, "1-8 unordered"},
		{"after counting in the block", "0.0 st x; 0.0 st.relaxed f; 2.0 ld.relaxed f; 1 bar; 2.0 add G; 3.5 add G; 3.5 ld x", "1-7 missing-fence"},
		{"counted within a block", "0.0 st x; 0.0 add F; 1.0 add F; 1.0 ld x", "1-4 missing-fence"},
		{"counted", "0.0 st x; 0.0 add f; 2.0 add f; 2.0 ld x", "1-4 missing-fence"},
		{"counted in another page", "0.0 st x; 0.0 add ff; 2.0 add ff; 2.0 ld x", "1-4 missing-fence"},
		{"counted by warps in another page", "0.5 st x; 0.* add ff; 2.* add ff; 2.7 ld x", "1-4 missing-fence"},
		{"counted by a warp, seen by its first lane", "0.0 st x; 0.0 add f; 2.* add f; 2.0 ld x", "1-4 missing-fence"},
		{"counted by a warp, seen by another lane", "0.0 st x; 0.* add f; 2.* add f; 2.5 ld x", "1-4 missing-fence"},
		{"counted by a warp in its block", "1.* add G; 0.1 st x; 0.0 fence; 0.0 st.relaxed f; " + acquire, "2-7 unordered"},
		{"counted by a warp", "1.* add g; 0.1 st x; 0.0 fence; 0.0 st.relaxed f; " + acquire, "2-7 unordered"},
		{"for a block that read after a barrier what was counted before", "1.1 add G; 0 bar; 1.2 ld.relaxed G; 0.1 st x; 0.0 fence; 0.0 st.relaxed f; " + acquire, "4-9 missing-barrier"},
		{"for a block that handed over and has ended", "1.1 st.relaxed g; 1.2 ld.relaxed g; 0.1 st x; 0.0 fence; 0.0 st.relaxed f; 0.0 exit; 1.0 exit; " + acquire, "3-10 unordered"},
		{"under one lock", locked("0.0", "0.0 st x") + locked("2.0", "2.0 st x"), ""},
		{"one alone", locked("0.0", "0.0 st x") + "2.0 st x", "3-6 missing-lock"},
		{"one alone, the later", "0.0 st x; " + locked("2.0", "2.0 st x"), "1-4 missing-lock"},
		{"one alone, still there", "0.0 cas m; 0.0 fence; 0.0 st x; 2.0 st x", "3-4 missing-lock"},
		{"one alone, whose block has ended", locked("0.0", "0.0 st x") + "0.0 exit; 1.0 exit; 2.0 st x", "3-8 missing-lock"},
		{"after the critical section", locked("0.0", "0.0 st y") + "0.0 fence; 0.0 st x; 2.0 st x", "7-8 unordered"},
		{"a swap that failed", "0.0 cas.fails m; 0.0 fence; 0.0 st x; 2.0 st x", "3-4 unordered"},
		{"a swap without a fence", "0.0 cas m; 0.0 st x; 2.0 st x", "2-3 unordered"},
		{"an acquire", "0.0 cas.acquire m; 0.0 st x; 2.0 st x", "2-3 missing-lock"},
		{"who took the lock once", locked("2.0", "2.0 st y") + locked("0.0", "0.0 st x") + "2.0 st x", "8-11 missing-lock"},
		{"who has given the lock back", locked("0.0", "0.0 st x") + "0.0 st x; " + locked("2.0", "2.0 st x"), "6-9 missing-lock"},
		{"who takes the lock later", "0.0 st x; " + locked("2.0", "2.0 st x") + locked("0.0", "0.0 st x"), "1-4 missing-lock"},
		{"two locks", "0.0 cas m; 0.0 fence; 0.0 st x; 2.0 cas n; 2.0 fence; 2.0 st x", "3-6 missing-lock two"},
		{"an arrival at a barrier of the grid, polled by another instruction, and the next one", "2.0 add.release f =1; 0.0 add.release f =1; 0.0 ld.acquire f =3; 2.0 ld.acquire f =3; " +
			"2.0 st x =5; 2.0 add.release f =1; 0.0 ld x =7", "5-7 unordered"},
		{"an arrival, and an acquire of another variable", "2.0 st x; 2.0 add.release f =2; 0.0 add.release f =2; 0.0 ld.acquire g; 0.0 ld x", "1-5 missing-fence"},
		{"without the lock that others of the block hold, who observe each other", "0.0 st x =20; " + locked("1.0", "1.0 st y") + "1.1 cas m; 1.1 fence; 1.1 fence; 1.1 exch m =30; " +
			locked("2.0", "2.0 st x =21"), "20-21 missing-lock"},
		{"handed over, and volatile data of the block read since", "0.0 st x; 0.0 fence; 0.0 add f =3; 2.0 add f =3; 3.0 st.volatile X; 3.0 st.volatile Y; 3.0 st.volatile G; 2.0 ld.volatile X; " +
			"2.0 ld.volatile Y; 2.0 ld.volatile X; 2.0 ld.volatile G; 2.0 st x =12", "1-12 missing-fence; 5-8 volatile; 6-9 volatile; 7-11 volatile"},
		{"a lock within a lock", "0.0 cas m; 0.0 fence; 0.0 cas n; 0.0 fence; 0.0 st x; 2.0 st x", "5-6 missing-lock"},
		{"a lock that both hold, and another", "0.0 cas n; 0.0 fence; " + locked("0.0", "0.0 st x") + "2.0 cas m; 2.0 st.volatile y; 2.0 fence.cta; 2.0 st x", "5-11 insufficient-lock-scope"},
		{"narrow lock", "0.0 cas.cta m; 0.0 fence; 0.0 st x; 0.0 fence; 0.0 exch.cta m; 2.0 cas.cta m; 2.0 fence; 2.0 st x",
			"1-6 insufficient-atomic-scope; 3-8 insufficient-lock-scope; 5-6 insufficient-atomic-scope"},
		{"narrow fences of a barrier", "0.0 add f; 0.0 st x; 0.0 fence.cta; 0.0 add f =4; 2.0 add f =4; 2.0 fence.cta; 2.0 ld x", "2-7 insufficient-fence-scope"},
		{"given back without a fence", "0.0 cas m; 0.0 fence; 0.0 st x; 0.0 exch m; 2.0 cas m; 2.0 fence; 2.0 st x", "3-7 missing-fence"},
		{"by a leader", "0.0 cas m; 0.0 fence; 0 bar; 0.5 st x; 0.0 fence; 0.0 exch m; 2.0 cas m; 2.0 fence; 1 bar; 2.5 st x", "4-10 missing-barrier leader"},
		{"by a leader, without a barrier", "0.0 cas m; 0.0 fence; 0.5 st x; 0.0 fence; 0.0 exch m; 2.0 cas m; 2.0 fence; 2.5 st x", "3-8 unordered"},
		{"by leaders of other locks", "0.0 cas m; 0.0 fence; 0 bar; 0.5 st x; 0.0 fence; 0.0 exch m; 2.0 cas n; 2.0 fence; 1 bar; 2.5 st x", "4-10 unordered"},
		{"volatile data written, counted since", "0.0 st.volatile x; 0.0 add f; 2.0 add f; 2.0 ld.volatile x", "1-4 missing-fence"},
		{"one handed over, another not", "0.0 st x =1; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 ld x =9; 4.0 st y =1; 6.0 ld y =9", "1-9 unordered"},
		{"one handed over, another perhaps", "0.0 st x =1; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 ld x =9; 4.0 st y =1; 0.0 st.relaxed g; 6.0 ld.relaxed g; 6.0 ld y =9",
			"1-9 missing-fence"},
		{"the fence of whom a lane observes for", "0.0 st x; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 1 bar; 3.5 fence.cta; 3.5 ld x", "1-7 insufficient-fence-scope"},
		{"the fence of whom a thread signals for", "0.1 st x; 0.1 fence.cta; 0 bar; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence; 2.0 ld x", "1-7 insufficient-fence-scope"},
		{"a lock itself", "0.0 cas m; 0.0 fence; 0.0 st.volatile m; 2.0 ld.volatile m", "1-4 volatile; 3-4 volatile"},
		{"a lock that both hold at once, and another", "2.0 cas m; 2.0 fence; 0.0 cas m; 0.0 fence; 0.0 cas n; 0.0 fence; 0.0 st x; 2.0 st x", "7-8 unordered"},
		{"under one lock, over a barrier", "0.0 cas.cta m; 0.0 fence; 0 bar; 0.0 st x; 0.0 fence; 0.0 exch.cta m; 2.0 cas.cta m; 2.0 fence; 2.0 st x",
			"1-7 insufficient-atomic-scope; 4-9 insufficient-lock-scope; 6-7 insufficient-atomic-scope"},
		{"handed over by a flag, yet under a lock", "0.0 st x; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 cas m; 2.0 fence; 2.0 st x", "1-6 missing-lock"},
		{"a semaphore that is taken at first", "0.0 st x; 0.0 exch m; 2.0 cas m; 2.0 fence; 2.0 st x", "1-5 missing-fence"},
		{"a lock itself, handed over by a flag", "0.0 ld.volatile m; 0.0 st.relaxed f; 2.0 ld.relaxed f; 2.0 cas m; 2.0 fence; 2.0 st.volatile m", "1-4 missing-fence; 1-6 missing-fence"},
		{"another warp for a lane", "0.0 st x; 0.0 fence; 0.0 st.relaxed f; 3.0 ld.relaxed f; 3.0 fence.cta; 1 bar; 2.5 ld x", "1-7 insufficient-fence-scope"},
		{"the fence of another lane", "0.0 st x; 0.0 fence; 0.0 st.relaxed f; 2.0 ld.relaxed f; 1 bar; 2.5 fence.cta; 2.5 ld x", "1-7 insufficient-fence-scope"},
		{"its own signal rather than another's", "0.1 st x; 0 bar; 0.0 st.relaxed f; 0.1 fence; 0.1 st.relaxed f; 2.0 ld.relaxed f; 2.0 fence.cta; 2.0 ld x",
			"1-8 insufficient-fence-scope"},
		{"by a leader of another warp", "3.0 cas m; 3.0 fence; 1 bar; 2.5 st x; 3.0 fence; 3.0 exch m; 0.0 cas m; 0.0 fence; 0 bar; 0.5 st x", "4-10 missing-barrier leader"},
		{"a lock in one block, a flag in another", "0.0 cas m; 0.0 fence; 2.0 st.relaxed f; 2.0 fence", ""},
		{"two devices", "0.0 st x; next; 0.0 ld x", "1-3 inter-kernel"},
		{"one counter of two devices", "0.0 add f; next; 0.0 add f", "1-3 insufficient-atomic-scope"},
		{"one counter of the system", "0.0 add.sys f; next; 0.0 add.sys f", ""},
		{"a counter of a block and one of the system", "0.0 add.cta f; next; 0.0 add.sys f", "1-3 insufficient-atomic-scope"},
		{"volatile on two devices", "0.0 st.volatile x; next; 0.0 ld.volatile x", "1-3 inter-kernel"},
		{"handed over to a device", "0.0 st x; 0.0 fence.sys; 0.0 st.relaxed.sys f; next; 0.0 ld.relaxed.sys f; 0.0 fence.sys; 0.0 ld x", ""},
		{"released to a device", "0.0 st x; 0.0 st.release.sys f; next; 0.0 ld.acquire.sys f; 0.0 ld x", ""},
		{"narrow flag of a device", "0.0 st x; 0.0 fence.sys; 0.0 st.relaxed f; next; 0.0 ld.relaxed.sys f; 0.0 fence.sys; 0.0 ld x",
			"1-7 insufficient-atomic-scope; 3-5 insufficient-atomic-scope"},
		{"narrow fence of a device", "0.0 st x; 0.0 fence; 0.0 st.relaxed.sys f; next; 0.0 ld.relaxed.sys f; 0.0 fence.sys; 0.0 ld x", "1-7 insufficient-fence-scope"},
		{"narrow acquire of a device", "0.0 st x; 0.0 fence.sys; 0.0 st.relaxed.sys f; next; 0.0 ld.relaxed.sys f; 0.0 fence; 0.0 ld x", "1-7 insufficient-fence-scope"},
		{"no release to a device", "0.0 fence.sys; 0.0 st x; 0.0 st.relaxed.sys f; next; 0.0 ld.relaxed.sys f; 0.0 fence.sys; 0.0 ld x", "2-7 missing-fence"},
		{"no acquire of a device", "0.0 st x; 0.0 fence.sys; 0.0 st.relaxed.sys f; next; 0.0 ld.relaxed.sys f; 0.0 ld x", "1-6 missing-fence"},
		{"a device that releases nothing", "0.0 st x; 0.0 st.relaxed.sys f; next; 0.0 ld.relaxed.sys f; 0.0 fence.sys; 0.0 ld x", "1-6 inter-kernel"},
		{"for a block, to a device", "0.1 st x; 0.0 fence.sys; 0.0 st.relaxed.sys f; next; 0.0 ld.relaxed.sys f; 0.0 fence.sys; 0.0 ld x", "1-7 inter-kernel"},
		{"a lock of two devices", "0.0 cas.sys m; 0.0 fence; 0.0 st x; 0.0 fence; 0.0 exch.sys m; next; 0.0 cas.sys m; 0.0 fence; 0.0 st x", "3-9 insufficient-lock-scope"},
		{"in a launch that observed another device", "0.0 st.release.sys f; next; 0.0 st x; 0.0 st.relaxed g; 2.0 ld.relaxed g; 2.0 ld.acquire.sys f; 2.0 fence; 2.0 ld x", "3-8 missing-fence"},
		{"locks of shared memory", "0.0 cas.cta M; 0.0 fence; 0.0 st x; 2.0 cas.cta M; 2.0 fence; 2.0 st x", "3-6 missing-lock two"},
	}
	for i := range 2 * len(tests) {
		tt := tests[i/2]
		d := hb.New(detect.Config{Options: map[string]string{"history": hb.Spec.Options[0].Values[i%2]}})
		d.Events(parse(t, tt.program))
		var got []string
		for _, f := range d.Findings() {
			text := fmt.Sprintf("%d-%d %s", f.Accesses[0].Place, f.Accesses[1].Place, f.Kind)
			for word, said := range map[string]string{"two": "different locks", "leader": "for all of them", "waits": "of the second block waits", "awaits": "of the first block waits", "passes": "of a third block passes"} {
				if strings.Contains(f.Message, said) {
					text += " " + word
				}
			}
			got = append(got, text)
		}
		if slices.Sort(got); strings.Join(got, "; ") != tt.want {
			t.Errorf("%s, history %s: %s\n  gives %s\n  not   %s", tt.name, hb.Spec.Options[0].Values[i%2], tt.program, strings.Join(got, "; "), tt.want)
		}
	}
}
