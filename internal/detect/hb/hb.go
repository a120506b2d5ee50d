package hb

import (
	"maps"
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/explain"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Spec is the detector.
var Spec = detect.Spec{
	Name:   "hb",
	Doc:    "Scoped happens-before with vector clocks: every data race and scope race of the observed execution, and no other.",
	Source: "PTX ISA, \"Memory Consistency Model\"; CUDA C++ Programming Guide",
	Needs: event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedValues | event.NeedOld | event.NeedHost | event.NeedLaunch |
		event.NeedAgain | event.NeedReconverge | event.NeedPeers,
	Options: []detect.Option{{Name: "history", Doc: "how access histories are kept: interned; or plain, as in the definition of a race, for comparison",
		Values: []string{"interned", "plain"}}},
	New: func(c detect.Config) detect.Detector { return New(c) },
}

// Detector is one run of hb.
type Detector struct {
	cfg       detect.Config
	order     *order.Order
	launch    *order.Launch // of the last event
	device    uint8         // its device
	history   history.History
	warp      history.Warp                        // the access being judged
	element   history.Access                      // the element being judged, where the access is strong
	race      func(*history.Access, history.Race) // calls report
	findings  *explain.Findings
	witness   *explain.Witness
	sites     map[siteKey]*history.Site
	hostSites map[hostKey]*history.Site
	hosts     []string // names of host operations, indexed by place number
	room      []event.Event
	recent    [128]recentSite
	observed  [32]order.Observations // by element of a strong access

	// defers says that the detector defers accesses: those to shared memory between barriers are judged later or not
	// at all (see interval). It is false with the plain history.
	defers bool
	// skipped counts deferred accesses that were never judged. broken counts intervals that were broken off: their
	// accesses were judged later.
	skipped, broken int
	intervals       []*interval       // indexed by order.Block.Slot
	paths           map[uint32]*paths // by launch ID
	again           event.Event       // scratch space of series

	copies  []*copies   // indexed by order.Block.Slot
	sources []*copyHalf // copies by cp.async in flight, their reads of global memory
	// bulkGlobals are the halves of bulk copies in flight that access global memory.
	bulkGlobals []*bulkHalf
	sourcesRead map[sourceKey][]*landedHalf
	// unawaited are the bulk copies that nobody had waited for when their block ended, in the running launch.
	unawaited map[unawaited]unawaitedBulk
	issuing   *bulkHalf // the half being judged at its issue, nil otherwise
	maps      mapFences
	proxies   map[clusterKey]*proxies // for launches with clusters of several blocks
	// globalFences are the proxy fences that concern global memory, of the running launches.
	globalFences map[*order.Launch]*globalFences
	dropped      bool               // proxy fences were dropped: see Notes
	operations   uint32             // the number of counters given out, see landed.go
	inits        map[initKey]uint32 // the counters of initialisations, see inits.go
	// Scratch space of peer.
	peerEvent event.Event
	peerBatch event.Batch
	peerAddrs []uint64
}

// New makes a Detector. With the plain history it judges each access at once, as the definition reads.
func New(c detect.Config) *Detector {
	o := order.New()
	d := &Detector{cfg: c, order: o, findings: explain.NewFindings(c.MaxFindings), paths: map[uint32]*paths{},
		sites: map[siteKey]*history.Site{}, hostSites: map[hostKey]*history.Site{}}
	if c.Options["history"] == "plain" {
		d.history = history.NewPlain(o)
	} else {
		d.history, d.defers = history.NewFast(o), true
	}
	d.race, d.witness = d.report, explain.NewWitness(d, d.cfg.Frames)
	return d
}

// Findings implements detect.Detector.
func (d *Detector) Findings() []detect.Finding {
	d.performAll()
	return d.findings.Findings("hb")
}

// MemoryBytes implements detect.Metered. It counts only the fast history.
func (d *Detector) MemoryBytes() uint64 {
	if h, ok := d.history.(*history.Fast); ok {
		return h.Bytes()
	}
	return 0
}

// More implements detect.Capped.
func (d *Detector) More() (int, bool) { return d.findings.More() }

// totals returns the findings so far, by pair of places.
func (d *Detector) totals() []explain.Total {
	d.performAll()
	return d.findings.Totals()
}

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	if d.defers {
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
			for _, c := range d.copies {
				if c.block != nil && c.block.Launch == l {
					d.endCopies(c.block)
				}
			}
			d.order.End(e.Launch)
			d.maps = mapFences{}
			d.inits = nil
			d.unawaited = nil
			delete(d.globalFences, l)
			maps.DeleteFunc(d.sourcesRead, func(k sourceKey, _ []*landedHalf) bool { return k.launch == l })
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
		if d.launch = l; l != nil {
			d.device = l.Info.Device
		}
	}
	if l == nil || e.Mask == 0 && e.Kind != event.BarrierDone {
		return
	}
	blk, wi := l.Block(e.Warp)
	if e.Kind == event.Load && e.Order == event.Acquire && e.Space == event.Shared && e.Flags&event.FlagApart == 0 && (l.Info.Bulk || len(d.copies) > 0) {
		d.waitsPhase(b, e, blk, wi)
	}
	if l.Clustered() && e.Space == event.Shared {
		switch e.Kind {
		case event.Load, event.Store, event.Atomic, event.Bulk, event.Wgmma, event.Core:
			b, e = d.peer(b, e, blk)
		}
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		if (e.Space == event.Global || e.Space == event.Shared) && e.Size > 0 {
			if e.Flags&event.FlagAsync != 0 {
				d.issue(b, e, blk, wi)
				return
			}
			if e.Flags&event.FlagApart != 0 {
				d.completes(b, e, blk, wi)
				return
			}
			if !d.defers || !d.deferAccess(b, e, blk, wi) {
				d.access(b, e, blk, wi)
			}
		}
	case event.Again:
		d.series(b, e, blk, wi)
	case event.CopyCommit:
		d.commit(e, blk, wi)
	case event.CopyWait:
		d.wait(e, blk, wi)
	case event.CopyArrive:
		d.track(e, blk, wi)
	case event.MbarrierDone:
		d.phase(e.Addr, blk)
		d.phaseDone(e, blk, wi)
	case event.Bulk, event.BulkCommit, event.BulkWait, event.BulkDone, event.Wgmma, event.WgmmaCommit, event.WgmmaWait, event.Core, event.CoreCommit, event.CoreDone, event.CoreWait, event.ProxyFence:
		d.bulk(b, e, blk, wi)
	case event.MapRead, event.MapFence:
		d.tensorMap(e, blk, wi)
	case event.Fence, event.Arrive, event.BarrierDone, event.WarpSync, event.Reconverge, event.Exit, event.InitFence, event.ClusterArrive, event.ClusterWait, event.GridLaunch, event.GridWait, event.DeviceOp:
		m := history.Memory{Shared: true, Launch: e.Launch, Block: blk.Index}
		if d.defers {
			d.synchronise(e, blk, wi)
		}
		if e.Kind == event.BarrierDone || e.Kind == event.Exit {
			d.witness.Late(e, blk, d.findings.Unawaited)
		}
		if len(d.copies) > 0 && blk.Ends(wi, e) {
			d.endCopies(blk)
		}
		if e.Kind == event.InitFence {
			d.fenceInits(e, blk, wi)
			return
		}
		if l.Sync(e) && (!d.defers || d.resume(blk)) {
			d.history.Forget(m)
		}
		d.witness.Sync(b, e, blk, wi)
		if e.Kind == event.Exit && l.Ended(m.Block) {
			if d.history.EndBlock(m); l.Clustered() {
				d.endCluster(l, m.Block)
			}
		}
	}
}

// completes performs the operation that completes a phase of an mbarrier. The event accesses the second word of the
// mbarrier; the first word, just below it, carries what the arrivals at the phase have released, and HandOn passes that
// on to the second word, from which waiters acquire it. The lane that performs the operation made the last arrival, or
// it tests the barrier when a copy is complete. It does not acquire those releases, and by this operation releases
// nothing of its own, unless the event is an arrival that releases.
func (d *Detector) completes(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	if e.Kind == event.Load {
		return
	}
	store := *e
	if e.Barrier != event.ApartReleases {
		store.Order = event.Relaxed
	}
	lane := bits.TrailingZeros32(e.Mask)
	to := d.site(&store).Sync
	to.Address, to.Size = b.AddrOf(e, lane), e.Size
	if e.Barrier != event.ApartTests {
		d.access(b, &store, blk, wi)
	} else { // the lane itself does not do this
		blk.Perform(wi, lane, &to)
	}
	from := to
	from.Address -= uint64(e.Size)
	blk.HandOn(&from, &to)
}

// host performs an operation of the host.
func (d *Detector) host(h *event.HostOp) {
	if h.Assumed && h.Kind <= event.HostWait {
		d.order.Assume(h.Agent, h.Token, h.Kind == event.HostWait)
		return
	}
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
		if h.Kind == event.HostWrite {
			for _, x := range d.sources {
				d.compareLanes(&a, x, d.race)
			}
		}
		if len(d.bulkGlobals) > 0 {
			d.compareBulks(&a, nil)
		}
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

// access judges and records an access event.
func (d *Detector) access(b *event.Batch, e *event.Event, blk *order.Block, wi uint32) {
	w := &d.warp
	w.Block, w.InBlock = blk, wi
	w.Batch, w.Event, w.Site, w.Memory = b, e, d.site(e), history.Memory{}
	s := &w.Site.Sync
	if s.Shared {
		if d.defers {
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
	if len(d.copies) > 0 || w.Block.Launch.Info.Bulk { // after the strong access has performed its acquire
		d.compareWithCopies(w)
	}
	d.findings.Settle()
	if w.Site.Strong {
		d.witnessed(&explain.Operation{Batch: b, Event: e, Site: w.Site, Block: w.Block, Warp: w.InBlock})
	}
	if s.Acquires || s.Releases {
		w.Block.Synchronised(w.InBlock, e)
	}
}

// relaxed judges, records and performs the lanes' relaxed atomic operations that take part in no release or acquire
// pattern. It returns the lanes that are left, whose operations may take part in one.
func (d *Detector) relaxed(w *history.Warp) uint32 {
	fast, ok := d.history.(*history.Fast)
	s := w.Site.Sync
	e := w.Event
	if !ok || !w.Site.Side.Atomic || s.Acquires || s.Releases || !w.Site.Widest || e.Size != 4 || w.Site.Unit != 4 || w.Block.Begun(w.InBlock) {
		return e.Mask
	}
	s.Size = 4
	return fast.Relaxed(w, func(lanes uint32, at uint64) (order.ChainID, bool) {
		s.Address = at
		return w.Block.Relaxed(w.InBlock, lanes, &s, &d.observed[0])
	})
}

// witnessed tells the witness of a strong access. Lanes that give back a lock by it, or hand over, begin an epoch.
func (d *Detector) witnessed(o *explain.Operation) {
	observed := uint32(0)
	for i := range o.Event.Size / uint8(o.Site.Unit) {
		if x := &d.observed[i]; x.Lanes != 0 {
			observed |= x.Lanes
			d.findings.Locks = d.findings.Locks || o.Event.RMW != event.OtherRMW
			d.witness.Observed(o, uint64(i)*o.Site.Unit, x)
			*x = order.Observations{}
		}
	}
	handed := uint32(0)
	if o.Site.Side.Write {
		handed = o.Block.Handed(o.Warp, o.Event.Mask)
	}
	if gave := d.witness.Accessed(o, handed, observed) | handed; gave != 0 {
		o.Block.Advance(o.Warp, gave)
	}
}

// strong judges, records and performs the elements of a strong access, lane by lane. A store is judged
// for the whole warp first. In other accesses each element first acquires, then is judged, then releases.
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
		end := a.End
		for i := 0; a.From < end; a.From, i = a.End, i+1 {
			a.End = min(a.From+w.Site.Unit, end)
			s.Address, s.Size = a.From, uint8(a.End-a.From)
			w.Block.Observed(w.InBlock, lane, &s, &d.observed[i])
			w.Block.Observe(w.InBlock, lane, &s)
			a.Actor.View = w.Block.ViewOf(w.InBlock, lane)
			if !store {
				d.history.Judge(a, d.race)
			}
			chain := w.Block.Perform(w.InBlock, lane, &s)
			if !w.Site.Side.Write {
				chain = d.order.Chains()
			}
			d.history.Record(a, chain)
		}
	}
}

// spaceOf returns a number that identifies the memory of an access: 0 for global memory.
func spaceOf(a *history.Access) uint64 {
	if !a.Memory.Shared {
		return 0
	}
	return 1<<63 | uint64(a.Memory.Launch)<<32 | uint64(a.Memory.Block)
}

// watched reports whether a race is to be reported under the options Config.Watch.
func (d *Detector) watched(a *history.Access, r *history.Race) bool {
	w := d.cfg.Watch
	if w == nil {
		return true
	}
	ok := a.Actor.Launch == nil || w.Thread(&a.Actor.Launch.Info, a.Actor.Warp, a.Actor.Lane)
	if s := &r.Earlier.Stamp; s.Launch != nil {
		ok = ok && w.Thread(&s.Launch.Info, s.Warp, s.Lane)
	}
	if ok && w.Object != nil {
		space, launch := event.Global, uint32(0)
		for _, l := range []*order.Launch{a.Actor.Launch, r.Earlier.Stamp.Launch} {
			if l != nil && launch == 0 {
				launch = l.Info.ID
			}
		}
		if a.Memory.Shared {
			space = event.Shared
		}
		ok = w.Object(space, launch, r.From)
	}
	if !ok {
		d.findings.Unwatched()
	}
	return ok
}

// pair returns the pair of places of a race and records its bytes and threads. It returns false if the race is not to
// be reported.
func (d *Detector) pair(a *history.Access, r *history.Race) (explain.Pair, bool) {
	if !d.watched(a, r) {
		return explain.Pair{}, false
	}
	p := explain.PairOf(a.Site.Place, r.Earlier.Site.Place)
	d.findings.Bytes(p, spaceOf(a), r.From, r.End)
	d.findings.Took(p, a, r)
	return p, true
}

// report adds a race to the findings.
func (d *Detector) report(a *history.Access, r history.Race) {
	if r.Earlier.Site.Inits && r.Category != detect.NoProxyFence && d.knowsInit(a, &r.Earlier.Stamp) {
		return
	}
	p, ok := d.pair(a, &r)
	if !ok {
		return
	}
	d.tell(a.Actor.Launch, a.Actor.Block)
	across := a.Actor.Launch != r.Earlier.Stamp.Launch
	if l := r.Earlier.Stamp.Launch; l != nil {
		d.tell(l, r.Earlier.Stamp.Block())
		across = across || r.Earlier.Stamp.Block() != a.Actor.Block
	}
	shown := d.findings.Add(p, 1<<uint(a.Actor.Lane), r.Category, across, across && d.witness.Observes(a), func() detect.Facts {
		f := d.witness.Facts(a, r)
		f.Copy = d.unawaitedBy(a, &r)
		reuses, first := d.fills(a, r.From, r.Earlier.Site)
		switch {
		case reuses:
			f.Reuses = true
		case first:
			s, y := &r.Earlier.Stamp, d.issuing
			reader := history.Access{Actor: order.Actor{Launch: s.Launch, Block: s.Block(), Warp: s.Warp, Lane: s.Lane}}
			f.Copy = &detect.CopyState{Bulk: true, Tracked: true, Lacking: true, Unfilled: true, Passed: d.passed(&reader, y.block, y.barrier, math.MaxInt)}
		case !a.Memory.Shared:
		case f.Later.Async:
			f.Reuses = d.reuses(a.Actor.Launch.Running(a.Actor.Block), r.From, 0)
		case f.Earlier.Async:
			f.Reuses = d.reuses(a.Actor.Launch.Running(a.Actor.Block), r.From, 1)
		}
		return f
	})
	if shown && across {
		d.witness.Await(p, a, &r)
	}
}
