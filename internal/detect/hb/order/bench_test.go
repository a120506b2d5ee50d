package order

import (
	"runtime"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// benchLaunch begins a launch of a number of blocks of 256 threads.
func benchLaunch(o *Order, id, blocks uint32) *Launch {
	return o.Begin(event.Launch{ID: id, Grid: event.Dim3{X: blocks, Y: 1, Z: 1}, Block: event.Dim3{X: 256, Y: 1, Z: 1}})
}

var (
	benchRelaxed = Strong{Size: 4, Reads: true, Writes: true, Updates: true, Wide: true}
	benchFailed  = Strong{Size: 4, Reads: true, Wide: true}
	benchFence   = event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Mask: ^uint32(0), Place: 1}
)

const benchBase = 0x2000_0000_0000

// BenchmarkBlock looks up the blocks of warps round robin. As many blocks are running as fit on a small GPU.
func BenchmarkBlock(b *testing.B) {
	l := benchLaunch(New(), 1, 100_000)
	b.ReportAllocs()
	const first, running = 40_003 * 8, 160 * 8
	w := uint32(0)
	for b.Loop() {
		l.Block(first + w%running)
		w += 8
	}
}

// BenchmarkBlocks runs blocks from their first access to the exit of their last warp, 64 at a time, with one barrier.
func BenchmarkBlocks(b *testing.B) {
	o := New()
	l := benchLaunch(o, 1, 1<<30)
	exit := event.Event{Kind: event.Exit, Mask: ^uint32(0)}
	n := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		l.Block(n * 8)
		benchBarrier(l, n*8)
		if n >= 64 {
			for w := range uint32(8) {
				exit.Warp = (n-64)*8 + w
				l.Sync(&exit)
			}
		}
		n++
	}
}

func benchBarrier(l *Launch, first uint32) {
	e := event.Event{Kind: event.Arrive, Mask: ^uint32(0), Place: 1, Flags: event.FlagWait | event.FlagAligned}
	for w := range uint32(8) {
		e.Warp = first + w
		l.Sync(&e)
	}
	e.Kind = event.BarrierDone
	l.Sync(&e)
}

// BenchmarkBarrier is a barrier of 8 warps, in 64 blocks in turn.
func BenchmarkBarrier(b *testing.B) {
	l := benchLaunch(New(), 1, 64)
	b.ReportAllocs()
	n := uint32(0)
	for b.Loop() {
		benchBarrier(l, n%64*8)
		n++
	}
}

func BenchmarkFenceWarp(b *testing.B) {
	l := benchLaunch(New(), 1, 1)
	e := benchFence
	b.ReportAllocs()
	for b.Loop() {
		l.Sync(&e)
	}
}

func BenchmarkSyncWarp(b *testing.B) {
	l := benchLaunch(New(), 1, 1)
	e := event.Event{Kind: event.WarpSync, Mask: ^uint32(0), Place: 1}
	b.ReportAllocs()
	for b.Loop() {
		l.Sync(&e)
	}
}

// BenchmarkAtomic performs relaxed atomics, one lane for each iteration.
func BenchmarkAtomic(b *testing.B) {
	for _, c := range []struct {
		name   string
		words  uint64
		size   uint8
		shared bool
	}{{"counter", 1, 4, false}, {"histogram4K", 4 << 10, 4, false}, {"histogram1M", 1 << 20, 4, false}, {"uint64", 4 << 10, 8, false}, {"shared", 256, 4, true}} {
		b.Run(c.name, func(b *testing.B) {
			l := benchLaunch(New(), 1, 64)
			s := benchRelaxed
			s.Size, s.Shared = c.size, c.shared
			base := uint64(benchBase)
			if c.shared {
				base = 0
			}
			for i := range c.words {
				s.Address = base + i*uint64(s.Size)
				blk, wi := l.Block(0)
				blk.Perform(wi, 0, &s)
			}
			b.ReportAllocs()
			x, n := uint64(1), 0
			blk, wi := l.Block(0)
			for b.Loop() {
				if n++; n%32 == 0 {
					blk, wi = l.Block(uint32(n/32) % 512)
				}
				x = x*6364136223846793005 + 1442695040888963407
				s.Address = base + (x>>40)%c.words*uint64(s.Size)
				blk.Observe(wi, n%32, &s)
				blk.Perform(wi, n%32, &s)
			}
		})
	}
}

// BenchmarkAtomicMemory measures the memory of a variable that only relaxed atomics have accessed.
func BenchmarkAtomicMemory(b *testing.B) {
	const words = 1 << 18
	for _, stride := range []uint64{4, 16, 128, 4096} {
		b.Run(map[uint64]string{4: "dense", 16: "every16", 128: "every128", 4096: "every4096"}[stride], func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				o := New()
				blk, wi := benchLaunch(o, 1, 64).Block(0)
				s := benchRelaxed
				for i := range uint64(words) {
					s.Address = benchBase + i*stride
					blk.Perform(wi, int(i%32), &s)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/words, "B/variable")
				runtime.KeepAlive(o)
			}
		})
	}
}

// BenchmarkLock acquires and releases one of 64 locks, by one lane for each iteration: compare-and-swap, fence, fence,
// exchange.
func BenchmarkLock(b *testing.B) {
	l := benchLaunch(New(), 1, 8)
	s, e := benchRelaxed, benchFence
	n, x := 0, uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		n++
		x = x*6364136223846793005 + 1442695040888963407
		e.Warp, e.Mask = uint32(n/32)%64, 1<<(n%32)
		blk, wi := l.Block(e.Warp)
		s.Address = benchBase + x>>58*4
		blk.Observe(wi, n%32, &s)
		blk.Perform(wi, n%32, &s)
		l.Sync(&e)
		l.Sync(&e)
		blk.Observe(wi, n%32, &s)
		blk.Perform(wi, n%32, &s)
	}
}

// BenchmarkLockFew is the same by one thread of each of 8 blocks, for one lock, with polling by the others.
func BenchmarkLockFew(b *testing.B) {
	l := benchLaunch(New(), 1, 8)
	s, poll, e := benchRelaxed, benchFailed, benchFence
	s.Address, poll.Address = benchBase, benchBase
	e.Mask = 1
	n := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		e.Warp = n % 8 * 8
		for w := range uint32(8) {
			blk, wi := l.Block(w * 8)
			blk.Observe(wi, 0, &poll)
			blk.Perform(wi, 0, &poll)
		}
		blk, wi := l.Block(e.Warp)
		blk.Observe(wi, 0, &s)
		blk.Perform(wi, 0, &s)
		l.Sync(&e)
		l.Sync(&e)
		blk.Observe(wi, 0, &s)
		blk.Perform(wi, 0, &s)
	}
}

// BenchmarkPoll repeatedly reads a flag that a thread of another block has released: by a failing compare-and-swap, by
// a load and a fence, and by load.acquire.
func BenchmarkPoll(b *testing.B) {
	for _, name := range []string{"relaxed", "fence", "acquire"} {
		b.Run(name, func(b *testing.B) {
			l := benchLaunch(New(), 1, 64)
			write, read := benchRelaxed, benchFailed
			write.Address, read.Address = benchBase, benchBase
			e := benchFence
			l.Sync(&e)
			blk, wi := l.Block(0)
			blk.Perform(wi, 0, &write)
			e.Warp, e.Mask, e.Order = 8, 1, event.Acquire
			read.Acquires = name == "acquire"
			b.ReportAllocs()
			for b.Loop() {
				blk, wi := l.Block(8)
				blk.Observe(wi, 0, &read)
				blk.Perform(wi, 0, &read)
				switch name {
				case "fence":
					l.Sync(&e)
				case "acquire":
					blk.Synchronised(wi, &e)
				}
			}
		})
	}
}
