package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// batches is a stream of batches that ends with an error.
type batches struct {
	list []*event.Batch
	end  error
}

func (s *batches) Next(b *event.Batch) error {
	if len(s.list) == 0 {
		return s.end
	}
	b.Reset()
	b.Append(s.list[0])
	s.list = s.list[1:]
	return nil
}

func (s *batches) Frames(place uint32) []event.Frame {
	if place%2 == 0 {
		return nil
	}
	return []event.Frame{{Function: "inner", File: "a.cuh", Line: int(place), Column: 3, PTXFile: "a.ptx", PTXLine: int(place) + 100, Inst: "st.global"},
		{Function: fmt.Sprint("outer", place)}}
}

func (s *batches) Updates(uint32) (uint32, bool) { return 0, false }
func (s *batches) Discards(uint32) bool          { return false }
func (s *batches) Dereferences(uint32) bool      { return false }
func (s *batches) Arms(uint32) []event.Arm       { return nil }

func write(t *testing.T, s *batches) []byte {
	t.Helper()
	var out bytes.Buffer
	total := 0
	for _, b := range s.list {
		total += len(b.Events)
	}
	if rows, err := Write(context.Background(), &out, s); err != s.end && !(err == nil && s.end == io.EOF) || rows != uint64(total) {
		t.Fatalf("%d rows of %d events: %v", rows, total, err)
	}
	return out.Bytes()
}

func readBack(t *testing.T, data []byte) []map[string]any {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]map[string]any, f.NumRows())
	for i := range rows {
		rows[i] = map[string]any{}
	}
	r := parquet.NewGenericReader[map[string]any](bytes.NewReader(data), f.Schema())
	if n, err := r.Read(rows); n != len(rows) || err != nil && err != io.EOF {
		t.Fatalf("%d of %d rows are read: %v", n, len(rows), err)
	}
	return rows
}

// shown formats a row without its null columns.
func shown(m map[string]any) string {
	var parts []string
	for k, v := range m {
		if v != nil {
			if s := fmt.Sprint(v); s != "[]" && s != "<nil>" {
				parts = append(parts, k+"="+s)
			}
		}
	}
	slices.Sort(parts)
	return fmt.Sprint(parts)
}

// expected returns the same from the event, lane by lane where the writer uses ranges.
func expected(s *batches, launches map[uint32]event.Launch, b *event.Batch, e *event.Event, number int) map[string]any {
	m := map[string]any{"event": number, "kind": e.Kind}
	if e.Launch != 0 {
		m["launch"] = e.Launch
	}
	if e.Kind == event.Host {
		h := b.Hosts[e.Side]
		m["kind"], m["agent"] = "host-"+h.Kind.String(), h.Agent
		if h.Name != "" {
			m["call"] = h.Name
		}
		if h.Kind <= event.HostWait {
			m["token"], m["assumed"] = h.Token, h.Assumed
		} else {
			m["address"], m["staged"], m["size"] = h.Addr, h.Staged, h.Size
		}
		return m
	}
	if e.Kind == event.KernelBegin {
		launches[e.Launch] = b.Launches[e.Side]
	}
	l := launches[e.Launch]
	if m["agent"] = l.Agent; l.Kernel != "" {
		m["kernel"] = l.Kernel
	}
	if e.Kind == event.KernelBegin || e.Kind == event.KernelEnd {
		return m
	}
	m["block"], m["warp"] = e.Warp/l.WarpsPerBlock(), e.Warp%l.WarpsPerBlock()
	m["mask"], m["lanes"] = e.Mask, bits.OnesCount32(e.Mask)
	if e.Place != 0 {
		if m["place"] = e.Place; s.Frames(e.Place) != nil {
			m["function"], m["file"], m["line"], m["column"] = "inner", "a.cuh", e.Place, 3
			m["ptx_file"], m["ptx_line"], m["instruction"] = "a.ptx", e.Place+100, "st.global"
		}
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		expectAccess(m, b, e)
	case event.Fence:
		m["order"], m["scope"] = e.Order, e.Scope
	case event.Arrive:
		if m["barrier"], m["waits"] = e.Barrier, e.Flags&event.FlagWait != 0; e.Aux != 0 {
			m["threads"] = e.Aux
		}
	case event.DeviceOp:
		m["token"] = event.DeviceToken(e.Launch, e.Aux)
	case event.BarrierDone:
		m["barrier"] = e.Barrier
	case event.Branch:
		if e.Aux != 0 {
			m["other_lanes"] = e.Aux
		}
	}
	return m
}

func expectAccess(m map[string]any, b *event.Batch, e *event.Event) {
	m["space"], m["order"], m["size"] = e.Space, e.Order, e.Size
	m["reads"], m["writes"] = e.Flags&event.FlagRead != 0, e.Flags&event.FlagWrite != 0
	if e.Scope != event.NoScope {
		m["scope"] = e.Scope
	}
	if e.Kind == event.Atomic {
		m["rmw"] = map[event.RMW]string{event.CompareAndSwap: "cas", event.Exchange: "exch", event.OtherRMW: "other"}[e.RMW]
		if e.RMW == event.OtherRMW && e.Flags&event.FlagRed != 0 {
			m["rmw"] = "red"
		}
	}
	if e.Flags&event.FlagVector != 0 {
		m["element"] = e.Aux
	}
	var addrs, values []uint64
	for l := range 32 {
		if e.Mask>>l&1 != 0 {
			addrs, values = append(addrs, b.AddrOf(e, l)), append(values, b.ValueOf(e, l)...)
		}
	}
	if m["address"] = addrs[0]; !e.Affine() {
		m["addresses"] = addrs
	} else {
		m["stride"] = e.Stride
	}
	if len(values) > 0 {
		m["values"] = values
	}
}

// TestRows reads tables of random streams and compares them with the events.
func TestRows(t *testing.T) {
	host := &event.Batch{Hosts: []event.HostOp{{Kind: event.HostWrite, Agent: 2, Addr: 0x100, Size: 8, Name: "cudaMemcpy", Staged: true},
		{Kind: event.HostSignal, Token: 7}, {Kind: event.HostFree, Addr: 0x100, Size: 8, Name: "cudaFree"}}}
	for i := range host.Hosts {
		host.Events = append(host.Events, event.Event{Kind: event.Host, Side: uint32(i)})
	}
	kinds := map[event.Kind]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		b := oracle.Random(rng.IntN)
		if seed%2 == 0 {
			b = oracle.Traffic(rng.IntN)
		} else if seed%4 == 1 {
			b = oracle.Nested(rng.IntN)
		}
		s := &batches{[]*event.Batch{host, b, host}, io.EOF}
		all := s.list
		data := write(t, s)
		rows := readBack(t, data)
		launches := map[uint32]event.Launch{}
		n := 0
		for _, b := range all {
			for i := range b.Events {
				e := &b.Events[i]
				kinds[e.Kind]++
				if n >= len(rows) {
					t.Fatalf("seed %d: %d rows", seed, len(rows))
				}
				if got, want := shown(rows[n]), shown(expected(s, launches, b, e, n)); got != want {
					t.Fatalf("seed %d: event %d\n  got %s\n want %s", seed, n, got, want)
				}
				n++
			}
		}
		if n != len(rows) {
			t.Errorf("seed %d: %d rows of %d events", seed, len(rows), n)
		}
		if again := write(t, &batches{all, io.EOF}); !bytes.Equal(data, again) {
			t.Errorf("seed %d: the bytes differ from time to time", seed)
		}
	}
	for _, k := range []event.Kind{event.Load, event.Store, event.Atomic, event.Fence, event.Arrive, event.BarrierDone, event.Exit,
		event.KernelBegin, event.KernelEnd, event.DeviceOp, event.Host} {
		if kinds[k] == 0 {
			t.Errorf("no stream has a %v", k)
		}
	}
}

// TestGroups writes more rows than fit into a group.
func TestGroups(t *testing.T) {
	b := &event.Batch{Events: make([]event.Event, groupRows/2+1)}
	for i := range b.Events {
		b.Events[i] = event.Event{Kind: event.Exit, Launch: 1, Mask: 1}
	}
	data := write(t, &batches{[]*event.Batch{b, b, b, b}, io.EOF})
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.RowGroups()); n != 3 || f.NumRows() != int64(4*len(b.Events)) {
		t.Errorf("%d rows in %d groups", f.NumRows(), n)
	}
}

// TestCut ends a stream with an error. The rows before it must be a complete table.
func TestCut(t *testing.T) {
	b := oracle.Random(rand.New(rand.NewPCG(1, 3)).IntN)
	cut := errors.New("cut")
	if rows := readBack(t, write(t, &batches{[]*event.Batch{b}, cut})); len(rows) != len(b.Events) || len(rows) == 0 {
		t.Errorf("%d rows of %d events", len(rows), len(b.Events))
	}
}

// TestPageIsTotal checks that the page describes every column.
func TestPageIsTotal(t *testing.T) {
	page, err := os.ReadFile("../../../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range schema {
		if !strings.Contains(string(page), "`"+f.name+"`") {
			t.Errorf("docs/trace.md does not explain %q", f.name)
		}
	}
}

type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestFull writes to a disk that becomes full.
func TestFull(t *testing.T) {
	b := oracle.Random(rand.New(rand.NewPCG(1, 3)).IntN)
	size := len(write(t, &batches{[]*event.Batch{b}, io.EOF}))
	for _, left := range []int{0, 10, size / 2, size - 1} {
		_, err := Write(context.Background(), &full{left}, &batches{[]*event.Batch{b}, io.EOF})
		if we := (*WriteError)(nil); !errors.As(err, &we) || !errors.Is(err, errFull) {
			t.Errorf("%d of %d bytes: %v", left, size, err)
		}
	}
}
