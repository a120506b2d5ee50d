package hb

import (
	"cmp"
	"slices"
)

// blockLogs are the logs of blocks that have ended. Neighbours mostly synchronised alike and have one together.
type blockLogs []logRun

// logRun is the log of the blocks from first to last.
type logRun struct {
	first, last uint32
	log         *syncLog
}

// find gives where the run with a block is or belongs.
func (s blockLogs) find(block uint32) (int, bool) {
	return slices.BinarySearchFunc(s, block, func(r logRun, block uint32) int {
		if r.first <= block && block <= r.last {
			return 0
		}
		return cmp.Compare(r.first, block)
	})
}

// add notes the log of a block that has none.
func (s *blockLogs) add(block uint32, g *syncLog) {
	n := len(*s) // most blocks end in order
	if n > 0 && (*s)[n-1].last >= block {
		var ok bool
		if n, ok = s.find(block); ok {
			return
		}
	}
	switch {
	case n > 0 && (*s)[n-1].log == g && (*s)[n-1].last+1 == block:
		(*s)[n-1].last = block
	case n < len(*s) && (*s)[n].log == g && (*s)[n].first == block+1:
		(*s)[n].first = block
	default:
		*s = slices.Insert(*s, n, logRun{block, block, g})
		return
	}
	if n > 0 && n < len(*s) && (*s)[n-1].log == (*s)[n].log && (*s)[n-1].last+1 == (*s)[n].first {
		(*s)[n-1].last = (*s)[n].last
		*s = slices.Delete(*s, n, n+1)
	}
}

// logOf gives the log of a block, nil when it has none.
func (l *launch) logOf(block uint32) *syncLog {
	b := l.lastBlock
	if b == nil || b.index != block {
		b = l.listed[block]
	}
	if b != nil {
		return b.log
	}
	if n, ok := l.logs.find(block); ok {
		return l.logs[n].log
	}
	return nil
}
