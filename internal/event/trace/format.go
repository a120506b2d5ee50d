// Package trace writes event streams to files and reads them back.
//
// # Format, version 11
//
// A file is the line "fencepost trace 11\n" and blocks. A block has a header of 13 bytes - its type, the length of its
// content as it is in the file, its length when unpacked, and the CRC-32C of the former, numbers of 4 bytes with the
// lowest first - and its content, compressed with zstd. Within content, numbers are of variable length (encoding/binary's
// uvarint; signed ones as its varint) and a string is its length and its bytes.
//
//	P  places: a count, and of each place its number, a count of frames, and of each frame function, file, line, column,
//	   PTX file, PTX line, instruction; then a count of arms (event.Arm), and of each its branch and the arms taken; then
//	   what else event.Places says of it: see the bits below. A place is before the first event that names it.
//	E  events: their number, then columns, each with its length in front, see columns. An E block can be read without
//	   any other.
//	Z  the end: whatever the writer wanted to add. A file without it is not whole.
//
// Most events of a warp differ from earlier ones in warp and address alone: what they have in common is a form, told once
// a block, and addresses are told as the difference to what the last two events of the form make one expect. On regular
// code that leaves bytes that are zero, which the compression takes away.
package trace

import "fmt"

// Magic is how a file begins.
const Magic = "fencepost trace 11\n"

// What is told of a place: bits, and above them, of a place that updates, that of its load.
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
	// blockGoal is how many events a block holds at least, when there are so many.
	blockGoal = 1 << 16
	// maxBlock bounds what a reader unpacks.
	maxBlock = 1 << 28
)

// The columns of an E block, in their order in the file.
const (
	colForms     = iota // the forms, in the order of their first use
	colForm             // of each event: the number of its form
	colWarp             // of each event: its warp, less the one before
	colAddr             // of each memory event in order: its address, less the expected one
	colScattered        // of each scattered event: the address of its lowest lane, less the expected one, and of each further lane less the one below
	colValues           // of each event with values: how they are told, and they
	colSides            // launches and host operations, in order
	columns
)

// The marks of a host operation.
const (
	hostStaged = 1 << iota
	hostAssumed
)

// What the code of a launched kernel has.
const (
	codeSynchronises = 1 << iota
	codeSwaps        // and so synchronises
	codeTriton
	codeGluon
	codeNonCoherent
	codeBulk
	codeEarly
	codeDevice // Launch.Device follows, a byte
)

// How the values of an event are told.
const (
	valuesSame = iota // one word for all
	valuesStep        // the first, and the difference from word to word
	valuesAll         // how many bytes each has, 4 or 8, and every one
)

// CorruptError says what is wrong with a file, and where.
type CorruptError struct {
	Offset int64 // of the block
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the trace is damaged at byte %d: %s", e.Offset, e.Reason)
}

// TruncatedError says that a file ends before its end block: what was read before is whole.
type TruncatedError struct {
	Offset int64 // of the first byte that belongs to no whole block
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the trace is cut off: it ends after byte %d without an end block", e.Offset)
}
