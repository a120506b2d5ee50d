package engine

import (
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// copies are the asynchronous copies that lanes of a warp have issued and that have not been performed. The rules leave
// open when, between its issue and the wait, a copy reads its source and writes its destination. The seed chooses. With
// seed 0 it does both at the wait, so a program that does not wait computes with the old data. A copy that nobody waits
// for is never performed: its destination ends with the block.
type copies struct {
	list   []*copied
	groups [32]uint32 // by lane: number of committed groups
	issued uint64     // number of instructions issued

	bulkGroups [32]uint32 // for bulk copies

	coreCommits [32]uint32 // for tensor core operations

	wgmmas  uint32 // number of groups of wgmma.mma_async that the warp has committed
	allowed uint32 // it waits for all groups except the last allowed ones
	wanted  uint32 // and this is their number

	fenced     bool       // the warp has executed wgmma.fence
	operations []matrixOp // wgmma operations that it has not waited for
	written    []written  // registers of wgmma written since the last wgmma.fence
	loads      []coreLoad // tcgen05.ld operations that it has not waited for
}

// copied is the copies that one instruction has issued.
type copied struct {
	number uint64     // number of the instruction within the warp
	left   uint32     // lanes whose copy has not been performed
	groups [32]uint32 // by lane: the group of its copy; earlier groups complete no later
	from   [32][]byte // nil: only zeros are written
	to     [32]uint64
	size   uint64
	// read says that the sources have been read.
	read bool
	data [32][16]byte
}

// async returns the asynchronous copies of the warp.
func (w *Warp) async() *copies {
	if w.copies == nil {
		w.copies = &copies{}
	}
	return w.copies
}

func (c *copies) reset() {
	c.list, c.issued = c.list[:0], 0
	clear(c.groups[:])
	clear(c.bulkGroups[:])
	clear(c.coreCommits[:])
	c.wgmmas, c.fenced, c.operations, c.written, c.loads = 0, false, c.operations[:0], c.written[:0], c.loads[:0]
}

// Copies executes cp.async and the instructions that commit copies and wait for them.
func (r *Run) Copies(w *Warp, in *loader.Instr, on uint32, place uint32) {
	switch in.Op {
	case isa.OpCopy:
		r.issue(w, in, on, place)
	case isa.OpCommit:
		r.commit(w, on, place)
	case isa.OpBulk:
		r.bulk(w, in, on, place)
	case isa.OpTensor:
		r.tensor(w, in, on, place)
	case isa.OpBulkCommit:
		for m := on; m != 0; m &= m - 1 {
			w.async().bulkGroups[bits.TrailingZeros32(m)]++
		}
		r.Out.copies(event.BulkCommit, w, on, place, 0)
	case isa.OpProxyFence:
		r.Out.proxyFence(w, in, on, place)
	case isa.OpClusterArrive:
		r.arriveCluster(w, in, on, place)
	case isa.OpClusterWait:
		r.waitCluster(w, on, place)
	case isa.OpReplace, isa.OpMapCopy, isa.OpMapFence:
		r.mapOps(w, in, on, place)
	case isa.OpStoreAsync:
		r.storeAsync(w, in, on, place)
	case isa.OpStoreBulk:
		r.storeBulk(w, in, on, place)
	case isa.OpTryCancel:
		r.tryCancel(w, in, on, place)
	case isa.OpTcMultiply, isa.OpTcCopy, isa.OpTcCommit:
		r.coreLanes(w, in, on, place)
	case isa.OpGridLaunch:
		r.Out.copies(event.GridLaunch, w, on, place, 0)
	case isa.OpGridWait:
		r.Out.copies(event.GridWait, w, on, place, 0)
	case isa.OpTouch:
		r.touch(w, in, on, place)
	case isa.OpWaitAll:
		r.commit(w, on, place)
		r.awaits(w, on, 0, place)
	default:
		for on != 0 {
			n := uint32(r.Machine.Value(w, bits.TrailingZeros32(on), &in.Operands[0]))
			same := uint32(0)
			for m := on; m != 0; m &= m - 1 {
				if i := bits.TrailingZeros32(m); uint32(r.Machine.Value(w, i, &in.Operands[0])) == n {
					same |= 1 << i
				}
			}
			on &^= same
			if in.Op == isa.OpBulkWait {
				r.awaitsBulk(w, same, n, in.Has("read"), place)
			} else {
				r.awaits(w, same, n, place)
			}
		}
	}
}

func (r *Run) commit(w *Warp, on uint32, place uint32) {
	for m := on; m != 0; m &= m - 1 {
		w.async().groups[bits.TrailingZeros32(m)]++
	}
	r.Out.copies(event.CopyCommit, w, on, place, 0)
}

// awaits performs the copies of the lanes of on, except those of the last n groups.
func (r *Run) awaits(w *Warp, on uint32, n uint32, place uint32) {
	c := w.async()
	kept := c.list[:0]
	for _, x := range c.list {
		done := uint32(0)
		for m := x.left & on; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); uint64(x.groups[i])+uint64(n) < uint64(c.groups[i]) {
				done |= 1 << i
			}
		}
		r.performCopies(w, x, done)
		if x.left &^= done; x.left != 0 {
			kept = append(kept, x)
		} else {
			r.spareCopies = append(r.spareCopies, x)
		}
	}
	c.list = kept
	r.Out.copies(event.CopyWait, w, on, place, n)
}

// performCopies performs the copies of lanes.
func (r *Run) performCopies(w *Warp, x *copied, on uint32) {
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if !x.read {
			x.data[i] = [16]byte{}
			copy(x.data[i][:x.size], x.from[i])
		}
		copy(w.CTA.Shared[x.to[i]:], x.data[i][:x.size])
	}
	if on != 0 {
		w.Writes++
	}
}

// early decides whether copies that a warp issues now read, and write, at once.
func (r *Run) early(w *Warp) (read, write bool) {
	if r.Launch.Seed == 0 {
		return false, false
	}
	g := newRNG(r.Launch.Seed ^ uint64(w.Number)<<32 ^ w.async().issued)
	switch g.below(3) {
	case 0:
		return true, true
	case 1:
		return true, false
	}
	return false, false
}

// issue executes cp.async for the lanes of on. A lane with wrong addresses copies nothing.
func (r *Run) issue(w *Warp, in *loader.Instr, on uint32, place uint32) {
	x := r.newCopied()
	size := uint64(in.Type.Size())
	x.size, x.groups, x.left = size, w.async().groups, 0
	x.number = w.async().issued
	w.async().issued++
	var from [32]uint64
	var sizes [5]uint32 // by log2 of a size: lanes that read that many bytes
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		n := r.copySize(w, i, in, size, place)
		to := r.Machine.Value(w, i, &in.Operands[0]) + uint64(in.Off)
		from[i] = r.Machine.Value(w, i, &in.Operands[1]) + uint64(in.Off2)
		if _, kind := window(w.CTA.Shared, to, size); kind != "" {
			r.Faults.access(r, kind, w, i, place, touch{event.FlagWrite, event.Shared, to, size})
			continue
		}
		x.from[i], x.to[i] = nil, to
		if n > 0 {
			data, kind := r.globalBytes(from[i], n, in, event.FlagRead, place)
			if kind == "" && from[i]&(size-1) != 0 {
				kind = Misaligned
			}
			if kind != "" {
				r.Faults.access(r, kind, w, i, place, touch{event.FlagRead, event.Global, from[i], size})
				continue
			}
			x.from[i] = data
		}
		for k := range sizes {
			if n>>k&1 != 0 {
				sizes[k] |= 1 << i
			}
		}
		x.left |= 1 << i
	}
	r.tellCopies(w, in, x, &from, &sizes, place)
	read, write := r.early(w)
	if x.read = false; read {
		for m := x.left; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			x.data[i] = [16]byte{}
			copy(x.data[i][:size], x.from[i])
		}
		x.read = true
	}
	if write {
		r.performCopies(w, x, x.left)
		x.left = 0
	}
	if x.left == 0 {
		r.spareCopies = append(r.spareCopies, x)
		return
	}
	w.async().list = append(w.async().list, x)
}

func (r *Run) newCopied() *copied {
	if n := len(r.spareCopies); n > 0 {
		x := r.spareCopies[n-1]
		r.spareCopies = r.spareCopies[:n-1]
		return x
	}
	return &copied{}
}

// copySize returns the number of bytes that a lane's copy reads.
func (r *Run) copySize(w *Warp, lane int, in *loader.Instr, size uint64, place uint32) uint64 {
	if in.Src[2].Kind == isa.Sink {
		return size
	}
	v := r.Machine.Value(w, lane, &in.Operands[2])
	switch {
	case in.Ignores && v&1 != 0:
		return 0
	case in.Ignores:
		return size
	case v&0xffff_ffff > size:
		r.Faults.At(r, OutOfBounds, w, lane, place, "copies", "%s of %d bytes is told to read %d", in.Mnemonic(), size, v&0xffff_ffff)
		return size
	}
	return v & 0xffff_ffff
}

// tellCopies emits the events for issued copies: their reads, in pieces whose sizes are powers of two, largest first,
// and their writes.
func (r *Run) tellCopies(w *Warp, in *loader.Instr, x *copied, from *[32]uint64, sizes *[5]uint32, place uint32) {
	acc := &r.Access
	as := loader.Instr{Inst: in.Inst}
	if r.Out.Needs&event.NeedGlobal != 0 {
		acc.Addr = *from
		for k := len(sizes) - 1; k >= 0; k-- {
			if on := sizes[k] & x.left; on != 0 {
				as.Width = 1 << k
				r.Out.access(event.Load, event.FlagRead|event.FlagAsync, w, &as, place, event.Global, on, acc)
				for m := on; m != 0; m &= m - 1 {
					acc.Addr[bits.TrailingZeros32(m)] += as.Width
				}
			}
		}
	}
	if r.Out.Needs&event.NeedShared == 0 || x.left == 0 {
		return
	}
	as.Width = x.size
	for m := x.left; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		acc.Addr[i] = x.to[i]
		if r.Out.Needs&event.NeedValues != 0 {
			var data [16]byte
			copy(data[:x.size], x.from[i])
			acc.Value[i] = wordsOf(data[:x.size])
			acc.Old[i] = wordsOf(w.CTA.Shared[x.to[i]:][:x.size])
		}
	}
	r.Out.access(event.Store, event.FlagWrite|event.FlagAsync, w, &as, place, event.Shared, x.left, acc)
}
