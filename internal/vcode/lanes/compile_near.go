//go:build amd64 || arm64

package lanes

// Loads of one piece of memory whose addresses differ by constants, such as those of an unrolled loop, are checked
// together. The first load of such a set, its leader, is checked for all loads that follow it. These are executed with
// constant offsets from its address. If the check fails, the list ends at the leader, and the rest of the list begins
// after it.

// span is the range checked with a load: the bytes from lo to hi, counted from the first byte of the load. hi is 0 if
// the load is checked by itself.
type span struct {
	lo, hi  int64
	follows bool // it is checked with another load
}

// maxSpan bounds the bytes of a span.
const maxSpan = 1 << 20

// nearOf returns what is known of the place of a load. It returns nil if nothing is known, or if each load is logged.
func (t *translator) nearOf(o *Op) *Near {
	if t.near == nil || t.told || !mergesLoads || !t.isLoad(o.Code) {
		return nil
	}
	n := &t.near[o.B/sizes[reaches]]
	if n.Piece == 0 {
		return nil
	}
	return n
}

// leader returns the load of the group that o can follow, and -1 if there is none. Set has, by scalar, the last
// operation that writes it.
func (t *translator) leader(o *Op, set map[int32]int) int {
	n := t.nearOf(o)
	if n == nil {
		return -1
	}
	size := int64(accessOps[o.Code-OpLoad8ULine].size)
	for j := range t.group.n {
		l := &t.ops[t.first+j]
		if l.A != o.A || t.ranges[j].follows || l.Code != o.Code {
			continue
		}
		if at, ok := set[o.A]; ok && at > j {
			continue
		}
		m := t.nearOf(l)
		if m == nil || m.Piece != n.Piece || m.Row != n.Row || (n.At-m.At)%size != 0 {
			continue
		}
		if p := t.wider(j, n); p.hi-p.lo <= maxSpan {
			return j
		}
	}
	return -1
}

// wider returns the span of a leader extended by another load.
func (t *translator) wider(lead int, n *Near) span {
	m, p := t.nearOf(&t.ops[t.first+lead]), t.ranges[lead]
	off := n.At - m.At
	return span{lo: min(p.lo, off), hi: max(p.hi, int64(m.Size), off+int64(n.Size))}
}

// follow makes a load follow a leader and returns its offset from the leader.
func (t *translator) follow(o *Op, lead int) int32 {
	n := t.nearOf(o)
	t.ranges[lead] = t.wider(lead, n)
	return int32(n.At - t.nearOf(&t.ops[t.first+lead]).At)
}
