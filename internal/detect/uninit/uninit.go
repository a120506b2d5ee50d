// Package uninit finds reads of memory that nothing has written: of memory from cudaMalloc and cudaMallocAsync since
// the allocation, and of shared memory since the block began. It judges the observed order, byte by byte. A load whose
// value is only stored again does not count, because structures are copied together with their padding. The engine
// tracks local variables, in memory or in registers. It reports (event.Undefined) when a value that depends on an
// unwritten one decides a branch, is used as an address, or is stored where others see it.
//
// Blind spots: memory allocated by a kernel; managed and pinned memory, since writes by host code are not all observed;
// shared memory in launches with clusters, which other blocks may write. Bytes copied from unwritten memory count as
// written. A load is reported even if its value is ignored by another function, or by a branch that never depends on
// it.
package uninit

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

const name = "uninit"

// most is the largest distance between the lanes of an access that is examined as a whole.
const most = 1 << 20

// Spec is the detector.
var Spec = detect.Spec{
	Name:    name,
	Doc:     "Reads of memory that nothing has written since it was allocated, or since the block began, and uses of local variables without a value.",
	Source:  "docs/detectors.md",
	Needs:   event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedHost | event.NeedLaunch | event.NeedLocal,
	Options: []detect.Option{{Name: "report", Doc: "the severity of what it finds", Values: []string{"warning", "error"}}},
	New:     newDetector,
}

func newDetector(c detect.Config) detect.Detector {
	d := &detector{severity: detect.Warning, launches: map[uint32]*launch{}, places: c.Places}
	if c.Options["report"] == "error" {
		d.severity = detect.Error
	}
	d.found = detect.NewShortlist(c.MaxFindings, cmp.Compare[uint32], func(*detect.Finding) (detect.Severity, detect.Kind) { return d.severity, detect.UninitialisedRead })
	return d
}

type detector struct {
	severity detect.Severity
	found    *detect.Shortlist[uint32, detect.Finding] // by place
	global   []*region                                 // sorted by address, disjoint
	last     *region
	launches map[uint32]*launch // running launches
	places   event.Places
	blind    int // number of launches in which local variables are not tracked
	lanes    [32]uint64
}

// launch is a running launch.
type launch struct {
	info   event.Launch
	shared map[uint32]*block // of running blocks, by number
}

// block is the shared memory of a block.
type block struct {
	bytes written
	live  int // number of threads that have not exited
}

// region is an allocation.
type region struct {
	addr, size uint64
	call       string
	bytes      written
}

// Events implements event.Sink.
func (d *detector) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.Host:
			d.host(&b.Hosts[e.Side])
		case event.KernelBegin:
			l := b.Launches[e.Side]
			d.launches[l.ID] = &launch{info: l, shared: map[uint32]*block{}}
		case event.KernelEnd:
			delete(d.launches, e.Launch)
		case event.Exit:
			d.exit(e)
		case event.Load, event.Store, event.Atomic:
			d.access(b, e)
		case event.Undefined:
			d.undefined(e)
		case event.Bulk, event.Core:
			if e.Flags&event.FlagWrite != 0 && (e.Kind == event.Bulk || e.Barrier == event.CoreAllocates) {
				if w, _ := d.memory(e, e.Addr); w != nil {
					w.set(d.offset(e, e.Addr), uint64(e.Aux))
				}
			}
		}
	}
}

// host records allocations and writes by the host.
func (d *detector) host(h *event.HostOp) {
	switch {
	case h.Kind == event.HostAlloc:
		d.forget(h)
		if h.Name == "cudaMalloc" || h.Name == "cudaMallocAsync" {
			r := &region{addr: h.Addr, size: h.Size, call: h.Name, bytes: written{size: h.Size}}
			at, _ := slices.BinarySearchFunc(d.global, h.Addr, func(r *region, a uint64) int { return cmp.Compare(r.addr, a) })
			d.global = slices.Insert(d.global, at, r)
		}
	case h.Kind == event.HostFree:
		d.forget(h)
	case h.Kind == event.HostWrite && !strings.HasPrefix(h.Name, "cudaMallocAsync") && !strings.HasPrefix(h.Name, "cudaFreeAsync"):
		if r := d.region(h.Addr); r != nil {
			r.bytes.set(h.Addr-r.addr, h.Size)
		}
	}
}

// forget drops the allocations in a range.
func (d *detector) forget(h *event.HostOp) {
	d.last = nil
	d.global = slices.DeleteFunc(d.global, func(r *region) bool { return r.addr < h.Addr+h.Size && h.Addr < r.addr+r.size })
}

// region returns the tracked allocation that contains an address; nil if there is none.
func (d *detector) region(addr uint64) *region {
	if d.last != nil && addr-d.last.addr < d.last.size {
		return d.last
	}
	at, _ := slices.BinarySearchFunc(d.global, addr+1, func(r *region, a uint64) int { return cmp.Compare(r.addr, a) })
	if at == 0 || addr-d.global[at-1].addr >= d.global[at-1].size {
		return nil
	}
	d.last = d.global[at-1]
	return d.last
}

// exit counts exited threads of a block. With the last of them it drops the block's shared memory.
func (d *detector) exit(e *event.Event) {
	l := d.launches[e.Launch]
	if l == nil {
		return
	}
	number := e.Warp / l.info.WarpsPerBlock()
	if b := l.shared[number]; b != nil {
		if b.live -= bits.OnesCount32(e.Mask); b.live <= 0 {
			delete(l.shared, number)
		}
	}
}

// memory returns the written bytes of the memory that an event accesses, or nil if all count as written, and since when
// it has been tracked.
func (d *detector) memory(e *event.Event, addr uint64) (w *written, since string) {
	l := d.launches[e.Launch]
	switch {
	case l == nil:
	case e.Space == event.Global:
		if r := d.region(addr); r != nil {
			return &r.bytes, "since " + r.call
		}
	case e.Space == event.Shared && l.info.ClusterShape().Count() == 1:
		number := e.Warp / l.info.WarpsPerBlock()
		b := l.shared[number]
		if b == nil {
			b = &block{live: int(l.info.Block.Count()), bytes: written{size: 1 << event.PeerShift}}
			l.shared[number] = b
		}
		return &b.bytes, "since the block began"
	}
	return nil, ""
}

// offset returns the offset of an address in its memory.
func (d *detector) offset(e *event.Event, addr uint64) uint64 {
	if e.Space == event.Global {
		return addr - d.last.addr // set by the preceding call of memory
	}
	return addr
}

// access judges reads, and records writes.
func (d *detector) access(b *event.Batch, e *event.Event) {
	reads := e.Flags&event.FlagRead != 0 && e.Flags&(event.FlagCopied|event.FlagAsync|event.FlagTexture) == 0
	if !reads && e.Flags&event.FlagWrite == 0 || e.Space != event.Global && e.Space != event.Shared {
		return
	}
	if low, n, ok := dense(e); ok {
		w, _ := d.memory(e, low)
		if w == nil && e.Space == event.Shared {
			return
		}
		if w != nil && d.offset(e, low)+n <= w.size {
			at := d.offset(e, low)
			if reads && !w.all(at, n) {
				d.lanesOf(b, e, reads)
			} else if e.Flags&event.FlagWrite != 0 {
				w.set(at, n)
			}
			return
		}
	}
	d.lanesOf(b, e, reads)
}

// dense returns the range of an event whose lanes access it without gaps.
func dense(e *event.Event) (low, n uint64, ok bool) {
	if !e.Affine() || e.Stride != 0 && e.Stride != int64(e.Size) {
		return 0, 0, false
	}
	lanes := uint64(32 - bits.LeadingZeros32(e.Mask) - bits.TrailingZeros32(e.Mask))
	if e.Stride != 0 && bits.OnesCount32(e.Mask) != int(lanes) {
		return 0, 0, false
	}
	return e.Addr, (lanes-1)*uint64(e.Stride) + uint64(e.Size), true
}

// lanesOf is access lane by lane.
func (d *detector) lanesOf(b *event.Batch, e *event.Event, reads bool) {
	n := uint64(e.Size)
	missing := 0
	all := b.Addresses(e, &d.lanes)
	if low, high := slices.Min(all), slices.Max(all); high-low < most {
		// If everything from the lowest to the highest byte was written, nothing is missing and nothing is new.
		if w, _ := d.memory(e, low); w != nil && w.known(d.offset(e, low), high-low+n) {
			return
		}
	}
	for m, addrs := e.Mask, all; m != 0; m, addrs = m&(m-1), addrs[1:] {
		w, since := d.memory(e, addrs[0])
		if w == nil {
			continue
		}
		at := d.offset(e, addrs[0])
		if reads && !w.all(at, n) {
			if missing++; missing == 1 {
				d.add(e, bits.TrailingZeros32(m), addrs[0], since)
			}
		}
		if e.Flags&event.FlagWrite != 0 {
			w.set(at, n)
		}
	}
	if f := d.found.Get(e.Place); f != nil && missing > 0 {
		f.Count += missing
	}
}

// add makes or extends the finding of a place.
func (d *detector) add(e *event.Event, lane int, addr uint64, since string) {
	if d.found.Get(e.Place) != nil {
		return
	}
	fix := "write the memory before: cudaMemset, a copy, or an earlier kernel"
	if e.Space == event.Shared {
		fix = "let some thread write the element before: mind those that load nothing, and the last elements of a tile"
	}
	a := detect.Access{Op: detect.Read, Order: e.Order, Scope: e.Scope, Space: e.Space, Place: e.Place, Launch: d.launches[e.Launch].info, Warp: e.Warp,
		Lane: lane, Address: addr, Size: int(e.Size)}
	if e.Kind == event.Atomic {
		a.Op = detect.AtomicOp
	}
	d.found.Put(e.Place, &detect.Finding{Class: detect.MemoryFault, Kind: detect.UninitialisedRead, Severity: d.severity, Detector: name, Fix: fix,
		Message: fmt.Sprintf("nothing has written all of these %d bytes %s", e.Size, since), Accesses: []detect.Access{a}})
	d.found.Trim()
}

// undefinedUse describes the values of Event.Aux in event.Undefined: what a thread does, and with what.
var undefinedUse = [...][2]string{{"branches on it", "a condition"}, {"accesses memory there", "an address"}, {"stores it", "the value stored"}}

// undefined makes the finding for the use of a local variable.
func (d *detector) undefined(e *event.Event) {
	l := d.launches[e.Launch]
	if l == nil {
		return
	}
	if e.Mask == 0 {
		d.blind++
		return
	}
	if d.found.Get(e.Place) == nil {
		use := undefinedUse[e.Aux]
		at := detect.Access{Op: detect.Wait, Space: event.Local, Place: e.Place, Launch: l.info, Warp: e.Warp, Lane: bits.TrailingZeros32(e.Mask), Doing: use[0]}
		accesses := []detect.Access{at}
		if e.Side != 0 && d.elsewhere(e.Side, e.Place) {
			at.Place, at.Doing = e.Side, "reads it"
			accesses = append(accesses, at)
		}
		d.found.Put(e.Place, &detect.Finding{Class: detect.MemoryFault, Kind: detect.UninitialisedRead, Severity: d.severity, Detector: name,
			Message: use[1] + " depends on a local variable to which the thread has given no value", Accesses: accesses,
			Fix: "give the variable a value on every way that leads here: mind loops and branches that may be skipped, elements that are not filled, and functions that return early"})
		d.found.Trim()
	}
	if f := d.found.Get(e.Place); f != nil {
		f.Count += bits.OnesCount32(e.Mask)
	}
}

// elsewhere reports whether two places are in different lines.
func (d *detector) elsewhere(a, b uint32) bool {
	if d.places == nil {
		return true
	}
	x, y := d.places.Frames(a), d.places.Frames(b)
	return len(x) == 0 || len(y) == 0 || x[0].File != y[0].File || x[0].Line != y[0].Line
}

// Findings implements detect.Detector.
func (d *detector) Findings() []detect.Finding {
	var out []detect.Finding
	for _, place := range d.found.Keys() {
		out = append(out, *d.found.Get(place))
	}
	return out
}

// Notes implements detect.Noted.
func (d *detector) Notes() []string {
	switch d.blind {
	case 0:
		return nil
	case 1:
		return []string{"Uses of local variables without a value were not looked for in 1 launch: only engine warp tells of them."}
	}
	return []string{fmt.Sprintf("Uses of local variables without a value were not looked for in %d launches: only engine warp tells of them.", d.blind)}
}

// More implements detect.Capped.
func (d *detector) More() (int, bool) { return d.found.More() }
