package devmem

import "encoding/binary"

// Uint reads the low n bytes of p, little-endian. n is 1, 2, 4 or 8, or any smaller remainder.
func Uint(p []byte, n uint64) uint64 {
	switch n {
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	case 8:
		return binary.LittleEndian.Uint64(p)
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 1:
		return uint64(p[0])
	}
	v := uint64(0)
	for i := range n {
		v |= uint64(p[i]) << (8 * i)
	}
	return v
}

// PutUint writes the low bytes of v to p, little-endian, filling p.
func PutUint(p []byte, v uint64) {
	switch len(p) {
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(p, v)
	default:
		for i := range p {
			p[i] = byte(v >> (8 * i))
		}
	}
}
