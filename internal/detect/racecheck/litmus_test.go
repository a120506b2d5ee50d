package racecheck

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/litmus"
	"fencepost.dev/fencepost/internal/event"
)

// do appends the operations of a line: those of package litmus, and
//
//	W wait N   all lanes of the warp arrive at barrier N and wait; arr: and continue; bar: it completes
//	W.L lds WORD=VALUE, the value that is written; W.* for all lanes at one word
func do(b *event.Batch, line string) {
	for op := range strings.SplitSeq(line, ";") {
		f := strings.Fields(op)
		thread, all := strings.CutSuffix(f[0], ".*")
		word, value := "0", ""
		if len(f) > 2 {
			word, value, _ = strings.Cut(f[2], "=")
		}
		var warp, n uint32
		fmt.Sscan(thread, &warp)
		fmt.Sscan(word, &n)
		switch f[1] {
		case "wait", "arr":
			e := event.Event{Kind: event.Arrive, Warp: warp, Mask: ^uint32(0), Barrier: uint8(n), Aux: 64}
			if f[1] == "wait" {
				e.Flags = event.FlagWait
			}
			litmus.Add(b, e)
			continue
		case "bar":
			litmus.Add(b, event.Event{Kind: event.BarrierDone, Warp: warp, Mask: 1, Barrier: uint8(n)})
			continue
		case "exit":
			litmus.Add(b, event.Event{Kind: event.Exit, Warp: warp, Mask: ^uint32(0)})
			continue
		}
		litmus.Do(b, thread+" "+f[1]+" "+word)
		e := &b.Events[len(b.Events)-1]
		if all {
			e.Mask = ^uint32(0)
		}
		if value != "" {
			var v uint64
			fmt.Sscan(value, &v)
			e.Flags |= event.FlagValues
			e.Val = uint32(len(b.Values))
			for range 32 {
				b.Values = append(b.Values, v)
			}
		}
	}
}

// told returns the severity and note of each finding, sorted.
func told(d detect.Detector) string {
	var out []string
	for _, f := range d.Findings() {
		at := strings.LastIndex(f.Message, "(racecheck: ")
		out = append(out, f.Severity.String()+" "+strings.TrimSuffix(f.Message[at+12:at+15], ")"))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestRules(t *testing.T) {
	const barrier = "; 0 wait; 1 wait; 0 bar; "
	for _, c := range []struct{ what, line, want string }{
		{"read after write", "0 sts; 1 lds", "error RAW"},
		{"write after read", "0 lds; 1 sts", "error WAR"},
		{"write after write", "0 sts; 1 sts", "error WAW"},
		{"write after write of other values", "0 sts 0=1; 1 sts 0=2", "error WAW"},
		{"the same value", "0 sts 0=1; 1 sts 0=1", "info WAW"},
		{"reads", "0 lds; 1 lds", ""},
		{"other words", "0 sts 1; 1 sts 2", ""},
		{"other blocks", "0 sts; 2 lds", ""},
		{"program order", "0 sts; 0 lds; 0 sts", ""},
		{"global memory", "0 st; 1 st", ""},
		{"atomics", "0 adds; 1 adds", ""},
		{"atomic and read", "0 adds; 1 lds", "error RAW"},
		{"read and atomic", "0 lds; 1 adds", "error WAR"},
		{"atomic and write", "0 adds; 1 sts", "error WAW"},
		{"an atomic does not hide a write", "0 sts; 0 adds; 1 adds", "error WAW"},
		{"volatile is plain", "0 stvs; 1 ldvs", "error RAW"},
		{"fences order nothing", "0 sts; 0 fence; 0 adds 1; 1 adds 1; 1 fence; 1 lds", "error RAW"},
		{"barrier", "0 sts" + barrier + "1 lds" + barrier + "0 sts", ""},
		{"not yet completed", "0 sts; 0 wait; 1 lds", "error RAW"},
		{"every reader counts", "0 sts" + barrier + "0 lds; 1 lds; 1 sts", "error WAR"},
		{"the first reader too", "0 lds; 1 lds; 0.1 lds; 1 sts", "error WAR, error WAR"},
		{"another barrier", "0 sts; 0 wait 1; 1 wait 2; 1 bar 2; 1 lds", "error RAW"},
		{"producer arrives", "0 sts; 0 arr 1; 1 wait 1; 1 bar 1; 1 lds", ""},
		{"arriving does not wait", "1 sts; 0 arr 1; 1 wait 1; 1 bar 1; 0 lds", "error RAW"},
		{"after it arrived", "0 arr 1; 0 sts; 1 wait 1; 1 bar 1; 1 lds", "error RAW"},
		{"transitive", "0.1 sts; 0 sync; 0 wait; 1 wait; 0 bar; 1 sync; 1.3 lds", ""},
		{"lanes apart", "0.0 sts; 0.1 lds", "error RAW"},
		{"__syncwarp", "0.0 sts; 0 sync; 0.1 lds", ""},
		{"__syncwarp of another warp", "0 sts; 0 sync; 1 sync; 1 lds", "error RAW"},
		{"lockstep", "0.* lds; 0.1 sts", "warning WAR"},
		{"lockstep, the same value", "0.* sts 0=1; 0.1 sts 0=1", "info WAW, info WAW"},
		{"lanes of one instruction", "0.* sts", "error WAW"},
		{"lanes of one instruction, one value", "0.* sts 0=7", "info WAW"},
		{"a warp reads what another wrote", "1.* lds; 0 sts", "error WAR"},
		{"exited before the barrier", "0 sts; 0 exit; 1 wait; 1 bar; 1 lds", "error RAW"},
	} {
		b := litmus.Launch(2)
		do(b, c.line)
		d := Spec.New(detect.Config{})
		d.Events(b)
		if got := told(d); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.what, c.line, got, c.want)
		}
	}
}

// TestLaunches checks that each launch begins afresh, and that ended blocks leave nothing behind.
func TestLaunches(t *testing.T) {
	b := litmus.Launch(1)
	do(b, "0 sts")
	b.Events = append(b.Events, event.Event{Kind: event.KernelEnd, Launch: 1}, b.Events[0])
	do(b, "1 lds")
	d := Spec.New(detect.Config{}).(*Detector)
	d.Events(b)
	if got := told(d); got != "" {
		t.Errorf("accesses of two launches: %s", got)
	}
	b = litmus.Launch(1)
	do(b, "0 sts; 0 exit; 1 exit")
	d.Events(b)
	if n := d.memory.Bytes(); n != 0 {
		t.Errorf("the block has ended and leaves %d bytes", n)
	}
}

// TestSteadyState checks that accesses allocate no memory.
func TestSteadyState(t *testing.T) {
	b := litmus.Launch(1)
	d := Spec.New(detect.Config{})
	d.Events(b)
	loop := &event.Batch{}
	for w := range uint32(2) {
		for _, k := range []event.Kind{event.Store, event.Load} {
			e := event.Event{Kind: k, Launch: 1, Warp: w, Mask: ^uint32(0), Addr: uint64(w) * 128, Stride: 4, Size: 4, Space: event.Shared, Place: 1}
			loop.Events = append(loop.Events, e)
		}
	}
	if n := testing.AllocsPerRun(100, func() { d.Events(loop) }); n != 0 {
		t.Errorf("%v allocations for four accesses", n)
	}
}

func BenchmarkTile(b *testing.B) {
	launch := litmus.Launch(1)
	d := Spec.New(detect.Config{})
	d.Events(launch)
	loop := &event.Batch{}
	for w := range uint32(2) {
		e := event.Event{Kind: event.Store, Launch: 1, Warp: w, Mask: ^uint32(0), Addr: uint64(w) * 128, Stride: 4, Size: 4, Space: event.Shared, Place: 1}
		loop.Events = append(loop.Events, e)
		e.Kind = event.Load
		loop.Events = append(loop.Events, e, e, e)
		do(loop, fmt.Sprintf("%d wait", w))
	}
	do(loop, "0 bar")
	b.ReportAllocs()
	for b.Loop() {
		d.Events(loop)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(8*b.N), "ns/access")
}
