package lanes

import "encoding/binary"

// The functions of this file move data between memory and lanes. The caller has checked the bounds: an access outside
// of mem is the caller's bug. Lanes outside the mask touch no memory. Lanes that write one place do so in the order of
// their numbers, so the last one's value stays. Numbers are little-endian.

// Gather32 reads four bytes at mem[off] into each lane.
func Gather32(d *V32, mem []byte, off *V64, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		d[l] = binary.LittleEndian.Uint32(mem[off[l]:])
	}
}

// Gather64 reads eight bytes at mem[off] into each lane.
func Gather64(d *V64, mem []byte, off *V64, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		d[l] = binary.LittleEndian.Uint64(mem[off[l]:])
	}
}

// Scatter32 writes each lane to mem[off].
func Scatter32(mem []byte, off *V64, a *V32, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		binary.LittleEndian.PutUint32(mem[off[l]:], a[l])
	}
}

// Scatter64 writes each lane to mem[off].
func Scatter64(mem []byte, off *V64, a *V64, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		binary.LittleEndian.PutUint64(mem[off[l]:], a[l])
	}
}

// Load32 reads lane l from mem[4*l]. Here and in all loads and stores below, Mem must reach at least to the last lane
// of the mask.
func Load32(d *V32, mem []byte, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		d[l] = binary.LittleEndian.Uint32(mem[4*l:])
	}
}

// Load64 reads lane l from mem[8*l].
func Load64(d *V64, mem []byte, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		d[l] = binary.LittleEndian.Uint64(mem[8*l:])
	}
}

// Store32 writes lane l to mem[4*l].
func Store32(mem []byte, a *V32, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		binary.LittleEndian.PutUint32(mem[4*l:], a[l])
	}
}

// Store64 writes lane l to mem[8*l].
func Store64(mem []byte, a *V64, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		binary.LittleEndian.PutUint64(mem[8*l:], a[l])
	}
}

// Perm32 sets lane l to the value of a in lane from[l] & 31, whether or not that lane is in the mask.
func Perm32(d, a, from *V32, mask uint32) {
	src := *a
	for m := mask; m != 0; m &= m - 1 {
		l := first(m)
		d[l] = src[from[l]&31]
	}
}

// Offsets sets off = addr - origin in every lane. It reports whether off <= limit and off&align = 0 in the lanes of the
// mask, that is, whether accesses within a piece of memory are in range and aligned. Off may be addr.
func Offsets(off, addr *V64, origin, limit, align uint64, mask uint32) bool {
	ok := true
	for l := range addr {
		at := addr[l] - origin
		off[l] = at
		ok = ok && (mask>>l&1 == 0 || at&align == 0 && at <= limit)
	}
	return ok
}

// Stride reports whether a = base + l*stride in every lane l of the mask, modulo 1<<64. The stride is 0 for one lane or
// none. The difference of the first two lanes, as signed numbers, must be a multiple of their distance.
func Stride(a *V64, mask uint32) (base, stride uint64, ok bool) {
	rest := mask & (mask - 1)
	if rest == 0 {
		if mask == 0 {
			return 0, 0, true
		}
		return a[first(mask)], 0, true
	}
	i, j := first(mask), first(rest)
	stride = a[j] - a[i]
	if n := int64(j - i); n > 1 {
		if int64(stride)%n != 0 {
			return 0, 0, false
		}
		stride = uint64(int64(stride) / n)
	}
	base = a[i] - uint64(i)*stride
	return base, stride, EQAffine64(a, base, stride, mask) == mask
}
