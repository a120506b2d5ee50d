package hb

import (
	"cmp"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// siteKey identifies a site: events with equal keys belong to the same history.Site.
type siteKey struct {
	place uint32
	kind  event.Kind
	order event.Order
	scope event.Scope
	space event.Space
	size  uint8
	unit  uint64
	flags event.Flags
	// clustered says that the scope is cluster and that the launch has clusters of several blocks.
	clustered bool
	inits     bool // mbarrier.init
	// device is the device of the launch in a run with several, otherwise 0. Accesses on different devices have
	// different sites.
	device uint8
}

// recentSite is a slot of Detector.recent: the last site looked up among the places that share the slot.
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

// hostPlaces is the first place number of host operations. The places of instructions are smaller.
const hostPlaces = 1 << 32

// hostSite returns the site of an access of the host.
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
		s = &history.Site{Place: hostPlaces + uint64(place), Host: name, Event: event.Event{Kind: event.Host, Space: event.Global},
			Side: detect.Side{Write: h.Kind == event.HostWrite, Staged: h.Staged}}
		s.Number = d.number()
		d.hostSites[k] = s
	}
	return s
}

// number returns the number of a new site.
func (d *Detector) number() uint32 { return uint32(len(d.sites) + len(d.hostSites)) }

// site returns the site of an access event.
func (d *Detector) site(e *event.Event) *history.Site {
	const flags = event.FlagRead | event.FlagWrite | event.FlagRed | event.FlagAsync
	k := siteKey{e.Place, e.Kind, e.Order, e.Scope, e.Space, e.Size, uint64(e.Size), e.Flags & flags,
		e.Scope == event.ScopeCluster && d.launch != nil && d.launch.Clustered(),
		e.Kind == event.Store && e.Flags&event.FlagApart == 0 && e.Barrier == event.StoreInits, d.device}
	switch {
	case e.Flags&event.FlagVector == 0:
	case e.Aux != 0 && e.Aux <= uint32(e.Size):
		k.unit = uint64(e.Aux)
	case e.Size == 16: // the producer does not give the element size
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
		if e.Kind == event.Store {
			s.Load, s.Side.Updates = d.cfg.Updates(e.Place)
		}
		s.Discards = e.Kind == event.Atomic && d.cfg.Discards(e.Place)
		d.sites[k] = s
	}
	c.siteKey, c.Site = k, s
	return s
}

// newSite makes the site of a key under a memory model.
func newSite(k siteKey, model detect.Model) *history.Site {
	o, scope := k.order, k.scope
	if k.kind == event.Atomic {
		o = max(o, event.Relaxed)
	}
	if o == event.Volatile && model == detect.ModelPTX {
		o, scope = event.Relaxed, event.ScopeSys
	}
	strong := o != event.Weak
	wide := strong && (scope >= event.ScopeGPU || k.clustered || scope == event.NoScope || o == event.Volatile)
	system := strong && k.device != 0 && (scope == event.ScopeSys || scope == event.NoScope || o == event.Volatile)
	s := &history.Site{Place: uint64(k.place), Unit: k.unit, Widest: wide && !k.clustered && (system || k.device == 0), Strong: strong && k.flags&event.FlagAsync == 0, // a reduction by an asynchronous copy releases nothing
		Event: event.Event{Kind: k.kind, Order: k.order, Scope: k.scope, Space: k.space, Size: k.size, Place: k.place, Flags: k.flags & event.FlagAsync}}
	s.Inits = k.inits
	s.Sync = order.StrongOf(k.kind, k.flags, o, wide)
	s.Sync.Shared, s.Sync.System, s.Sync.Cluster = k.space == event.Shared, system, wide && k.clustered
	s.Sync.Acquires = s.Sync.Acquires || model == detect.ModelHRF && strong && s.Sync.Reads
	s.Side = detect.Side{Write: s.Sync.Writes, Atomic: o >= event.Relaxed, RMW: s.Sync.Updates, Volatile: o == event.Volatile, Wide: wide, System: system, Cluster: wide && k.clustered, Unit: int(k.unit)}
	return s
}
