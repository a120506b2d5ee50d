package report

import (
	"fmt"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
)

// pageTook is the threads on a side of the races of a finding. Counts are run-length encoded as pairs of a length and a
// number. The number is 0 for none, else 1 plus the logarithm of the number of races.
type pageTook struct {
	Per     uint32     `json:"per,omitempty"` // number of blocks to a number
	Blocks  []int      `json:"blocks"`
	Threads []int      `json:"threads"`
	Pattern string     `json:"pattern,omitempty"` // of the addresses
	Of      string     `json:"of,omitempty"`      // "thread" or "block": the numbering in At
	At      [][2]int64 `json:"at,omitempty"`      // numbers, and bytes in the object
}

// maxNumbers bounds the numbers that a page contains for all findings, at some 4 bytes each.
const maxNumbers = 1 << 20

// took returns the threads on the side of an access, nil if they are not known or the page already has too many
// numbers.
func (b *pageBuilder) took(a *Access) *pageTook {
	p := a.Took
	if p == nil || p.Blocks == nil || b.numbers > maxNumbers {
		return nil
	}
	t := &pageTook{Per: p.PerCell, Blocks: runs(p.Blocks), Threads: runs(p.Threads)}
	list, ofBlocks := p.Neighbours()
	t.Of = map[bool]string{false: "thread", true: "block"}[ofBlocks]
	t.Pattern = pattern(list, ofBlocks, a.Size)
	base := a.Address - a.Object.Offset
	for _, s := range list {
		if off := int64(s.Address - base); off >= 0 && (a.Object.Size == 0 && off < 1<<32 || uint64(off) < a.Object.Size) {
			t.At = append(t.At, [2]int64{int64(s.Number(ofBlocks)), off})
		}
	}
	b.numbers += len(t.Blocks) + len(t.Threads) + 2*len(t.At)
	return t
}

// pattern describes how the addresses of neighbours are related.
func pattern(list []detect.Sample, ofBlocks bool, size int) string {
	noun := map[bool]string{false: "threads", true: "blocks"}[ofBlocks]
	if len(list) < 2 {
		return ""
	}
	stride, ok := detect.Stride(list, ofBlocks)
	switch {
	case !ok:
		return "neighbouring " + noun + " have no constant stride"
	case stride == 0:
		return "all " + noun + " access the same bytes"
	case stride == int64(size):
		return fmt.Sprintf("neighbouring %s access neighbouring elements (stride %d bytes)", noun, stride)
	}
	return fmt.Sprintf("neighbouring %s are %d bytes apart", noun, stride)
}

// runs returns counts as lengths and numbers in turn.
func runs(counts []uint32) []int {
	out := []int{}
	for _, c := range counts {
		level := bits.Len32(c)
		if n := len(out); n > 0 && out[n-1] == level {
			out[n-2]++
			continue
		}
		out = append(out, 1, level)
	}
	return out
}
