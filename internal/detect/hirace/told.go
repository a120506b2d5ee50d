package hirace

import (
	"fmt"

	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// Access is an access reported by a device that detects races itself.
type Access struct {
	Event    event.Event // Kind, Place, Size, Order and Scope; Kind None: no access
	Sequence uint32      // equal for accesses of one warp by one execution of an instruction
}

// Told is a report of a device: the races of one pair of places, with the first of them.
type Told struct {
	Count, Bytes              uint64 // number of races, and of bytes that race
	Word                      uint64 // the shadow word before the race
	Last, Other, Before       Access // earlier accesses: see cell
	OtherThread, BeforeThread uint32
	Now                       Access
	Thread                    uint64 // the thread of Now and its clocks, as in a shadow word
	Address, Location, Size   uint64 // of Now, and of the location
	Space                     event.Space
}

func (a *Access) trace() trace {
	if a.Event.Kind == event.None {
		return 0
	}
	return traceOf(&a.Event, actionOf(&a.Event), a.Sequence)
}

// Tell processes what a device has found in a launch. The device has observed Watch itself.
func (d *Detector) Tell(l *event.Launch, told []Told) {
	d.launch, d.perBlock = *l, l.WarpsPerBlock()
	for i := range told {
		r := &told[i]
		c := cell{word: r.Word, trace: r.Last.trace(), other: past{r.Other.trace(), r.OtherThread}, before: past{r.Before.trace(), r.BeforeThread}}
		e := r.Now.Event
		e.Space, e.Warp = r.Space, uint32(r.Thread>>threadShift)%(1<<threadBits)>>5
		t := turn{accessor: accessor{word: r.Thread, firstWarp: e.Warp - e.Warp%d.perBlock, perBlock: d.perBlock}, e: &e, act: actionOf(&e),
			trace: r.Now.trace(), addr: r.Address}
		race := d.race(&c, r.Word, &t, r.Location)
		race.Lanes, race.More = int(r.Count), int(r.Bytes-r.Size)
		d.Add(race)
	}
}

// Table returns the machine, indexed by state<<6|label: the next state in the low 5 bits, and above them what messages
// need of earlier accesses.
func (d *Detector) Table() []byte {
	out := make([]byte, len(d.machine))
	for i, t := range d.machine {
		out[i] = byte(t)
	}
	return out
}

// LastTick returns the largest value of a clock.
func (d *Detector) LastTick() uint32 { return d.lastTick }

// Groups returns the number of blocks of a grid that are tracked; 0: all.
func (d *Detector) Groups() uint64 { return d.bounds.groups }

// Pairs returns the number of pairs of racing places that a device keeps; 0: its default.
func (d *Detector) Pairs() uint64 { return d.bounds.pairs }

// Words returns the number of words of global memory that may have metadata; 0: all.
func (d *Detector) Words() uint64 { return uint64(d.bounds.lines) * shadow.LineCells }

// Coarse reports whether a word remains one location when parts of it are accessed.
func (d *Detector) Coarse() bool { return d.coarse }

// Unchecked adds a note about what a device has not checked in a launch.
func (d *Detector) Unchecked(l *event.Launch, format string, args ...any) {
	d.say(fmt.Sprintf("hirace: launch %d of kernel %s: %s.", l.ID, l.Kernel, fmt.Sprintf(format, args...)))
}

// Location processes an access of a lane at addr to one location, of size bytes at the address at, in a launch whose
// other events the detector receives. It is for devices, whose threads access locations one by one. sequence identifies
// the execution of the instruction.
func (d *Detector) Location(e *event.Event, lane int, addr, at, size uint64, sequence uint32) {
	if !d.bounds.watches(e.Warp, lane) {
		return
	}
	t := turn{accessor: accessor{firstWarp: e.Warp - e.Warp%d.perBlock, perBlock: d.perBlock}, e: e, w: &d.warps[e.Warp], act: actionOf(e)}
	t.trace = traceOf(e, t.act, sequence)
	t.by(lane, addr)
	c := d.words.Cell(d.line(&t, d.words, at))
	if size == wordBytes {
		d.cell(c, &t, at)
		return
	}
	d.split(c, &t, at&^(wordBytes-1))
	d.judge(d.byte(&t, at), &t, at)
}
