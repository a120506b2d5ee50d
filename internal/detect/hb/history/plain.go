package history

import (
	"maps"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/order"
)

// Plain is the history as defined: for each byte, the accesses to it. It is for programs of some thousand accesses, and
// for comparison with Fast.
type Plain struct {
	order    *order.Order
	memories map[Memory]*memory
}

// NewPlain makes an empty history of a run.
func NewPlain(o *order.Order) *Plain { return &Plain{o, map[Memory]*memory{}} }

// memory is the history of one memory.
type memory struct {
	bytes  map[uint64][]Record
	host   []Record                // accesses of the host, which cover whole buffers
	stored map[storeKey]storedWord // the values that weak stores wrote
}

// storeKey identifies the part of an aligned word of four bytes that stores of a site write in a launch.
type storeKey struct {
	site     *Site
	launch   *order.Launch
	from, to uint64
}

// storedWord is the value that stores of a site wrote into a part of a word.
type storedWord struct {
	value [wordBytes]byte
	mixed bool // they wrote different values, or a value that is not known
}

const wordBytes = 4

func (p *Plain) memory(m Memory) *memory {
	x := p.memories[m]
	if x == nil {
		x = &memory{map[uint64][]Record{}, nil, map[storeKey]storedWord{}}
		p.memories[m] = x
	}
	return x
}

// Weak judges and records a weak access by a warp.
func (p *Plain) Weak(w *Warp, race func(*Access, Race)) {
	w.Each()
	store := w.Site.Side.Write
	if store {
		w.JudgeStore(p, race)
	}
	for m := w.Event.Mask; m != 0; m &= m - 1 {
		a := w.Lane(bits.TrailingZeros32(m))
		if !store {
			p.Judge(a, race)
		}
		p.Record(a, 0)
	}
}

// Judge implements History. It calls race for single bytes, or for a range of bytes if the record is of the host.
func (p *Plain) Judge(a *Access, race func(*Access, Race)) {
	m := p.memory(a.Memory)
	for i := range m.host {
		r := &m.host[i]
		if from, end := max(a.From, r.From), min(a.End, r.End); from < end {
			m.judge(p.order, a, r, from, end, race)
		}
	}
	for at := range m.touched(a.From, a.End) {
		records := m.bytes[at]
		for i := len(records) - 1; i >= 0; i-- {
			m.judge(p.order, a, &records[i], at, at+1, race)
		}
	}
}

// Before implements History. It calls f for single bytes.
func (p *Plain) Before(a *Access, f func(Race)) {
	m := p.memory(a.Memory)
	for at := range m.touched(a.From, a.End) {
		records := m.bytes[at]
		for i := range records {
			if r := &records[i]; r.Site.Side.Write && r.Stamp.Launch == a.Actor.Launch && a.Actor.After(&r.Stamp) {
				f(Race{detect.NoRace, r, at, at + 1})
			}
		}
	}
}

// touched yields the addresses in [from, end) that have records, in order.
func (m *memory) touched(from, end uint64) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if end-from > uint64(len(m.bytes)) {
			for _, at := range slices.Sorted(maps.Keys(m.bytes)) {
				if from <= at && at < end && !yield(at) {
					return
				}
			}
			return
		}
		for at := from; at < end; at++ {
			if len(m.bytes[at]) > 0 && !yield(at) {
				return
			}
		}
	}
}

// judge calls race if an access races with a record in [from, end). The range is one byte unless one of the two is of
// the host.
func (m *memory) judge(o *order.Order, a *Access, r *Record, from, end uint64, race func(*Access, Race)) {
	if !a.Site.Side.Write && !r.Site.Side.Write || a.Actor.After(&r.Stamp) ||
		r.Site.Side.Write && o.Observed(&a.Actor, a.Memory.Shared, r.From, uint8(r.End-r.From), r.Chain) {
		return
	}
	rel := a.relation(r)
	rel.SameValue = rel.SameLaunch && a.Site.WeakStore() && r.Site.WeakStore() && m.sameValue(a, r, from)
	if c := detect.Classify(r.Site.Side, a.Site.Side, rel); c != detect.NoRace {
		race(a, Race{c, r, from, end})
	}
}

// part returns the intersection of [from, end) with the word that contains an address.
func part(at, from, end uint64) (uint64, uint64) {
	word := at &^ (wordBytes - 1)
	return max(from, word), min(end, word+wordBytes)
}

// sameValue reports whether a store writes into the word around an address the same as all stores by the site of r have
// written there, in the bytes that a and r share.
func (m *memory) sameValue(a *Access, r *Record, at uint64) bool {
	from, to := part(at, r.From, r.End)
	w, ok := m.stored[storeKey{r.Site, r.Stamp.Launch, from, to}]
	if !ok || w.mixed || a.Values == nil {
		return false
	}
	for x := max(from, a.From); x < min(to, a.End); x++ {
		if w.value[x%wordBytes] != a.Value(x) {
			return false
		}
	}
	return true
}

// Record implements History. The access must have been judged.
func (p *Plain) Record(a *Access, chain order.ChainID) {
	m := p.memory(a.Memory)
	r := Record{a.Site, a.Actor.Stamp(), a.Executed, a.From, a.End, chain}
	if a.Site.Host != "" {
		m.host = slices.DeleteFunc(m.host, func(o Record) bool { return r.supersedes(&o) })
		m.host = append(m.host, r)
		return
	}
	for at := a.From; at < a.End; at++ {
		records := m.bytes[at]
		if i := slices.IndexFunc(records, func(o Record) bool { return r.supersedes(&o) }); i >= 0 {
			records[i] = r
		} else {
			m.bytes[at] = append(records, r)
		}
	}
	if a.Site.WeakStore() {
		m.store(a)
	}
}

// supersedes reports whether whatever races with o races with r as well, for the same reason.
func (r *Record) supersedes(o *Record) bool {
	a, b := r.Stamp, o.Stamp
	a.Epoch, b.Epoch = 0, 0
	return r.Site == o.Site && a == b && r.Executed == o.Executed && (r.Chain == o.Chain || !r.Site.Side.Write) && r.From <= o.From && o.End <= r.End &&
		(r.Site.Host != "" || r.From == o.From && r.End == o.End)
}

// store records the values that a weak store writes.
func (m *memory) store(a *Access) {
	for at := a.From; at < a.End; {
		from, to := part(at, a.From, a.End)
		at = to
		k := storeKey{a.Site, a.Actor.Launch, from, to}
		w, ok := m.stored[k]
		now := storedWord{mixed: a.Values == nil}
		for x := from; x < to && !now.mixed; x++ {
			now.value[x%wordBytes] = a.Value(x)
		}
		if ok && w != now {
			now.mixed = true
		}
		m.stored[k] = now
	}
}

// StrongAccesses implements the interface StrongAccesses.
func (p *Plain) StrongAccesses(m Memory, address uint64, f func(*Record)) {
	if m := p.memories[m]; m != nil {
		for _, r := range m.bytes[address] {
			if r.Site.Strong {
				f(&r)
			}
		}
	}
}

// Forget implements History.
func (p *Plain) Forget(m Memory) { delete(p.memories, m) }

// EndBlock implements History.
func (p *Plain) EndBlock(m Memory) { p.Forget(m) }

// Reuse implements History.
func (p *Plain) Reuse(from, end uint64) {
	m := p.memory(Memory{})
	for _, at := range slices.Collect(m.touched(from, end)) {
		delete(m.bytes, at)
	}
	maps.DeleteFunc(m.stored, func(k storeKey, _ storedWord) bool {
		word := k.from &^ (wordBytes - 1)
		return from <= word && word < end
	})
	m.host = withoutRange(m.host, from, end)
}
