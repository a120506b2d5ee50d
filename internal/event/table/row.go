package table

import (
	"math/bits"

	"github.com/parquet-go/parquet-go"

	"fencepost.dev/fencepost/internal/event"
)

// row is a row of the table, and its type the schema. Columns are null where an event has no such thing: those of pointers
// where they are nil, the other optional ones where they are zero.
type row struct {
	Event      uint64   `parquet:"event,delta"`
	Kind       string   `parquet:"kind,dict"`
	Launch     uint32   `parquet:"launch,optional"`
	Kernel     string   `parquet:"kernel,optional,dict"`
	Agent      *uint32  `parquet:"agent,optional"`
	Block      *uint32  `parquet:"block,optional"`
	Warp       *uint32  `parquet:"warp,optional"`
	Mask       *uint32  `parquet:"mask,optional,dict"`
	Lanes      *uint32  `parquet:"lanes,optional,dict"`
	Space      string   `parquet:"space,optional,dict"`
	Order      string   `parquet:"order,optional,dict"`
	Scope      string   `parquet:"scope,optional,dict"`
	RMW        string   `parquet:"rmw,optional,dict"`
	Reads      *bool    `parquet:"reads,optional"`
	Writes     *bool    `parquet:"writes,optional"`
	Size       *uint64  `parquet:"size,optional,dict"`
	Element    uint32   `parquet:"element,optional,dict"`
	Address    *uint64  `parquet:"address,optional"`
	Stride     *int64   `parquet:"stride,optional,dict"`
	Addresses  []uint64 `parquet:"addresses,optional,list"`
	Values     []uint64 `parquet:"values,optional,list"`
	Barrier    *uint32  `parquet:"barrier,optional,dict"`
	Threads    uint32   `parquet:"threads,optional,dict"`
	Waits      *bool    `parquet:"waits,optional"`
	OtherLanes uint32   `parquet:"other_lanes,optional"`
	Place      uint32   `parquet:"place,optional,dict"`
	where
	Call   string  `parquet:"call,optional,dict"`
	Token  *uint64 `parquet:"token,optional"`
	Staged *bool   `parquet:"staged,optional"`
}

// where is the innermost frame of a place.
type where struct {
	Function string `parquet:"function,optional,dict"`
	File     string `parquet:"file,optional,dict"`
	Line     uint32 `parquet:"line,optional,dict"`
	Column   uint32 `parquet:"column,optional,dict"`
	PTXFile  string `parquet:"ptx_file,optional,dict"`
	PTXLine  uint32 `parquet:"ptx_line,optional,dict"`
	Inst     string `parquet:"instruction,optional,dict"`
}

// appendTo appends the values of a row, in the order of the fields. (The library can do so by reflection, but version 0.32
// then takes some zeros of optional columns for values.)
func (r *row) appendTo(p parquet.Row) parquet.Row {
	v := values{row: p}
	v.add(parquet.Int64Value(int64(r.Event)), 0)
	v.add(parquet.ValueOf(r.Kind), 0)
	v.number(r.Launch)
	v.text(r.Kernel)
	for _, n := range [...]*uint32{r.Agent, r.Block, r.Warp, r.Mask, r.Lanes} {
		optional(&v, n, uint32Value)
	}
	for _, s := range [...]string{r.Space, r.Order, r.Scope, r.RMW} {
		v.text(s)
	}
	optional(&v, r.Reads, parquet.BooleanValue)
	optional(&v, r.Writes, parquet.BooleanValue)
	optional(&v, r.Size, uint64Value)
	v.number(r.Element)
	optional(&v, r.Address, uint64Value)
	optional(&v, r.Stride, parquet.Int64Value)
	v.list(r.Addresses)
	v.list(r.Values)
	optional(&v, r.Barrier, uint32Value)
	v.number(r.Threads)
	optional(&v, r.Waits, parquet.BooleanValue)
	v.number(r.OtherLanes)
	v.number(r.Place)
	v.text(r.Function)
	v.text(r.File)
	v.number(r.Line)
	v.number(r.Column)
	v.text(r.PTXFile)
	v.number(r.PTXLine)
	v.text(r.Inst)
	v.text(r.Call)
	optional(&v, r.Token, uint64Value)
	optional(&v, r.Staged, parquet.BooleanValue)
	return v.row
}

// values are those of a row, column by column.
type values struct {
	row    parquet.Row
	column int
}

// add appends the one value of the next column; level says how many of the column's optional parts are there.
func (v *values) add(x parquet.Value, level int) {
	v.row = append(v.row, x.Level(0, level, v.column))
	v.column++
}

func optional[T any](v *values, x *T, value func(T) parquet.Value) {
	if x == nil {
		v.add(parquet.Value{}, 0)
		return
	}
	v.add(value(*x), 1)
}

func (v *values) number(x uint32) {
	if x == 0 {
		v.add(parquet.Value{}, 0)
		return
	}
	v.add(uint32Value(x), 1)
}

func (v *values) text(s string) {
	if s == "" {
		v.add(parquet.Value{}, 0)
		return
	}
	v.add(parquet.ValueOf(s), 1)
}

func (v *values) list(x []uint64) {
	if len(x) == 0 {
		v.add(parquet.Value{}, 0)
		return
	}
	for i, n := range x {
		v.row = append(v.row, uint64Value(n).Level(min(i, 1), 2, v.column))
	}
	v.column++
}

func uint32Value(x uint32) parquet.Value { return parquet.Int32Value(int32(x)) }
func uint64Value(x uint64) parquet.Value { return parquet.Int64Value(int64(x)) }

// cells are what the pointers of a row point to.
type cells struct {
	agent, block, warp, mask, lanes, barrier uint32
	address, size, token                     uint64
	stride                                   int64
	addresses                                [32]uint64
	reads, writes, waits, staged             bool
}

// set puts a value into a cell.
func set[T any](cell *T, v T) *T {
	*cell = v
	return cell
}

// memory fills in what an access is.
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

// rmwName tells the read-modify-writes apart.
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

// host fills in an operation of the host.
func (r *row) host(h *event.HostOp, c *cells) {
	r.Kind, r.Call, r.Agent = "host-"+h.Kind.String(), event.HostText(h.Name), set(&c.agent, h.Agent)
	switch h.Kind {
	case event.HostSignal, event.HostWait:
		r.Token = set(&c.token, h.Token)
	default:
		r.Address, r.Size, r.Staged = set(&c.address, h.Addr), set(&c.size, h.Size), set(&c.staged, h.Staged)
	}
}
