package event

import (
	"slices"
	"testing"
)

// TestPlain checks that each Again is replaced by the events of its series, in batches of limited length, and that
// other events are unchanged.
func TestPlain(t *testing.T) {
	b := &Batch{Values: make([]uint64, 100)}
	var want []Event
	for i := range uint32(400) {
		e := Event{Kind: Load, Flags: FlagRead, Space: Shared, Size: 4, Mask: 3, Warp: i, Addr: uint64(i)}
		if i%3 > 0 {
			b.Events, want = append(b.Events, e), append(want, e)
			continue
		}
		s := &Series{ID: i + 1, Words: 2 * (i % 4)}
		for k := range i % 7 {
			x := e
			x.Warp, x.Addr = 0, uint64(8*k)
			if k < i%4 {
				x.Kind, x.Flags, x.Val = Store, FlagWrite|FlagValues, 2*k
			}
			s.Events = append(s.Events, x)
			if x.Warp = i; x.Kind == Store {
				x.Val += i % 50
			}
			want = append(want, x)
		}
		for k := range s.Events {
			if s.Events[k].Kind == Load { // Val is not used
				want[len(want)-len(s.Events)+k].Val = i % 50
			}
		}
		b.Events = append(b.Events, Event{Kind: Again, Mask: 3, Warp: i, Side: uint32(len(b.Series)), Val: i % 50})
		b.Series = append(b.Series, s)
	}
	var both Batch
	both.Append(b)
	from := both.Extent()
	both.Append(b)
	second := both.Between(from, both.Extent())
	var room []Event
	for _, b := range []*Batch{b, &second} {
		var got []Event
		b.Plain(&room, func(part *Batch) {
			if len(part.Events) > plainEvents+8 || len(part.Series) > 0 || len(part.Values) != len(b.Values) {
				t.Errorf("%d events, %d series, %d values", len(part.Events), len(part.Series), len(part.Values))
			}
			got = append(got, part.Events...)
		})
		if !slices.Equal(got, want) {
			t.Errorf("%d events, want %d", len(got), len(want))
		}
	}
	plain := &Batch{Events: want}
	plain.Plain(&room, func(part *Batch) {
		if part != plain {
			t.Error("a batch without series was copied")
		}
	})
}
