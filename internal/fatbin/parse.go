package fatbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Magic numbers and the sizes of fixed headers, in bytes.
const (
	Magic        = 0xBA55ED50 // first word of a fat binary
	WrapperMagic = 0x466243B1 // first word of the wrapper that a program registers, in section .nvFatBinSegment
	HeaderSize   = 16         // of a fat binary
	WrapperSize  = 24         // u32 magic, u32 version, pointer to the fat binary, pointer to a list (version 2)

	entryHeaderSize = 64 // least size of an entry's header
)

// The relevant flags of an entry.
const (
	flagLZ4    = 0x2000
	flagZstd   = 0x8000
	flagArch   = 0x100000 // sm_90a: features of this architecture only
	flagFamily = 0x200000 // sm_100f: features of this family only
)

// Bounds on what a hostile container can make us do.
const (
	maxRaw     = 512 << 20 // bytes of unpacked payload, all entries of one Parse together
	maxEntries = 1 << 16
	// maxLZ4Ratio is the greatest expansion of an LZ4 block (a length byte of 255 in the block is the densest coding).
	// A greater declared size is false, which can be detected without allocating it.
	maxLZ4Ratio = 255
)

// Size returns the length in bytes of the fat binary that starts with header, including its header. It needs only the
// first HeaderSize bytes, and so determines how much of a program's memory to read.
func Size(header []byte) (int64, error) {
	if len(header) < HeaderSize {
		return 0, &Error{0, fmt.Sprintf("header cut short: %d bytes of %d", len(header), HeaderSize)}
	}
	if m := binary.LittleEndian.Uint32(header); m != Magic {
		return 0, &Error{0, fmt.Sprintf("not a fat binary: it starts with %#08x, not with %#08x", m, uint32(Magic))}
	}
	if v := binary.LittleEndian.Uint16(header[4:]); v != 1 {
		return 0, &Error{4, fmt.Sprintf("container version %d is unknown, only 1 is", v)}
	}
	head := int64(binary.LittleEndian.Uint16(header[6:]))
	if head < HeaderSize {
		return 0, &Error{6, fmt.Sprintf("header size %d is below %d", head, HeaderSize)}
	}
	body := binary.LittleEndian.Uint64(header[8:])
	if body > 1<<40 {
		return 0, &Error{8, fmt.Sprintf("size %d is not believable", body)}
	}
	return head + int64(body), nil
}

// Parse returns the entries of one fat binary, or of several separated only by zero bytes. PTX text is unpacked. It
// stops at the first error and returns the entries before it as well. Errors are of type *Error.
func Parse(data []byte) ([]Entry, error) {
	p := parser{budget: maxRaw}
	err := p.containers(data)
	return p.entries, err
}

type parser struct {
	entries []Entry
	unit    int
	budget  uint64 // number of payload bytes that may still be unpacked
	headers bool   // leave every Text nil
}

func fail(at int64, format string, args ...any) error {
	return &Error{at, fmt.Sprintf(format, args...)}
}

// containers reads the fat binaries in data.
func (p *parser) containers(data []byte) error {
	for at := int64(0); ; p.unit++ {
		for at < int64(len(data)) && data[at] == 0 {
			at++
		}
		if at == int64(len(data)) {
			break
		}
		size, err := Size(data[at:])
		if err != nil {
			e := err.(*Error)
			return &Error{at + e.Offset, e.Msg}
		}
		if size > int64(len(data))-at {
			return fail(at+8, "the container says it has %d bytes, %d are there", size, int64(len(data))-at)
		}
		head := int64(binary.LittleEndian.Uint16(data[at+6:]))
		if err := p.body(data[at+head:at+size], at+head); err != nil {
			return err
		}
		at += size
	}
	if p.unit == 0 {
		return fail(0, "no fat binary here: %d bytes, all zero", len(data))
	}
	return nil
}

// body reads the entries of one container; base is the offset of body.
func (p *parser) body(body []byte, base int64) error {
	for at := 0; at < len(body); {
		rest := body[at:]
		if allZero(rest) {
			return nil // padding of the container
		}
		pos := base + int64(at)
		if len(rest) < entryHeaderSize {
			return fail(pos, "entry header cut short: %d bytes of %d", len(rest), entryHeaderSize)
		}
		head := uint64(binary.LittleEndian.Uint32(rest[4:]))
		size := binary.LittleEndian.Uint64(rest[8:])
		if head < entryHeaderSize || head > uint64(len(rest)) {
			return fail(pos+4, "entry header of %d bytes: at least %d are needed, %d are there", head, entryHeaderSize, len(rest))
		}
		if size > uint64(len(rest))-head {
			return fail(pos+8, "payload of %d bytes: %d are there", size, uint64(len(rest))-head)
		}
		if err := p.entry(rest[:head], rest[head:head+size], pos); err != nil {
			return err
		}
		at += int(head + size)
	}
	return nil
}

// entry reads one entry whose header, at offset pos, and payload have their full length.
func (p *parser) entry(head, payload []byte, pos int64) error {
	e, err := p.describe(head, pos)
	if err != nil {
		return err
	}
	e.Size = int64(len(payload))
	if e.Kind != PTX && e.Kind != Container {
		p.entries = append(p.entries, e)
		return nil
	}
	if e.Kind == PTX && p.headers {
		p.entries = append(p.entries, e)
		return nil
	}
	raw, err := p.unpack(head, payload, pos)
	if err != nil {
		return err
	}
	if e.Kind == Container {
		return p.packed(head, raw, pos)
	}
	if e.Text = bytes.TrimRight(raw, "\x00"); len(e.Text) > MaxPTX() {
		return fail(pos+8, "%d bytes of PTX: more than %d are refused", len(e.Text), MaxPTX())
	}
	p.entries = append(p.entries, e)
	return nil
}

// describe reads the header of an entry.
func (p *parser) describe(head []byte, pos int64) (Entry, error) {
	if len(p.entries) >= maxEntries {
		return Entry{}, fail(pos, "more than %d entries", maxEntries)
	}
	le := binary.LittleEndian
	flags := le.Uint64(head[40:])
	e := Entry{
		Kind: Kind(le.Uint16(head)), Unit: p.unit, Offset: pos,
		Minor: int(le.Uint16(head[24:])), Major: int(le.Uint16(head[26:])), Arch: int(le.Uint32(head[28:])),
	}
	switch {
	case flags&flagArch != 0:
		e.Suffix = "a"
	case flags&flagFamily != 0:
		e.Suffix = "f"
	}
	nameAt, nameLen := uint64(le.Uint32(head[32:])), uint64(le.Uint32(head[36:]))
	if nameLen > 0 {
		if nameAt+nameLen > uint64(len(head)) {
			return Entry{}, fail(pos+32, "name at %d, %d bytes, is outside its header of %d", nameAt, nameLen, len(head))
		}
		e.Name = string(bytes.TrimRight(head[nameAt:nameAt+nameLen], "\x00"))
	}
	return e, nil
}

// packed reads the entries that nvcc's -concat has compressed together. Their headers follow each other in the
// container's own header, after a count and the length of the list, including these two words. In place of the header
// size of an ordinary entry they have the offset of their payload in raw, the unpacked payload of the container.
func (p *parser) packed(head, raw []byte, pos int64) error {
	le := binary.LittleEndian
	list := uint64(le.Uint32(head[20:]))
	if list < entryHeaderSize || list+8 > uint64(len(head)) {
		return fail(pos+20, "list of packed entries at %d is outside its header of %d bytes", list, len(head))
	}
	count, total := le.Uint32(head[list:]), uint64(le.Uint32(head[list+4:]))
	if total < 8 || total > uint64(len(head))-list {
		return fail(pos+int64(list)+4, "list of packed entries has %d bytes, %d are there", total, uint64(len(head))-list)
	}
	base := pos + int64(list) + 8
	subs := head[list+8 : list+total]
	at := uint64(0)
	for range count {
		where := base + int64(at)
		if uint64(len(subs))-at < entryHeaderSize {
			return fail(where, "packed entry cut short")
		}
		sub := subs[at:]
		e, err := p.describe(sub, where)
		if err != nil {
			return err
		}
		off, size := uint64(le.Uint32(sub[4:])), le.Uint64(sub[8:])
		if off > uint64(len(raw)) || size > uint64(len(raw))-off {
			return fail(where+4, "payload at %d, %d bytes, is outside the %d unpacked", off, size, len(raw))
		}
		e.Size = int64(size)
		switch e.Kind {
		case Container:
			return fail(where, "a container inside a container")
		case PTX:
			e.Text = bytes.TrimRight(raw[off:off+size], "\x00")
		}
		p.entries = append(p.entries, e)
		length := packedHeader(sub)
		if length > uint64(len(sub)) {
			return fail(where, "packed entry of %d bytes: %d are there", length, len(sub))
		}
		at += length
	}
	return nil
}

// packedHeader returns the length of a packed entry's header, which is not stored: it ends with the extras, or without
// them with the name, each terminated by a NUL and padded to 8 bytes.
func packedHeader(sub []byte) uint64 {
	le := binary.LittleEndian
	end := uint64(entryHeaderSize)
	if n := uint64(le.Uint32(sub[36:])); n > 0 {
		end = uint64(le.Uint32(sub[32:])) + n + 1
	}
	if x := uint64(le.Uint32(sub[20:])); x > 0 && x+8 <= uint64(len(sub)) {
		end = uint64(le.Uint32(sub[x:])) + uint64(le.Uint32(sub[x+4:])) + 1
	}
	return max(entryHeaderSize, (end+7)&^7)
}

// unpack returns the decompressed payload.
func (p *parser) unpack(head, payload []byte, pos int64) ([]byte, error) {
	flags := binary.LittleEndian.Uint64(head[40:])
	if flags&(flagLZ4|flagZstd) == 0 {
		return payload, nil
	}
	packed := uint64(binary.LittleEndian.Uint32(head[16:]))
	want := binary.LittleEndian.Uint64(head[56:])
	if packed > uint64(len(payload)) {
		return nil, fail(pos+16, "compressed size %d is more than the payload's %d bytes", packed, len(payload))
	}
	if want > uint64(MaxPTX()) {
		return nil, fail(pos+56, "unpacked size %d: more than %d bytes of PTX are refused", want, MaxPTX())
	}
	if want > p.budget {
		return nil, fail(pos+56, "unpacked size %d: more than %d bytes in all are refused", want, maxRaw)
	}
	p.budget -= want
	payload = payload[:packed]
	var raw []byte
	var err error
	if flags&flagZstd != 0 {
		raw, err = unpackZstd(payload, want)
	} else {
		raw, err = unpackLZ4(payload, want)
	}
	if err != nil {
		return nil, fail(pos+int64(len(head)), "%v", err)
	}
	if uint64(len(raw)) != want {
		return nil, fail(pos+56, "unpacked to %d bytes, the header says %d", len(raw), want)
	}
	return raw, nil
}

func unpackLZ4(payload []byte, want uint64) ([]byte, error) {
	if want > maxLZ4Ratio*uint64(len(payload)) {
		return nil, fmt.Errorf("LZ4: %d bytes cannot come from %d", want, len(payload))
	}
	raw := make([]byte, want)
	n, err := lz4.UncompressBlock(payload, raw)
	if err != nil {
		return nil, fmt.Errorf("LZ4: %w", err)
	}
	return raw[:n], nil
}

// unpackZstd reads at most one byte more than the header declares, so that the caller can recognise a longer stream.
// The buffer grows with the actual data, not with the declared size.
func unpackZstd(payload []byte, want uint64) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(payload), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer d.Close()
	var raw bytes.Buffer
	raw.Grow(int(min(want+bytes.MinRead, 1<<20)))
	if _, err := io.Copy(&raw, io.LimitReader(d, int64(want)+1)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("zstd: the data ends too early")
		}
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return raw.Bytes(), nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
