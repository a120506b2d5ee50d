package uninit

import "math/bits"

const pageBytes = 4096

// page has a bit for each written byte, and the number of bytes not written.
type page struct {
	bits [pageBytes / 64]uint64
	left int
}

// whole represents a page in which all bytes were written.
var whole = new(page)

// written records which bytes of a range of size bytes were written. Bytes beyond it count as written.
type written struct {
	size     uint64
	pages    []*page // nil: no byte was written
	from, to uint64  // a range in which all bytes were written, for quick answers
}

// known reports whether n bytes were written, if the range [from, to) tells.
func (w *written) known(at, n uint64) bool { return w.from <= at && at+n <= w.to }

// learn extends the range [from, to), or replaces it by a longer one.
func (w *written) learn(at, end uint64) {
	switch {
	case at <= w.to && end >= w.from:
		w.from, w.to = min(w.from, at), max(w.to, end)
	case end-at > w.to-w.from:
		w.from, w.to = at, end
	}
}

// set records that n bytes were written.
func (w *written) set(at, n uint64) {
	end := min(at+n, w.size)
	if w.known(at, n) || at >= end {
		return
	}
	w.learn(at, end)
	for at < end {
		k := at / pageBytes
		to := min(end, (k+1)*pageBytes)
		for uint64(len(w.pages)) <= k {
			w.pages = append(w.pages, nil)
		}
		p := w.pages[k]
		switch {
		case p == whole:
		case to-at == pageBytes:
			w.pages[k] = whole
		default:
			if p == nil {
				p = &page{left: pageBytes}
				w.pages[k] = p
			}
			if p.set(at%pageBytes, to-at); p.left == 0 {
				w.pages[k] = whole
			}
		}
		at = to
	}
}

// all reports whether n bytes were written.
func (w *written) all(at, n uint64) bool {
	end := min(at+n, w.size)
	if w.known(at, n) {
		return true
	}
	for at < end {
		k := at / pageBytes
		to := min(end, (k+1)*pageBytes)
		if k >= uint64(len(w.pages)) || w.pages[k] == nil || w.pages[k] != whole && !w.pages[k].all(at%pageBytes, to-at) {
			return false
		}
		at = to
	}
	return true
}

func (p *page) set(at, n uint64) {
	each(at, n, func(k, mask uint64) bool {
		p.left -= bits.OnesCount64(mask &^ p.bits[k])
		p.bits[k] |= mask
		return true
	})
}

func (p *page) all(at, n uint64) bool {
	return each(at, n, func(k, mask uint64) bool { return p.bits[k]&mask == mask })
}

// each calls f for the words that hold n bits beginning with bit at, until it returns false. It returns the last
// result.
func each(at, n uint64, f func(k, mask uint64) bool) bool {
	for end := at + n; at < end; {
		from, to := at%64, min(end-at/64*64, 64)
		if !f(at/64, ^uint64(0)>>(64-(to-from))<<from) {
			return false
		}
		at += to - from
	}
	return true
}
