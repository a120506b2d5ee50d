package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"fencepost.dev/fencepost/internal/event"
)

// Reader reads a trace. It does not trust the file: Next gives a stream that an engine could have produced, as far as
// consumers depend on it (launches are known and running, warps and lanes exist, every lane has an address). It
// implements event.Places for the trace.
type Reader struct {
	from    io.Reader
	decoder *zstd.Decoder
	offset  int64 // of the next block
	block   int64 // of the current block
	places  map[uint32]place
	running map[uint32]*running
	last    *running // the launch lastID, used last
	lastID  uint32
	ended   map[uint32]bool
	devices bool // launches are on one of several devices
	tail    []byte
	events  uint64
	packed  []byte
	content []byte
	states  []state
	forms   []event.Event
	done    bool
}

// place is the description of a place in a trace.
type place struct {
	frames []event.Frame
	arms   []event.Arm
	traits uint64
}

// NewReader begins reading a trace. The error is a *CorruptError if from is not a trace.
func NewReader(from io.Reader) (*Reader, error) {
	magic := make([]byte, len(Magic))
	if n, err := io.ReadFull(from, magic); err != nil && !short(err) {
		return nil, err
	} else if string(magic[:n]) != Magic[:n] || n == 0 {
		return nil, &CorruptError{0, fmt.Sprintf("it does not begin with %q, as a trace of this version of fencepost does", strings.TrimSpace(Magic))}
	} else if n < len(Magic) {
		return nil, &TruncatedError{int64(n)}
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, err
	}
	return &Reader{from: from, decoder: decoder, offset: int64(len(Magic)), places: map[uint32]place{},
		running: map[uint32]*running{}, ended: map[uint32]bool{}}, nil
}

func short(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Frames implements event.Places for the places of the events read so far.
func (r *Reader) Frames(place uint32) []event.Frame { return r.places[place].frames }

// Arms implements event.Places for the places of the events read so far.
func (r *Reader) Arms(place uint32) []event.Arm { return r.places[place].arms }

// Updates implements event.Places for the places of the events read so far.
func (r *Reader) Updates(place uint32) (load uint32, ok bool) {
	traits := r.places[place].traits
	return uint32(traits >> traitBits), traits&traitUpdates != 0
}

// Discards implements event.Places for the places of the events read so far.
func (r *Reader) Discards(place uint32) bool { return r.places[place].traits&traitDiscards != 0 }

// Dereferences implements event.Places for the places of the events read so far.
func (r *Reader) Dereferences(place uint32) bool {
	return r.places[place].traits&traitDereferences != 0
}

// Tail returns what the writer added at the end. Call it after Next has returned io.EOF.
func (r *Reader) Tail() []byte { return r.tail }

// Events returns the number of events read so far.
func (r *Reader) Events() uint64 { return r.events }

// Next replaces the events of b by the next ones. The error is io.EOF at the end of the trace, a *TruncatedError if the
// file ends too early, a *CorruptError, or an error of the underlying reader.
func (r *Reader) Next(b *event.Batch) error {
	for !r.done {
		kind, content, err := r.read()
		if err != nil {
			return err
		}
		c := &cursor{b: content}
		switch kind {
		case blockPlaces:
			r.readPlaces(c)
		case blockEvents:
			b.Reset()
			r.readEvents(c, b)
		case blockEnd:
			r.tail, r.done = append([]byte(nil), content...), true
			c.b = nil
		default:
			c.fail("a block of unknown type %q", kind)
		}
		if c.err == nil && len(c.b) > 0 {
			c.fail("bytes behind the content of a block")
		}
		if c.err != nil {
			return &CorruptError{r.block, c.err.Error()}
		}
		if kind == blockEvents {
			r.events += uint64(len(b.Events))
			return nil
		}
	}
	return io.EOF
}

// read returns the content of the next block.
func (r *Reader) read() (kind byte, content []byte, err error) {
	r.block = r.offset
	var h [headerBytes]byte
	if _, err := io.ReadFull(r.from, h[:]); err != nil {
		return 0, nil, r.ends(err)
	}
	packed, unpacked := binary.LittleEndian.Uint32(h[1:]), binary.LittleEndian.Uint32(h[5:])
	if packed > maxBlock || unpacked > maxBlock {
		return 0, nil, &CorruptError{r.block, fmt.Sprintf("a block of %d bytes", max(packed, unpacked))}
	}
	// Read in pieces, so that a wrong length takes no more memory than the file has bytes.
	r.packed = r.packed[:0]
	for int(packed) > len(r.packed) {
		n := len(r.packed)
		r.packed = append(r.packed, make([]byte, min(int(packed)-n, 1<<20))...)
		if _, err := io.ReadFull(r.from, r.packed[n:]); err != nil {
			return 0, nil, r.ends(err)
		}
	}
	if crc32.Checksum(r.packed, castagnoli) != binary.LittleEndian.Uint32(h[9:]) {
		return 0, nil, &CorruptError{r.block, "the checksum of a block is wrong"}
	}
	r.content, err = r.decoder.DecodeAll(r.packed, r.content[:0])
	if err != nil || len(r.content) != int(unpacked) {
		return 0, nil, &CorruptError{r.block, "a block cannot be unpacked"}
	}
	r.offset += headerBytes + int64(packed)
	return h[0], r.content, nil
}

// ends returns the error for a file that ends within a block.
func (r *Reader) ends(err error) error {
	if short(err) {
		return &TruncatedError{r.block}
	}
	return err
}

func (r *Reader) readPlaces(c *cursor) {
	for n := c.uvarint(); n > 0 && c.err == nil; n-- {
		number := c.uint32()
		var p place
		for k := c.uvarint(); k > 0 && c.err == nil; k-- {
			p.frames = append(p.frames, event.Frame{Function: c.string(), File: c.string(), Line: c.int(), Column: c.int(),
				PTXFile: c.string(), PTXLine: c.int(), Inst: c.string()})
		}
		for k := c.uvarint(); k > 0 && c.err == nil; k-- {
			p.arms = append(p.arms, event.Arm{Branch: c.uint32(), Taken: c.uint32()})
		}
		p.traits = c.uvarint()
		r.places[number] = p
	}
}

// cursor reads numbers from content. After the first error all results are zero.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.b = nil
}

func (c *cursor) uvarint() uint64 {
	if len(c.b) > 0 && c.b[0] < 0x80 { // most numbers have one byte
		x := c.b[0]
		c.b = c.b[1:]
		return uint64(x)
	}
	return c.long()
}

// long reads a number of several bytes. It is separate so that the compiler can inline uvarint.
func (c *cursor) long() uint64 {
	x, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail("a number is cut off")
		return 0
	}
	c.b = c.b[n:]
	return x
}

func (c *cursor) varint() int64 {
	x := c.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

func (c *cursor) uint32() uint32 {
	x := c.uvarint()
	if x > 1<<32-1 {
		c.fail("the number %d is too large", x)
		return 0
	}
	return uint32(x)
}

func (c *cursor) int() int { return int(c.uint32() & (1<<31 - 1)) }

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.fail("a byte is missing")
		return 0
	}
	x := c.b[0]
	c.b = c.b[1:]
	return x
}

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail("%d bytes are said to follow where there are %d", n, len(c.b))
		return nil
	}
	x := c.b[:n]
	c.b = c.b[n:]
	return x
}

func (c *cursor) string() string { return string(c.bytes(c.uvarint())) }
