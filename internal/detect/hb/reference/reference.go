// Package reference is hb in three parts: an order (package order), an access history (package history) and explanations (package
// explain). With the plain history it is hb as its definition reads, and what other ways are compared with. With the fast one it
// is meant for whole programs.
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
	cfg       detect.Config
	name      string
	order     *order.Order
	launch    *order.Launch // of the last event
	history   history.History
	warp      history.Warp                        // the access being judged
	element   history.Access                      // and of a strong one the element
	race      func(*history.Access, history.Race) // report
	findings  *explain.Findings
	witness   *explain.Witness
	sites     map[siteKey]*history.Site
	hostSites map[hostKey]*history.Site
	hosts     []string // names of host operations, by place
	room      []event.Event
	recent    [128]recentSite
	observed  [32]observed // by element of a strong access

	// Intervals says that accesses of shared memory between barriers may be judged later or not at all, see interval.
	Intervals bool
	// Skipped counts accesses that were never judged because of that, Broken intervals whose accesses were judged later.
	Skipped, Broken int

	intervals []*interval // by order.Block.Slot
	paths     map[uint32]*paths
	again     event.Event // of a series
}

// observed is lanes of a strong access that observed other threads.
type observed struct {
	lanes, inScope uint32
	within         bool // one of its block
}

// add adds a lane.
func (o *observed) add(lane int, within, inScope bool) {
	o.lanes |= 1 << uint(lane)
	o.within = o.within || within
	if inScope {
		o.inScope |= 1 << uint(lane)
	}
}

// siteKey is what makes accesses alike.
type siteKey struct {
	place uint32
	kind  event.Kind
	order event.Order
	scope event.Scope
	space event.Space
	size  uint8
	unit  uint64
	flags event.Flags
}

// recentSite is the last site of a place, of the many whose numbers are alike.
type recentSite struct {
	siteKey
	*history.Site
}

type hostKey struct {
	agent  uint32
	kind   event.HostKind
	name   string
	staged bool
}

// HostPlaces is the first place of host operations, above those of all instructions.
const HostPlaces = 1 << 32

// New makes a detector with a history, under the name that its findings have.
func New(c detect.Config, name string, fast bool) *Detector {
	o := order.New()
	h := history.History(history.NewPlain(o))
	if fast {
		h = history.NewFast(o)
	}
	d := &Detector{cfg: c, name: name, order: o, history: h, findings: explain.NewFindings(c.MaxFindings), Intervals: fast, paths: map[uint32]*paths{},
		sites: map[siteKey]*history.Site{}, hostSites: map[hostKey]*history.Site{}}
	d.race, d.witness = d.report, explain.NewWitness(d)
	return d
}

// Findings implements detect.Detector.
func (d *Detector) Findings() []detect.Finding {
	d.performAll()
	return d.findings.Findings(d.name)
}

// MemoryBytes implements detect.Metered, for the fast history.
func (d *Detector) MemoryBytes() uint64 {
	if h, ok := d.history.(*history.Fast); ok {
		return h.Bytes()
	}
	return 0
}

// More implements detect.Capped.
func (d *Detector) More() (int, bool) { return d.findings.More() }

// Totals gives what was found, by places.
func (d *Detector) Totals() []explain.Total {
	d.performAll()
	return d.findings.Totals()
}

// HostName gives the name of the host operations of a place.
func (d *Detector) HostName(place uint64) string { return d.hosts[place-HostPlaces] }

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	if d.Intervals {
		for i := range b.Events {
			d.event(b, &b.Events[i])
		}
		return
	}
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
			d.endIntervals(l)
			d.order.End(e.Launch)
			d.witness.End(l)
		}
		return
	case event.Host:
		d.host(&b.Hosts[e.Side])
		return
	}
	l := d.launch
	if l == nil || l.Info.ID != e.Launch || l.Over() {
		l = d.order.Launched(e.Launch)
		d.launch = l
	}
	if l == nil || e.Mask == 0 && e.Kind != event.BarrierDone {
		return
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		if (e.Space == event.Global || e.Space == event.Shared) && e.Size > 0 {
			blk, wi := l.Block(e.Warp)
			if !d.Intervals || !d.putOff(b, e, blk, wi) {
				d.access(b, e, blk, wi)
			}
		}
	case event.Again:
		blk, wi := l.Block(e.Warp)
		d.series(b, e, blk, wi)
	case event.Fence, event.Arrive, event.BarrierDone, event.WarpSync, event.Reconverge, event.Exit:
		blk, wi := l.Block(e.Warp)
		m := history.Memory{Shared: true, Launch: e.Launch, Block: blk.Index}
		if d.Intervals {
			d.synchronise(e, blk, wi)
		}
		if l.Sync(e) && (!d.Intervals || d.resume(blk)) {
			d.history.Forget(m)
		}
		d.witness.Sync(b, e, blk, wi)
		if e.Kind == event.Exit && l.Ended(m.Block) {
			d.history.EndBlock(m)
		}
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
		d.history.Judge(&a, d.race)
		d.findings.Settle()
		d.history.Record(&a, 0)
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
		s.Number = d.number()
		d.hostSites[k] = s
	}
	return s
}

// number gives the number of a new site.
func (d *Detector) number() uint32 { return uint32(len(d.sites) + len(d.hostSites)) }

// site gives the site of an access event.
func (d *Detector) site(e *event.Event) *history.Site {
	const flags = event.FlagRead | event.FlagWrite | event.FlagRed
	k := siteKey{e.Place, e.Kind, e.Order, e.Scope, e.Space, e.Size, uint64(e.Size), e.Flags & flags}
	switch {
	case e.Flags&event.FlagVector == 0:
	case e.Aux != 0 && e.Aux <= uint32(e.Size):
		k.unit = uint64(e.Aux)
	case e.Size == 16: // the producer does not say
		k.unit = 4
	default:
		k.unit = max(uint64(e.Size)/2, 1)
	}
	c := &d.recent[e.Place%uint32(len(d.recent))]
	if c.siteKey == k && c.Site != nil {
		return c.Site
	}
	s := d.sites[k]
	if s == nil {
		s = newSite(k, d.cfg.Model)
		s.Number, s.Event.RMW, s.Arms = d.number(), e.RMW, d.cfg.Arms(e.Place)
		d.sites[k] = s
	}
	c.siteKey, c.Site = k, s
	return s
}

// newSite makes the site of a key by the rules of a model.
func newSite(k siteKey, model detect.Model) *history.Site {
	o, scope := k.order, k.scope
	if k.kind == event.Atomic {
		o = max(o, event.Relaxed)
	}
	if o == event.Volatile && model == detect.ModelPTX {
		o, scope = event.Relaxed, event.ScopeSys
	}
	strong := o != event.Weak
	wide := strong && (scope >= event.ScopeGPU || scope == event.NoScope || o == event.Volatile)
	s := &history.Site{Place: uint64(k.place), Unit: k.unit, Strong: strong,
		Event: event.Event{Kind: k.kind, Order: k.order, Scope: k.scope, Space: k.space, Size: k.size, Place: k.place}}
	s.Sync = order.StrongOf(k.kind, k.flags, o, wide)
	s.Sync.Shared = k.space == event.Shared
	s.Sync.Acquires = s.Sync.Acquires || model == detect.ModelHRF && strong && s.Sync.Reads
	s.Side = detect.Side{Write: s.Sync.Writes, Atomic: o >= event.Relaxed, RMW: s.Sync.Updates, Volatile: o == event.Volatile, Wide: wide, Unit: int(k.unit)}
	return s
}

// access judges and records an access event.
func (d *Detector) access(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	w := &d.warp
	w.Block, w.InBlock = blk, wi
	w.Batch, w.Event, w.Site, w.Memory = b, e, d.site(e), history.Memory{}
	s := &w.Site.Sync
	if s.Shared {
		if d.Intervals {
			d.interval(blk).judged = true
		}
		w.Memory = history.Memory{Shared: true, Launch: e.Launch, Block: w.Block.Index}
	}
	w.Block.Accesses(w.InBlock, e.Mask, s.Shared)
	if w.Site.Strong {
		d.strong(w)
	} else if d.history.Weak(w, d.race); w.Site.Side.Write && w.Block.Synchronises(s.Shared) {
		for m := e.Mask; m != 0; m &= m - 1 {
			from := b.AddrOf(e, bits.TrailingZeros32(m))
			w.Block.Overwrite(s.Shared, from, from+uint64(e.Size))
		}
	}
	d.findings.Settle()
	if w.Site.Strong {
		d.witnessed(&explain.Operation{Batch: b, Event: e, Site: w.Site, Block: w.Block, Warp: w.InBlock})
	}
	if s.Acquires || s.Releases {
		w.Block.Synchronised(w.InBlock, e)
	}
}

// relaxed judges, records and performs relaxed atomic operations by a warp that are part of no pattern. It gives the lanes whose
// operations may be.
func (d *Detector) relaxed(w *history.Warp) uint32 {
	fast, ok := d.history.(*history.Fast)
	s := w.Site.Sync
	e := w.Event
	if !ok || !w.Site.Side.Atomic || s.Acquires || s.Releases || !s.Wide || e.Size != 4 || w.Site.Unit != 4 || w.Block.Begun(w.InBlock) {
		return e.Mask
	}
	s.Size = 4
	return fast.Relaxed(w, func(lane int, at uint64, h *order.Hint) (order.ChainID, bool) {
		s.Address = at
		chain, others, within, inScope, ok := w.Block.Relaxed(w.InBlock, lane, &s, h)
		if others {
			d.observed[0].add(lane, within, inScope)
		}
		return chain, ok
	})
}

// witnessed tells the witness of a strong access.
func (d *Detector) witnessed(o *explain.Operation) {
	for i := range o.Event.Size / uint8(o.Site.Unit) {
		if x := &d.observed[i]; x.lanes != 0 {
			d.witness.Observed(o, uint64(i)*o.Site.Unit, x.lanes, x.inScope, x.within)
			*x = observed{}
		}
	}
	if o.Site.Side.Write {
		d.witness.Wrote(o)
	}
}

// strong judges, records and performs the elements of a strong access, lane by lane.
func (d *Detector) strong(w *history.Warp) {
	rest := d.relaxed(w)
	if rest == 0 {
		return
	}
	w.Each()
	store := w.Event.Kind == event.Store
	if store {
		w.JudgeStore(d.history, d.race)
	}
	for m := rest; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		d.element = *w.Lane(lane)
		a, s := &d.element, w.Site.Sync
		from, end := a.From, a.End
		for ; a.From < end; a.From = a.End {
			a.End = min(a.From+w.Site.Unit, end)
			s.Address, s.Size = a.From, uint8(a.End-a.From)
			if others, within, inScope := w.Block.Observed(w.InBlock, lane, &s); others {
				d.observed[(a.From-from)/w.Site.Unit].add(lane, within, inScope)
			}
			w.Block.Observe(w.InBlock, lane, &s)
			a.Actor.View = w.Block.ViewOf(w.InBlock, lane)
			if !store {
				d.history.Judge(a, d.race)
			}
			d.history.Record(a, w.Block.Perform(w.InBlock, lane, &s))
		}
	}
}

// report adds a race to the findings.
func (d *Detector) report(a *history.Access, r history.Race) {
	space := uint64(0)
	if a.Memory.Shared {
		space = 1<<63 | uint64(a.Memory.Launch)<<32 | uint64(a.Memory.Block)
	}
	p := explain.PairOf(a.Site.Place, r.Earlier.Site.Place)
	d.findings.Bytes(p, space, r.From, r.End)
	d.tell(a.Actor.Launch, a.Actor.Block)
	if l := r.Earlier.Stamp.Launch; l != nil {
		d.tell(l, r.Earlier.Stamp.Block())
	}
	d.findings.Add(p, 1<<uint(a.Actor.Lane), r.Category, func() detect.Facts { return d.witness.Facts(a, r) })
}
