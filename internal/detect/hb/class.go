package hb

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// classKey is what makes accesses of a launch alike.
type classKey struct {
	place uint32
	kind  event.Kind
	order event.Order
	scope event.Scope
	space event.Space
	size  uint8
	unit  uint8
	flags event.Flags
}

// class is a kind of access: by one instruction of one launch, or one operation of a host agent.
type class struct {
	key    classKey
	side   detect.Side
	arms   []event.Arm
	launch *launch // nil for the host, and for cold accesses
	agent  uint32  // for the host
	host   string
	// place is key.place, or a number above all places for a host operation's name.
	place    uint32
	reads    bool
	strong   bool // may be part of a pattern
	acquires bool
	releases bool
	end      bool   // an acquire or release operation whose scope reaches beyond the block
	discards bool   // red: its read begins no acquire pattern
	takes    bool   // a compare-and-swap: what takes a lock, where other atomics set and poll flags, and count
	counts   bool   // a read-modify-write that is neither that nor an exchange
	plain    bool   // a weak store
	patience int32  // see sets
	cold     uint32 // see coldClass; 0: not known yet
	notes    uint32 // see noteKindOf
	born     uint32 // how many classes were made before: the order of first executions, which numbers used again do not tell
}

// classOf gives the class of an access event.
func (d *Detector) classOf(l *launch, e *event.Event) uint32 { return d.recentOf(l, e).id }

// recentOf gives the class of an access event with what was remembered of it.
func (d *Detector) recentOf(l *launch, e *event.Event) *recentClass {
	h := &d.recent[e.Place%uint32(len(d.recent))]
	if h.of(l, e) {
		return h
	}
	flags := e.Flags & classFlags
	k := classKey{place: e.Place, kind: e.Kind, order: e.Order, scope: e.Scope, space: e.Space, size: e.Size,
		unit: e.Size, flags: flags &^ event.FlagVector}
	if flags&event.FlagVector != 0 {
		k.unit = elementSize(e)
	}
	id, ok := l.classes[k]
	if !ok {
		c := d.makeClass(l, k)
		c.takes = c.side.RMW && !c.discards && e.RMW == event.CompareAndSwap
		c.counts = c.side.RMW && e.RMW == event.OtherRMW
		id = d.newClass(c)
		l.classes[k] = id
	}
	*h = recentClass{launch: l, what: whatOf(e), place: e.Place, aux: e.Aux, id: id}
	return h
}

// elementSize is the size of an element of a vector access: Aux where the producer says, else a guess.
func elementSize(e *event.Event) uint8 {
	switch {
	case e.Aux != 0 && e.Aux <= uint32(e.Size):
		return uint8(e.Aux)
	case e.Size == 16:
		return 4
	}
	return max(e.Size/2, 1)
}

// recentClass is the class of the last event of a place (of the many whose numbers are alike), and how that accessed
// memory.
type recentClass struct {
	launch     *launch
	what       uint64 // see whatOf
	place, aux uint32
	id         uint32
	habit
}

// classFlags are those that decide about an access's class.
const classFlags = event.FlagRead | event.FlagWrite | event.FlagRed | event.FlagVector

// whatOf gives all but place and aux that decides about the class of an access.
func whatOf(e *event.Event) uint64 {
	return uint64(e.Kind) | uint64(e.Order)<<8 | uint64(e.Scope)<<16 | uint64(e.Space)<<24 | uint64(e.Size)<<32 | uint64(e.Flags&classFlags)<<40
}

// of says that h is the class of an access of launch l.
func (h *recentClass) of(l *launch, e *event.Event) bool {
	return h.launch == l && h.place == e.Place && h.what == whatOf(e) && (e.Flags&event.FlagVector == 0 || h.aux == e.Aux)
}

func (d *Detector) newClass(c class) uint32 {
	c.born = d.born
	d.born++
	if n := len(d.free); n > 0 {
		id := d.free[n-1]
		d.free = d.free[:n-1]
		d.classes[id] = c
		return id
	}
	if len(d.classes) >= 1<<(32-headShift) {
		panic("BUG: too many classes of accesses")
	}
	d.classes = append(d.classes, c)
	return uint32(len(d.classes) - 1)
}

func (d *Detector) makeClass(l *launch, k classKey) class {
	order, scope := k.order, k.scope
	if k.kind == event.Atomic && order < event.Relaxed {
		order = event.Relaxed
	}
	if order == event.Volatile && d.cfg.Model == detect.ModelPTX {
		order = event.Relaxed
		scope = event.ScopeSys
	}
	if order == event.Volatile || order > event.Volatile && scope == event.NoScope {
		scope = event.ScopeSys
	}
	c := class{key: k, launch: l, place: k.place, arms: d.cfg.Arms(k.place), strong: order != event.Weak, patience: d.patience}
	wide := c.strong && scope >= event.ScopeGPU
	c.side = detect.Side{
		Write:    k.kind == event.Store || k.kind == event.Atomic && k.flags&event.FlagWrite != 0,
		Atomic:   order >= event.Relaxed,
		Volatile: order == event.Volatile,
		Wide:     wide,
		Unit:     int(k.unit),
	}
	c.side.RMW = k.kind == event.Atomic && c.side.Write
	c.reads = k.kind != event.Store
	c.discards = k.flags&event.FlagRed != 0
	c.acquires = c.reads && (order == event.Acquire || order == event.AcqRel || order == event.SC)
	if d.cfg.Model == detect.ModelHRF && c.reads && c.strong {
		c.acquires = true
	}
	c.releases = c.side.Write && (order == event.Release || order == event.AcqRel || order == event.SC)
	c.end = wide
	c.plain = k.kind == event.Store && order == event.Weak
	c.notes = c.noteKindOf()
	return c
}
