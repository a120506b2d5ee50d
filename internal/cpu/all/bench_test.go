package all

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/slimfast"
	"fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/cputime"
)

// The trace of the benchmark.
const (
	benchEvents    = 10_000_000
	benchThreads   = 16
	benchLocks     = 64
	benchVariables = 100_000
)

// workload returns a trace without races. Threads take turns of 30 events. In a turn, a thread adds to six adjacent
// variables under a lock, and copies eight variables that the first thread wrote before the others began to eight of
// its own.
func workload(events int) []byte {
	var out bytes.Buffer
	out.Grow(events*8 + 1<<20)
	w := trace.NewWriter(&out)
	r := rand.New(rand.NewPCG(1, 2))
	buffer := make([]cpu.Event, 0, 1<<12)
	n := 0
	// Numbers are assigned in the order of first use.
	var variables, locks, locations = map[uint32]uint32{}, map[uint32]uint32{}, map[uint32]uint32{}
	number := func(m map[uint32]uint32, x uint32) uint32 {
		id, ok := m[x]
		if !ok {
			id = uint32(len(m))
			m[x] = id
		}
		return id
	}
	emit := func(thread int, op cpu.Op, object uint32, at uint32) {
		switch op.Table() {
		case cpu.Variables:
			object = number(variables, object)
		case cpu.Syncs:
			object = number(locks, object)
		}
		buffer = append(buffer, cpu.Event{Thread: uint16(thread), Op: op, Object: object, Location: number(locations, at) + 1})
		if n++; len(buffer) == cap(buffer) {
			w.Events(buffer)
			buffer = buffer[:0]
		}
	}
	const shared, own = benchVariables / 2, benchVariables * 3 / 4
	const ofLock, ofThread = shared / benchLocks, (benchVariables - own) / benchThreads
	for x := uint32(shared); x < own; x++ {
		emit(0, cpu.Write, x, 0)
	}
	for t := uint32(1); t < benchThreads; t++ {
		emit(0, cpu.Fork, t, 1)
	}
	for n < events {
		t := r.IntN(benchThreads)
		lock := uint32(r.IntN(benchLocks))
		from := r.Uint32N(ofLock - 8)
		emit(t, cpu.Acquire, lock, 10+lock)
		for x := range uint32(6) {
			emit(t, cpu.Read, lock*ofLock+from+x, 100+lock)
			emit(t, cpu.Write, lock*ofLock+from+x, 200+lock)
		}
		emit(t, cpu.Release, lock, 300+lock)
		from, mine := r.Uint32N(own-shared-8), uint32(t)*ofThread+r.Uint32N(ofThread-8)
		for x := range uint32(8) {
			emit(t, cpu.Read, shared+from+x, 400)
			emit(t, cpu.Write, own+mine+x, 500)
		}
	}
	w.Events(buffer)
	if err := w.Close(&trace.Names{}); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// read passes the events of a trace to a detector.
func read(from []byte, d cpu.Detector) (events int, err error) {
	r, err := trace.NewReader(bytes.NewReader(from))
	if err != nil {
		return 0, err
	}
	batch := make([]cpu.Event, 1<<10)
	for {
		n, err := r.Next(batch)
		events += n
		if d != nil {
			d.Events(batch[:n])
		}
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
	}
}

// BenchmarkDetectors measures decoding and judging on one core.
func BenchmarkDetectors(b *testing.B) {
	from := workload(benchEvents)
	b.Run("decoding", func(b *testing.B) { benchmark(b, from, nil) })
	for _, spec := range Detectors() {
		b.Run(spec.Name, func(b *testing.B) { benchmark(b, from, spec.New) })
	}
}

func benchmark(b *testing.B, from []byte, make func(func(cpu.Race)) cpu.Detector) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	events, memory, spent := 0, uint64(0), time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		var d cpu.Detector
		if make != nil {
			d = make(func(r cpu.Race) { panic(fmt.Sprintf("BUG: a race: %+v", r)) })
		}
		begin := cputime.Used()
		n, err := read(from, d)
		spent += cputime.Used() - begin
		if err != nil {
			b.Fatal(err)
		}
		events += n
		if d != nil {
			b.StopTimer()
			memory = d.MemoryBytes()
			if s, ok := d.(*slimfast.Detector); ok {
				b.Logf("%+v", s.Counts())
			}
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(events)/spent.Seconds()/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(memory)/1e6, "MB-metadata")
	b.ReportMetric(0, "ns/op")
}

// TestWorkload checks that the trace of the benchmark is complete and has no races.
func TestWorkload(t *testing.T) {
	from := workload(200_000)
	for _, spec := range Detectors() {
		n, err := read(from, spec.New(func(r cpu.Race) { t.Fatalf("%s finds %+v", spec.Name, r) }))
		if err != nil || n < 200_000 {
			t.Errorf("%d events, %v", n, err)
		}
	}
}
