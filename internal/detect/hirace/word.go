package hirace

import "sync/atomic"

// A shadow word (figure 2), from low to high bits: the state (5 bits); whether its bytes have words of their own; the
// number within the grid of the thread of the last access; the warp's and the block's clock at that access. Zero is a
// location that nobody has accessed.
const (
	splitBit    uint64 = 1 << 5
	threadShift        = 6
	threadBits         = 26
	clockShift         = threadShift + threadBits // both clocks: the warp's in the low half
	clockBits          = 16

	labelMask = stateBits | splitBit
	stateBits = 1<<5 - 1
)

// accessor is the accessing thread, as far as the machine needs it.
type accessor struct {
	word      uint64 // thread and clocks
	firstWarp uint32 // first warp of its block
	perBlock  uint32 // number of warps in a block
}

// of returns the label of an access by t to a location whose last access left old (CompareTids and CheckSync of
// algorithm 1).
func (t *accessor) of(act action, old uint64) label {
	return labelOf(act, clocks(old, t.word), t.relationTo(old))
}

func clocks(old, now uint64) synced {
	switch x := (old ^ now) >> clockShift; {
	case x>>clockBits != 0:
		return blockSynced
	case x != 0:
		return warpSynced
	}
	return unsynced
}

func (t *accessor) relationTo(old uint64) relation {
	a, b := uint32(old)>>threadShift, uint32(t.word)>>threadShift
	switch {
	case a == b:
		return self
	case a>>5 == b>>5:
		return sameWarp
	case a>>5-t.firstWarp < t.perBlock:
		return sameBlock
	}
	return sameGrid
}

// update is algorithm 1. It makes the transition of an access in the shadow word, even if others update the word
// concurrently. It returns the word that it replaced and the transition.
func (m *machine) update(word *uint64, act action, t *accessor) (old uint64, made transition) {
	for {
		old = atomic.LoadUint64(word)
		made = m.at(state(old&stateBits), t.of(act, old))
		next := t.word | old&splitBit | uint64(made&stateMask)
		if next == old || atomic.CompareAndSwapUint64(word, old, next) {
			return old, made
		}
	}
}
