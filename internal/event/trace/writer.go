package trace

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"fencepost.dev/fencepost/internal/event"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a trace. It is an event.Sink: errors of the file are kept until Close. A batch need not begin a block.
type Writer struct {
	to      io.Writer
	places  event.Places
	told    map[uint32]bool // places written
	encoder *zstd.Encoder
	err     error

	events  int // number of events in col
	goal    int // number of events in a block
	col     [columns][]byte
	forms   map[form]uint32
	states  []state // by form
	recent  [256]recent
	warp    uint32
	fresh   []uint32 // places to be written
	scratch []byte
	packed  []byte

	total, written uint64
}

// form is an event without what differs from warp to warp.
type form struct {
	stride  int64
	mask    uint32
	launch  uint32
	place   uint32
	aux     uint32
	kind    event.Kind
	order   event.Order
	scope   event.Scope
	space   event.Space
	size    uint8
	barrier uint8
	rmw     event.RMW
	flags   event.Flags
	rows    uint8  // with FlagRows
	side    uint32 // with FlagRows
}

// is reports whether the event has this form. Comparing field by field is faster than making the form of each event
// first.
func (f *form) is(e *event.Event) bool {
	return f.place == e.Place && f.mask == e.Mask && f.stride == e.Stride && f.launch == e.Launch && f.aux == e.Aux && f.kind == e.Kind &&
		f.order == e.Order && f.scope == e.Scope && f.space == e.Space && f.size == e.Size && f.barrier == e.Barrier && f.rmw == e.RMW && f.flags == e.Flags &&
		(e.Flags&event.FlagRows == 0 || f.rows == e.RowShift && f.side == e.Side)
}

// state is the last address and step written for a form.
type state struct{ addr, step uint64 }

type recent struct {
	form   form
	number uint32 // number in forms, minus one
}

// NewWriter begins a trace. places describes the places of the events.
func NewWriter(to io.Writer, places event.Places) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &Writer{to: to, places: places, told: map[uint32]bool{0: true}, encoder: encoder, goal: blockGoal, forms: map[form]uint32{}}
	w.write([]byte(Magic))
	return w, w.err
}

// Written returns the number of events received and of bytes written.
func (w *Writer) Written() (events, bytes uint64) { return w.total, w.written }

// Events implements event.Sink.
func (w *Writer) Events(b *event.Batch) {
	for i := range b.Events {
		w.event(b, &b.Events[i])
	}
	w.total += uint64(len(b.Events))
	if w.events >= w.goal || len(w.col[colValues])+len(w.col[colScattered]) > maxBlock/8 {
		w.flush()
	}
}

// Close ends the trace with tail as the added content. It returns the first error of the trace.
func (w *Writer) Close(tail []byte) error {
	w.flush()
	w.block(blockEnd, tail)
	return w.err
}

func (w *Writer) event(b *event.Batch, e *event.Event) {
	w.events++
	n := w.form(e)
	w.col[colForm] = appendNumber(w.col[colForm], uint64(n))
	w.col[colWarp] = appendSigned(w.col[colWarp], int64(int32(e.Warp-w.warp)))
	w.warp = e.Warp
	switch e.Kind {
	case event.Load, event.Store, event.Atomic, event.CopyArrive, event.MbarrierDone, event.Bulk, event.BulkDone, event.Wgmma, event.Core, event.CoreCommit, event.CoreDone, event.MapRead, event.MapFence:
		w.memory(b, e, &w.states[n])
	case event.KernelBegin:
		w.launch(&b.Launches[e.Side])
	case event.Host:
		w.host(&b.Hosts[e.Side])
	}
}

// form returns the number of an event's form, writing the form if it is new.
func (w *Writer) form(e *event.Event) uint32 {
	r := &w.recent[(e.Place^e.Place>>8^e.Mask*0x9e3779b1>>24^uint32(e.Kind)<<5)%uint32(len(w.recent))]
	if r.number != 0 && r.form.is(e) {
		return r.number - 1
	}
	f := form{e.Stride, e.Mask, e.Launch, e.Place, e.Aux, e.Kind, e.Order, e.Scope, e.Space, e.Size, e.Barrier, e.RMW, e.Flags, 0, 0}
	if e.Flags&event.FlagRows != 0 {
		f.rows, f.side = e.RowShift, e.Side
	}
	n, ok := w.forms[f]
	if !ok {
		n = uint32(len(w.states))
		w.forms[f] = n
		w.states = append(w.states, state{})
		w.tell(&f)
	}
	r.form, r.number = f, n+1
	return n
}

func (w *Writer) tell(f *form) {
	c := append(w.col[colForms], byte(f.kind), byte(f.order), byte(f.scope), byte(f.space), f.size, f.barrier, byte(f.rmw))
	c = binary.AppendVarint(c, f.stride)
	for _, x := range []uint32{uint32(f.flags), f.mask, f.launch, f.place, f.aux} {
		c = binary.AppendUvarint(c, uint64(x))
	}
	if f.flags&event.FlagRows != 0 {
		c = binary.AppendVarint(append(c, f.rows), int64(int32(f.side)))
	}
	w.col[colForms] = c
	if !w.told[f.place] {
		w.told[f.place] = true
		w.fresh = append(w.fresh, f.place)
	}
}

func (w *Writer) memory(b *event.Batch, e *event.Event, s *state) {
	if e.Flags&event.FlagScattered == 0 {
		w.col[colAddr] = appendSigned(w.col[colAddr], s.next(e.Addr))
	} else {
		addrs := b.Addrs[e.Side:][:bits.OnesCount32(e.Mask)]
		c := binary.AppendVarint(w.col[colScattered], s.next(addrs[0]))
		for i, a := range addrs[1:] {
			c = appendSigned(c, int64(a-addrs[i]))
		}
		w.col[colScattered] = c
	}
	if e.Flags&event.FlagValues != 0 {
		w.values(b.Values[e.Val:][:valueWords(e)], e.Size)
	}
}

// next returns the difference between an address and the predicted one, and updates the prediction.
func (s *state) next(addr uint64) int64 {
	d := int64(addr - s.addr - s.step)
	s.step, s.addr = addr-s.addr, addr
	return d
}

// valueWords returns the number of words in Batch.Values that belong to an event with values.
func valueWords(e *event.Event) int {
	n := bits.OnesCount32(e.Mask) * event.ValueWords(e.Size)
	if e.Flags&event.FlagOld != 0 {
		n *= 2
	}
	return n
}

func (w *Writer) values(v []uint64, size uint8) {
	c := w.col[colValues]
	step := uint64(0)
	if len(v) > 1 {
		step = v[1] - v[0]
	}
	regular := true
	for i := 1; i < len(v) && regular; i++ {
		regular = v[i]-v[i-1] == step
	}
	switch {
	case regular && step == 0:
		c = binary.AppendUvarint(append(c, valuesSame), v[0])
	case regular:
		c = binary.AppendVarint(binary.AppendUvarint(append(c, valuesStep), v[0]), int64(step))
	case size == 4 && fits(v):
		c = append(c, valuesAll, 4)
		for _, x := range v {
			c = binary.LittleEndian.AppendUint32(c, uint32(x))
		}
	default:
		c = append(c, valuesAll, 8)
		for _, x := range v {
			c = binary.LittleEndian.AppendUint64(c, x)
		}
	}
	w.col[colValues] = c
}

func fits(v []uint64) bool {
	var all uint64
	for _, x := range v {
		all |= x
	}
	return all>>32 == 0
}

func (w *Writer) launch(l *event.Launch) {
	c := w.col[colSides]
	for _, x := range []uint32{l.ID, l.Agent, l.Grid.X, l.Grid.Y, l.Grid.Z, l.Block.X, l.Block.Y, l.Block.Z,
		l.Cluster.X, l.Cluster.Y, l.Cluster.Z} {
		c = binary.AppendUvarint(c, uint64(x))
	}
	code := byte(0)
	if l.Synchronises {
		code |= codeSynchronises
	}
	if l.Swaps {
		code |= codeSwaps
	}
	if l.NonCoherent {
		code |= codeNonCoherent
	}
	if l.Bulk {
		code |= codeBulk
	}
	if l.Early {
		code |= codeEarly
	}
	switch l.Language {
	case event.Triton:
		code |= codeTriton
	case event.Gluon:
		code |= codeGluon
	}
	if l.Device != 0 {
		c = append(c, code|codeDevice, l.Device)
	} else {
		c = append(c, code)
	}
	w.col[colSides] = appendString(binary.AppendUvarint(c, uint64(l.Parent)), l.Kernel)
}

func (w *Writer) host(h *event.HostOp) {
	marks := byte(0)
	if h.Staged {
		marks |= hostStaged
	}
	if h.Assumed {
		marks |= hostAssumed
	}
	c := append(w.col[colSides], byte(h.Kind), marks)
	for _, x := range []uint64{uint64(h.Agent), h.Token, h.Addr, h.Size} {
		c = binary.AppendUvarint(c, x)
	}
	w.col[colSides] = appendString(c, h.Name)
}

// appendNumber is binary.AppendUvarint, optimised for numbers of one byte, which are the most frequent.
func appendNumber(c []byte, x uint64) []byte {
	if x < 0x80 {
		return append(c, byte(x))
	}
	return binary.AppendUvarint(c, x)
}

func appendSigned(c []byte, x int64) []byte { return appendNumber(c, uint64(x<<1)^uint64(x>>63)) }

func appendString(c []byte, s string) []byte {
	return append(binary.AppendUvarint(c, uint64(len(s))), s...)
}

// flush writes the events received so far.
func (w *Writer) flush() {
	w.flushPlaces()
	if w.events == 0 {
		return
	}
	c := binary.AppendUvarint(w.scratch[:0], uint64(w.events))
	for i := range w.col {
		c = append(binary.AppendUvarint(c, uint64(len(w.col[i]))), w.col[i]...)
		w.col[i] = w.col[i][:0]
	}
	w.block(blockEvents, c)
	w.scratch, w.events, w.warp = c, 0, 0
	w.states = w.states[:0]
	clear(w.forms)
	clear(w.recent[:])
}

func (w *Writer) flushPlaces() {
	if len(w.fresh) == 0 {
		return
	}
	c := binary.AppendUvarint(w.scratch[:0], uint64(len(w.fresh)))
	for _, place := range w.fresh {
		frames := w.places.Frames(place)
		c = binary.AppendUvarint(binary.AppendUvarint(c, uint64(place)), uint64(len(frames)))
		for i := range frames {
			f := &frames[i]
			c = appendString(appendString(c, f.Function), f.File)
			c = binary.AppendUvarint(binary.AppendUvarint(c, uint64(f.Line)), uint64(f.Column))
			c = binary.AppendUvarint(appendString(c, f.PTXFile), uint64(f.PTXLine))
			c = appendString(c, f.Inst)
		}
		arms := w.places.Arms(place)
		c = binary.AppendUvarint(c, uint64(len(arms)))
		for _, a := range arms {
			c = binary.AppendUvarint(binary.AppendUvarint(c, uint64(a.Branch)), uint64(a.Taken))
		}
		traits := uint64(0)
		if load, ok := w.places.Updates(place); ok {
			traits = traitUpdates | uint64(load)<<traitBits
		}
		if w.places.Discards(place) {
			traits |= traitDiscards
		}
		if w.places.Dereferences(place) {
			traits |= traitDereferences
		}
		c = binary.AppendUvarint(c, traits)
	}
	w.block(blockPlaces, c)
	w.scratch, w.fresh = c, w.fresh[:0]
}

func (w *Writer) block(kind byte, content []byte) {
	w.packed = w.encoder.EncodeAll(content, append(w.packed[:0], make([]byte, headerBytes)...))
	p := w.packed
	p[0] = kind
	binary.LittleEndian.PutUint32(p[1:], uint32(len(p)-headerBytes))
	binary.LittleEndian.PutUint32(p[5:], uint32(len(content)))
	binary.LittleEndian.PutUint32(p[9:], crc32.Checksum(p[headerBytes:], castagnoli))
	w.write(p)
}

func (w *Writer) write(p []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(p)
		w.written += uint64(len(p))
	}
}
