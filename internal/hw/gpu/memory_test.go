package gpu

import (
	"strings"
	"testing"
)

// TestLatencies compares the latencies of single accesses with values computed by hand.
func TestLatencies(t *testing.T) {
	c := Fermi()
	m := newMemory(c, nil, Costs{})
	const t0 = 1000
	done, free := m.load(t0, 0, 0, 0, 127, true)
	// L1 takes 20 cycles. The request of 8 bytes is 1 flit in and 1 flit out, with 8 cycles between. Bank 1 takes 1, L2
	// 120, DRAM 100 and a closed row: tRCD 12 and tCL 12 are 10 cycles each at 700 and 924 MHz. 128 bytes at 16 a clock
	// take 7. The reply of 136 bytes is 5 flits at each port, with 8 cycles between.
	want := uint64(t0 + 20 + 1 + 8 + 1 + 1 + 120 + 100 + 10 + 10 + 7 + 5 + 8 + 5)
	// The latency of L2 is paid once, before DRAM.
	if done != want || free != t0 {
		t.Errorf("a load that misses everywhere is done at %d and leaves the unit at %d, want %d and %d", done, free, want, t0)
	}
	if done, _ := m.load(5000, 0, 0, 0, 127, true); done != 5020 {
		t.Errorf("a load that hits L1 takes %d, want 20", done-5000)
	}
	if done, _ := m.load(5000, 1, 0, 0, 127, true); done != 5000+20+1+8+1+1+120+5+8+5 {
		t.Errorf("a load that hits L2 takes %d, want 169", done-5000)
	}
	if done, _ := m.load(6000, 0, 0, 0, 127, false); done == 6020 {
		t.Error("a load that is not weak hits L1")
	}
	if c := m.counts; c.L1Hits != 1 || c.L1Misses != 2 || c.L2Hits != 2 || c.L2Misses != 1 || c.DRAMData != 1 || c.DRAMMeta != 0 {
		t.Errorf("counts: %+v", c)
	}
}

// TestStoreEvicts checks that the load after a store to its line misses L1.
func TestStoreEvicts(t *testing.T) {
	m := newMemory(Fermi(), nil, Costs{})
	m.load(0, 0, 7, 0, 3, true)
	m.store(2000, 0, 7, 0, 3, 4)
	m.load(4000, 0, 7, 0, 3, true)
	if m.counts.L1Hits != 0 || m.counts.L1Misses != 2 {
		t.Errorf("%d hits and %d misses of L1, want 0 and 2", m.counts.L1Hits, m.counts.L1Misses)
	}
}

// TestRows checks that a second line of an open row is read sooner than a line of another row of the same bank, which
// waits for tRC.
func TestRows(t *testing.T) {
	c := Fermi()
	m := newMemory(c, nil, Costs{})
	channels, perRow := uint64(c.Channels), uint64(c.DRAMRow/lineBytes)
	lineOf := func(index uint64) uint64 { // of channel 0
		return index/interleave*interleave*channels + index%interleave
	}
	first := m.access(1000, lineOf(0))
	hit := m.access(1000, lineOf(1))
	if hit >= first+10 {
		t.Errorf("the open row gives its second line %d cycles after the first", hit-first)
	}
	miss := m.access(1000, lineOf(perRow*uint64(c.DRAMBanks)))
	if least := uint64(1000+100) + 31 + 20; miss < least { // tRC of 40 is 31 cycles
		t.Errorf("another row of the bank gives its line at %d, before %d", miss, least)
	}
	if m.counts.RowHits != 1 {
		t.Errorf("%d row hits, want 1", m.counts.RowHits)
	}
}

// TestCalendar checks that a request that is later in program order but earlier in time does not wait, and that a port
// serves one request a cycle.
func TestCalendar(t *testing.T) {
	var c calendar
	if end := c.take(4096, 5); end != 4101 {
		t.Errorf("5 cycles from 4096 on end at %d", end)
	}
	if end := c.take(100, 5); end != 105 {
		t.Errorf("5 cycles from 100 on end at %d: they waited for what is later", end)
	}
	last := uint64(0)
	for range 100 {
		last = c.take(1024, 10)
	}
	if last < 2024 {
		t.Errorf("1000 cycles from 1024 on end at %d", last)
	}
}

// TestChecks checks which metadata the designs access.
func TestChecks(t *testing.T) {
	for _, x := range []struct {
		design      string
		first, last int
		lines       uint64
	}{
		{"scord-base", 0, 127, 2}, // 32 words of 8 bytes
		{"scord-base", 0, 3, 1},
		{"scord-base", 60, 67, 2},
		{"scord", 0, 127, 1}, // two words
		{"hirace", 0, 127, 2},
	} {
		var d *Detector
		all := Detectors()
		for i := range all {
			if all[i].Name == x.design {
				d = &all[i]
			}
		}
		m := newMemory(Fermi(), d, All())
		m.check(0, 5, x.first, x.last)
		if n := m.counts.MetaHits + m.counts.MetaMisses; n != x.lines || m.counts.DRAMMeta != n || m.counts.DRAMData != 0 {
			t.Errorf("%s checks bytes %d to %d: %+v, want %d lines", x.design, x.first, x.last, m.counts, x.lines)
		}
	}
}

// TestBuffer checks that loads that hit L1 stall when the buffer is full, except if LHD is off.
func TestBuffer(t *testing.T) {
	d := Detectors()[0]
	for _, lhd := range []bool{true, false} {
		m := newMemory(Fermi(), &d, Costs{LHD: lhd, NOC: true, MD: true})
		m.load(0, 0, 0, 0, 127, true)
		for i := range d.Buffer + 1 {
			_, free := m.load(5000, 0, 0, 0, 127, true)
			if stalls := free > 5000; stalls != (lhd && i == d.Buffer) {
				t.Errorf("LHD %v: load %d that hits stalls: %v", lhd, i, stalls)
			}
		}
	}
}

func TestParse(t *testing.T) {
	c, err := Parse([]byte("sms = 2\nl2_bytes = 98304\n"))
	if want := Fermi(); err != nil || c.SMs != 2 || c.L2Bytes != 98304 || c.L1Bytes != want.L1Bytes {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"smss = 2":         "smss",
		"sms = 0":          "sms is 0",
		"t_rc = -1":        "t_rc is -1",
		"l1_bytes = 100":   "l1_bytes is 100",
		"l2_bytes = 10000": "l2_bytes is 10000",
		"sms = \"many\"":   "SMs",
		"sms = ":           "expected value",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
