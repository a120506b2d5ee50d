// Package reference is hb as its definition reads: an order (package order), a plain history (package history) and
// explanations (package explain), one access after the other. It is what hb's own way is compared with.
package reference

import (
	"cmp"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Detector is one run.
type Detector struct {
	model     detect.Model
	name      string
	order     *order.Order
	history   *history.Plain
	findings  *explain.Findings
	witness   *explain.Witness
	sites     map[siteKey]*history.Site
	hostSites map[hostKey]*history.Site
	hosts     []string // names of host operations, by place
	room      []event.Event
	observed  [32]struct { // by element of a strong access: lanes that observed other threads
		lanes, inScope uint32
		within         bool
	}
}

// siteKey is what makes accesses of a launch alike.
type siteKey struct {
	launch uint32
	place  uint32
	kind   event.Kind
	order  event.Order
	scope  event.Scope
	space  event.Space
	size   uint8
	unit   uint64
	flags  event.Flags
}

type hostKey struct {
	agent  uint32
	kind   event.HostKind
	name   string
	staged bool
}

// HostPlaces is the first place of host operations, above those of all instructions.
const HostPlaces = 1 << 32

// New makes a detector, under the name that its findings have.
func New(c detect.Config, name string) *Detector {
	h := history.NewPlain()
	return &Detector{model: c.Model, name: name, order: order.New(), history: h, findings: explain.NewFindings(c.MaxFindings), witness: explain.NewWitness(h),
		sites: map[siteKey]*history.Site{}, hostSites: map[hostKey]*history.Site{}}
}

// Findings implements detect.Detector.
func (d *Detector) Findings() []detect.Finding { return d.findings.Findings(d.name) }

// More implements detect.Capped.
func (d *Detector) More() (int, bool) { return d.findings.More() }

// Totals gives what was found, by places.
func (d *Detector) Totals() []explain.Total { return d.findings.Totals() }

// HostName gives the name of the host operations of a place.
func (d *Detector) HostName(place uint64) string { return d.hosts[place-HostPlaces] }

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	b.Plain(&d.room, func(b *event.Batch) {
		for i := range b.Events {
			d.event(b, &b.Events[i])
		}
	})
}

func (d *Detector) event(b *event.Batch, e *event.Event) {
	switch e.Kind {
	case event.KernelBegin:
		d.order.Begin(b.Launches[e.Side])
		return
	case event.KernelEnd:
		if l := d.order.Launched(e.Launch); l != nil {
			d.order.End(e.Launch)
			d.witness.End(l)
		}
		return
	case event.Host:
		d.host(&b.Hosts[e.Side])
		return
	}
	l := d.order.Launched(e.Launch)
	if l == nil || e.Mask == 0 && e.Kind != event.BarrierDone {
		return
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		if (e.Space == event.Global || e.Space == event.Shared) && e.Size > 0 {
			d.access(b, e, l)
		}
	case event.Fence, event.Arrive, event.BarrierDone, event.WarpSync, event.Exit:
		blk, wi := l.Block(e.Warp)
		if l.Sync(e) {
			d.history.Forget(history.Memory{Shared: true, Launch: e.Launch, Block: blk.Index})
		}
		d.witness.Sync(b, e, blk, wi)
	}
}

// host performs an operation of the host.
func (d *Detector) host(h *event.HostOp) {
	switch h.Kind {
	case event.HostSignal:
		d.order.Signal(h.Agent, h.Token)
	case event.HostWait:
		d.order.Wait(h.Agent, h.Token)
	}
	end := h.Addr + h.Size
	if h.Size == 0 || end < h.Addr {
		return
	}
	switch h.Kind {
	case event.HostRead, event.HostWrite:
		a := history.Access{Site: d.hostSite(h), Actor: d.order.HostAccess(h.Agent), From: h.Addr, End: end}
		d.judge(&a)
		d.findings.Settle()
		d.history.Record(&a, nil)
		if h.Kind == event.HostWrite {
			d.order.Overwrite(h.Addr, end)
		}
	case event.HostAlloc, event.HostFree:
		d.order.Overwrite(h.Addr, end)
		d.history.Reuse(h.Addr, end)
	}
}

// hostSite gives the site of an access of the host.
func (d *Detector) hostSite(h *event.HostOp) *history.Site {
	name := cmp.Or(h.Name, "an access of the host")
	k := hostKey{h.Agent, h.Kind, name, h.Staged}
	s := d.hostSites[k]
	if s == nil {
		place := 0
		for place < len(d.hosts) && d.hosts[place] != name {
			place++
		}
		if place == len(d.hosts) {
			d.hosts = append(d.hosts, name)
		}
		s = &history.Site{Place: HostPlaces + uint64(place), Host: name, Event: event.Event{Kind: event.Host, Space: event.Global},
			Side: detect.Side{Write: h.Kind == event.HostWrite, Staged: h.Staged}}
		d.hostSites[k] = s
	}
	return s
}

// site gives the site of an access event.
func (d *Detector) site(l *order.Launch, e *event.Event) *history.Site {
	const flags = event.FlagRead | event.FlagWrite | event.FlagRed
	k := siteKey{e.Launch, e.Place, e.Kind, e.Order, e.Scope, e.Space, e.Size, uint64(e.Size), e.Flags & flags}
	switch {
	case e.Flags&event.FlagVector == 0:
	case e.Aux != 0 && e.Aux <= uint32(e.Size):
		k.unit = uint64(e.Aux)
	case e.Size == 16: // the producer does not say
		k.unit = 4
	default:
		k.unit = max(uint64(e.Size)/2, 1)
	}
	s := d.sites[k]
	if s == nil {
		s = newSite(l, k, d.model)
		s.Event.RMW, s.Born = e.RMW, uint32(len(d.sites))
		d.sites[k] = s
	}
	return s
}

// newSite makes the site of a key by the rules of a model.
func newSite(l *order.Launch, k siteKey, model detect.Model) *history.Site {
	o, scope := k.order, k.scope
	if k.kind == event.Atomic {
		o = max(o, event.Relaxed)
	}
	if o == event.Volatile && model == detect.ModelPTX {
		o, scope = event.Relaxed, event.ScopeSys
	}
	strong := o != event.Weak
	wide := strong && (scope >= event.ScopeGPU || scope == event.NoScope || o == event.Volatile)
	s := &history.Site{Place: uint64(k.place), Launch: l, Unit: k.unit, Strong: strong,
		Event: event.Event{Kind: k.kind, Order: k.order, Scope: k.scope, Space: k.space, Size: k.size, Place: k.place}}
	s.Sync = order.StrongOf(k.kind, k.flags, o, wide)
	s.Sync.Shared = k.space == event.Shared
	s.Sync.Acquires = s.Sync.Acquires || model == detect.ModelHRF && strong && s.Sync.Reads
	s.Side = detect.Side{Write: s.Sync.Writes, Atomic: o >= event.Relaxed, RMW: s.Sync.Updates, Volatile: o == event.Volatile, Wide: wide, Unit: int(k.unit)}
	return s
}

// access judges and records an access event, lane by lane. Lanes of one store are not ordered with each other: all are judged
// before the first is recorded.
func (d *Detector) access(b *event.Batch, e *event.Event, l *order.Launch) {
	blk, wi := l.Block(e.Warp)
	s := d.site(l, e)
	blk.Accesses(wi, e.Mask, s.Sync.Shared)
	a := history.Access{Site: s, Executed: e.Mask}
	o := explain.Operation{Batch: b, Event: e, Site: s, Block: blk, Warp: wi}
	if s.Sync.Shared {
		a.Memory = history.Memory{Shared: true, Launch: e.Launch, Block: blk.Index}
	}
	if e.Kind == event.Store {
		for m := e.Mask; m != 0; m &= m - 1 {
			d.lane(b, e, &a, blk, wi, bits.TrailingZeros32(m))
			d.judge(&a)
		}
		d.overlaps(b, e, &a, blk, wi)
	}
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		d.lane(b, e, &a, blk, wi, lane)
		if s.Strong {
			d.strong(&o, a)
			continue
		}
		if e.Kind != event.Store {
			d.judge(&a)
		}
		d.history.Record(&a, nil)
		if s.Side.Write {
			blk.Overwrite(s.Sync.Shared, a.From, a.End)
		}
	}
	d.findings.Settle()
	if s.Strong {
		d.tell(&o)
	}
	if s.Sync.Acquires || s.Sync.Releases {
		blk.Synchronised(wi, e)
	}
}

// lane makes a the access of a lane.
func (d *Detector) lane(b *event.Batch, e *event.Event, a *history.Access, blk *order.Block, wi uint32, lane int) {
	a.Actor = blk.Actor(wi, lane)
	a.From = b.AddrOf(e, lane)
	a.End = a.From + uint64(e.Size)
	a.Values = nil
	if a.Site.WeakStore() {
		a.Values = b.ValueOf(e, lane)
	}
}

// strong judges, records and performs the elements of a strong access by a lane.
func (d *Detector) strong(o *explain.Operation, whole history.Access) {
	a, s, blk, wi := whole, whole.Site.Sync, o.Block, o.Warp
	for a.From = whole.From; a.From < whole.End; a.From = a.End {
		a.End = min(a.From+whole.Site.Unit, whole.End)
		s.Address, s.Size = a.From, uint8(a.End-a.From)
		if others, within, inScope := blk.Observed(wi, a.Actor.Lane, &s); others {
			x := &d.observed[(a.From-whole.From)/whole.Site.Unit]
			x.lanes |= 1 << uint(a.Actor.Lane)
			x.within = x.within || within
			if inScope {
				x.inScope |= 1 << uint(a.Actor.Lane)
			}
		}
		blk.Observe(wi, a.Actor.Lane, &s)
		a.Actor = blk.Actor(wi, a.Actor.Lane)
		if o.Event.Kind != event.Store {
			d.judge(&a)
		}
		d.history.Record(&a, blk.Perform(wi, a.Actor.Lane, &s))
	}
}

// tell tells the witness of a strong access.
func (d *Detector) tell(o *explain.Operation) {
	for i, x := range d.observed {
		if x.lanes != 0 {
			d.witness.Observed(o, uint64(i)*o.Site.Unit, x.lanes, x.inScope, x.within)
		}
	}
	clear(d.observed[:])
	if o.Site.Side.Write {
		d.witness.Wrote(o)
	}
}

// judge finds the races of an access.
func (d *Detector) judge(a *history.Access) {
	d.history.Judge(a, func(r history.Race) { d.report(a, r) })
}

// report adds a race to the findings.
func (d *Detector) report(a *history.Access, r history.Race) {
	space := uint64(0)
	if a.Memory.Shared {
		space = 1<<63 | uint64(a.Memory.Launch)<<32 | uint64(a.Memory.Block)
	}
	p := explain.PairOf(a.Site.Place, r.Earlier.Site.Place)
	d.findings.Bytes(p, space, r.From, r.End)
	d.findings.Add(p, 1<<uint(a.Actor.Lane), r.Category, func() detect.Facts { return d.witness.Facts(a, r) })
}

// overlaps finds the races between lanes of one store.
func (d *Detector) overlaps(b *event.Batch, e *event.Event, a *history.Access, blk *order.Block, wi uint32) {
	for m := e.Mask; m != 0; m &= m - 1 {
		for n := e.Mask & (m&-m - 1); n != 0; n &= n - 1 {
			earlier := *a
			d.lane(b, e, &earlier, blk, wi, bits.TrailingZeros32(n))
			d.lane(b, e, a, blk, wi, bits.TrailingZeros32(m))
			from, end := max(a.From, earlier.From), min(a.End, earlier.End)
			if from >= end {
				continue
			}
			rel := detect.Relation{SameLaunch: true, SameBlock: true, SameWarp: true, SameEvent: true, SameValue: sameBytes(a, &earlier, from, end)}
			if c := detect.Classify(a.Site.Side, a.Site.Side, rel); c != detect.NoRace {
				r := history.Record{Site: a.Site, Stamp: earlier.Actor.Stamp(), Executed: e.Mask, From: earlier.From, End: earlier.End}
				d.report(a, history.Race{Category: c, Earlier: &r, From: from, End: end})
			}
		}
	}
}

// sameBytes says that two stores write the same into [from, end).
func sameBytes(a, b *history.Access, from, end uint64) bool {
	if a.Values == nil || b.Values == nil {
		return false
	}
	for at := from; at < end; at++ {
		if a.Value(at) != b.Value(at) {
			return false
		}
	}
	return true
}
