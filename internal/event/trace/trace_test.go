package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// somePlaces gives each place two frames.
type somePlaces struct{}

func (somePlaces) Frames(place uint32) []event.Frame {
	return []event.Frame{{Function: "inner", File: "a.cuh", Line: int(place), Column: 3, PTXFile: "a.ptx", PTXLine: int(place) + 100, Inst: "st.global"},
		{Function: fmt.Sprint("outer", place)}}
}

func (somePlaces) Updates(place uint32) (load uint32, ok bool) {
	if place%2 == 0 {
		return 0, false
	}
	return place / 2, true
}

func (somePlaces) Discards(place uint32) bool     { return place%3 == 1 }
func (somePlaces) Dereferences(place uint32) bool { return place%5 == 2 }

// sameTraits reports whether a reader gives the same properties of a place as somePlaces.
func sameTraits(r *Reader, place uint32) bool {
	load, ok := r.Updates(place)
	l, o := somePlaces{}.Updates(place)
	return load == l && ok == o && r.Discards(place) == somePlaces{}.Discards(place) &&
		r.Dereferences(place) == somePlaces{}.Dereferences(place)
}

// Arms implements event.Places. Every third place has none.
func (somePlaces) Arms(place uint32) []event.Arm {
	if place%3 == 0 {
		return nil
	}
	return []event.Arm{{Branch: place + 7, Taken: 1 << (place % 32)}, {Branch: 3, Taken: ^uint32(0)}}
}

func random(seed uint64) *event.Batch {
	rng := rand.New(rand.NewPCG(seed, 7))
	if seed%2 == 0 {
		return oracle.Traffic(rng.IntN)
	}
	if seed%3 == 1 {
		return oracle.Nested(rng.IntN)
	}
	return oracle.Random(rng.IntN)
}

// written returns the trace of batches.
func written(t testing.TB, tail []byte, batches ...*event.Batch) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, somePlaces{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		w.Events(b)
	}
	if err := w.Close(tail); err != nil {
		t.Fatal(err)
	}
	if events, n := w.Written(); n != uint64(out.Len()) || events == 0 {
		t.Fatalf("%d events in %d bytes are told, and %d bytes written", events, n, out.Len())
	}
	return out.Bytes()
}

// plain is an event with everything that belongs to it, independent of its batch.
type plain struct {
	e      event.Event
	addrs  []uint64
	values []uint64
	launch event.Launch
	host   event.HostOp
}

func plainly(b *event.Batch) (out []plain) {
	for i := range b.Events {
		e := b.Events[i]
		p := plain{}
		if e.Kind > event.Atomic {
			e.Addr = 0
		}
		switch e.Kind {
		case event.Load, event.Store, event.Atomic:
			for l := range 32 {
				if e.Mask>>l&1 != 0 {
					p.addrs = append(p.addrs, b.AddrOf(&e, l))
					p.values = append(append(p.values, b.ValueOf(&e, l)...), b.OldOf(&e, l)...)
				}
			}
		case event.KernelBegin:
			p.launch = b.Launches[e.Side]
		case event.Host:
			p.host = b.Hosts[e.Side]
		}
		if e.Flags&event.FlagRows == 0 {
			e.Side = 0
		}
		if e.Val = 0; e.Flags&event.FlagScattered != 0 {
			e.Addr = 0
		}
		p.e = e
		out = append(out, p)
	}
	return out
}

func readAll(data []byte) (out []plain, r *Reader, err error) {
	if r, err = NewReader(bytes.NewReader(data)); err != nil {
		return nil, r, err
	}
	var b event.Batch
	for err == nil {
		if err = r.Next(&b); err == nil {
			out = append(out, plainly(&b)...)
		}
	}
	return out, r, err
}

func TestRoundTrip(t *testing.T) {
	wild := 0
	defer func() {
		if wild > 40 {
			t.Errorf("%d of 400 streams are not read", wild)
		}
	}()
	for seed := range uint64(400) {
		b := random(seed)
		got, r, err := readAll(written(t, []byte("the tail"), b))
		if err != nil && strings.Contains(err.Error(), "impossible address") {
			wild++ // strides that leave the window on purpose
			continue
		}
		if err != io.EOF {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := plainly(b)
		for i := range want {
			if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("seed %d: event %d is not what was written: %+v", seed, i, want[i])
			}
		}
		if len(got) != len(want) || string(r.Tail()) != "the tail" {
			t.Fatalf("seed %d: %d events for %d, tail %q", seed, len(got), len(want), r.Tail())
		}
		for i := range want {
			if p := want[i].e.Place; p != 0 && (!reflect.DeepEqual(r.Frames(p), somePlaces{}.Frames(p)) ||
				!reflect.DeepEqual(r.Arms(p), somePlaces{}.Arms(p)) || !sameTraits(r, p)) {
				t.Fatalf("seed %d: what is known of place %d differs", seed, p)
			}
		}
	}
}

// TestTruncated cuts traces at every length: complete blocks must be read, and the cut reported.
func TestTruncated(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, somePlaces{})
	if err != nil {
		t.Fatal(err)
	}
	w.goal = 64
	next := stream()
	for range 5 {
		w.Events(next(w.goal))
	}
	if err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	data := out.Bytes()
	last, total := 0, 0
	for n := 0; n < len(data); n++ {
		got, _, err := readAll(data[:n])
		if cut := (*TruncatedError)(nil); !errors.As(err, &cut) && (n > 0 || err == nil) || n > 0 && cut.Offset > int64(n) {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
		if len(got) < last || len(got) > last && len(got) < last+w.goal {
			t.Fatalf("%d bytes give %d events, fewer bytes gave %d", n, len(got), last)
		}
		last = len(got)
		total += len(got)
	}
	if total == 0 {
		t.Error("no prefix gave any events")
	}
}

// TestDamaged changes bytes, which the checksum must reveal.
func TestDamaged(t *testing.T) {
	data := written(t, nil, random(2))
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 0x40
		if _, _, err := readAll(bad); err == io.EOF {
			t.Fatalf("nobody saw that byte %d was changed", i)
		}
	}
}

// TestImpossible writes streams that no engine produces: none may reach a consumer.
func TestImpossible(t *testing.T) {
	launch := event.Launch{ID: 1, Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 40, Y: 1, Z: 1}}
	load := event.Event{Kind: event.Load, Launch: 1, Mask: 1, Size: 4, Addr: 0x1000, Stride: 4, Space: event.Global, Flags: event.FlagRead}
	change := func(f func(e *event.Event)) event.Event { e := load; f(&e); return e }
	for name, e := range map[string]event.Event{
		"good":                   load,
		"good: every other lane": change(func(e *event.Event) { e.Mask, e.Stride = 0x55, 2 }),
		"good: one lane":         change(func(e *event.Event) { e.Stride = 3 }),
		"odd lanes":              change(func(e *event.Event) { e.Mask, e.Stride = 0x53, 2 }),
		"unknown launch":         change(func(e *event.Event) { e.Launch = 2 }),
		"no such warp":           change(func(e *event.Event) { e.Warp = 4 }),
		"no such lane":           change(func(e *event.Event) { e.Warp, e.Mask = 1, 1<<8 }),
		"no lane":                change(func(e *event.Event) { e.Mask = 0 }),
		"size 3":                 change(func(e *event.Event) { e.Size = 3 }),
		"misaligned":             change(func(e *event.Event) { e.Addr++ }),
		"far shared":             change(func(e *event.Event) { e.Space, e.Addr = event.Shared, 1<<40 }),
		"barrier 16":             change(func(e *event.Event) { e.Kind, e.Barrier = event.Arrive, 16 }),
		"unknown kind":           change(func(e *event.Event) { e.Kind = 99 }),
		"after its end":          change(func(e *event.Event) { e.Place = 77 }),
		"no atomics":             change(func(e *event.Event) { e.Kind, e.Order, e.Scope = event.Atomic, event.Relaxed, event.ScopeGPU }),
		"no acquires":            change(func(e *event.Event) { e.Order, e.Scope = event.Acquire, event.ScopeGPU }),
		"no fences":              {Kind: event.Fence, Launch: 1, Mask: 1, Order: event.SC, Scope: event.ScopeGPU},
		"good: rows":             change(func(e *event.Event) { e.Mask = 0xff; e.InRows(2, 4, 1<<20) }),
		"good: negative rows":    change(func(e *event.Event) { e.Mask = 0xff; e.InRows(2, -4, -64) }),
		"rows misaligned":        change(func(e *event.Event) { e.Mask = 0xff; e.InRows(2, 4, 18) }),
		"misaligned in rows":     change(func(e *event.Event) { e.Mask = 0xff; e.InRows(2, 2, 16) }),
		"rows of a lane":         change(func(e *event.Event) { e.InRows(0, 4, 16) }),
		"rows of 32 lanes":       change(func(e *event.Event) { e.InRows(5, 4, 16) }),
		"rows below 0":           change(func(e *event.Event) { e.Mask = 0x30001; e.InRows(4, 4, -0x2000) }),
		"rows far off":           change(func(e *event.Event) { e.Space, e.Mask = event.Shared, 0x30001; e.InRows(4, 4, 1<<24) }),
		"wraps around":           change(func(e *event.Event) { e.Addr = 1 << 63; e.Mask, e.Stride = 3, 1<<62 }),
	} {
		b := &event.Batch{Events: []event.Event{{Kind: event.KernelBegin, Launch: 1}, e}, Launches: []event.Launch{launch}}
		if name == "after its end" {
			b.Events = append(b.Events[:1], event.Event{Kind: event.Exit, Launch: 1, Mask: 1}, e)
		}
		_, _, err := readAll(written(t, nil, b))
		if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) == strings.HasPrefix(name, "good") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stream returns batches of a coalesced kernel: loads of two arrays and a store, warp after warp.
func stream() func(events int) *event.Batch {
	const warps = 1 << 20
	begun, warp := false, uint32(0)
	return func(events int) *event.Batch {
		b := &event.Batch{}
		if !begun {
			begun = true
			b.Launches = []event.Launch{{ID: 1, Kernel: "saxpy", Grid: event.Dim3{X: warps / 8, Y: 1, Z: 1}, Block: event.Dim3{X: 256, Y: 1, Z: 1}}}
			b.Events = append(b.Events, event.Event{Kind: event.KernelBegin, Launch: 1})
		}
		for len(b.Events) < events {
			for i, base := range []uint64{0x1000_0000, 0x5000_0000, 0x5000_0000} {
				e := event.Event{Kind: event.Load, Launch: 1, Warp: warp % warps, Mask: ^uint32(0), Place: uint32(i + 1), Size: 4, Stride: 4,
					Space: event.Global, Addr: base + uint64(warp%warps)*128, Flags: event.FlagRead}
				if i == 2 {
					e.Kind, e.Flags = event.Store, event.FlagWrite
				}
				b.Events = append(b.Events, e)
			}
			b.Events = append(b.Events, event.Event{Kind: event.Exit, Launch: 1, Warp: warp % warps, Mask: ^uint32(0), Place: 4})
			warp++
		}
		return b
	}
}

// BenchmarkWrite writes the events of a coalesced kernel without values.
func BenchmarkWrite(b *testing.B) {
	next := stream()
	next(1)
	benchmarkWrite(b, next(512))
}

// BenchmarkWriteValues writes them with random values, the same in each batch, so the number of bytes for each event is
// not meaningful.
func BenchmarkWriteValues(b *testing.B) {
	next := stream()
	next(1)
	batch := next(512)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range batch.Events {
		if e := &batch.Events[i]; e.Kind == event.Store {
			e.Flags |= event.FlagValues
			e.Val = uint32(len(batch.Values))
			for range 32 {
				batch.Values = append(batch.Values, uint64(rng.Uint32()))
			}
		}
	}
	benchmarkWrite(b, batch)
}

func benchmarkWrite(b *testing.B, batch *event.Batch) {
	w, err := NewWriter(io.Discard, somePlaces{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w.Events(batch)
		for i := range batch.Events {
			e := &batch.Events[i]
			e.Warp += 128
			e.Addr += 128 * 128
		}
	}
	if err := w.Close(nil); err != nil {
		b.Fatal(err)
	}
	events, size := w.Written()
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(size)/float64(events), "B/event")
}

// BenchmarkRead reads the trace of BenchmarkWrite.
func BenchmarkRead(b *testing.B) {
	next := stream()
	var batches []*event.Batch
	for range 8 {
		batches = append(batches, next(blockGoal))
	}
	data := written(b, nil, batches...)
	events := 0
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(data))
		var batch event.Batch
		for err == nil {
			err = r.Next(&batch)
			events += len(batch.Events)
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

func FuzzReader(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(written(f, []byte("x"), random(seed)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, r, err := readAll(data)
		if err == nil {
			t.Fatal("Next ended without an error")
		}
		if len(got) == 0 {
			return
		}
		// What has been read must be writable, and readable again.
		var b event.Batch
		var out bytes.Buffer
		w, werr := NewWriter(&out, r)
		again, rerr := NewReader(bytes.NewReader(data))
		if werr != nil || rerr != nil {
			t.Fatal(werr, rerr)
		}
		for again.Next(&b) == nil {
			w.Events(&b)
		}
		if err := w.Close(nil); err != nil {
			t.Fatal(err)
		}
		if twice, _, err := readAll(out.Bytes()); err != io.EOF || !reflect.DeepEqual(got, twice) {
			t.Fatalf("written again, %d events are %d others: %v", len(got), len(twice), err)
		}
	})
}

// TestHostMarks checks that a trace keeps the marks of host operations.
func TestHostMarks(t *testing.T) {
	for _, h := range []event.HostOp{{}, {Kind: event.HostWrite, Staged: true}, {Kind: event.HostSignal, Assumed: true}, {Kind: event.HostWait, Assumed: true, Staged: true}} {
		b := &event.Batch{Events: []event.Event{{Kind: event.Host}}, Hosts: []event.HostOp{h}}
		got, _, err := readAll(written(t, nil, b))
		if err != io.EOF || len(got) != 1 || got[0].host != h {
			t.Errorf("host operation %+v is read as %+v, %v", h, got, err)
		}
	}
}

// TestLaunchCode checks that a trace keeps the properties of the code of a launched kernel.
func TestLaunchCode(t *testing.T) {
	one := event.Dim3{X: 1, Y: 1, Z: 1}
	for _, l := range []event.Launch{{}, {NonCoherent: true}, {Bulk: true}, {Bulk: true, NonCoherent: true}, {Synchronises: true, NonCoherent: true}, {Synchronises: true, Swaps: true},
		{Language: event.Gluon, NonCoherent: true}, {Language: event.Triton}, {Device: 1}, {Device: event.MaxDevices, Bulk: true, Language: event.Gluon}} {
		l.ID, l.Kernel, l.Grid, l.Block = 1, "k", one, one
		b := &event.Batch{Events: []event.Event{{Kind: event.KernelBegin, Launch: 1}}, Launches: []event.Launch{l}}
		got, _, err := readAll(written(t, nil, b))
		if err != io.EOF || len(got) != 1 || got[0].launch != l {
			t.Errorf("launch %+v is read as %+v, %v", l, got, err)
		}
	}
}

// TestLaunchDevice checks that launches in a trace are on possible devices, and that either all or none of them are on
// one of several.
func TestLaunchDevice(t *testing.T) {
	one := event.Dim3{X: 1, Y: 1, Z: 1}
	for _, r := range []struct {
		devices []uint8
		good    bool
	}{{[]uint8{0, 0}, true}, {[]uint8{1, 2, 1}, true}, {[]uint8{0, 1}, false}, {[]uint8{2, 0}, false}, {[]uint8{event.MaxDevices + 1}, false}} {
		b := &event.Batch{}
		for i, d := range r.devices {
			id := uint32(i + 1)
			b.Events = append(b.Events, event.Event{Kind: event.KernelBegin, Launch: id, Side: uint32(i)}, event.Event{Kind: event.KernelEnd, Launch: id})
			b.Launches = append(b.Launches, event.Launch{ID: id, Kernel: "k", Grid: one, Block: one, Device: d})
		}
		_, _, err := readAll(written(t, nil, b))
		if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) == r.good {
			t.Errorf("devices %v: %v", r.devices, err)
		}
	}
}
