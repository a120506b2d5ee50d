package hb

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// largeCopies are host operations on ranges of many pages, of agents with and without order between them, and launches, frees and
// allocations between them.
func largeCopies(rng *rand.Rand) *event.Batch {
	s := &stream{}
	pick := rng.IntN
	host := func(op event.HostOp) {
		s.Hosts = append(s.Hosts, op)
		s.Events = append(s.Events, event.Event{Kind: event.Host, Side: uint32(len(s.Hosts) - 1)})
	}
	const pages = 24
	span := func() (addr, size uint64) {
		from, n := uint64(pick(pages)), uint64(1+pick(pages))
		addr, size = heap+from*pageBytes, n*pageBytes
		if pick(3) == 0 {
			addr, size = addr+uint64(pick(pageBytes)), size+uint64(pick(pageBytes))
		}
		return addr, size
	}
	for range 3 + pick(12) {
		switch pick(7) {
		case 0, 1, 2:
			addr, size := span()
			kind := event.HostRead + event.HostKind(pick(2))
			host(event.HostOp{Kind: kind, Agent: uint32(pick(3)), Addr: addr, Size: size, Name: fmt.Sprint("copy ", pick(2))})
		case 3:
			host(event.HostOp{Kind: event.HostSignal, Agent: uint32(pick(3)), Token: 1})
			host(event.HostOp{Kind: event.HostWait, Agent: uint32(pick(3)), Token: 1})
		case 4:
			addr, size := span()
			host(event.HostOp{Kind: event.HostAlloc + event.HostKind(pick(2)), Agent: 0, Addr: addr, Size: size})
		default:
			s.begin(1, 32)
			s.Launches[len(s.Launches)-1].Agent = uint32(pick(3))
			for range 1 + pick(4) {
				e := event.Event{Mask: 1 << pick(32), Size: 4, Space: event.Global, Kind: event.Load, Flags: event.FlagRead, Place: uint32(1 + pick(2)),
					Addr: heap + uint64(pick(2*pages))*pageBytes + uint64(pick(pageBytes/4))*4}
				if pick(2) == 0 {
					e.Kind, e.Flags, e.Place = event.Store, event.FlagWrite, 3
				}
				s.add(e)
			}
			s.end()
		}
	}
	return &s.Batch
}

// TestRanges compares hb with itself where it keeps every page of a host operation by itself.
func TestRanges(t *testing.T) {
	n := 20000
	if !testsize.Long() {
		n /= 10
	}
	found := 0
	for seed := range n {
		b := largeCopies(rand.New(rand.NewPCG(uint64(seed), 9)))
		var got [3]string
		for i, pages := range []uint64{1 << 40, 1, 5} {
			d := New(detect.Config{})
			d.rangePages = pages
			d.Events(b)
			got[i] = fmt.Sprintf("%+v", d.Findings())
			if i == 0 {
				found += min(len(d.Findings()), 1)
			}
		}
		if got[0] != got[1] || got[0] != got[2] {
			t.Fatalf("seed %d: findings differ between pages by themselves, ranges, and large ranges", seed)
		}
	}
	if found < n/4 || found > n*9/10 {
		t.Errorf("%d of %d programs race", found, n)
	}
}

// TestHugeOperations checks that host operations on terabytes that nobody has touched cost nothing.
func TestHugeOperations(t *testing.T) {
	d := New(detect.Config{})
	const tb = 1 << 40
	start := time.Now()
	var b event.Batch
	host := func(op event.HostOp) {
		b.Events = append(b.Events, event.Event{Kind: event.Host, Side: uint32(len(b.Hosts))})
		b.Hosts = append(b.Hosts, op)
	}
	host(event.HostOp{Kind: event.HostAlloc, Agent: 1, Addr: heap, Size: tb})
	for i := range uint32(5) {
		host(event.HostOp{Kind: event.HostWrite, Agent: 1 + i%2, Addr: heap + 5, Size: tb - 10, Name: "memset"})
	}
	host(event.HostOp{Kind: event.HostFree, Agent: 1, Addr: heap, Size: tb})
	d.Events(&b)
	if f := d.Findings(); len(f) != 1 || f[0].Addresses != tb-10 {
		t.Errorf("findings %+v", f)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("that took %v", took)
	}
}
