package evaluate

import (
	"encoding/binary"
	"sync"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/cpu/order"
)

// variable is the metadata of a variable in FastTrack (figure 3.3) as the thesis measures it: one mutable object, with
// an epoch or a clock of reads.
type variable struct {
	sync.Mutex
	write, read order.Epoch
	reads       order.Clock // of an EpochPlusVC; nil for an EpochPair
}

// variableBytes is the size of a variable without a clock: a reference and the object.
const variableBytes = 8 + 48

// change describes how an access changed the metadata.
type change struct {
	changed, inflated bool
	races             int
}

// access judges an access by a thread whose clock is c.
func (v *variable) access(thread uint16, c order.Clock, write bool) (did change) {
	now := c[thread]
	if write && v.write == now || !write && v.reads == nil && v.read == now {
		return change{} // *SAMEEPOCH
	}
	did.changed = write || v.reads.Of(thread) != now
	if !c.Has(v.write) {
		did.races++
	}
	if write {
		if v.reads == nil && !c.Has(v.read) {
			did.races++
		}
		for _, r := range v.reads {
			if !c.Has(r) {
				did.races++
			}
		}
		v.write, v.read, v.reads = now, 0, nil
		return did
	}
	switch {
	case v.reads != nil:
		v.reads.Set(now)
	case c.Has(v.read):
		v.read = now
	default:
		v.reads.Set(v.read)
		v.reads.Set(now)
		did.inflated = true
	}
	return did
}

// objects is the sequential detector. It counts FastTrack's allocations and its distinct metadata.
type objects struct {
	order     order.Order
	variables []*variable
	races     int

	allocated uint64 // number of variables and clocks that were allocated
	values    uint64 // number of values that accesses assigned to metadata
	distinct  map[[2]order.Epoch]bool
	clocks    map[string]bool // distinct values of EpochPlusVCs
	key       []byte
}

// Events implements cpu.Detector.
func (d *objects) Events(events []cpu.Event) {
	for i := range events {
		e := &events[i]
		switch e.Op {
		case cpu.Read, cpu.Write:
			v := d.of(e.Object)
			did := v.access(e.Thread, d.order.Clock(e.Thread), e.Op == cpu.Write)
			d.races += did.races
			if did.inflated {
				d.allocated++
			}
			if did.changed && d.distinct != nil {
				d.count(v)
			}
		case cpu.Part:
			of := d.of(e.Location)
			v := d.of(e.Object)
			v.write, v.read, v.reads = of.write, of.read, append(order.Clock(nil), of.reads...)
		case cpu.Forget:
			*d.of(e.Object) = variable{}
		default:
			if !e.Op.Access() {
				d.order.Step(e)
			}
		}
	}
}

func (d *objects) of(id uint32) *variable {
	for len(d.variables) <= int(id) {
		d.variables = append(d.variables, nil)
	}
	if d.variables[id] == nil {
		d.variables[id] = &variable{}
		d.allocated++
	}
	return d.variables[id]
}

// count adds the value of a variable's metadata to the set of values.
func (d *objects) count(v *variable) {
	d.values++
	if v.reads == nil {
		d.distinct[[2]order.Epoch{v.write, v.read}] = true
		return
	}
	d.key = appendClock(d.key[:0], v.write, v.reads)
	d.clocks[string(d.key)] = true
}

// appendClock appends a key that is the same for equal metadata: missing epochs at the end are 0.
func appendClock(key []byte, write order.Epoch, reads order.Clock) []byte {
	key = binary.LittleEndian.AppendUint64(key, uint64(write))
	for _, r := range reads {
		if r != 0 {
			key = binary.LittleEndian.AppendUint64(key, uint64(r))
		}
	}
	return key
}

// MemoryBytes implements cpu.Detector.
func (d *objects) MemoryBytes() (n uint64) {
	for _, v := range d.variables {
		if v != nil {
			n += variableBytes + v.reads.Bytes()
		}
	}
	return n
}
