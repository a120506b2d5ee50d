package hb

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

var benchStreams = map[string]func() *stream{
	"coalesced": func() *stream { // saxpy, 512k threads, blocks interleaved by 8
		s := &stream{}
		s.begin(2048, 256)
		for b := uint32(0); b < 2048; b += 8 {
			for step := 0; step < 3; step++ {
				for w := b * 8; w < (b+8)*8; w++ {
					switch step {
					case 0:
						s.access(event.Load, event.Global, w, 1, heap+uint64(w)*128, 4)
					case 1:
						s.access(event.Load, event.Global, w, 2, heap+1<<28+uint64(w)*128, 4)
					case 2:
						s.access(event.Store, event.Global, w, 3, heap+1<<28+uint64(w)*128, 4)
					}
				}
			}
		}
		s.end()
		return s
	},
	"scattered": func() *stream { // a permutation read and written
		s := &stream{}
		s.begin(1024, 256)
		const n = 1024 * 256
		for w := uint32(0); w < 1024*8; w++ {
			at := func(l int) uint64 { return heap + (uint64(w)*32+uint64(l))*2654435761%n*4 }
			s.scattered(event.Load, event.Global, w, 1, at)
			s.scattered(event.Store, event.Global, w, 2, at)
		}
		s.end()
		return s
	},
	"histogram": func() *stream { // relaxed atomics on 4096 bins
		s := &stream{}
		s.begin(256, 256)
		x := uint64(1)
		for w := uint32(0); w < 256*8; w++ {
			for r := 0; r < 4; r++ {
				s.scattered(event.Atomic, event.Global, w, 1, func(l int) uint64 {
					x = x*6364136223846793005 + 1442695040888963407
					return heap + x>>52*4
				})
			}
		}
		s.end()
		return s
	},
	"counter": func() *stream { // 10,000 blocks: fence, atomic, fence, by one thread each
		s := &stream{}
		s.begin(10000, 32)
		for w := uint32(0); w < 10000; w++ {
			s.access(event.Store, event.Global, w, 1, heap+uint64(w)*128, 4)
			s.add(event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Warp: w, Mask: ^uint32(0), Place: 2})
			s.memory(event.Event{Kind: event.Atomic, Space: event.Global, Warp: w, Place: 3, Mask: 1, Addr: heap + 1<<28, Size: 4})
			s.add(event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Warp: w, Mask: 1, Place: 4})
			if w == 9999 {
				for v := uint32(0); v < 10000; v++ {
					s.memory(event.Event{Kind: event.Load, Space: event.Global, Warp: w, Place: 5, Mask: 1, Addr: heap + uint64(v)*128, Size: 4})
				}
			}
		}
		s.end()
		return s
	},
	"gridbarrier": func() *stream { // 1,000 blocks meet 10 times
		s := &stream{}
		s.begin(1000, 64)
		for r := uint32(0); r < 10; r++ {
			for b := uint32(0); b < 1000; b++ {
				s.access(event.Store, event.Global, 2*b, 1, heap+uint64((b+r)%1000)*128, 4)
				s.barrier(b, 2)
				s.add(event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Warp: 2 * b, Mask: 1, Place: 3})
				s.memory(event.Event{Kind: event.Atomic, Space: event.Global, Warp: 2 * b, Place: 4, Mask: 1, Addr: heap + 1<<28, Size: 4})
			}
			for b := uint32(0); b < 1000; b++ {
				for spin := 0; spin < 3; spin++ {
					s.memory(event.Event{Kind: event.Load, Order: event.Relaxed, Scope: event.ScopeGPU, Space: event.Global, Warp: 2 * b, Place: 5, Mask: 1, Addr: heap + 1<<28, Size: 4})
				}
				s.add(event.Event{Kind: event.Fence, Order: event.SC, Scope: event.ScopeGPU, Warp: 2 * b, Mask: 1, Place: 6})
				s.barrier(b, 7)
			}
		}
		s.end()
		return s
	},
	"barriers": func() *stream { // a tile in shared memory, written and read 64 times
		s := &stream{}
		s.begin(64, 256)
		for b := uint32(0); b < 64; b++ {
			for r := 0; r < 64; r++ {
				for w := uint32(0); w < 8; w++ {
					s.access(event.Store, event.Shared, b*8+w, 1, uint64(w)*128, 4)
				}
				s.barrier(b, 2)
				for w := uint32(0); w < 8; w++ {
					s.access(event.Load, event.Shared, b*8+w, 3, uint64(7-w)*128, 4)
				}
				s.barrier(b, 4)
			}
		}
		s.end()
		return s
	},
	"matmul": func() *stream { // naive, 128 x 128, blocks of 16 x 16: many threads read each element
		s := &stream{}
		s.begin(64, 256)
		const n = 128
		for b := uint32(0); b < 64; b++ {
			for k := uint64(0); k < n; k++ {
				for w := uint32(0); w < 8; w++ {
					row := func(l int) uint64 { return uint64(b/8*16 + w*2 + uint32(l)/16) }
					col := func(l int) uint64 { return uint64(b%8*16 + uint32(l)%16) }
					s.scattered(event.Load, event.Global, b*8+w, 1, func(l int) uint64 { return heap + (row(l)*n+k)*4 })
					s.scattered(event.Load, event.Global, b*8+w, 2, func(l int) uint64 { return heap + 1<<28 + (k*n+col(l))*4 })
				}
			}
		}
		s.end()
		return s
	},
	"racy": func() *stream { // every thread writes its number into one of 64 words
		s := &stream{}
		s.begin(256, 256)
		for w := uint32(0); w < 256*8; w++ {
			s.access(event.Store, event.Global, w, 1, heap+uint64(w%2)*128, 4)
		}
		s.end()
		return s
	},
}

func BenchmarkEvents(b *testing.B) {
	for _, name := range []string{"coalesced", "scattered", "histogram", "counter", "gridbarrier", "barriers", "matmul", "racy"} {
		b.Run(name, func(b *testing.B) {
			s := benchStreams[name]()
			s.Batch = *oracle.Remember(&s.Batch) // as the engines do
			lanes, touched := 0, map[uint64]bool{}
			for i := range s.Events {
				if e := &s.Events[i]; e.Kind == event.Load || e.Kind == event.Store || e.Kind == event.Atomic {
					for m := e.Mask; m != 0; m &= m - 1 {
						lanes++
					}
					for l := 0; l < 32; l++ {
						if e.Mask>>uint(l)&1 != 0 {
							touched[uint64(e.Space)<<62|s.AddrOf(e, l)] = true
						}
					}
				}
			}
			b.ResetTimer()
			var d *Detector
			for i := 0; i < b.N; i++ {
				d = New(detect.Config{})
				d.Events(&s.Batch)
			}
			b.StopTimer()
			per := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(per/float64(lanes), "ns/lane")
			b.ReportMetric(float64(len(s.Events))/per*1e3, "Mevents/s")
			b.ReportMetric(memoryOf(s)/float64(len(touched)*4), "B/B")
			b.ReportMetric(float64(digest(d)%1000000), "digest")
		})
	}
}

// memoryOf measures the memory of a detector just before the launch ends.
func memoryOf(s *stream) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d := New(detect.Config{})
	b := s.Batch
	for n := len(b.Events); b.Events[n-1].Kind == event.Exit || b.Events[n-1].Kind == event.KernelEnd; n-- {
		b.Events = b.Events[:n-1]
	}
	d.Events(&b)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(d)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

func digest(d *Detector) uint64 {
	h := fnv.New64a()
	for _, f := range d.Findings() {
		fmt.Fprintln(h, f.Kind, f.Severity, f.Count, f.Addresses, f.Message)
	}
	return h.Sum64()
}
