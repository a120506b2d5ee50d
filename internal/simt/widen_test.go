package simt

import (
	"math"
	"testing"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/simt/devmem"
	"fencepost.dev/fencepost/internal/simt/loader"
	"fencepost.dev/fencepost/ptx"
)

// TestWiden: the window grows when no block has ended while the warps that can step ran so much each.
func TestWiden(t *testing.T) {
	polls, reads, writes := &warp{ready: 1, polls: 3}, &warp{ready: 1}, &warp{ready: 1, polls: 1, writes: 1}
	waits := &warp{live: 1} // cannot step
	for _, c := range []struct {
		name  string
		warps []*warp
		need  uint64 // of sinceEnd
	}{
		{"polling", []*warp{polls}, 1 << 10},
		{"two polling", []*warp{polls, polls}, 2 * growPolling},
		{"polling beside a waiting one", []*warp{waits, polls, waits, polls, polls}, 3 * growPolling},
		{"reading", []*warp{reads}, 4 << 10},
		{"polling and reading", []*warp{polls, reads, polls}, 3 * growReading},
		{"polling and writing", []*warp{polls, writes}, 2 * growPolling},
		{"reading and writing", []*warp{reads, writes}, 2 * 64 << 10},
		{"writing and reading", []*warp{writes, reads, waits}, 2 * growAnyhow},
	} {
		for _, since := range []uint64{0, growPolling - 1, growPolling, c.need - 1, c.need, c.need + 1, 1 << 40} {
			for _, left := range []uint64{0, 1} {
				var copies []*warp
				for _, w := range c.warps {
					k := *w
					copies = append(copies, &k)
				}
				r := &run{sched: schedule{blocks: 10, started: 10 - left, window: 5, resident: make([]*cta, 7), warps: copies, sinceEnd: since}}
				r.widen()
				grown := r.sched.window == growBy*7 && r.sched.sinceEnd == 0
				if want := left > 0 && since >= c.need; grown != want || !grown && (r.sched.window != 5 || r.sched.sinceEnd != since) {
					t.Errorf("%s, %d since a block ended, %d left: window %d, %d since", c.name, since, left, r.sched.window, r.sched.sinceEnd)
				}
				for i, w := range copies {
					if forgot := w.polls == 0 && w.writes == 0; grown != forgot && c.warps[i].polls+c.warps[i].writes > 0 {
						t.Errorf("%s: warp %d has %d polls and %d writes after that", c.name, i, w.polls, w.writes)
					}
				}
			}
		}
	}
	r := &run{sched: schedule{blocks: 10, window: 9, resident: make([]*cta, 7), sinceEnd: 1 << 40}}
	if r.widen(); r.sched.window != growBy*9 {
		t.Errorf("a window of 9 grows to %d", r.sched.window)
	}
}

// TestNextBlock: blocks start in their order, or with a seed shuffled by 256, each of them once.
func TestNextBlock(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2} {
		const blocks = 600
		r := &run{l: &Launch{Seed: seed}, rng: newRNG(seed), sched: schedule{blocks: blocks}}
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
		if len(seen) != blocks || r.sched.started != blocks || inOrder != (seed == 0) {
			t.Errorf("seed %d: %d blocks of %d started: %v", seed, len(seen), blocks, order)
		}
	}
}

// TestWindow: 8192 threads are resident at first, fewer where their stacks would take more than 256 MB, and at least four blocks.
func TestWindow(t *testing.T) {
	mod, err := ptx.Parse("test.ptx", `.version 8.0
.target sm_80
.address_size 64
.visible .entry bare() { ret; }
.visible .entry stacks() { .local .align 16 .b8 box[65536]; .reg .b64 %rd<2>; mov.u64 %rd1, box; st.local.u32 [%rd1], 1; ret; }`)
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
	}{{"bare", 32, 256}, {"bare", 1, 256}, {"bare", 64, 128}, {"bare", 33, 128}, {"bare", 1024, 8}, {"bare", 1000, 8}, {"stacks", 32, 127}, {"stacks", 512, 7}, {"stacks", 1024, 4}} {
		l := &Launch{Program: p, Func: p.Kernel(c.kernel), Launch: event.Launch{Grid: event.Dim3{X: 1000, Y: 1, Z: 1}, Block: event.Dim3{X: uint32(c.threads), Y: 1, Z: 1}}}
		if n := newRun(t.Context(), l).sched.window; n != c.want {
			t.Errorf("%s, blocks of %d: %d are resident, want %d", c.kernel, c.threads, n, c.want)
		}
		if l.Cooperative = true; newRun(t.Context(), l).sched.window != math.MaxInt32 {
			t.Error("not all blocks of a cooperative launch are resident")
		}
	}
}

// TestPolls: a step that may be a poll counts as many.
func TestPolls(t *testing.T) {
	w, v := &warp{regroup: true}, &warp{time: 1, strain: 1}
	w.moved(nil, pollCost)
	v.polled()
	for _, w := range []*warp{w, v} {
		if w.time != 32 || w.strain != 16384 {
			t.Errorf("a poll counts %d and %d", w.time, w.strain)
		}
	}
	if w.moved(nil, 1); w.time != 33 || w.strain != 16385 {
		t.Errorf("with a step: %d and %d", w.time, w.strain)
	}
}
