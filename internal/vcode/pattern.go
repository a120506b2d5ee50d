package vcode

import (
	"slices"

	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// pattern returns the pattern of a slope.
func (b *compiler) pattern(s Slope) int32 {
	t := b.t
	if i := slices.IndexFunc(t.Patterns, func(p Pattern) bool { return p.Slope == s }); i >= 0 {
		return int32(i)
	}
	p := Pattern{Slope: s, reg32: -1, reg64: -1}
	row := uint64(b.f.Env.RowLanes())
	for l := range uint64(32) {
		at := l%row*s.Lane + l/row*s.Row
		p.Low[l], p.All[l] = uint32(at), at
		p.least, p.most = min(p.least, int64(at)), max(p.most, int64(at))
	}
	t.Patterns = append(t.Patterns, p)
	return int32(len(t.Patterns) - 1)
}

// apart reports whether the lanes' values in a pattern are all different.
func (p *Pattern) apart() bool {
	all := p.All
	slices.Sort(all[:])
	return len(slices.Compact(all[:])) == len(all)
}

// pattern32 and pattern64 return the register that holds a pattern.
func (b *compiler) pattern32(i int32) int32 {
	p := &b.t.Patterns[i]
	if p.reg32 < 0 {
		p.reg32 = b.constant(p.Low)
	}
	return p.reg32
}

func (b *compiler) pattern64(i int32) int32 {
	p := &b.t.Patterns[i]
	if p.reg64 < 0 {
		p.reg64 = int32(b.t.V64 + len(b.t.Const64))
		b.t.Const64 = append(b.t.Const64, p.All)
	}
	return p.reg64
}

// offsets returns the register that holds the offsets of the lanes of a pattern from the least of them.
func (b *compiler) offsets(i int32) int32 {
	p := &b.t.Patterns[i]
	var v lanes.V32
	for l := range v {
		v[l] = p.Low[l] - uint32(p.least)
	}
	return b.constant(v)
}

// constant returns the register that holds a vector.
func (b *compiler) constant(v lanes.V32) int32 {
	i := slices.Index(b.t.Const32, v)
	if i < 0 {
		i = len(b.t.Const32)
		b.t.Const32 = append(b.t.Const32, v)
	}
	return int32(b.t.V32 + i)
}
