package detect

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// digester is a detector that remembers what it was told.
type digester struct {
	digest  uint64
	events  int
	panicAt int // events
}

func (d *digester) Events(b *event.Batch) {
	h := fnv.New64a()
	fmt.Fprint(h, d.digest, b.Events, b.Addrs, b.Values, b.Launches, b.Hosts)
	d.digest = h.Sum64()
	d.events += len(b.Events)
	if d.panicAt > 0 && d.events >= d.panicAt {
		panic("BUG: the detector has had enough")
	}
}

func (d *digester) Findings() []Finding { return nil }

// produce makes n batches in the way of a producer: it uses the memory of a batch again as soon as it may.
func produce(j *Judges, b *event.Batch, n int) {
	for i := range n {
		b.Events = append(b.Events, event.Event{Kind: event.Load, Side: uint32(len(b.Addrs)), Place: uint32(i)}, event.Event{Kind: event.Store})
		b.Addrs = append(b.Addrs, uint64(i), uint64(2*i))
		b.Values = append(b.Values, uint64(3*i))
		if i%100 == 99 {
			j.Events(b)
		} else {
			j.Take(b)
		}
		b.Reset()
	}
}

// TestJudges wants every detector to be told the same, in the same batches, on any number of cores.
func TestJudges(t *testing.T) {
	var want uint64
	for _, cores := range []int{0, 1, 2, 4} {
		ds := []*digester{{}, {}, {}}
		j := NewJudges(cores, ds[0], ds[1], ds[2])
		var b event.Batch
		for _, n := range []int{3, 1, 250, 0, 99, 101, 7} {
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
		if ds[0].digest != want || ds[0].events != 2*461 {
			t.Errorf("%d cores: %d events with digest %x, want %x", cores, ds[0].events, ds[0].digest, want)
		}
	}
}

// TestJudgesPanic wants the panic of a detector in the producer, at the latest when everything must have been judged,
// and a life after it.
func TestJudgesPanic(t *testing.T) {
	for _, cores := range []int{1, 2} {
		for _, last := range []bool{false, true} {
			d := &digester{panicAt: 40}
			if last {
				d.panicAt = 60
			}
			j := NewJudges(cores, &digester{}, d)
			bug := func() (bug any) {
				defer func() { bug = recover() }()
				defer j.Wait()
				var b event.Batch
				produce(j, &b, 30)
				return nil
			}()
			text := fmt.Sprint(bug)
			if !strings.HasPrefix(text, "BUG: the detector has had enough") {
				t.Fatalf("%d cores: the producer got %q", cores, text)
			}
			if defect, ok := bug.(*Defect); ok != (cores > 1) || ok && !strings.Contains(string(defect.Stack), "digester") {
				t.Errorf("%d cores: %T without the detector's stack: %s", cores, bug, text)
			}
			d.panicAt = 0
			had := d.events
			var b event.Batch
			produce(j, &b, 30)
			j.Wait()
			if d.events-had != 60 {
				t.Errorf("%d cores: %d events after the panic, want 60", cores, d.events-had)
			}
		}
	}
}
