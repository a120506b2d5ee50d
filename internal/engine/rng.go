package engine

import "math/bits"

// rng is splitmix64 (Steele, Lea, Flood 2014). Every schedule is a function of its seed.
type rng struct{ state uint64 }

func newRNG(seed uint64) rng { return rng{seed * 0x9e3779b97f4a7c15} }

func (g *rng) next() uint64 {
	g.state += 0x9e3779b97f4a7c15
	z := g.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n).
func (g *rng) below(n int) int {
	hi, _ := bits.Mul64(g.next(), uint64(n))
	return int(hi)
}

// spread returns a number in [1, 2^k); each power of two is equally likely.
func (g *rng) spread(k int) int {
	p := g.below(k)
	return 1<<p + g.below(1<<p)
}
