package table

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// row is a row of the table. A column is null if it does not apply to the event: pointer columns are null if nil, other
// optional ones if zero.
type row struct {
	Event                           uint64
	Kind                            string
	Launch                          uint32
	Kernel                          string
	Agent, Block, Warp, Mask, Lanes *uint32
	Space, Order, Scope, RMW        string
	Reads, Writes                   *bool
	Size                            *uint64
	Element                         uint32
	Address                         *uint64
	Stride                          *int64
	Addresses, Values               []uint64
	Barrier                         *uint32
	Threads                         uint32
	Waits                           *bool
	OtherLanes                      uint32
	Place                           uint32
	where
	Call    string
	Token   *uint64
	Staged  *bool
	Assumed *bool
}

// where is the innermost frame of a place.
type where struct {
	Function     string
	File         string
	Line, Column uint32
	PTXFile      string
	PTXLine      uint32
	Inst         string
}

// field is a column of the schema: its name, its types, and a function that gives its value in a row.
type field struct {
	name                string
	physical, converted int64 // numbers of the format; converted -1: none
	required            bool
	dict                bool // values are numbers in a dictionary
	delta               bool // each value is one more than the previous one
	num                 func(*row) (uint64, bool)
	text                func(*row) string
	list                func(*row) []uint64
}

// schema lists the columns in order.
var schema = []field{
	{name: "event", physical: typeInt64, converted: convertedUint64, required: true, delta: true, num: func(r *row) (uint64, bool) { return r.Event, true }},
	{name: "kind", physical: typeBytes, converted: convertedText, required: true, dict: true, text: func(r *row) string { return r.Kind }},
	number("launch", plain, func(r *row) uint32 { return r.Launch }),
	text("kernel", func(r *row) string { return r.Kernel }),
	pointer("agent", plain, func(r *row) *uint32 { return r.Agent }),
	pointer("block", plain, func(r *row) *uint32 { return r.Block }),
	pointer("warp", plain, func(r *row) *uint32 { return r.Warp }),
	pointer("mask", dict, func(r *row) *uint32 { return r.Mask }),
	pointer("lanes", dict, func(r *row) *uint32 { return r.Lanes }),
	text("space", func(r *row) string { return r.Space }),
	text("order", func(r *row) string { return r.Order }),
	text("scope", func(r *row) string { return r.Scope }),
	text("rmw", func(r *row) string { return r.RMW }),
	truth("reads", func(r *row) *bool { return r.Reads }),
	truth("writes", func(r *row) *bool { return r.Writes }),
	wide("size", convertedUint64, dict, func(r *row) *uint64 { return r.Size }),
	number("element", dict, func(r *row) uint32 { return r.Element }),
	wide("address", convertedUint64, plain, func(r *row) *uint64 { return r.Address }),
	wide("stride", convertedInt64, dict, func(r *row) *int64 { return r.Stride }),
	list("addresses", func(r *row) []uint64 { return r.Addresses }),
	list("values", func(r *row) []uint64 { return r.Values }),
	pointer("barrier", dict, func(r *row) *uint32 { return r.Barrier }),
	number("threads", dict, func(r *row) uint32 { return r.Threads }),
	truth("waits", func(r *row) *bool { return r.Waits }),
	number("other_lanes", plain, func(r *row) uint32 { return r.OtherLanes }),
	number("place", dict, func(r *row) uint32 { return r.Place }),
	text("function", func(r *row) string { return r.Function }),
	text("file", func(r *row) string { return r.File }),
	number("line", dict, func(r *row) uint32 { return r.Line }),
	number("column", dict, func(r *row) uint32 { return r.Column }),
	text("ptx_file", func(r *row) string { return r.PTXFile }),
	number("ptx_line", dict, func(r *row) uint32 { return r.PTXLine }),
	text("instruction", func(r *row) string { return r.Inst }),
	text("call", func(r *row) string { return r.Call }),
	wide("token", convertedUint64, plain, func(r *row) *uint64 { return r.Token }),
	truth("staged", func(r *row) *bool { return r.Staged }),
	truth("assumed", func(r *row) *bool { return r.Assumed }),
}

// Values of a column are stored in its pages, or in a dictionary.
const plain, dict = false, true

func text(name string, get func(*row) string) field {
	return field{name: name, physical: typeBytes, converted: convertedText, dict: true, text: get}
}

// number makes a column of 32 bits that is null if zero.
func number(name string, inDict bool, get func(*row) uint32) field {
	return field{name: name, physical: typeInt32, converted: convertedUint32, dict: inDict, num: func(r *row) (uint64, bool) {
		n := get(r)
		return uint64(n), n != 0
	}}
}

func pointer(name string, inDict bool, get func(*row) *uint32) field {
	f := wide(name, convertedUint32, inDict, get)
	f.physical = typeInt32
	return f
}

func wide[T uint32 | uint64 | int64](name string, converted int64, inDict bool, get func(*row) *T) field {
	return field{name: name, physical: typeInt64, converted: converted, dict: inDict, num: func(r *row) (uint64, bool) {
		if p := get(r); p != nil {
			return uint64(*p), true
		}
		return 0, false
	}}
}

func truth(name string, get func(*row) *bool) field {
	return field{name: name, physical: typeBool, converted: -1, num: func(r *row) (uint64, bool) {
		p := get(r)
		if p != nil && *p {
			return 1, true
		}
		return 0, p != nil
	}}
}

func list(name string, get func(*row) []uint64) field {
	return field{name: name, physical: typeInt64, converted: convertedUint64, list: get}
}

// cells holds the values that the pointers of a row point to.
type cells struct {
	agent, block, warp, mask, lanes, barrier uint32
	address, size, token                     uint64
	stride                                   int64
	addresses                                [32]uint64
	reads, writes, waits, staged, assumed    bool
}

// set puts a value into a cell.
func set[T any](cell *T, v T) *T {
	*cell = v
	return cell
}

// memory sets the columns of an access.
func (r *row) memory(c *cells, b *event.Batch, e *event.Event) {
	r.Space, r.Order, r.Size = e.Space.String(), e.Order.String(), set(&c.size, uint64(e.Size))
	if e.Scope != event.NoScope {
		r.Scope = e.Scope.String()
	}
	if e.Kind == event.Atomic {
		r.RMW = rmwName(e)
	}
	if e.Flags&event.FlagVector != 0 {
		r.Element = e.Aux
	}
	r.Reads, r.Writes = set(&c.reads, e.Flags&event.FlagRead != 0), set(&c.writes, e.Flags&event.FlagWrite != 0)
	lanes := bits.OnesCount32(e.Mask)
	if e.Flags&(event.FlagScattered|event.FlagRows) != 0 {
		r.Addresses = b.Addresses(e, &c.addresses)
		r.Address = set(&c.address, r.Addresses[0])
	} else {
		r.Address, r.Stride = set(&c.address, e.Addr), set(&c.stride, e.Stride)
	}
	if e.Flags&event.FlagValues != 0 {
		r.Values = b.Values[e.Val:][:lanes*event.ValueWords(e.Size)]
	}
}

// rmwName names a read-modify-write.
func rmwName(e *event.Event) string {
	switch {
	case e.RMW == event.CompareAndSwap:
		return "cas"
	case e.RMW == event.Exchange:
		return "exch"
	case e.Flags&event.FlagRed != 0:
		return "red"
	}
	return "other"
}

// host sets the columns of a host operation.
func (r *row) host(h *event.HostOp, c *cells) {
	r.Kind, r.Call, r.Agent = "host-"+h.Kind.String(), event.HostText(h.Name), set(&c.agent, h.Agent)
	switch h.Kind {
	case event.HostSignal, event.HostWait:
		r.Token, r.Assumed = set(&c.token, h.Token), set(&c.assumed, h.Assumed)
	default:
		r.Address, r.Size, r.Staged = set(&c.address, h.Addr), set(&c.size, h.Size), set(&c.staged, h.Staged)
	}
}
