package trace

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// The largest dimensions of a launch (CUDA C++ Programming Guide, "Technical Specifications").
const (
	maxGridX  = 1<<31 - 1
	maxGridYZ = 65535 // threads in a block
	maxBlock3 = 1024  // threads of a block
)

// readEvents reads an E block.
func (r *Reader) readEvents(c *cursor, b *event.Batch) {
	n := c.uvarint()
	var col [columns]cursor
	for i := range col {
		col[i].b = c.bytes(c.uvarint())
	}
	if c.err == nil && n > uint64(len(col[colForm].b)) {
		c.fail("%d events are said to stand in %d bytes", n, len(col[colForm].b))
	}
	if c.err != nil {
		return
	}
	r.readForms(&col[colForms])
	// The number may be wrong in a damaged file: reserve at most twice what a writer puts into a block.
	b.Events = slices.Grow(b.Events, int(min(n, 2*blockGoal)))
	warp := uint32(0)
	for ; n > 0 && col[colForms].err == nil; n-- {
		k := col[colForm].uvarint()
		if k >= uint64(len(r.forms)) {
			c.fail("an event has form %d of %d", k, len(r.forms))
			return
		}
		b.Events = append(b.Events, r.forms[k])
		e := &b.Events[len(b.Events)-1]
		warp += uint32(col[colWarp].varint())
		e.Warp = warp
		switch e.Kind {
		case event.Load, event.Store, event.Atomic, event.CopyArrive, event.MbarrierDone, event.Bulk, event.BulkDone, event.Wgmma, event.Core, event.CoreCommit, event.CoreDone, event.MapRead, event.MapFence:
			r.readMemory(&col, b, e, &r.states[k])
		case event.KernelBegin:
			e.Side = uint32(len(b.Launches))
			b.Launches = append(b.Launches, readLaunch(&col[colSides]))
		case event.Host:
			e.Side = uint32(len(b.Hosts))
			b.Hosts = append(b.Hosts, readHost(&col[colSides]))
		}
		if failed(&col) {
			break
		}
		if why := r.check(b, e); why != "" {
			c.fail("event %d: %s", len(b.Events)-1, why)
			return
		}
	}
	for i := range col {
		if col[i].err == nil && len(col[i].b) > 0 {
			col[i].fail("column %d is too long", i)
		}
		if c.err == nil && col[i].err != nil {
			c.err = col[i].err
		}
	}
}

func failed(col *[columns]cursor) bool {
	for i := range col {
		if col[i].err != nil {
			return true
		}
	}
	return false
}

func (r *Reader) readForms(c *cursor) {
	r.forms, r.states = r.forms[:0], r.states[:0]
	for len(c.b) > 0 && c.err == nil {
		e := event.Event{Kind: event.Kind(c.byte()), Order: event.Order(c.byte()), Scope: event.Scope(c.byte()),
			Space: event.Space(c.byte()), Size: c.byte(), Barrier: c.byte(), RMW: event.RMW(c.byte()), Stride: c.varint()}
		flags := c.uint32()
		e.Flags = event.Flags(flags)
		e.Mask, e.Launch, e.Place, e.Aux = c.uint32(), c.uint32(), c.uint32(), c.uint32()
		if e.Flags&event.FlagRows != 0 && !e.InRows(c.byte(), e.Stride, c.varint()) {
			c.fail("rows that are too far from each other")
		}
		if c.err == nil && (uint32(e.Flags) != flags || !e.Valid()) {
			c.fail("an event that cannot be: %+v", e)
		}
		r.forms = append(r.forms, e)
		r.states = append(r.states, state{})
	}
}

func (r *Reader) readMemory(col *[columns]cursor, b *event.Batch, e *event.Event, s *state) {
	lanes := bits.OnesCount32(e.Mask)
	if e.Flags&event.FlagScattered == 0 {
		e.Addr = s.after(col[colAddr].varint())
	} else {
		c := &col[colScattered]
		e.Side = uint32(len(b.Addrs))
		addr := s.after(c.varint())
		b.Addrs = append(b.Addrs, addr)
		for range lanes - 1 {
			addr += uint64(c.varint())
			b.Addrs = append(b.Addrs, addr)
		}
	}
	if e.Flags&event.FlagValues == 0 {
		return
	}
	e.Val = uint32(len(b.Values))
	readValues(&col[colValues], b, valueWords(e))
}

// after is the inverse of next.
func (s *state) after(d int64) uint64 {
	addr := s.addr + s.step + uint64(d)
	s.step, s.addr = addr-s.addr, addr
	return addr
}

func readValues(c *cursor, b *event.Batch, n int) {
	switch how := c.byte(); how {
	case valuesSame, valuesStep:
		v, step := c.uvarint(), uint64(0)
		if how == valuesStep {
			step = uint64(c.varint())
		}
		for range n {
			b.Values = append(b.Values, v)
			v += step
		}
	case valuesAll:
		size := c.byte()
		if size != 4 && size != 8 {
			c.fail("values of %d bytes", size)
			return
		}
		p := c.bytes(uint64(n) * uint64(size))
		for ; len(p) > 0; p = p[size:] {
			if size == 4 {
				b.Values = append(b.Values, uint64(binary.LittleEndian.Uint32(p)))
			} else {
				b.Values = append(b.Values, binary.LittleEndian.Uint64(p))
			}
		}
	default:
		c.fail("values told in way %d", how)
	}
}

func readLaunch(c *cursor) event.Launch {
	l := event.Launch{ID: c.uint32(), Agent: c.uint32(), Grid: event.Dim3{X: c.uint32(), Y: c.uint32(), Z: c.uint32()},
		Block: event.Dim3{X: c.uint32(), Y: c.uint32(), Z: c.uint32()}, Cluster: event.Dim3{X: c.uint32(), Y: c.uint32(), Z: c.uint32()}}
	code := c.byte()
	l.NonCoherent = code&codeNonCoherent != 0
	l.Bulk = code&codeBulk != 0
	l.Early = code&codeEarly != 0
	if code&codeDevice != 0 {
		if l.Device = c.byte(); l.Device == 0 {
			c.fail("a launch on a device without a number")
		}
	}
	code &^= codeNonCoherent | codeBulk | codeEarly | codeDevice
	if code > codeSynchronises|codeSwaps|codeGluon || code&(codeSynchronises|codeSwaps) == codeSwaps {
		c.fail("a launch whose code is of kind %d", code)
	}
	switch {
	case code&codeGluon != 0:
		l.Language = event.Gluon
	case code&codeTriton != 0:
		l.Language = event.Triton
	}
	l.Synchronises, l.Swaps = code&codeSynchronises != 0, code&codeSwaps != 0
	l.Parent, l.Kernel = c.uint32(), c.string()
	return l
}

func readHost(c *cursor) event.HostOp {
	h := event.HostOp{Kind: event.HostKind(c.byte())}
	marks := c.byte()
	h.Staged, h.Assumed = marks&hostStaged != 0, marks&hostAssumed != 0
	h.Agent, h.Token, h.Addr, h.Size = c.uint32(), c.uvarint(), c.uvarint(), c.uvarint()
	h.Name = c.string()
	return h
}

// check describes what is wrong with an event, if it violates what consumers rely on; otherwise it returns "".
func (r *Reader) check(b *event.Batch, e *event.Event) string {
	switch e.Kind {
	case event.KernelBegin:
		return r.begin(&b.Launches[e.Side], e.Launch)
	case event.Host:
		if h := &b.Hosts[e.Side]; h.Kind > event.HostFree || h.Addr+h.Size < h.Addr || h.Size > 1<<48 {
			return "a host operation that cannot be"
		}
		return ""
	}
	l := r.last
	if l == nil || r.lastID != e.Launch {
		if l = r.running[e.Launch]; l == nil {
			return "its launch does not run"
		}
		r.last, r.lastID = l, e.Launch
	}
	if e.Kind == event.KernelEnd {
		delete(r.running, e.Launch)
		r.last = nil
		return ""
	}
	if uint64(e.Warp) >= l.warps {
		return "its warp does not exist"
	}
	gone := l.exited(e.Warp)
	lanes := e.Mask | lanesOf(e)
	if left := l.threads - uint64(e.Warp%l.per)*32; left < 32 && lanes>>left != 0 ||
		lanes&*gone != 0 && e.Kind != event.BarrierDone { // lanes may complete a barrier by exiting
		return "one of its lanes does not exist any more, or never did"
	}
	if !l.synchronises && (e.Kind == event.Atomic || e.Kind == event.Fence || e.Kind == event.InitFence || e.Order >= event.Acquire) ||
		!l.swaps && e.RMW == event.CompareAndSwap {
		return "its kernel does not synchronise so"
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		return checkAccess(b, e, l.window)
	case event.Exit:
		*gone |= e.Mask
	}
	return ""
}

// running is a running launch.
type running struct {
	threads uint64 // in a block
	per     uint32 // warps in a block
	warps   uint64
	gone    map[uint32]*[1024]uint32 // by warp / 1024: lanes that have exited
	page    *[1024]uint32            // the page used last
	number  uint32                   // of page

	window              uint64 // upper bound of addresses of shared memory
	synchronises, swaps bool
}

// exited returns the lanes of a warp that have exited.
func (l *running) exited(warp uint32) *uint32 {
	if n := warp / 1024; l.page == nil || l.number != n {
		if l.gone[n] == nil {
			l.gone[n] = new([1024]uint32)
		}
		l.page, l.number = l.gone[n], n
	}
	return &l.page[warp%1024]
}

// lanesOf returns the lanes that an event names in addition to its mask.
func lanesOf(e *event.Event) uint32 {
	if e.Kind == event.Branch {
		return e.Aux
	}
	return 0
}

func (r *Reader) begin(l *event.Launch, id uint32) string {
	switch {
	case l.ID != id || r.running[id] != nil || r.ended[id] || id == 0:
		return "its launch has the number of another"
	case l.Grid.X == 0 || l.Grid.Y == 0 || l.Grid.Z == 0 || l.Grid.X > maxGridX || l.Grid.Y > maxGridYZ || l.Grid.Z > maxGridYZ,
		l.Block.X == 0 || l.Block.Y == 0 || l.Block.Z == 0 || l.Block.X > maxBlock3 || l.Block.Y > maxBlock3 || l.Block.Z > maxBlock3,
		l.Block.Count() > maxBlock3 || l.Grid.Count()*uint64(l.WarpsPerBlock()) > 1<<32-1:
		return "its launch has an impossible shape"
	}
	if l.Device > event.MaxDevices || len(r.ended) > 0 && (l.Device != 0) != r.devices {
		return "its launch is on an impossible device"
	}
	r.devices = l.Device != 0
	window := uint64(1) << event.PeerShift
	if s := l.Cluster; s != (event.Dim3{}) {
		if n := s.Count(); n == 0 || n > maxCluster || s.X > maxCluster || s.Y > maxCluster || s.Z > maxCluster || l.Grid.X%s.X != 0 || l.Grid.Y%s.Y != 0 || l.Grid.Z%s.Z != 0 {
			return "its launch has an impossible shape of clusters"
		} else if n > 1 {
			window *= 1 + n // see event.PeerShift
		}
	}
	per := l.WarpsPerBlock()
	r.running[id] = &running{threads: l.Block.Count(), per: per, warps: l.Grid.Count() * uint64(per), gone: map[uint32]*[1024]uint32{}, window: window,
		synchronises: l.Synchronises, swaps: l.Swaps}
	r.ended[id] = true
	return ""
}

// maxCluster is the largest number of blocks in a cluster.
const maxCluster = 16

// checkAccess checks the addresses: they must be aligned, must not wrap around, and those of shared memory must lie in
// a window.
func checkAccess(b *event.Batch, e *event.Event, window uint64) string {
	const far = 1 << 57
	lanes := uint64(bits.Len32(e.Mask) - bits.TrailingZeros32(e.Mask) - 1)
	lo, hi, odd := e.Addr, e.Addr+lanes*uint64(e.Stride), e.Addr
	for m, first := e.Mask, bits.TrailingZeros32(e.Mask); m != 0 && e.Stride&int64(e.Size-1) != 0; m &= m - 1 {
		odd |= e.Addr + uint64(bits.TrailingZeros32(m)-first)*uint64(e.Stride) // lanes in between may be inactive
	}
	if e.Stride < -far || e.Stride > far {
		if lanes > 0 && e.Flags&event.FlagScattered == 0 {
			return "its lanes are too far from each other"
		}
	}
	if e.Flags&(event.FlagScattered|event.FlagRows) != 0 {
		lo, hi, odd = ^uint64(0), 0, 0
		var room [32]uint64
		for _, a := range b.Addresses(e, &room) {
			lo, hi, odd = min(lo, a), max(hi, a), odd|a
		}
	}
	switch {
	case odd&uint64(e.Size-1) != 0:
		return "it accesses a misaligned address"
	case max(lo, hi) > 1<<63, e.Space == event.Shared && max(lo, hi) >= window:
		return "it accesses an impossible address"
	case e.Flags&event.FlagVector != 0 && (e.Aux == 0 || uint32(e.Size)%e.Aux != 0):
		return "it accesses a vector of impossible elements"
	}
	return ""
}
