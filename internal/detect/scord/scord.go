package scord

import (
	"math/bits"
	"strconv"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/findings"
	"fencepost.dev/fencepost/internal/detect/lock"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

const source = "Kamath, George, Basu: ScoRD (ISCA 2020), sections III and IV"

var (
	granularity = detect.Option{Name: "granularity", Doc: "bytes of memory that share a metadata word (table VII)", Values: []string{"4", "8", "16"}}
	fenceBits   = detect.Option{Name: "fencebits", Doc: "width of the fence IDs", Values: []string{"6", "3", "4", "5"}}
	barrierBits = detect.Option{Name: "barrierbits", Doc: "width of the barrier ID", Values: []string{"8", "4", "2"}}
	oneStore    = detect.Option{Name: "same-instruction", Doc: "whether lanes of one store that write the same bytes race, as in the version of PreDataR's authors", Values: []string{"ignore", "report"}}
	reset       = detect.Option{Name: "reset", Doc: "whether barriers, fenced loads, stores and reported races reset flags, as in the authors' release (off: exactly as in the tables)",
		Values: []string{"on", "off"}}
	blockLock = detect.Option{Name: "block-lock", Doc: "whether locks of block scope at one address are one lock for each block, as in the authors' release, or a single lock",
		Values: []string{"per-block", "per-address"}}
	deviceBytes = detect.Option{Name: "memory", Doc: "size of the device memory; the metadata cache has a sixteenth of the entries for it", Values: []string{"4G", "64M", "1M", "4K"}}
)

// Spec is ScoRD with metadata for all of memory.
var Spec = spec("scord", "ScoRD, hardware for scoped races: fences, scoped atomics and locks in global memory, the last access of each location.", false)

// Cached is ScoRD with metadata for a sixteenth of memory.
var Cached = spec("scord-cached", "ScoRD with its metadata in a direct-mapped cache of a sixteenth of the entries.", true)

func spec(name, doc string, cached bool) detect.Spec {
	s := detect.Spec{Name: name, Doc: doc, Source: source, Needs: event.NeedGlobal | event.NeedSync | event.NeedLaunch,
		Options: []detect.Option{granularity, fenceBits, barrierBits, reset, blockLock, oneStore}}
	if cached {
		s.Options = append(s.Options, deviceBytes)
	}
	s.New = func(c detect.Config) detect.Detector {
		d := &Detector{name: name, Set: findings.New(name, c), granule: number(s.Option(c, granularity.Name)),
			fenceMask: 1<<number(s.Option(c, fenceBits.Name)) - 1, barrierMask: 1<<number(s.Option(c, barrierBits.Name)) - 1,
			reset: s.Option(c, reset.Name) == "on", perBlockLocks: s.Option(c, blockLock.Name) == "per-block",
			oneStore: s.Option(c, oneStore.Name) == "report", locks: lock.New(lock.ScoRD())}
		if cached {
			total := map[string]uint64{"4G": 4 << 30, "64M": 64 << 20, "1M": 1 << 20, "4K": 4 << 10}[s.Option(c, deviceBytes.Name)]
			d.entries = total / d.granule / 16
		}
		d.memory = shadow.NewLines[cell](int(d.granule))
		return d
	}
	return s
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		panic("BUG: an option's value is no number: " + s)
	}
	return n
}

// Detector is one run of ScoRD.
type Detector struct {
	*findings.Set
	name        string
	granule     uint64
	entries     uint64 // entries of the cache; 0: no cache
	fenceMask   uint8
	barrierMask uint8
	reset       bool // flags are reset as in the authors' release
	oneStore    bool // lanes of one store race with each other
	// perBlockLocks says that locks of block scope at one address are different locks in different blocks.
	perBlockLocks bool

	memory *shadow.Lines[cell, *cell]
	locks  *lock.Tracker

	launch   event.Launch
	running  bool
	perBlock uint32
	barriers []uint8 // by block
	warps    []warpState
}

// warpState is the hardware state of a warp.
type warpState struct {
	blockFence, deviceFence uint8
	next                    uint8 // the entry of the lock table to use next
	table                   [4]held
	filter                  uint16 // of the table
}

// held is an entry of a lock table.
type held struct {
	hash   uint8 // 6 bits
	valid  bool
	device bool
}

// bit returns the lock's bit in a filter of 16 bits.
func (h held) bit() uint16 {
	n := uint32(h.hash) << 1
	if h.device {
		n |= 1
	}
	return 1 << (n * 0x9e3779b1 >> 28)
}

// Events implements event.Sink.
func (d *Detector) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		switch {
		case e.Kind == event.KernelBegin:
			d.begin(&b.Launches[e.Side])
		case !d.running || e.Launch != d.launch.ID:
		case e.Kind == event.KernelEnd:
			d.running = false
		case e.Kind == event.Load, e.Kind == event.Store:
			if e.Space == event.Global {
				d.access(b, e)
				if d.oneStore && e.Kind == event.Store && e.Order < event.Relaxed {
					d.sameInstruction(b, e)
				}
			}
		case e.Kind == event.Atomic:
			if e.Space == event.Global {
				d.access(b, e)
				d.lock(b, e)
			}
		case e.Kind == event.Fence:
			d.fence(e)
			d.lock(b, e)
		case e.Kind == event.BarrierDone:
			id := &d.barriers[e.Warp/d.perBlock]
			*id = (*id + 1) & d.barrierMask
		}
	}
}

func (d *Detector) begin(l *event.Launch) {
	d.launch, d.running, d.perBlock = *l, true, l.WarpsPerBlock()
	d.locks.Begin(l)
	d.memory.Clear()
	blocks := l.Grid.Count()
	d.barriers = make([]uint8, blocks)
	d.warps = make([]warpState, blocks*uint64(d.perBlock))
}

func (d *Detector) fence(e *event.Event) {
	w := &d.warps[e.Warp]
	if e.Scope >= event.ScopeGPU {
		w.deviceFence = (w.deviceFence + 1) & d.fenceMask
	} else {
		w.blockFence = (w.blockFence + 1) & d.fenceMask
	}
}

// lock applies the effect of an atomic or a fence to the warp's lock table.
func (d *Detector) lock(b *event.Batch, e *event.Event) {
	steps := d.locks.Event(b, e)
	if len(steps) == 0 {
		return
	}
	w := &d.warps[e.Warp]
	for _, s := range steps {
		n := s.Lock.Addr >> 2 * 0x9e3779b97f4a7c15
		if d.perBlockLocks && !s.Device {
			n += uint64(e.Warp/d.perBlock+1) * 0xd1b54a32d192ed03
		}
		h := held{uint8(n >> 58), true, s.Device}
		if s.Kind == lock.Acquire {
			w.take(h)
		} else {
			w.give(h)
		}
	}
	w.filter = 0
	for _, h := range w.table {
		if h.valid {
			w.filter |= h.bit()
		}
	}
}

func (w *warpState) take(h held) {
	for _, x := range w.table {
		if x == h {
			return
		}
	}
	w.table[w.next] = h
	w.next = (w.next + 1) % uint8(len(w.table))
}

func (w *warpState) give(h held) {
	for i := range w.table {
		if w.table[i] == h {
			w.table[i].valid = false
		}
	}
}

// MemoryBytes implements detect.Metered.
func (d *Detector) MemoryBytes() uint64 {
	return d.memory.Bytes() + uint64(len(d.barriers)) + uint64(len(d.warps))*24
}

// access judges an access of a warp. If lanes access consecutive granules, runs of cells that lanes of one warp left in
// lane order are judged by their first cell: the conditions of table IV depend only on warps.
func (d *Detector) access(b *event.Batch, e *event.Event) {
	now := d.arrival(e)
	rows := uint64(e.Size) == d.granule && d.entries%shadow.LineCells == 0
	for left := e.Mask; left != 0; {
		s := b.Strip(e, left)
		left &^= s.Mask
		now.address, now.from, now.step = s.Addr, s.Low(), uint64(s.Step)
		if rows && s.Step == int64(e.Size) && s.Addr%d.granule == 0 {
			d.row(e, &now, &s)
			continue
		}
		s.Parts(uint64(e.Size), d.granule, func(part event.Strip) {
			now.address, now.from = part.Addr, part.Low()
			d.one(e, &now, &part)
		})
	}
}

// row processes an access in which lanes access consecutive granules.
func (d *Detector) row(e *event.Event, now *access, s *event.Strip) {
	for lane, end := now.from, s.High()+1; lane < end; {
		l, from := d.line(s.Addr+uint64(lane-now.from)*d.granule, now)
		to := min(from+end-lane, shadow.LineCells)
		for i := from; i < to; {
			c, n := d.memory.Run(l, i, to)
			d.run(c, n, e, now, lane)
			i, lane = i+n, lane+n
		}
		d.memory.Join(l, from, to)
	}
}

// run judges a run of cells.
func (d *Detector) run(c *cell, n int, e *event.Event, now *access, lane int) {
	was := *c
	if races := d.cell(c, e, now, lane); !races {
		return
	}
	for i := 1; i < n; i++ {
		next := was
		next.Turn(i)
		d.cell(&next, e, now, lane+i)
	}
}

// one processes an access by one lane, or by several lanes to one granule or the same bytes. The lanes do not race, but
// a second lane may change flags. A third changes nothing more.
func (d *Detector) one(e *event.Event, now *access, s *event.Strip) {
	for at := s.Addr &^ (d.granule - 1); at < s.Addr+uint64(e.Size); at += d.granule {
		l, i := d.line(at, now)
		c := d.memory.Cell(l, i)
		d.cell(c, e, now, now.from)
		if last := s.High(); last != now.from {
			d.cell(c, e, now, last)
		}
	}
}

// line returns the metadata of a granule, and sets the access's tag. If the entries of a cache are whole lines, the tag
// is that of the line.
func (d *Detector) line(at uint64, now *access) (*shadow.Line[cell], int) {
	if d.entries == 0 {
		return d.memory.Global(at)
	}
	n := at / d.granule
	now.tag = word(n/d.entries%16) << tagShift
	return d.memory.Global(n % d.entries * d.granule)
}

// sameInstruction reports lanes of one store that write the same bytes, each with the lowest other lane. This is not
// part of ScoRD: PreDataR's authors added it to their version (section 5.1 there).
func (d *Detector) sameInstruction(b *event.Batch, e *event.Event) {
	size := uint64(e.Size)
	if e.Affine() && uint64(max(e.Stride, -e.Stride)) >= size {
		return
	}
	now := d.arrival(e)
	for m := e.Mask & (e.Mask - 1); m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := b.AddrOf(e, lane)
		for o := e.Mask & (1<<lane - 1); o != 0; o &= o - 1 {
			other := bits.TrailingZeros32(o)
			from := b.AddrOf(e, other)
			if from >= at+size || at >= from+size {
				continue
			}
			d.Add(&findings.Race{Note: "same instruction", Facts: detect.Facts{Category: detect.OneInstruction,
				Earlier: d.side(e.Place, now.how|uint32(other), e.Warp, from),
				Later:   d.side(e.Place, now.how|uint32(lane), e.Warp, at)}})
			break
		}
	}
}
