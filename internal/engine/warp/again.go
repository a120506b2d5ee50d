package warp

import (
	"bytes"
	"math/bits"
	"unsafe"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// In loops over tiles the warps of all blocks access the same places of shared memory again and again. The machine
// remembers the accesses of a list. When a list makes the same accesses again, they become one event.Series: one event
// then replaces dozens.

// sequence is a run of accesses to shared memory that a list made one after the other.
type sequence struct {
	event.Series // has no events until the sequence occurs a second time
	keys         []lanes.Head
	stores       []int // the indices of the stores
	mask         uint32
	places       []uint32 // those of the frame
	life         int      // how many more times another sequence may miss in its slot before it is replaced
}

// remembered is a hash table of the sequences of a launch.
type remembered struct {
	list         [1 << sequenceBits]*sequence // accesses that a series has reported, and that were reported singly
	hits, misses int                          // accesses that were told by a series, and not
	made         uint32
	off          bool
}

const (
	sequenceBits = 9
	maxLife      = 8
	againTrial   = 1 << 12 // misses before hits and misses are compared
	unknownRun   = 255
)

// newRuns prepares the machine to remember sequences, if the detectors ask for series and the text has accesses that
// can be in one.
func (x *machine) newRuns() {
	const both = event.NeedAgain | event.NeedShared
	if x.r.Out.Needs&both != both {
		return
	}
	for k := range x.t.Reaches {
		n := &x.t.Reaches[k]
		if e := &x.t.Effects[n.Effect]; e.Space == event.Shared && e.Order == event.Weak && !n.Each && x.listed(n, event.Shared) {
			if x.runs == nil {
				x.runs = make([]uint8, len(x.t.Reaches))
			}
			x.runs[k] = unknownRun
		}
	}
	if x.runs != nil && x.said == nil {
		x.said = &remembered{}
	}
}

// again reports the accesses to shared memory that the log has from entry i on: by one event if their sequence is
// remembered, else by one event each. It returns the number of accesses reported, or 0 if no sequence begins at entry
// i.
func (x *machine) again(w *engine.Warp, mask uint32, i int) int {
	list := x.log.Heads[i:x.log.N]
	first := x.t.Code[list[0].Imm].B
	n := int(x.runs[first])
	if n == 0 || len(list) == 1 {
		return 0
	}
	if n == 1 || n > len(list) {
		if n = x.runOf(list); n == 1 {
			return 0
		}
	}
	at := x.said.at(mask, list[:n])
	s := *at
	ok := s.is(x, mask, list)
	if !ok && x.runOf(list) != n {
		n = int(x.runs[first])
		at = x.said.at(mask, list[:n])
		s = *at
		ok = s.is(x, mask, list)
	}
	if !ok {
		x.said.miss(at, mask, x.places, list[:n])
		for k := range n {
			x.tellOf(w, mask, i+k)
		}
		return n
	}
	if s.Events == nil {
		x.makeSeries(s, i)
	}
	x.tellAgain(w, s, i)
	return len(s.keys)
}

// runOf counts the accesses at the start of a list that may belong to a sequence. The first one may.
func (x *machine) runOf(list []lanes.Head) int {
	n := 1
	for n < len(list) && x.runs[x.t.Code[list[n].Imm].B] != 0 {
		n++
	}
	x.runs[x.t.Code[list[0].Imm].B] = uint8(n)
	return n
}

// at returns the slot of the hash table for a sequence of accesses.
func (q *remembered) at(mask uint32, list []lanes.Head) **sequence {
	n := len(list)
	key := func(i int) uint64 { return list[i].Imm<<32 ^ list[i].At }
	h := key(0)*0x9e3779b97f4a7c15 ^ key(n/2)*0xc2b2ae3d27d4eb4f ^ (key(n-1)^uint64(mask)<<20)*0xff51afd7ed558ccd
	return &q.list[h>>(64-sequenceBits)]
}

// is reports whether the list begins with the sequence.
func (s *sequence) is(x *machine, mask uint32, list []lanes.Head) bool {
	if s == nil || s.mask != mask || len(s.keys) > len(list) || unsafe.SliceData(s.places) != unsafe.SliceData(x.places) {
		return false
	}
	return bytes.Equal(headBytes(s.keys), headBytes(list[:len(s.keys)]))
}

// headBytes returns the memory of heads as bytes: comparing bytes is faster than comparing the structs.
func headBytes(h []lanes.Head) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(h))), len(h)*int(unsafe.Sizeof(lanes.Head{})))
}

// miss remembers a sequence that was not found, unless the slot holds one that is found often enough.
func (q *remembered) miss(at **sequence, mask uint32, places []uint32, list []lanes.Head) {
	q.misses += len(list)
	q.off = q.misses >= againTrial && q.hits < q.misses
	s := *at
	if s != nil {
		if s.life--; s.life >= 0 {
			return
		}
	}
	if s == nil || s.Events != nil { // batches may still refer to s.Events
		s = &sequence{}
		*at = s
	}
	s.mask, s.places, s.keys, s.life = mask, places, append(s.keys[:0], list...), 0
}

// makeSeries makes the events of a sequence out of the log entries from number at on.
func (x *machine) makeSeries(s *sequence, at int) {
	o := &x.r.Out
	events := make([]event.Event, len(s.keys))
	for i := range events {
		ev := &events[i]
		k := x.t.Code[s.keys[i].Imm].B
		*ev = x.events[k]
		x.fill(ev, k, s.mask, at+i)
		if ev.Flags&event.FlagScattered != 0 {
			panic("BUG: rows of a block are scattered")
		}
		if !x.t.Reaches[k].Store || o.Needs&event.NeedValues == 0 {
			continue
		}
		s.stores = append(s.stores, i)
		ev.Flags |= event.FlagValues
		ev.Val = s.Words
		n := uint32(bits.OnesCount32(s.mask) * event.ValueWords(ev.Size))
		if o.Olds() {
			ev.Flags |= event.FlagOld
			n *= 2
		}
		s.Words += n
	}
	x.said.made++
	s.ID, s.Events = x.said.made, events
}

// tellAgain emits the event of a sequence whose accesses are the log entries from number at on.
func (x *machine) tellAgain(w *engine.Warp, s *sequence, at int) {
	o := &x.r.Out
	b := &o.Batch
	x.said.hits += len(s.keys)
	s.life = min(s.life+1, maxLife)
	e := o.Next(event.Again, w, s.mask, 0)
	e.Side, e.Val = uint32(len(b.Series)), uint32(len(b.Values))
	b.Series = append(b.Series, &s.Series)
	for _, i := range s.stores {
		store := s.Events[i]
		x.toldValues(&store, at+i)
	}
	o.Added()
}
