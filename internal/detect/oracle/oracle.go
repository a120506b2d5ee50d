// Package oracle finds the races of an event stream by brute force. It builds the relations of the memory model over
// the whole stream, computes their closure, and examines every pair of accesses. It follows the definitions in the
// documentation of package hb and shares no code with any detector. It is for tests: time grows with the cube of the
// number of operations, and space with the square.
package oracle

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"sort"

	"fencepost.dev/fencepost/internal/event"
)

// Model selects the interpretation of volatile accesses and fences.
type Model int

// The models, as package detect names them.
const (
	CUDA Model = iota
	PTX
	HRF
)

// Race is the result for a pair of places.
type Race struct {
	A, B      string // places, sorted: "p12", or "host:" followed by the name of the operation
	Why       string // the gravest reason
	Warning   bool
	Count     int // accesses that race with an earlier one
	Addresses int // bytes that race
}

func (r Race) String() string {
	return fmt.Sprintf("%s-%s %s count %d bytes %d", r.A, r.B, r.Why, r.Count, r.Addresses)
}

// reasons are the reasons for races, from the mildest to the gravest. The first ones are warnings.
var reasons = []string{"", "same-value", "warp-synchronous", "volatile", "staged-copy", "host-threads", "mixed-size-rmw", "copy-proxy", "one-instruction", "lost-update", "proxy", "same-block",
	"cross-block", "atomic-with-plain", "mixed-size", "atomic-scope", "copy", "cross-device", "cross-launch"}

// warnings is the largest index in reasons of a warning.
const warnings = 7

func rankOf(why string) int {
	for i, r := range reasons {
		if r == why {
			return i
		}
	}
	panic("BUG: reason " + why)
}

// thread is a device thread, or an agent of the host (launch 0).
type thread struct {
	launch, warp uint32
	lane         int
	copy         int // number of an asynchronous copy issued by the thread; 0: the thread itself
}

// instance is global memory, or the shared memory of a block.
type instance struct {
	shared        bool
	launch, block uint32
}

type kind int

const (
	other kind = iota
	accessNode
	fenceNode
	proxyNode // fence.proxy.async
)

// node is an operation of one thread. Each element of a strong vector access is a node of its own.
type node struct {
	kind
	t       thread
	block   uint32
	device  uint8 // 0: the run has one device, or the node is of the host
	nested  bool  // of a launch made by a thread
	cluster cluster
	at      int // index of the event
	order   event.Order
	scope   event.Scope
	place   string
	mem     instance
	addr    uint64
	size    uint64
	unit    uint64
	read    bool
	write   bool
	atomic  bool // an atom or red
	red     bool
	host    bool
	staged  bool
	mask    uint32
	pc      uint32
	turn    int    // the number of times that all lanes of the warp had reconverged
	vals    []byte // bytes written; nil: not known
	key     string // equal for writes of one class (same instruction)
	saw     int    // the node of the write that this strong read observed, if the two are morally strong; otherwise -1
	cut     int    // index in writes: this write and later ones do not precede the node
	nthAcc  int    // event*32+lane; for the host -1-event
	volatil bool
	copy    copyNode
	async   bool        // an access through the async proxy
	space   event.Space // of a proxy fence; event.NoSpace: all spaces
	inits   bool        // an mbarrier.init, or a fence.mbarrier_init
	silent  bool        // an access that does not race
	handed  int         // one more than the write whose releases this write passes on; 0: none
}

type trace struct {
	model    Model
	launches map[uint32]*event.Launch
	nodes    []node
	edges    [][2]int
	weak     map[[2]int]bool // edges that do not order fence.sc
	inits    [][2]int        // pairs of a fence.mbarrier_init and an operation that knows what the fence releases
	last     map[thread]int
	writes   []write // in stream order
	floors   []floor
	reach    [][]uint64

	// Assumed order of host threads: edges between nodes of agents, and for each launch the nodes of its end and its
	// beginning.
	assumed      [][2]int
	ends, begins map[uint32]int
	supposed     map[int][]int // see supposes
}

// write is a change of bytes: by a node, or (node -1) the beginning or end of an allocation.
type write struct {
	node int
	mem  instance
	lo   uint64
	hi   uint64
	at   int
}

// floor is the completion of a barrier at which all threads of a block waited.
type floor struct {
	mem instance
	at  int
}

// Find returns the races of a stream, sorted.
func Find(b *event.Batch, model Model) []Race {
	t := &trace{model: model, launches: map[uint32]*event.Launch{}, last: map[thread]int{}, weak: map[[2]int]bool{},
		ends: map[uint32]int{}, begins: map[uint32]int{}, supposed: map[int][]int{}}
	t.build(b)
	t.orderFences()
	t.synchronise()
	t.close()
	return t.races()
}

func (t *trace) add(n node) int {
	i := len(t.nodes)
	n.saw = -1
	if l := t.launches[n.t.launch]; l != nil {
		number, _ := l.ClusterOf(n.block)
		n.cluster, n.device, n.nested = cluster{clustered(l), number}, l.Device, l.Parent != 0
	}
	t.nodes = append(t.nodes, n)
	if p, ok := t.last[n.t]; ok {
		t.edge(p, i)
		if n.t.launch == 0 {
			t.assumed = append(t.assumed, [2]int{p, i})
		}
	}
	t.last[n.t] = i
	return i
}

func (t *trace) edge(a, b int) { t.edges = append(t.edges, [2]int{a, b}) }

// builder is the state while reading a stream.
type builder struct {
	*trace
	b        *event.Batch
	tokens   map[uint64]int
	supposed map[uint64]int           // by token, like tokens, including assumed signals
	begun    map[uint32]int           // launch: node of KernelBegin
	start    map[uint32]int           // launch: the node that precedes what its threads do without waiting
	newest   map[uint32]*event.Launch // agent: its last operation, if that is a launch
	waited   map[uint32][]int         // agent: the signals that it has waited for since newest
	releases map[uint32]bool          // launch: the next launch may begin early
	ended    map[uint32]bool          //
	arrivals map[[3]uint32][]waiting  // launch, block, barrier
	gone     map[thread]bool
	touched  map[thread]bool // threads that have accessed shared memory
	dirty    map[[2]uint32]bool
	turns    map[[2]uint32]int // launch, warp
	groups   map[thread]uint32 // the number of committed groups of copies
	flying   map[thread][]flying
	landed   map[thread][]flying // copies whose phase of an mbarrier is complete
	numbered int                 // the number of copies so far

	bulkGroups map[thread]uint32 // the number of committed groups of bulk copies
	bulks      map[thread][]bulkCopy
	units
}

type waiting struct {
	node  int
	waits bool
}

func (t *trace) build(b *event.Batch) {
	x := &builder{trace: t, b: b, tokens: map[uint64]int{}, supposed: map[uint64]int{}, begun: map[uint32]int{}, start: map[uint32]int{},
		newest: map[uint32]*event.Launch{}, waited: map[uint32][]int{}, releases: map[uint32]bool{}, ended: map[uint32]bool{},
		arrivals: map[[3]uint32][]waiting{}, gone: map[thread]bool{}, touched: map[thread]bool{}, dirty: map[[2]uint32]bool{},
		turns: map[[2]uint32]int{}, groups: map[thread]uint32{}, flying: map[thread][]flying{}, landed: map[thread][]flying{},
		bulkGroups: map[thread]uint32{}, bulks: map[thread][]bulkCopy{}, units: newUnits()}
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.KernelBegin:
			l := b.Launches[e.Side]
			t.launches[l.ID] = &l
			x.begun[l.ID] = t.add(node{t: agent(l.Agent), at: i})
			if x.begin(&l, i); x.start[l.ID] == x.begun[l.ID] {
				t.begins[l.ID] = x.begun[l.ID]
			}
		case event.KernelEnd:
			x.end(e.Launch, i)
		case event.Host:
			x.host(&b.Hosts[e.Side], i)
		default:
			if l := t.launches[e.Launch]; l != nil && !x.ended[e.Launch] {
				x.device(e, i, l)
			}
		}
	}
}

// begin finds what precedes all of a launch. For a launch that begins early, that is what precedes all of the launch
// before it, and what the agent has waited for since.
func (x *builder) begin(l *event.Launch, at int) {
	x.start[l.ID] = x.begun[l.ID]
	if last := x.newest[l.Agent]; l.Early && last != nil && x.releases[last.ID] {
		n := x.add(node{t: agent(1<<31 | l.ID), at: at})
		x.start[l.ID] = n
		x.edge(x.start[last.ID], n)
		for _, s := range x.waited[l.Agent] {
			x.edge(s, n)
		}
	}
	x.newest[l.Agent], x.waited[l.Agent] = l, nil
}

func agent(id uint32) thread { return thread{warp: id} }

func (x *builder) end(launch uint32, at int) {
	l := x.launches[launch]
	if l == nil || x.ended[launch] {
		return
	}
	x.ended[launch] = true
	x.leave(at, func(th thread) bool { return th.launch == launch })
	n := x.add(node{t: agent(l.Agent), at: at})
	x.ends[launch] = n
	for th, last := range x.last {
		if th.launch == launch {
			x.edge(last, n)
		}
	}
}

func (x *builder) host(h *event.HostOp, at int) {
	th := agent(h.Agent)
	switch h.Kind {
	case event.HostSignal:
		n := x.add(node{t: th, at: at})
		x.supposed[h.Token] = n
		if !h.Assumed {
			x.tokens[h.Token] = n
		}
	case event.HostWait:
		n := x.add(node{t: th, at: at})
		if s, ok := x.supposed[h.Token]; ok {
			x.assumed = append(x.assumed, [2]int{s, n})
		}
		if s, ok := x.tokens[h.Token]; ok && !h.Assumed {
			x.edge(s, n)
			x.waited[h.Agent] = append(x.waited[h.Agent], s)
		}
	case event.HostRead, event.HostWrite:
		x.newest[h.Agent] = nil
		n := x.add(node{kind: accessNode, t: th, at: at, place: "host:" + h.Name, addr: h.Addr, size: h.Size, unit: h.Size,
			read: h.Kind == event.HostRead, write: h.Kind == event.HostWrite, host: true, staged: h.Staged, cut: len(x.writes), nthAcc: -1 - at})
		if h.Kind == event.HostWrite {
			x.wrote(n)
		}
	case event.HostAlloc, event.HostFree:
		x.writes = append(x.writes, write{-1, instance{}, h.Addr, h.Addr + h.Size, at})
	}
}

func (x *builder) wrote(n int) {
	d := &x.nodes[n]
	x.writes = append(x.writes, write{n, d.mem, d.addr, d.addr + d.size, d.at})
}

func lanesOf(mask uint32) (out []int) {
	for l := 0; l < 32; l++ {
		if mask>>uint(l)&1 != 0 {
			out = append(out, l)
		}
	}
	return out
}

// op adds a node of a lane. The beginning of its kernel precedes it.
func (x *builder) op(e *event.Event, lane int, n node) int {
	n.t = thread{launch: e.Launch, warp: e.Warp, lane: lane}
	n.block = e.Warp / x.launches[e.Launch].WarpsPerBlock()
	_, old := x.last[n.t]
	i := x.add(n)
	if !old {
		x.edge(x.start[e.Launch], i)
	}
	return i
}

func (x *builder) device(e *event.Event, at int, l *event.Launch) {
	block := e.Warp / l.WarpsPerBlock()
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		x.access(e, at, block)
	case event.GridLaunch:
		x.releases[e.Launch] = true
	case event.GridWait:
		for _, lane := range lanesOf(e.Mask) {
			x.edge(x.begun[e.Launch], x.op(e, lane, node{at: at}))
		}
	case event.DeviceOp:
		for _, lane := range lanesOf(e.Mask) {
			n := x.op(e, lane, node{at: at})
			token := event.DeviceToken(e.Launch, e.Aux)
			x.tokens[token], x.supposed[token] = n, n
		}
	case event.CopyCommit:
		x.commit(e)
	case event.CopyArrive:
		x.track(e, at)
	case event.MbarrierDone:
		x.phaseDone(e, at, block)
	case event.CopyWait:
		x.wait(e, at)
	case event.Bulk:
		x.bulk(e, at, block)
	case event.BulkCommit:
		for _, lane := range lanesOf(e.Mask) {
			x.bulkGroups[thread{launch: e.Launch, warp: e.Warp, lane: lane}]++
		}
	case event.BulkWait:
		x.bulkWait(e, at)
	case event.BulkDone:
		x.bulkDone(e, at, block)
	case event.Wgmma, event.Core:
		x.unit(e, at, block)
	case event.WgmmaCommit:
		x.matrixGroups[[2]uint32{e.Launch, e.Warp}]++
	case event.WgmmaWait:
		x.waitMatrix(e, at, block)
	case event.CoreCommit:
		x.commitCores(e, at)
	case event.CoreDone:
		x.coresDone(e, at, block)
	case event.CoreWait:
		x.waitCores(e, at)
	case event.ClusterArrive, event.ClusterWait:
		x.clusterBarrier(e, at)
	case event.ProxyFence:
		for _, lane := range lanesOf(e.Mask) {
			x.op(e, lane, node{kind: proxyNode, at: at, space: e.Space})
		}
	case event.Fence, event.InitFence:
		for _, lane := range lanesOf(e.Mask) {
			x.op(e, lane, node{kind: fenceNode, at: at, order: e.Order, scope: e.Scope, inits: e.Kind == event.InitFence})
		}
	case event.Arrive:
		k := [3]uint32{e.Launch, block, uint32(e.Barrier)}
		for _, lane := range lanesOf(e.Mask) {
			n := x.op(e, lane, node{at: at})
			x.arrivals[k] = append(x.arrivals[k], waiting{n, e.Flags&event.FlagWait != 0})
		}
	case event.BarrierDone:
		x.done(e, at, l, block)
	case event.WarpSync:
		var ns []int
		for _, lane := range lanesOf(e.Mask) {
			if !x.gone[thread{launch: e.Launch, warp: e.Warp, lane: lane}] {
				ns = append(ns, x.op(e, lane, node{at: at}))
			}
		}
		for _, a := range ns {
			for _, b := range ns {
				x.edge(a, b)
			}
		}
	case event.Reconverge:
		whole := true
		for lane := range 32 {
			if i := uint64(e.Warp%l.WarpsPerBlock())*32 + uint64(lane); i < l.Block.Count() {
				whole = whole && (e.Mask>>lane&1 != 0 || x.gone[thread{launch: e.Launch, warp: e.Warp, lane: lane}])
			}
		}
		if whole {
			x.turns[[2]uint32{e.Launch, e.Warp}]++
		}
	case event.Exit:
		for _, lane := range lanesOf(e.Mask) {
			th := thread{launch: e.Launch, warp: e.Warp, lane: lane}
			x.gone[th] = true
			if x.touched[th] {
				x.dirty[[2]uint32{e.Launch, block}] = true
			}
		}
		x.over(e.Launch, block, at)
	}
}

func (x *builder) done(e *event.Event, at int, l *event.Launch, block uint32) {
	k := [3]uint32{e.Launch, block, uint32(e.Barrier)}
	arrived := x.arrivals[k]
	if len(arrived) == 0 {
		return
	}
	delete(x.arrivals, k)
	here := map[thread]bool{}
	for _, w := range arrived {
		if !w.waits {
			continue
		}
		th := x.nodes[w.node].t
		here[th] = true
		n := x.add(node{t: th, block: block, at: at})
		for _, a := range arrived {
			x.edge(a.node, n)
		}
	}
	wpb := l.WarpsPerBlock()
	for i := uint64(0); i < l.Block.Count(); i++ {
		th := thread{launch: e.Launch, warp: block*wpb + uint32(i/32), lane: int(i % 32)}
		if !x.gone[th] && !here[th] {
			return
		}
	}
	if !x.dirty[[2]uint32{e.Launch, block}] && !clustered(l) {
		x.floors = append(x.floors, floor{instance{true, e.Launch, block}, at})
	}
}

func (x *builder) access(e *event.Event, at int, block uint32) {
	if e.Space != event.Global && e.Space != event.Shared {
		return
	}
	if e.Flags&event.FlagApart != 0 {
		x.completes(e, at, block)
		return
	}
	n := node{kind: accessNode, at: at, order: e.Order, scope: e.Scope, place: fmt.Sprint("p", e.Place), atomic: e.Kind == event.Atomic,
		read: e.Kind != event.Store, write: e.Kind == event.Store || e.Kind == event.Atomic && e.Flags&event.FlagWrite != 0,
		mask: e.Mask, pc: e.Place, turn: x.turns[[2]uint32{e.Launch, e.Warp}], size: uint64(e.Size), unit: uint64(e.Size), red: e.Flags&event.FlagRed != 0}
	n.inits = e.Kind == event.Store && e.Barrier == event.StoreInits
	n.mem.shared = e.Space == event.Shared
	if e.Flags&event.FlagVector != 0 && e.Aux != 0 {
		n.unit = uint64(e.Aux)
	}
	n.key = fmt.Sprint(e.Launch, e.Place, e.Kind, e.Order, e.Scope, e.Size, n.unit)
	if n.atomic && n.order < event.Relaxed {
		n.order = event.Relaxed
	}
	if n.order == event.Volatile {
		n.scope = event.ScopeSys
		if x.model == PTX {
			n.order = event.Relaxed
		} else {
			n.volatil = true
		}
	}
	if n.order != event.Weak && n.scope == event.NoScope {
		n.scope = event.ScopeSys
	}
	if e.Flags&event.FlagAsync != 0 {
		for _, lane := range lanesOf(e.Mask) {
			x.touched[thread{launch: e.Launch, warp: e.Warp, lane: lane}] = x.touched[thread{launch: e.Launch, warp: e.Warp, lane: lane}] || e.Space == event.Shared
		}
		x.copies(e, n)
		return
	}
	start := len(x.writes)
	for _, lane := range lanesOf(e.Mask) {
		if e.Space == event.Shared {
			x.touched[thread{launch: e.Launch, warp: e.Warp, lane: lane}] = true
		}
		x.laneAccess(e, lane, n, start)
	}
}

func (x *builder) laneAccess(e *event.Event, lane int, n node, start int) {
	n.mem, n.addr = x.memory(e, x.b.AddrOf(e, lane))
	n.nthAcc = n.at*32 + lane
	if v := x.b.ValueOf(e, lane); v != nil {
		for i := uint64(0); i < n.size; i++ {
			n.vals = append(n.vals, byte(v[i/8]>>(i%8*8)))
		}
	}
	step := n.size
	if n.order != event.Weak {
		step = n.unit
	}
	for off := uint64(0); off < n.size; off += step {
		m := n
		m.addr, m.size = n.addr+off, step
		if n.vals != nil {
			m.vals = n.vals[off : off+step]
		}
		m.cut = len(x.writes)
		if e.Kind == event.Store {
			m.cut = start
		}
		i := x.op(e, lane, m)
		if m.read && m.order != event.Weak {
			x.nodes[i].saw = x.observed(i)
		}
		if m.write {
			x.wrote(i)
		}
	}
}

// wide reports whether the scope of an operation reaches beyond its block.
func (n *node) wide() bool {
	return n.scope >= event.ScopeGPU || n.scope == event.ScopeCluster && n.cluster.several
}

// includes reports whether the scopes of two device operations include each other's thread.
func includes(a, b *node) bool {
	return a.t.launch == b.t.launch && a.block == b.block || a.wide() && b.wide() &&
		(a.device == b.device || a.scope == event.ScopeSys && b.scope == event.ScopeSys)
}

// inCluster reports whether two operations are in one cluster, if the scope of one of them ends at the cluster.
func inCluster(a, b *node) bool {
	return a.scope != event.ScopeCluster && b.scope != event.ScopeCluster || a.t.launch == b.t.launch && a.cluster == b.cluster
}

// strongAt returns the last strong write to exactly [addr, addr+size) before writes[cut] of which some byte is not
// overwritten.
func (t *trace) strongAt(mem instance, addr, size uint64, cut int) int {
	left := uint32(1)<<size - 1
	for i := cut - 1; i >= 0; i-- {
		w := &t.writes[i]
		if w.mem != mem {
			continue
		}
		var covers uint32
		for b := uint64(0); b < size; b++ {
			if addr+b >= w.lo && addr+b < w.hi {
				covers |= 1 << b
			}
		}
		if covers&left == 0 {
			continue
		}
		if w.node >= 0 {
			if n := &t.nodes[w.node]; !n.host && n.order != event.Weak && n.addr == addr && n.size == size {
				return w.node
			}
		}
		left &^= covers
	}
	return -1
}

// observed returns the write that strong read i observes directly, if the two are morally strong; otherwise -1.
func (x *builder) observed(i int) int {
	n := &x.nodes[i]
	w := x.strongAt(n.mem, n.addr, n.size, len(x.writes))
	if w < 0 || x.nodes[w].t != n.t && !(includes(&x.nodes[w], n) && inCluster(&x.nodes[w], n)) {
		return -1
	}
	return w
}

// chain returns the writes that w continues by morally strong read-modify-writes, beginning with w.
func (t *trace) chain(w int) []int {
	out := []int{w}
	for t.nodes[w].atomic && t.nodes[w].saw >= 0 {
		w = t.nodes[w].saw
		out = append(out, w)
	}
	return out
}

// orderFences adds what fence.sc order beyond their patterns. Of two wide fence.sc, let one precede a wide strong write
// in the order of its cluster (program order, CTA barriers, bar.warp.sync, cluster barriers), and the other follow a
// wide strong read that observed the write, in the order of its cluster. Then the first synchronises with the second.
// orderFences must run before the other patterns add their edges.
func (t *trace) orderFences() {
	var fences []int
	for i := range t.nodes {
		if n := &t.nodes[i]; n.kind == fenceNode && n.order == event.SC && (n.wide() || !n.cluster.several) {
			fences = append(fences, i)
		}
	}
	if len(fences) == 0 {
		return
	}
	all := t.edges
	t.edges = nil
	for _, e := range all {
		a, b := &t.nodes[e[0]], &t.nodes[e[1]]
		if a.t.launch != 0 && a.t.launch == b.t.launch && a.cluster == b.cluster && !a.copy.is && !b.copy.is && !t.weak[e] {
			t.edges = append(t.edges, e)
		}
	}
	t.close()
	t.edges = all
	for r := range t.nodes {
		n := &t.nodes[r]
		if n.kind != accessNode || n.saw < 0 || n.red {
			continue
		}
		for _, w := range t.chain(n.saw) {
			x := &t.nodes[w]
			if x.t.launch != n.t.launch {
				continue
			}
			inner := !n.cluster.several && n.cluster == x.cluster // the cluster is one block: any scope will do
			if !inner && !(n.wide() && x.wide()) {
				continue
			}
			for _, from := range fences {
				for _, to := range fences {
					if !inner && !(t.nodes[from].wide() && t.nodes[to].wide()) {
						continue
					}
					if t.before(from, w) && t.before(r, to) {
						t.edge(from, to)
					}
				}
			}
		}
	}
}

func (t *trace) synchronise() {
	for r := range t.nodes {
		n := &t.nodes[r]
		if n.kind != accessNode || n.saw < 0 || n.red {
			continue
		}
		for _, w := range t.chain(n.saw) {
			for _, from := range t.released(w) {
				for _, to := range t.acquires(r) {
					if includes(&t.nodes[from], &t.nodes[to]) {
						t.fenced(from, to)
					}
				}
			}
		}
	}
}

// fenced adds the edge from a release operation, or a fence, to an operation that acquires it.
func (t *trace) fenced(from, to int) {
	if t.nodes[from].kind == fenceNode && t.nodes[from].inits {
		t.inits = append(t.inits, [2]int{from, to})
		return
	}
	t.edge(from, to)
}

// initKnown reports whether access e initialised an mbarrier, and that a fence.mbarrier_init by its thread has released
// that to f.
func (t *trace) initKnown(e, f int) bool {
	x := &t.nodes[e]
	return x.inits && x.kind == accessNode && slices.ContainsFunc(t.inits, func(known [2]int) bool {
		return x.t == t.nodes[known[0]].t && e < known[0] && (known[1] == f || t.before(known[1], f))
	})
}

func (n *node) isRelease() bool {
	return n.write && (n.order == event.Release || n.order == event.AcqRel || n.order == event.SC)
}

func (n *node) isAcquire(m Model) bool {
	return n.read && !n.red && (n.order == event.Acquire || n.order == event.AcqRel || n.order == event.SC || m == HRF && n.order != event.Weak)
}

func (n *node) sameLocation(m *node) bool {
	return n.kind == accessNode && n.mem == m.mem && n.addr == m.addr && n.size == m.size && n.order != event.Weak
}

// releases returns the first operations of the release patterns that end in write w.
func (t *trace) releases(w int) (out []int) {
	n := &t.nodes[w]
	if n.isRelease() {
		out = append(out, t.whole(w))
	}
	for i := 0; i < w; i++ {
		m := &t.nodes[i]
		if m.t == n.t && m.kind == fenceNode && m.order != event.Acquire {
			out = append(out, i)
		}
		if m.t == n.t && m.sameLocation(n) && m.isRelease() {
			out = append(out, t.whole(i))
		}
	}
	return out
}

// whole returns the last element of the access that element i belongs to: a release operation releases all elements of
// its own access.
func (t *trace) whole(i int) int {
	for i+1 < len(t.nodes) && t.nodes[i+1].nthAcc == t.nodes[i].nthAcc && t.nodes[i+1].kind == accessNode {
		i++
	}
	return i
}

// acquires returns the last operations of the acquire patterns that begin with read r.
func (t *trace) acquires(r int) (out []int) {
	n := &t.nodes[r]
	if n.isAcquire(t.model) {
		out = append(out, r)
	}
	for i := r + 1; i < len(t.nodes); i++ {
		m := &t.nodes[i]
		if m.t == n.t && (m.kind == fenceNode && m.order != event.Release || m.sameLocation(n) && m.isAcquire(t.model)) {
			out = append(out, i)
		}
	}
	return out
}

// close computes the transitive closure of the edges.
func (t *trace) close() {
	n := len(t.nodes)
	t.reach = make([][]uint64, n)
	for i := range t.reach {
		t.reach[i] = make([]uint64, (n+63)/64)
	}
	if t.closeAcyclic() {
		return
	}
	for _, e := range t.edges {
		t.reach[e[0]][e[1]/64] |= 1 << uint(e[1]%64)
	}
	for k := 0; k < n; k++ {
		for i := 0; i < n; i++ {
			if i != k && t.before(i, k) {
				t.join(i, k)
			}
		}
	}
}

// closeAcyclic computes the closure of edges without a cycle (edges from a node to itself apart), which is faster: a
// node reaches its successors and what they reach. It returns false if there is a cycle.
func (t *trace) closeAcyclic() bool {
	successors := make([][]int, len(t.nodes))
	for _, e := range t.edges {
		successors[e[0]] = append(successors[e[0]], e[1])
	}
	begun, done := make([]bool, len(t.nodes)), make([]bool, len(t.nodes))
	var visit func(i int) bool
	visit = func(i int) bool {
		if begun[i] {
			return done[i]
		}
		begun[i] = true
		for _, s := range successors[i] {
			if t.before(i, s) {
				continue // its successors are reached already
			}
			if s != i && !visit(s) {
				return false
			}
			t.reach[i][s/64] |= 1 << uint(s%64)
			t.join(i, s)
		}
		done[i] = true
		return true
	}
	for i := range t.nodes {
		if !visit(i) {
			return false
		}
	}
	return true
}

// join makes node i reach what node k reaches.
func (t *trace) join(i, k int) {
	to := t.reach[i]
	for w, v := range t.reach[k] {
		to[w] |= v
	}
}

func (t *trace) before(a, b int) bool { return t.reach[a][b/64]>>uint(b%64)&1 != 0 }

// supposes reports whether f follows e in the order that includes what is assumed of host threads: the launch or
// operation of e ends before that of f begins.
func (t *trace) supposes(e, f int) bool {
	point := func(n int, launches map[uint32]int) (int, bool) {
		if l := t.nodes[n].t.launch; l != 0 {
			at, ok := launches[l]
			return at, ok
		}
		return n, true
	}
	from, ended := point(e, t.ends)
	to, whole := point(f, t.begins)
	if !ended || !whole {
		return false
	}
	if t.supposed[to] == nil { // compute the nodes of agents that reach to
		all := []int{to}
		for i := 0; i < len(all); i++ {
			for _, x := range t.assumed {
				if x[1] == all[i] && !slices.Contains(all, x[0]) {
					all = append(all, x[0])
				}
			}
		}
		t.supposed[to] = all
	}
	return slices.ContainsFunc(t.supposed[to], func(n int) bool { return n == from || t.before(from, n) })
}

func (t *trace) races() []Race {
	type race struct {
		rank      int
		accesses  map[int]bool
		addresses map[string]bool
	}
	found := map[[2]string]*race{}
	for f := range t.nodes {
		for e := 0; e < f; e++ {
			x, y := &t.nodes[e], &t.nodes[f]
			if x.kind != accessNode || y.kind != accessNode || x.t == y.t || x.mem != y.mem || !x.write && !y.write {
				continue
			}
			if x.addr >= y.addr+y.size || y.addr >= x.addr+x.size || x.silent || y.silent || t.inOrder(e, f) {
				continue
			}
			ordered := t.before(e, f) && !t.flies(e, f) || t.elsewhere(e, f)
			if ordered && !y.async {
				continue
			}
			rank := 0
			var bytes []string
			for b := max(x.addr, y.addr); b < min(x.addr+x.size, y.addr+y.size); b++ {
				if t.reborn(b, x, y) {
					continue
				}
				if ordered {
					if t.unfenced(e, f, b) {
						why := "proxy"
						if x.copy.is {
							why = "copy-proxy"
						}
						rank = max(rank, rankOf(why))
						bytes = append(bytes, fmt.Sprint(x.mem, b))
					}
				} else if r := rankOf(t.why(e, f, b)); r > 0 && !t.seen(e, f) && !t.initKnown(e, f) {
					rank = max(rank, r)
					bytes = append(bytes, fmt.Sprint(x.mem, b))
				}
			}
			if rank == 0 {
				continue
			}
			k := [2]string{min(x.place, y.place), max(x.place, y.place)}
			if found[k] == nil {
				found[k] = &race{accesses: map[int]bool{}, addresses: map[string]bool{}}
			}
			r := found[k]
			r.rank = max(r.rank, rank)
			r.accesses[y.nthAcc] = true
			for _, b := range bytes {
				r.addresses[b] = true
			}
		}
	}
	var out []Race
	for k, r := range found {
		out = append(out, Race{k[0], k[1], reasons[r.rank], r.rank <= warnings, len(r.accesses), len(r.addresses)})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out
}

// reborn reports whether an allocation began or ended at byte b between x and y.
func (t *trace) reborn(b uint64, x, y *node) bool {
	for i := range t.writes {
		w := &t.writes[i]
		if w.node < 0 && w.mem == x.mem && w.at > x.at && w.at < y.at && b >= w.lo && b < w.hi {
			return true
		}
	}
	return false
}

// seen reports whether an observer happens before f of the value that strong write e led to. The value must be the
// current one of its location when f happens, or the former one.
func (t *trace) seen(e, f int) bool {
	x, y := &t.nodes[e], &t.nodes[f]
	if !x.write || x.order == event.Weak || x.host {
		return false
	}
	current, former := t.values(x, y.cut)
	for _, v := range []int{current, former} {
		if v < 0 || !slices.Contains(t.chain(v), e) {
			continue
		}
		for z := range t.observers(v) {
			if z < f && t.before(z, f) {
				return true
			}
		}
	}
	return false
}

// observers yields the operations that observed write v and did not write, and v itself if it is a read-modify-write.
func (t *trace) observers(v int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for z := v; z < len(t.nodes); z++ {
			n := &t.nodes[z]
			if (z == v && n.atomic || n.sameLocation(&t.nodes[v]) && n.read && !n.write && n.saw == v) && !yield(z) {
				return
			}
		}
	}
}

// values returns the strong write that makes the value of x's location before writes[cut], and that of the last value
// before it that was observed and that threads overwrote. -1: there is none.
func (t *trace) values(x *node, cut int) (current, former int) {
	current, former = -1, -1
	overwrite := func() {
		for range t.observers(current) {
			former = current
			break
		}
		current = -1
	}
	all := uint32(1)<<x.size - 1
	left := uint32(0) // bytes of the current value that are not overwritten
	for _, w := range t.writes[:cut] {
		if w.mem != x.mem || w.hi <= x.addr || w.lo >= x.addr+x.size {
			continue
		}
		if w.node >= 0 {
			if n := &t.nodes[w.node]; !n.host && n.order != event.Weak && n.addr == x.addr && n.size == x.size {
				if current >= 0 && !(n.atomic && n.saw == current) {
					overwrite()
				}
				current, left = w.node, all
				continue
			}
		}
		for b := range x.size {
			if x.addr+b >= w.lo && x.addr+b < w.hi {
				left &^= 1 << b
			}
		}
		if left == 0 && current >= 0 {
			if w.node >= 0 && !t.nodes[w.node].host {
				overwrite()
			}
			current = -1
		}
	}
	return current, former
}

// why returns the reason why e and f, which overlap in byte b and are not ordered, race; "" if they do not.
func (t *trace) why(e, f int, b uint64) string {
	x, y := &t.nodes[e], &t.nodes[f]
	apart := "cross-launch"
	if x.device != y.device && !x.host && !y.host {
		apart = "cross-device"
	}
	inFlight, awaits := t.pending(e, f)
	if awaits && x.at != y.at {
		if n := x.copy.first; x.t.launch != y.t.launch && n != 0 && n < f && !t.before(n, f) { // it is not known either how the copy is to be recorded
			return apart
		}
		return "copy"
	}
	isAtomic := func(n *node) bool { return !n.host && n.order >= event.Relaxed }
	oneLaunch := x.t.launch == y.t.launch && x.t.launch != 0
	oneBlock := oneLaunch && x.block == y.block
	if isAtomic(x) && isAtomic(y) {
		scopes := includes(x, y) && inCluster(x, y)
		switch {
		case scopes && x.unit == y.unit:
			return ""
		case !oneLaunch && t.supposes(e, f):
			return "host-threads"
		case !oneLaunch && (scopes || x.device == y.device):
			return apart
		case !scopes:
			return "atomic-scope"
		case x.atomic && y.atomic && x.write && y.write:
			return "mixed-size-rmw"
		}
		return "mixed-size"
	}
	if !oneLaunch && x.staged {
		return "staged-copy"
	}
	if !oneLaunch && t.supposes(e, f) {
		return "host-threads"
	}
	volatil := x.volatil && (y.volatil || isAtomic(y)) || y.volatil && isAtomic(x)
	switch {
	case !oneLaunch && volatil && x.device == y.device && (x.nested || y.nested):
		return "volatile"
	case !oneLaunch:
		return apart
	}
	weakWrite := func(n *node) bool { return n.write && n.order == event.Weak }
	if weakWrite(x) && weakWrite(y) && t.sameValue(x, y, b) {
		if _, updates := (Places{}).Updates(x.pc); x.at == y.at && updates {
			return "lost-update"
		}
		return "same-value"
	}
	oneWarp := x.t.warp == y.t.warp && !inFlight
	mask, turn := x.mask, x.turn
	if x.copy.is {
		mask, turn = x.copy.mask, x.copy.turn
	}
	if oneWarp && x.at != y.at && (mask>>uint(y.t.lane)&1 != 0 || y.mask>>uint(x.t.lane)&1 != 0 || turn != y.turn || !parted(x.pc, y.pc)) {
		return "warp-synchronous"
	}
	switch {
	case volatil:
		return "volatile"
	case isAtomic(x) || isAtomic(y):
		return "atomic-with-plain"
	case x.at == y.at:
		return "one-instruction"
	case oneBlock:
		return "same-block"
	}
	return "cross-block"
}

// Places implements event.Places for random programs. Of every four places, one lies on no arm of a branch, two on one
// arm each, and one on both.
type Places struct{}

// Frames implements event.Places.
func (Places) Frames(uint32) []event.Frame { return nil }

// Arms implements event.Places.
func (Places) Arms(place uint32) []event.Arm {
	if place%4 == 0 {
		return nil
	}
	return []event.Arm{{Branch: 1, Taken: place % 4}}
}

// Updates implements event.Places.
func (Places) Updates(place uint32) (load uint32, ok bool) { return 0, place%3 == 0 }

// Discards implements event.Places.
func (Places) Discards(place uint32) bool { return place%5 == 0 }

// Dereferences implements event.Places.
func (Places) Dereferences(uint32) bool { return false }

// parted reports whether lanes can be at two places at once, on the two arms of a branch.
func parted(p, q uint32) bool {
	p, q = p%4, q%4
	return p != 0 && q != 0 && (p != q || p == 3)
}

// sameValue reports whether f writes into the word of byte b the same as e, in the bytes that both write, and that
// until then no write of e's class wrote anything else into those bytes of the word.
func (t *trace) sameValue(e, f *node, b uint64) bool {
	word := b &^ 3
	part := func(n *node) (lo, hi uint64) { return max(n.addr, word), min(n.addr+n.size, word+4) }
	lo, hi := part(e)
	equal := func(x, y *node, lo, hi uint64) bool {
		for a := lo; a < hi; a++ {
			if x.vals == nil || y.vals == nil || x.vals[a-x.addr] != y.vals[a-y.addr] {
				return false
			}
		}
		return true
	}
	flo, fhi := part(f)
	if e.at == f.at { // all bytes that both lanes write
		return equal(e, f, max(e.addr, f.addr), min(e.addr+e.size, f.addr+f.size))
	}
	if !equal(e, f, max(lo, flo), min(hi, fhi)) {
		return false
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.kind != accessNode || n.at >= f.at || n.key != e.key || n.mem != e.mem || !n.write || n.addr >= word+4 || n.addr+n.size <= word {
			continue
		}
		if nlo, nhi := part(n); nlo != lo || nhi != hi || t.fallen(n, f) || t.reborn(word, n, f) {
			continue
		}
		if !equal(e, n, lo, hi) {
			return false
		}
	}
	return true
}

// fallen reports whether all threads of the block met at a barrier between n and f.
func (t *trace) fallen(n, f *node) bool {
	for _, x := range t.floors {
		if x.mem == n.mem && x.at > n.at && x.at < f.at {
			return true
		}
	}
	return false
}

// Size returns the number of operations in a stream.
func Size(b *event.Batch) (n int) {
	for i := range b.Events {
		n += max(1, bits.OnesCount32(b.Events[i].Mask))
	}
	return n
}
