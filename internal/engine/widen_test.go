package engine

import (
	"math"
	"testing"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// TestWiden checks that the window grows if no block has ended while each warp that can step has run for a certain
// cost.
func TestWiden(t *testing.T) {
	polls, reads, writes := &Warp{Ready: 1, Polls: 3}, &Warp{Ready: 1}, &Warp{Ready: 1, Polls: 1, Writes: 1}
	waits := &Warp{Live: 1} // cannot step
	for _, c := range []struct {
		name  string
		warps []*Warp
		need  uint64 // of sinceEnd
	}{
		{"polling", []*Warp{polls}, 1 << 10},
		{"two polling", []*Warp{polls, polls}, 2 * growPolling},
		{"polling beside a waiting one", []*Warp{waits, polls, waits, polls, polls}, 3 * growPolling},
		{"reading", []*Warp{reads}, 4 << 10},
		{"polling and reading", []*Warp{polls, reads, polls}, 3 * growReading},
		{"polling and writing", []*Warp{polls, writes}, 2 * growPolling},
		{"reading and writing", []*Warp{reads, writes}, 2 * 64 << 10},
		{"writing and reading", []*Warp{writes, reads, waits}, 2 * growAnyhow},
	} {
		for _, since := range []uint64{0, growPolling - 1, growPolling, c.need - 1, c.need, c.need + 1, 1 << 40} {
			for _, left := range []uint64{0, 1} {
				var copies []*Warp
				for _, w := range c.warps {
					k := *w
					copies = append(copies, &k)
				}
				r := &Run{Sched: schedule{blocks: 10, started: 10 - left, window: 5, resident: make([]*CTA, 7), warps: copies, sinceEnd: since}}
				r.widen()
				grown := r.Sched.window == growBy*7 && r.Sched.sinceEnd == 0
				if want := left > 0 && since >= c.need; grown != want || !grown && (r.Sched.window != 5 || r.Sched.sinceEnd != since) {
					t.Errorf("%s, %d since a block ended, %d left: window %d, %d since", c.name, since, left, r.Sched.window, r.Sched.sinceEnd)
				}
				for i, w := range copies {
					if forgot := w.Polls == 0 && w.Writes == 0; grown != forgot && c.warps[i].Polls+c.warps[i].Writes > 0 {
						t.Errorf("%s: warp %d has %d polls and %d writes after that", c.name, i, w.Polls, w.Writes)
					}
				}
			}
		}
	}
	r := &Run{Sched: schedule{blocks: 10, window: 9, resident: make([]*CTA, 7), sinceEnd: 1 << 40}}
	if r.widen(); r.Sched.window != growBy*9 {
		t.Errorf("a window of 9 grows to %d", r.Sched.window)
	}
}

// TestNextBlock checks that each block starts once: in order, or with a seed shuffled in groups of 256.
func TestNextBlock(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2} {
		const blocks = 600
		r := &Run{Launch: &Launch{Seed: seed}, rng: newRNG(seed), Sched: schedule{blocks: blocks}}
		var order []uint32
		seen := map[uint32]bool{}
		inOrder := true
		for i := range uint32(blocks) {
			b := r.nextCluster()
			order = append(order, b)
			seen[b] = true
			inOrder = inOrder && b == i
			if b/256 != i/256 {
				t.Errorf("seed %d: block %d starts as number %d", seed, b, i)
			}
		}
		if len(seen) != blocks || r.Sched.started != blocks || inOrder != (seed == 0) {
			t.Errorf("seed %d: %d blocks of %d started: %v", seed, len(seen), blocks, order)
		}
	}
}

// TestWindow checks that 8192 threads are resident at first, fewer if their stacks would exceed 256 MB, and at least
// four blocks.
func TestWindow(t *testing.T) {
	mod, err := ptx.Parse("test.ptx", `.version 8.0
.target sm_80
.address_size 64
.visible .entry apart() { ret; }
.visible .entry bare() { .reg .b64 %rd<2>; mov.u64 %rd1, %clock64; ret; }
.visible .entry stacks() { .local .align 16 .b8 box[65536]; .reg .b64 %rd<3>; mov.u64 %rd1, box; mov.u64 %rd2, %clock64; st.local.u64 [%rd1], %rd2; ret; }`)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := isa.Decode(mod)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := devmem.New(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	p, err := loader.Load(dec, mem)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kernel        string
		threads, want int
	}{{"apart", 32, 32}, {"apart", 256, 4}, {"apart", 1024, 4}, {"bare", 32, 256}, {"bare", 1, 256}, {"bare", 64, 128}, {"bare", 33, 128}, {"bare", 1024, 8}, {"bare", 1000, 8}, {"stacks", 32, 127}, {"stacks", 512, 7}, {"stacks", 1024, 4}} {
		l := &Launch{Program: p, Func: p.Kernel(c.kernel), Launch: event.Launch{Grid: event.Dim3{X: 1000, Y: 1, Z: 1}, Block: event.Dim3{X: uint32(c.threads), Y: 1, Z: 1}}}
		if n := NewRun(t.Context(), l).Sched.window; n != c.want {
			t.Errorf("%s, blocks of %d: %d are resident, want %d", c.kernel, c.threads, n, c.want)
		}
		if l.Cooperative = true; NewRun(t.Context(), l).Sched.window != math.MaxInt32 {
			t.Error("not all blocks of a cooperative launch are resident")
		}
	}
}

// TestPolls checks that a step that may be a poll counts as several steps.
func TestPolls(t *testing.T) {
	w, v := &Warp{Regroup: true}, &Warp{Time: 1, Strain: 1}
	w.moved(nil, pollCost)
	v.Polled()
	for _, w := range []*Warp{w, v} {
		if w.Time != 32 || w.Strain != 16384 {
			t.Errorf("a poll counts %d and %d", w.Time, w.Strain)
		}
	}
	if w.moved(nil, 1); w.Time != 33 || w.Strain != 16385 {
		t.Errorf("with a step: %d and %d", w.Time, w.Strain)
	}
}
