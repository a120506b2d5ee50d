package hb

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// TestLanded checks operations that are complete and known to be so by some threads, but not by threads that know only
// what the issuing thread did afterwards.
func TestLanded(t *testing.T) {
	type op = func(uint32, event.Event)
	const bar, flag, next = 0x8000, 0x8010, 0x8020
	copies := event.Event{Kind: event.Bulk, Flags: event.FlagWrite, Space: event.Shared, Barrier: 1, Mask: 1, Aux: 16, Place: 100}
	done := event.Event{Kind: event.BulkDone, Mask: 1, Addr: bar, Place: 1}
	load := func(op op, lane int) {
		op(0, event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Shared, Mask: 1 << lane, Size: 8, Place: 200})
	}
	store := func(op op, lane int) {
		op(0, event.Event{Kind: event.Store, Flags: event.FlagWrite, Space: event.Shared, Mask: 1 << lane, Size: 8, Place: 200})
	}
	source := event.Event{Kind: event.Bulk, Flags: event.FlagRead, Space: event.Global, Addr: 4096, Barrier: 1, Mask: 1, Aux: 16, Place: 100}
	overwrite := func(op op, lane int) {
		op(0, event.Event{Kind: event.Store, Flags: event.FlagWrite, Space: event.Global, Addr: 4096, Mask: 1 << lane, Size: 8, Place: 200})
	}
	release := func(op op, at uint64, lane int) {
		op(0, event.Event{Kind: event.Atomic, Flags: event.FlagRed, Space: event.Shared, Mask: 1 << lane, Addr: at, Size: 4, Order: event.Release, Scope: event.ScopeCluster, Place: 1})
	}
	acquire := func(op op, at uint64, lane int) {
		op(0, event.Event{Kind: event.Load, Flags: event.FlagRead, Space: event.Shared, Addr: at, Size: 4, Order: event.Acquire, Scope: event.ScopeCluster, Mask: 1 << lane, Place: 2})
	}
	matrix := event.Event{Kind: event.Wgmma, Flags: event.FlagRead, Space: event.Shared, Mask: 15, Aux: 16, Place: 100}
	core := event.Event{Kind: event.Core, Flags: event.FlagRead, Space: event.Shared, Mask: 1, Aux: 16, Place: 100, Barrier: event.CoreCommits}
	commit := func(op op, at uint64, n int64) {
		op(0, event.Event{Kind: event.CoreCommit, Mask: 1, Addr: at, Stride: n})
	}
	coreDone := func(op op, at uint64, n int64) {
		op(0, event.Event{Kind: event.CoreDone, Mask: 1, Addr: at, Stride: n, Place: 1})
	}
	async := event.Event{Kind: event.Store, Flags: event.FlagWrite | event.FlagAsync, Space: event.Shared, Mask: 1, Size: 16, Place: 100}
	track := func(op op, at uint64) {
		op(0, event.Event{Kind: event.CopyArrive, Mask: 1, Addr: at})
		release(op, at, 0)
	}
	reads := event.Event{Kind: event.Load, Flags: event.FlagRead | event.FlagAsync, Space: event.Global, Addr: 4096, Stride: 16, Mask: 3, Size: 16, Place: 100}
	phase := func(op op, at uint64) {
		op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: at})
	}
	overwrite16 := func(op op, lane int, addr uint64) {
		op(0, event.Event{Kind: event.Store, Flags: event.FlagWrite, Space: event.Global, Addr: addr, Mask: 1 << lane, Size: 8, Place: 200})
	}
	trackBoth := func(op op, at uint64) {
		op(0, event.Event{Kind: event.CopyArrive, Mask: 3, Addr: at})
		release(op, at, 0)
		release(op, at, 1)
	}
	const race = "p100-p200 copy"
	for _, c := range []struct {
		name string
		want string
		ops  func(op op)
	}{
		{"a thread that waits for the copy", "", func(op op) {
			op(0, copies)
			op(0, done)
			acquire(op, bar, 1)
			load(op, 1)
		}},
		{"one that learns of the issue alone", race, func(op op) {
			op(0, copies)
			release(op, flag, 0)
			op(0, done)
			acquire(op, bar, 1)
			acquire(op, flag, 2)
			load(op, 2)
		}},
		{"a thread that waits for the copy overwrites its source", "", func(op op) {
			op(0, source)
			op(0, done)
			acquire(op, bar, 1)
			overwrite(op, 1)
		}},
		{"one that learns of the issue alone overwrites its source", race, func(op op) {
			op(0, source)
			release(op, flag, 0)
			op(0, done)
			acquire(op, bar, 1)
			acquire(op, flag, 2)
			overwrite(op, 2)
		}},
		{"the issuing thread overwrites its source", race, func(op op) {
			op(0, source)
			op(0, done)
			overwrite(op, 0)
		}},
		{"one that learns of it from who has waited overwrites its source", "", func(op op) {
			op(0, source)
			release(op, flag, 0)
			op(0, done)
			acquire(op, bar, 1)
			release(op, next, 1)
			acquire(op, next, 2)
			overwrite(op, 2)
		}},
		{"one that learns of it from who has waited", "", func(op op) {
			op(0, copies)
			release(op, flag, 0)
			op(0, done)
			acquire(op, bar, 1)
			release(op, next, 1)
			acquire(op, next, 2)
			load(op, 2)
		}},
		{"one that meets, at a barrier, the threads of which one has waited", "", func(op op) {
			op(0, copies)
			op(0, done)
			acquire(op, bar, 1)
			op(0, event.Event{Kind: event.WarpSync, Mask: 15})
			load(op, 3)
		}},
		{"one that meets them when none has waited", race, func(op op) {
			op(0, copies)
			op(0, done)
			op(0, event.Event{Kind: event.WarpSync, Mask: 15})
			load(op, 3)
		}},
		{"the issuing thread", race, func(op op) {
			op(0, copies)
			op(0, done)
			acquire(op, bar, 1)
			load(op, 0)
		}},
		{"wgmma, the stage is free after the wait", "", func(op op) {
			op(0, matrix)
			op(0, event.Event{Kind: event.WgmmaCommit, Mask: 15})
			op(0, event.Event{Kind: event.WgmmaWait, Mask: 15})
			release(op, flag, 1)
			acquire(op, flag, 4)
			store(op, 4)
		}},
		{"wgmma, the stage is free before the wait", race, func(op op) {
			op(0, matrix)
			op(0, event.Event{Kind: event.WgmmaCommit, Mask: 15})
			release(op, flag, 1)
			op(0, event.Event{Kind: event.WgmmaWait, Mask: 15})
			acquire(op, flag, 4)
			store(op, 4)
		}},
		{"tcgen05, an arrival in place of a commit", race, func(op op) {
			op(0, core)
			release(op, flag, 0)
			commit(op, bar, 0)
			coreDone(op, bar, 0)
			acquire(op, bar, 1)
			acquire(op, flag, 2)
			store(op, 2)
		}},
		{"tcgen05, a later commit, to another barrier", "", func(op op) {
			op(0, core)
			commit(op, bar, 0)
			commit(op, bar+8, 1)
			coreDone(op, bar, 0)
			coreDone(op, bar+8, 1)
			acquire(op, bar+8, 2)
			store(op, 2)
		}},
		{"tcgen05, a commit before it", race, func(op op) {
			commit(op, bar, 0)
			op(0, core)
			commit(op, bar+8, 1)
			coreDone(op, bar+8, 1)
			coreDone(op, bar, 0)
			release(op, flag, 0)
			acquire(op, bar, 2)
			acquire(op, flag, 2)
			store(op, 2)
		}},
		{"tcgen05.ld, the column is free before the wait", race, func(op op) {
			e := core
			e.Mask, e.Barrier, e.Addr, e.Stride = 15, event.CoreLoads, event.TensorBase, 0
			op(0, e)
			release(op, flag, 0)
			op(0, event.Event{Kind: event.CoreWait, Flags: event.FlagRead, Mask: 15})
			acquire(op, flag, 4)
			e = core
			e.Flags, e.Mask, e.Addr, e.Stride, e.Place = event.FlagWrite, 16, event.TensorBase, 1, 200
			op(0, e)
		}},
		{"tcgen05.ld, the column is free after the wait", "", func(op op) {
			e := core
			e.Mask, e.Barrier, e.Addr, e.Stride = 15, event.CoreLoads, event.TensorBase, 0
			op(0, e)
			op(0, event.Event{Kind: event.CoreWait, Flags: event.FlagRead, Mask: 15})
			release(op, flag, 0)
			acquire(op, flag, 4)
			e = core
			e.Flags, e.Mask, e.Addr, e.Stride, e.Place = event.FlagWrite, 16, event.TensorBase, 1, 200
			op(0, e)
		}},
		{"cp.async, one that waits for the phase", "", func(op op) {
			op(0, async)
			track(op, bar)
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			acquire(op, bar, 1)
			load(op, 1)
		}},
		{"cp.async, one that learns of the arrival alone", race, func(op op) {
			op(0, async)
			track(op, bar)
			release(op, flag, 0)
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			acquire(op, bar, 1)
			acquire(op, flag, 2)
			load(op, 2)
		}},
		{"cp.async, the copying thread", race, func(op op) {
			op(0, async)
			track(op, bar)
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			load(op, 0)
		}},
		{"cp.async, the copying thread after the wait for its group", "", func(op op) {
			op(0, async)
			op(0, event.Event{Kind: event.CopyCommit, Mask: 1})
			track(op, bar)
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			op(0, event.Event{Kind: event.CopyWait, Mask: 1})
			load(op, 0)
		}},
		{"cp.async, another thread when its thread has waited for the group", "", func(op op) {
			op(0, async)
			op(0, event.Event{Kind: event.CopyCommit, Mask: 1})
			track(op, bar)
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			op(0, event.Event{Kind: event.CopyWait, Mask: 1})
			release(op, flag, 0)
			acquire(op, flag, 2)
			load(op, 2)
		}},
		{"cp.async, another thread when its thread has signalled before it has waited for the group", race, func(op op) {
			op(0, async)
			op(0, event.Event{Kind: event.CopyCommit, Mask: 1})
			track(op, bar)
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			release(op, flag, 0)
			op(0, event.Event{Kind: event.CopyWait, Mask: 1})
			acquire(op, flag, 2)
			load(op, 2)
		}},
		{"cp.async, one that waits for the phase, which is complete after the wait for the group", "", func(op op) {
			op(0, async)
			op(0, event.Event{Kind: event.CopyCommit, Mask: 1})
			track(op, bar)
			op(0, event.Event{Kind: event.CopyWait, Mask: 1})
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			acquire(op, bar, 1)
			load(op, 1)
			load(op, 0)
		}},
		{"cp.async, one that knows of the arrival and not of the wait for the group that follows", race, func(op op) {
			op(0, async)
			op(0, event.Event{Kind: event.CopyCommit, Mask: 1})
			track(op, bar)
			release(op, flag, 0)
			op(0, event.Event{Kind: event.CopyWait, Mask: 1})
			acquire(op, flag, 2)
			load(op, 2)
		}},
		{"cp.async, a second mbarrier that tracks it too", "", func(op op) {
			op(0, async)
			track(op, bar)
			track(op, next)
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: bar})
			op(0, event.Event{Kind: event.MbarrierDone, Mask: 1, Addr: next})
			acquire(op, next, 2)
			load(op, 2)
		}},
		{"cp.async, one that waits for the phase overwrites the source", "", func(op op) {
			op(0, reads)
			trackBoth(op, bar)
			phase(op, bar)
			acquire(op, bar, 2)
			overwrite16(op, 2, 4096)
			overwrite16(op, 2, 4112)
		}},
		{"cp.async, one that learns of the arrival alone overwrites the source of the second lane", race, func(op op) {
			op(0, reads)
			trackBoth(op, bar)
			release(op, flag, 1)
			phase(op, bar)
			acquire(op, bar, 2)
			acquire(op, flag, 3)
			overwrite16(op, 3, 4112)
		}},
		{"cp.async, the copying thread overwrites the source", race, func(op op) {
			op(0, reads)
			trackBoth(op, bar)
			phase(op, bar)
			overwrite16(op, 1, 4112)
		}},
		{"cp.async, the copying thread overwrites the source after the wait for its group", "", func(op op) {
			op(0, reads)
			op(0, event.Event{Kind: event.CopyCommit, Mask: 3})
			trackBoth(op, bar)
			phase(op, bar)
			op(0, event.Event{Kind: event.CopyWait, Mask: 2})
			overwrite16(op, 1, 4112)
		}},
		{"cp.async, the other lane has waited for its group", race, func(op op) {
			op(0, reads)
			op(0, event.Event{Kind: event.CopyCommit, Mask: 3})
			trackBoth(op, bar)
			phase(op, bar)
			op(0, event.Event{Kind: event.CopyWait, Mask: 1})
			overwrite16(op, 1, 4112)
		}},
		{"cp.async, a second mbarrier tells that the source has been read", "", func(op op) {
			op(0, reads)
			trackBoth(op, bar)
			trackBoth(op, next)
			phase(op, bar)
			phase(op, next)
			acquire(op, next, 2)
			overwrite16(op, 2, 4112)
		}},
	} {
		for _, clusters := range []bool{true, false} {
			b := inCluster(c.ops)
			if b.Launches[0].Bulk = true; !clusters {
				b.Launches[0].Cluster = event.Dim3{}
			}
			exp := want(b, detect.ModelCUDA)
			if !strings.HasPrefix(exp, c.want) || c.want == "" && exp != "" || strings.Contains(exp, "\n") {
				t.Errorf("%s, oracle: %q, want %q", c.name, exp, c.want)
			}
			for _, kept := range histories {
				if got := races(b, detect.ModelCUDA, kept); got != exp {
					t.Errorf("%s (%s, clusters: %v): %q, want %q", c.name, kept, clusters, got, exp)
				}
			}
		}
	}
}
