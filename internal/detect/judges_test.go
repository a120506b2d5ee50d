package detect

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// digester is a detector that records the events that it receives, and panics after a given number of them.
type digester struct {
	digest  uint64
	events  int
	panicAt int
}

func (d *digester) Events(b *event.Batch) {
	mix := func(v uint64) { d.digest = (d.digest ^ v) * 0x100_0000_01b3 }
	for _, e := range b.Events {
		mix(uint64(e.Kind))
		mix(uint64(e.Launch))
		mix(uint64(e.Side))
	}
	for _, table := range [][]uint64{b.Addrs, b.Values} {
		mix(uint64(len(table)))
		for _, v := range table {
			mix(v)
		}
	}
	for _, l := range b.Launches {
		mix(uint64(l.ID))
	}
	for _, h := range b.Hosts {
		mix(h.Token)
	}
	d.events += len(b.Events)
	if d.panicAt > 0 && d.events >= d.panicAt {
		panic("BUG: the detector has had enough")
	}
}

func (d *digester) Findings() []Finding { return nil }

// produce makes n batches of two events, as a producer does: it reuses the memory of a batch as soon as it may. The
// batches belong to launches 1 to n.
func produce(j *Judges, b *event.Batch, n int) {
	for i := range n {
		id := uint32(i + 1)
		b.Events = append(b.Events, event.Event{Kind: event.Load, Launch: id, Side: uint32(len(b.Addrs)), Place: uint32(i)}, event.Event{Kind: event.Store, Launch: id})
		b.Addrs = append(b.Addrs, uint64(i), uint64(2*i))
		b.Values = append(b.Values, uint64(3*i))
		b.Launches = append(b.Launches, event.Launch{ID: id})
		b.Hosts = append(b.Hosts, event.HostOp{Token: uint64(i)})
		if i%1000 == 999 {
			j.Events(b)
			b.Reset()
		} else {
			event.Hand(j, b)
		}
		if len(b.Events)+len(b.Addrs)+len(b.Values)+len(b.Launches)+len(b.Hosts) > 0 {
			panic("not empty")
		}
	}
}

// TestJudges checks that every detector receives the same batches on any number of cores.
func TestJudges(t *testing.T) {
	var want uint64
	for _, cores := range []int{0, 1, 2, 4} {
		ds := []*digester{{}, {}, {}}
		j := NewJudges(cores, ds[0], ds[1], ds[2])
		var b event.Batch
		for _, n := range []int{3, 1, 250, 0, 9999, 101, 7, 3000} {
			produce(j, &b, n)
			j.Wait()
			for i, d := range ds {
				if d.digest != ds[0].digest {
					t.Errorf("%d cores: detector %d was told otherwise after Wait", cores, i)
				}
			}
		}
		if want == 0 {
			want = ds[0].digest
		}
		if ds[0].digest != want || ds[0].events != 2*13361 {
			t.Errorf("%d cores: %d events with digest %x, want %x", cores, ds[0].events, ds[0].digest, want)
		}
	}
}

// TestJudgesDefect checks that the panic of a detector is reported with the launch that it was judging, that it
// receives no more batches, and that the other detectors are not disturbed.
func TestJudgesDefect(t *testing.T) {
	for _, cores := range []int{1, 2} {
		for _, at := range []int{1, 40, 5001, 9999, 10000} {
			good, bad := &digester{}, &digester{panicAt: at}
			j := NewJudges(cores, good, bad)
			var b event.Batch
			produce(j, &b, 5000)
			j.Wait()
			if good.events != 10000 || bad.events > at+1 {
				t.Errorf("%d cores: %d events, and %d for the one that panics at %d", cores, good.events, bad.events, at)
			}
			all := j.Defects()
			if len(all) != 1 || all[0].Detector != 1 || all[0].Launch != uint32((bad.events+1)/2) ||
				!strings.HasPrefix(all[0].Error(), "BUG: the detector has had enough\n") || !strings.Contains(string(all[0].Stack), "digester") {
				t.Errorf("%d cores: %d events: %+v", cores, bad.events, all)
			}
		}
	}
}
