// Package trace writes event streams to files and reads them.
//
// # Format, version 11
//
// A file is the line "fencepost trace 11\n" followed by blocks. A block has a header of 13 bytes: its type, the length
// of its content in the file, the length of the unpacked content, and the CRC-32C of the content in the file; these are
// numbers of 4 bytes, little-endian. The content follows, compressed with zstd. Within the content, numbers have
// variable length (encoding/binary's uvarint; signed numbers its varint), and a string is its length followed by its
// bytes.
//
//	P  places: a count, and for each place its number, a count of frames, and for each frame function, file, line, column,
//	   PTX file, PTX line, instruction; then a count of arms (event.Arm), and for each its branch and the arms taken; then
//	   the other properties in event.Places: see the bits below. A place precedes the first event that names it.
//	E  events: their number, then columns, each preceded by its length, see columns. An E block can be read without
//	   any other.
//	Z  the end: whatever the writer wanted to add. A file without it is not complete.
//
// Most events of a warp differ from earlier ones only in warp and address. What they have in common is a form, written
// once for each block. Addresses are written as the difference to the address that the last two events of the form
// predict. For regular code these differences are zero, which the compression removes.
package trace

import "fmt"

// Magic is the beginning of a file.
const Magic = "fencepost trace 11\n"

// The properties of a place: bits, and above them, for a place that updates, the place of its load.
const (
	traitUpdates = 1 << iota
	traitDiscards
	traitDereferences
	traitBits = iota
)

// Types of blocks.
const (
	blockPlaces = 'P'
	blockEvents = 'E'
	blockEnd    = 'Z'
)

const (
	headerBytes = 13
	// blockGoal is the smallest number of events in a block, except the last.
	blockGoal = 1 << 16
	// maxBlock bounds the unpacked size of a block for a reader.
	maxBlock = 1 << 28
)

// The columns of an E block, in file order.
const (
	colForms     = iota // the forms, in the order of first use
	colForm             // for each event: the number of its form
	colWarp             // for each event: its warp, minus the previous one
	colAddr             // for each memory event: its address, minus the predicted one
	colScattered        // for each scattered event: the address of its lowest lane, minus the predicted one, and for each other lane the difference to the next lower one
	colValues           // for each event with values: their encoding, and the values
	colSides            // launches and host operations, in order
	columns
)

// The marks of a host operation.
const (
	hostStaged = 1 << iota
	hostAssumed
)

// Properties of the code of a launched kernel.
const (
	codeSynchronises = 1 << iota
	codeSwaps        // implies codeSynchronises
	codeTriton
	codeGluon
	codeNonCoherent
	codeBulk
	codeEarly
	codeDevice // Launch.Device follows, as a byte
)

// The encodings of an event's values.
const (
	valuesSame = iota // one word for all
	valuesStep        // the first word, and the difference from word to word
	valuesAll         // the number of bytes of each, 4 or 8, and every value
)

// CorruptError says what is wrong with a file, and where.
type CorruptError struct {
	Offset int64 // of the block
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the trace is damaged at byte %d: %s", e.Offset, e.Reason)
}

// TruncatedError says that a file ends before its end block. What was read before is valid.
type TruncatedError struct {
	Offset int64 // of the first byte after the last complete block
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the trace is cut off: it ends after byte %d without an end block", e.Offset)
}
