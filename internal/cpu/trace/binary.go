package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"fencepost.dev/fencepost/internal/cpu"
)

// Types of blocks.
const (
	blockEvents = 'E'
	blockWide   = 'W'
	blockNames  = 'N'
	blockEnd    = 'Z'
)

const (
	headerBytes = 12
	maxBlock    = 1 << 20
	// goal is the size from which on a block is written.
	goal = 1 << 16

	narrowBytes = 8
	wideBytes   = 12

	narrowOps                               = 15 // the last operation that fits a narrow event
	threadShift, locationShift, objectShift = 4, 16, 36
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type binaryReader struct {
	*Reader
	from   *bufio.Reader // of the block being read
	offset int64         // of the block being read
	next0  int64         // of the next block
	buffer []byte
	rest   []byte // the undecoded part of an events block
	wide   bool
	end    bool
}

func (b *binaryReader) begin() error {
	b.next0 = int64(len(Magic))
	_, err := b.from.Discard(len(Magic))
	return err
}

func (b *binaryReader) wrong(format string, args ...any) error {
	return &Error{Offset: b.offset, Text: fmt.Sprintf(format, args...)}
}

// next decodes events of one block.
func (b *binaryReader) next(to []cpu.Event) (n int, err error) {
	for len(b.rest) == 0 {
		if b.end {
			return 0, io.EOF
		}
		if err := b.block(); err != nil {
			return 0, err
		}
	}
	if b.wide {
		return b.wideEvents(to)
	}
	n = min(len(to), len(b.rest)/narrowBytes)
	in, to := b.rest[:n*narrowBytes], to[:n]
	c := &b.check
	variables, locations, life := c.known[cpu.Variables], c.known[cpu.Locations], c.life
	for i := range to {
		x := binary.LittleEndian.Uint64(in[i*narrowBytes:])
		op, thread := cpu.Op(x&narrowOps), uint16(x>>threadShift&(1<<12-1))
		location, object := uint32(x>>locationShift)&(1<<20-1), uint32(x>>objectShift)
		e := &to[i] // set field by field, because copying a struct just written is slow
		e.Object, e.Location, e.Thread, e.Op = object, location, thread, op
		// Most events are accesses to known variables by a running thread, which are valid.
		if op-cpu.Read > cpu.Write-cpu.Read || object >= variables || location > locations || int(thread) >= len(life) || life[thread] != running {
			if !c.event(e) {
				return i, b.wrong("event %d: %s", b.count+uint64(i), c.problem)
			}
			variables, locations, life = c.known[cpu.Variables], c.known[cpu.Locations], c.life
		}
	}
	b.rest = b.rest[len(in):]
	return n, nil
}

func (b *binaryReader) wideEvents(to []cpu.Event) (n int, err error) {
	for ; n < len(to) && len(b.rest) > 0; n++ {
		e := &to[n]
		op := binary.LittleEndian.Uint16(b.rest)
		*e = cpu.Event{Op: cpu.Op(min(op, 255)), Thread: binary.LittleEndian.Uint16(b.rest[2:]),
			Location: binary.LittleEndian.Uint32(b.rest[4:]), Object: binary.LittleEndian.Uint32(b.rest[8:])}
		if !b.check.event(e) {
			return n, b.wrong("event %d: %s", b.count+uint64(n), b.check.problem)
		}
		b.rest = b.rest[wideBytes:]
	}
	return n, nil
}

// block reads the next block.
func (b *binaryReader) block() error {
	b.offset = b.next0
	var h [headerBytes]byte
	if err := b.full(h[:]); err != nil {
		return err
	}
	kind, size := binary.LittleEndian.Uint32(h[:]), binary.LittleEndian.Uint32(h[4:])
	if size > maxBlock {
		return b.wrong("the block says that it has %d bytes, and %d are allowed", size, maxBlock)
	}
	if cap(b.buffer) < int(size) {
		b.buffer = make([]byte, max(int(size), goal))
	}
	content := b.buffer[:size]
	if err := b.full(content); err != nil {
		return err
	}
	b.next0 += headerBytes + int64(size)
	if crc32.Checksum(content, castagnoli) != binary.LittleEndian.Uint32(h[8:]) {
		return b.wrong("the trace is damaged: the checksum of the block is another one")
	}
	switch kind {
	case blockEvents, blockWide:
		b.wide = kind == blockWide
		if each := map[bool]int{false: narrowBytes, true: wideBytes}[b.wide]; len(content)%each != 0 {
			return b.wrong("the block ends within an event")
		}
		b.rest = content
	case blockNames:
		return b.names(content)
	case blockEnd:
		if len(content) != 8 || binary.LittleEndian.Uint64(content) != b.count {
			return b.wrong("the end is that of another trace")
		}
		b.end = true
	default:
		return b.wrong("there is no block of type %d", kind)
	}
	return nil
}

// full reads all of to.
func (b *binaryReader) full(to []byte) error {
	_, err := io.ReadFull(b.from, to)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return b.wrong("the trace is cut off")
	}
	return err
}

func (b *binaryReader) names(content []byte) error {
	if len(content) == 0 || content[0] == byte(cpu.NoObject) || content[0] >= byte(cpu.Tables) {
		return b.wrong("the names are of no table")
	}
	t := &b.Names[content[0]]
	for content = content[1:]; len(content) > 0; {
		n, used := binary.Uvarint(content)
		if used <= 0 || n > uint64(len(content)-used) {
			return b.wrong("a name is longer than its block")
		}
		*t = append(*t, string(content[used:][:n]))
		content = content[used+int(n):]
	}
	return nil
}

// Writer writes a binary trace. It keeps the first error, which Close returns.
type Writer struct {
	to      io.Writer
	content []byte
	wide    bool
	count   uint64
	err     error
}

// NewWriter begins a trace.
func NewWriter(to io.Writer) *Writer {
	w := &Writer{to: to}
	_, w.err = io.WriteString(to, Magic)
	return w
}

// Events writes events as a Reader may return them.
func (w *Writer) Events(events []cpu.Event) {
	for i := range events {
		e := &events[i]
		// A block that is wide stays wide. Otherwise rare wide events would cause many small blocks.
		wide := e.Op > narrowOps || e.Location >= 1<<20 || e.Object >= 1<<28
		if wide && !w.wide || len(w.content) > goal-wideBytes {
			w.flush()
			w.wide = wide
		}
		if w.wide {
			w.content = binary.LittleEndian.AppendUint16(w.content, uint16(e.Op))
			w.content = binary.LittleEndian.AppendUint16(w.content, e.Thread)
			w.content = binary.LittleEndian.AppendUint32(w.content, e.Location)
			w.content = binary.LittleEndian.AppendUint32(w.content, e.Object)
		} else {
			w.content = binary.LittleEndian.AppendUint64(w.content,
				uint64(e.Op)|uint64(e.Thread)<<threadShift|uint64(e.Location)<<locationShift|uint64(e.Object)<<objectShift)
		}
		w.count++
	}
}

func (w *Writer) flush() {
	if len(w.content) > 0 {
		kind := uint32(blockEvents)
		if w.wide {
			kind = blockWide
		}
		w.block(kind, w.content)
	}
	w.content = w.content[:0]
}

func (w *Writer) block(kind uint32, content []byte) {
	h := binary.LittleEndian.AppendUint32(nil, kind)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(content)))
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(content, castagnoli))
	for _, part := range [][]byte{h, content} {
		if w.err == nil {
			_, w.err = w.to.Write(part)
		}
	}
}

// Close writes the names and the end.
func (w *Writer) Close(names *Names) error {
	w.flush()
	for t := cpu.Threads; t < cpu.Tables; t++ {
		content := []byte{byte(t)}
		for _, name := range names[t] {
			if len(content)+len(name)+binary.MaxVarintLen64 > maxBlock {
				w.block(blockNames, content)
				content = content[:1]
			}
			name = name[:min(len(name), maxLine)]
			content = append(binary.AppendUvarint(content, uint64(len(name))), name...)
		}
		if len(content) > 1 {
			w.block(blockNames, content)
		}
	}
	w.block(blockEnd, binary.LittleEndian.AppendUint64(nil, w.count))
	return w.err
}
