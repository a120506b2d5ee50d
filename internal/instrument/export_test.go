package instrument

import (
	"encoding/binary"

	"fencepost.dev/fencepost/internal/event"
)

// ShadowWord identifies the location of a shadow word in a state in device memory. The shadow words of bytes belong to
// the bytes 0 to 3 of the word that was split. The word itself is unknown.
type ShadowWord struct {
	Space event.Space
	Addr  uint64 // for a byte the number of the byte in its word
	Byte  bool
}

// ShadowOf returns the location of the shadow word at address at, in a state at addr, whose contents are mem.
func ShadowOf(mem []byte, addr, at uint64) (w ShadowWord, ok bool) {
	field := func(i uint64) uint64 { return binary.LittleEndian.Uint64(mem[8*i:]) }
	in := func(from, n uint64) (uint64, bool) { return (at - from) / 8, from != 0 && at-from < 8*n }
	if i, ok := in(field(stateByteWord), splitWords*field(stateSplit)); ok {
		return ShadowWord{Addr: i % splitWords, Byte: true}, true
	}
	n := field(stateSharedWords)
	if i, ok := in(field(stateSharedWord), n*field(stateSharedParts)); ok {
		i %= n
		for k := range field(stateSharedRanges) {
			r := (field(stateSharedRange)-addr)/8 + k*rangeBytes/8
			if i < words(field(r+1)) {
				return ShadowWord{Space: event.Shared, Addr: field(r) + i*wordBytes}, true
			}
			i -= words(field(r + 1))
		}
	}
	for i := range field(stateRanges) {
		r := (field(stateRange)-addr)/8 + i*rangeBytes/8
		if i, ok := in(field(r+2), words(field(r+1))); ok {
			return ShadowWord{Space: event.Global, Addr: field(r) + i*wordBytes}, true
		}
	}
	return ShadowWord{}, false
}
