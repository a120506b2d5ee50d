package simt

import "slices"

// pattern gives the pattern of a slope.
func (b *compiler) pattern(s slope) int32 {
	t := b.t
	if i := slices.IndexFunc(t.patterns, func(p pattern) bool { return p.slope == s }); i >= 0 {
		return int32(i)
	}
	p := pattern{slope: s, reg32: -1, reg64: -1}
	row := uint64(b.f.Env.RowLanes())
	for l := range uint64(32) {
		at := l%row*s.lane + l/row*s.row
		p.low[l], p.all[l] = uint32(at), at
		p.least, p.most = min(p.least, int64(at)), max(p.most, int64(at))
	}
	t.patterns = append(t.patterns, p)
	return int32(len(t.patterns) - 1)
}

// apart says that no two lanes have the same.
func (p *pattern) apart() bool {
	all := p.all
	slices.Sort(all[:])
	return len(slices.Compact(all[:])) == len(all)
}

// pattern32 and pattern64 give the register that holds a pattern.
func (b *compiler) pattern32(i int32) int32 {
	p := &b.t.patterns[i]
	if p.reg32 < 0 {
		p.reg32 = b.constant(p.low)
	}
	return p.reg32
}

func (b *compiler) pattern64(i int32) int32 {
	p := &b.t.patterns[i]
	if p.reg64 < 0 {
		p.reg64 = int32(b.t.v64 + len(b.t.consts64))
		b.t.consts64 = append(b.t.consts64, p.all)
	}
	return p.reg64
}

// offsets gives the register that holds what the lanes of a pattern add to the least of them.
func (b *compiler) offsets(i int32) int32 {
	p := &b.t.patterns[i]
	var v v32
	for l := range v {
		v[l] = p.low[l] - uint32(p.least)
	}
	return b.constant(v)
}

// constant gives the register that holds a vector.
func (b *compiler) constant(v v32) int32 {
	i := slices.Index(b.t.consts32, v)
	if i < 0 {
		i = len(b.t.consts32)
		b.t.consts32 = append(b.t.consts32, v)
	}
	return int32(b.t.v32 + i)
}
