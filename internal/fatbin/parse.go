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

// The flags of an entry that matter here.
const (
	flagLZ4    = 0x2000
	flagZstd   = 0x8000
	flagArch   = 0x100000 // sm_90a: features of this architecture only
	flagFamily = 0x200000 // sm_100f: features of this family only
)

// Bounds on what a hostile container can make us do.
const (
	maxRaw     = 1 << 30 // bytes of unpacked payload, all entries of one Parse together
	maxEntries = 1 << 16
	maxNesting = 8
	// maxLZ4Ratio: an LZ4 block can grow at most this many times, so a larger declared size is a lie that need not be
	// allocated to be found out (a length byte of 255 in the block is the densest coding).
	maxLZ4Ratio = 255
)

// Size returns the length in bytes of the fat binary that starts with header, its header included. It needs the first
// HeaderSize bytes only, and so tells how much of a program's memory to read.
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

// Parse returns the entries of one fat binary, or of several that follow each other with nothing but zero bytes between.
// PTX text is unpacked. The first error ends it; the entries before that error are returned with it. Errors are of type
// *Error.
func Parse(data []byte) ([]Entry, error) {
	p := parser{budget: maxRaw}
	err := p.containers(data, 0, 0)
	return p.entries, err
}

type parser struct {
	entries []Entry
	unit    int
	budget  uint64 // bytes of payload that may still be unpacked
}

func (p *parser) fail(at int64, format string, args ...any) error {
	return &Error{at, fmt.Sprintf(format, args...)}
}

// containers reads the fat binaries in data, which lies at offset base of the whole.
func (p *parser) containers(data []byte, base int64, depth int) error {
	if depth > maxNesting {
		return p.fail(base, "containers nested more than %d deep", maxNesting)
	}
	found := false
	for at := int64(0); ; {
		for at < int64(len(data)) && data[at] == 0 {
			at++
		}
		if at == int64(len(data)) {
			break
		}
		size, err := Size(data[at:])
		if err != nil {
			e := err.(*Error)
			return &Error{base + at + e.Offset, e.Msg}
		}
		if size > int64(len(data))-at {
			return p.fail(base+at+8, "the container says it has %d bytes, %d are there", size, int64(len(data))-at)
		}
		head := int64(binary.LittleEndian.Uint16(data[at+6:]))
		if head > size {
			return p.fail(base+at+6, "header size %d is more than the container's %d bytes", head, size)
		}
		if err := p.body(data[at+head:at+size], base+at+head, depth); err != nil {
			return err
		}
		at += size
		found = true
		if depth == 0 {
			p.unit++
		}
	}
	if !found {
		return p.fail(base, "no fat binary here: %d bytes, all zero", len(data))
	}
	return nil
}

// body reads the entries of one container; base is the offset of body.
func (p *parser) body(body []byte, base int64, depth int) error {
	for at := 0; at < len(body); {
		rest := body[at:]
		if allZero(rest) {
			return nil // padding of the container
		}
		pos := base + int64(at)
		if len(rest) < entryHeaderSize {
			return p.fail(pos, "entry header cut short: %d bytes of %d", len(rest), entryHeaderSize)
		}
		head := uint64(binary.LittleEndian.Uint32(rest[4:]))
		size := binary.LittleEndian.Uint64(rest[8:])
		if head < entryHeaderSize || head > uint64(len(rest)) {
			return p.fail(pos+4, "entry header of %d bytes: at least %d are needed, %d are there", head, entryHeaderSize, len(rest))
		}
		if size > uint64(len(rest))-head {
			return p.fail(pos+8, "payload of %d bytes: %d are there", size, uint64(len(rest))-head)
		}
		if err := p.entry(rest[:head], rest[head:head+size], pos, depth); err != nil {
			return err
		}
		at += int(head + size)
	}
	return nil
}

// entry reads one entry whose header, at offset pos, and payload have their full length.
func (p *parser) entry(head, payload []byte, pos int64, depth int) error {
	if len(p.entries) >= maxEntries {
		return p.fail(pos, "more than %d entries", maxEntries)
	}
	le := binary.LittleEndian
	flags := le.Uint64(head[40:])
	e := Entry{
		Kind: Kind(le.Uint16(head)), Unit: p.unit, Offset: pos, Size: int64(len(payload)),
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
			return p.fail(pos+32, "name at %d, %d bytes, is outside its header of %d", nameAt, nameLen, len(head))
		}
		e.Name = string(bytes.TrimRight(head[nameAt:nameAt+nameLen], "\x00"))
	}
	if e.Kind != PTX && e.Kind != Container {
		p.entries = append(p.entries, e)
		return nil
	}
	raw, err := p.unpack(head, payload, pos)
	if err != nil {
		return err
	}
	if e.Kind == Container {
		// Offsets inside a packed container have no place in the whole: they count from its payload.
		return p.containers(raw, pos+int64(len(head)), depth+1)
	}
	e.Text = bytes.TrimRight(raw, "\x00")
	p.entries = append(p.entries, e)
	return nil
}

// unpack returns the payload as it was before it was compressed.
func (p *parser) unpack(head, payload []byte, pos int64) ([]byte, error) {
	flags := binary.LittleEndian.Uint64(head[40:])
	if flags&(flagLZ4|flagZstd) == 0 {
		return payload, nil
	}
	packed := uint64(binary.LittleEndian.Uint32(head[16:]))
	want := binary.LittleEndian.Uint64(head[56:])
	if packed > uint64(len(payload)) {
		return nil, p.fail(pos+16, "compressed size %d is more than the payload's %d bytes", packed, len(payload))
	}
	if want > p.budget {
		return nil, p.fail(pos+56, "unpacked size %d: more than %d bytes in all are refused", want, maxRaw)
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
		return nil, p.fail(pos+int64(len(head)), "%v", err)
	}
	if uint64(len(raw)) != want {
		return nil, p.fail(pos+56, "unpacked to %d bytes, the header says %d", len(raw), want)
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

// unpackZstd reads one byte more than the header declares, so that the caller can tell a longer stream from a right one,
// and lets the buffer grow with what is really there rather than with what the header says.
func unpackZstd(payload []byte, want uint64) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(payload), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer d.Close()
	var raw bytes.Buffer
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
