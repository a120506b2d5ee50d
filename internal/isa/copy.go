package isa

import (
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// copyRows is the asynchronous copies of single threads in the manual's "Data Movement" chapter ("Non-bulk copy"):
// cp.async, which copies bytes of global memory to shared memory, and the instructions that group such copies and wait
// for them.
var copyRows = []*Row{
	{Op: "cp", Doc: "Data Movement: cp.async", Class: Copy, Event: event.Store, Bind: bindOp(OpCopy), Note: noteCopy, Forms: forms(
		".async.cop.space.global{.L2::cache_hint}{.prefetch_size} [d], [a], size{, b}{, c}'; cop: ca cg; space: shared shared::cta")},
	{Op: "cp", Doc: "Data Movement: cp.async.commit_group", Class: Copy, Event: event.CopyCommit, Bind: bindOp(OpCommit),
		Forms: forms(".async.commit_group")},
	{Op: "cp", Doc: "Data Movement: cp.async.wait_group", Class: Copy, Event: event.CopyWait, Bind: bindOp(OpWaitGroup),
		Forms: forms(".async.wait_group n:u32")},
	{Op: "cp", Doc: "Data Movement: cp.async.wait_all", Class: Copy, Event: event.CopyWait, Bind: bindOp(OpWaitAll),
		Forms: forms(".async.wait_all"), Note: "The same as cp.async.commit_group and cp.async.wait_group 0."},
	{Op: "cp", Doc: "Data Movement: cp.async.bulk", Class: Copy, Event: event.Bulk, Bind: bindOp(OpBulk), Note: noteBulk, Forms: forms(
		".async.bulk.to.global.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint} [d], [a], size, [bar]{, mask}{, c}'; "+
			"to: shared::cluster shared::cta",
		".async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob{.L2::cache_hint} [d], [a], size, left, right, [bar]{, c}'",
		".async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [d], [a], size, [bar]'",
		".async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}{.cp_mask} [d], [a], size{, c}{, mask}'")},
	{Op: "cp", Doc: "Data Movement: cp.async.bulk.commit_group", Class: Copy, Event: event.BulkCommit, Bind: bindOp(OpBulkCommit),
		Forms: forms(".async.bulk.commit_group")},
	{Op: "cp", Doc: "Data Movement: cp.async.bulk.wait_group", Class: Copy, Event: event.BulkWait, Bind: bindOp(OpBulkWait),
		Forms: forms(".async.bulk.wait_group{.read} n:u32")},
	{Op: "cp", Doc: "Data Movement: cp.async.bulk.prefetch", Class: Hint, Forms: forms(".async.bulk.prefetch.L2.global{.L2::cache_hint} [a], b:u32{, c:b64}")},
	{Op: "cp", Doc: "Data Movement: cp.reduce.async.bulk", Class: Copy, Event: event.Bulk, Bind: bindReduction(OpBulk), Note: noteReduce, Forms: forms(
		".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.op.type [d], [a], size{, c}'; op: add min max; type: u32 s32 u64 s64",
		".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.op.type [d], [a], size{, c}'; op: inc dec; type: u32",
		".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.op.type [d], [a], size{, c}'; op: and or xor; type: b32 b64",
		".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.op.type [d], [a], size{, c}'; op: add; type: f32 f64",
		".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.op.noftz.type [d], [a], size{, c}'; op: add; type: f16 bf16",
		".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.op.type [d], [a], size{, c}'; op: min max; type: f16 bf16",
		".reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type [d], [a], size, [bar]'; op: add min max; type: u32 s32",
		".reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type [d], [a], size, [bar]'; op: inc dec; type: u32",
		".reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type [d], [a], size, [bar]'; op: and or xor; type: b32",
		".reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type [d], [a], size, [bar]'; op: add; type: u64")},
	{Op: "st", Doc: "Data Movement: st.async", Class: Copy, Event: event.Bulk, Bind: bindOp(OpStoreAsync), Note: noteStoreAsync, Forms: forms(
		".async{.weak}{.space}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [bar]'; space: shared::cluster; type: b32 b64 u32 u64 s32 s64 f32 f64; vec: v2 v4")},
	{Op: "red", Doc: "Data Movement: red.async", Class: Copy, Event: event.Bulk, Bind: bindReduction(OpStoreAsync), Note: noteStoreAsync, Forms: forms(
		".async.relaxed.cluster{.space}.mbarrier::complete_tx::bytes.op.type [a], b, [bar]'; space: shared::cluster; op: inc dec min max "+
			"add; type: u32",
		".async.relaxed.cluster{.space}.mbarrier::complete_tx::bytes.op.type [a], b, [bar]'; space: shared::cluster; op: min max add; type: s32",
		".async.relaxed.cluster{.space}.mbarrier::complete_tx::bytes.op.type [a], b, [bar]'; space: shared::cluster; op: and or xor; type: b32",
		".async.relaxed.cluster{.space}.mbarrier::complete_tx::bytes.op.type [a], b, [bar]'; space: shared::cluster; op: add; type: u64 s64")},
	{Op: "st", Doc: "Data Movement: st.bulk", Class: Copy, Event: event.Store, Bind: bindOp(OpStoreBulk), Forms: forms(
		".bulk{.weak}{.space} [a], b:u64, c:u64; space: shared::cta"), Note: "Writes zeros, whatever c is: the manual allows only 0."},
	{Op: "clusterlaunchcontrol", Doc: "Parallel Synchronization: clusterlaunchcontrol.try_cancel", Class: Copy, Event: event.Bulk, Bind: bindOp(OpTryCancel), Forms: forms(
		".try_cancel.async{.space}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [a], [bar]'; space: shared::cta"),
		Note: "A launch whose kernel has this instruction starts few blocks at a time, so that there are blocks to cancel. The answer is " +
			"written like the data of cp.async.bulk."},
	{Op: "clusterlaunchcontrol", Doc: "Parallel Synchronization: clusterlaunchcontrol.query_cancel", Bind: bindQueryCancel, Forms: forms(
		".query_cancel.is_canceled.pred.b128 d:pred, a:b128",
		".query_cancel.coordinate.b32.b128 d:b32, a:b128; coordinate: get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z",
		".query_cancel.get_first_ctaid.v4.b32.b128 d*4:b32, a:b128")},
	{Op: "cp", Doc: "Data Movement: cp.async.mbarrier.arrive", Class: Mbarrier, Event: event.CopyArrive, Bind: bindOp(OpArriveCopies), Forms: forms(
		".async.mbarrier.arrive{.noinc}{.space}.b64 [a]; space: shared shared::cta"),
		Note: "The copies are performed, and the arrival counts, when a thread next tests the barrier."},
}

const noteBulk = "With seed 0 a copy is performed when a thread next tests its mbarrier, or waits for its group. Another seed may " +
	"perform it, or its reads, at once. A copy to global memory that no thread waits for is performed when the block ends. Bytes " +
	"that .ignore_oob or .cp_mask exclude are neither read nor written, but count for the mbarrier."

const noteCopy = "size is 4, 8 or 16, with .cg 16. b is the number of bytes to read, or a predicate that is true if none is read; " +
	"the other bytes become zero. With seed 0 a copy is performed when its thread waits for it. Another seed may perform it, or " +
	"its reads, at once."

const noteReduce = "Each element is a relaxed atomic operation of scope gpu. Performed like cp.async.bulk."

// bindOp binds one sub-operation for all modifiers.
func bindOp(op Op) func(in *Inst) { return func(in *Inst) { in.Op = op } }

// bulkOperands decodes the operands of cp.async.bulk. Src is the destination address (plus Off), the source address
// (plus Off2), the number of bytes, and the address of the mbarrier (plus Off3), if there is one. Then follow the
// numbers of bytes that .ignore_oob leaves out, or the mask of .cp_mask.
func (b *body) bulkOperands(in *Inst) {
	ops := in.Source.Operands
	group, hint := in.Has("bulk_group"), in.Has("L2::cache_hint")
	want := 3
	if !group {
		want++
	}
	if hint {
		want++
	}
	multicast, ignores, masked := in.Has("multicast::cluster"), in.Has("ignore_oob"), in.Has("cp_mask")
	if multicast || masked {
		want++
	}
	if ignores {
		want += 2
	}
	if len(ops) != want {
		b.errorf(in.Source.Pos, "%s%s takes %d, not %d operands", in.Source.Op, in.Source.Mods, want, len(ops))
		return
	}
	to, from := event.Shared, event.Global
	switch {
	case group:
		to, from = from, to
	case !in.Has("global"):
		from = event.Shared
	}
	in.Space = to
	b.address(in, &ops[0])
	off := in.Off
	in.Space = from
	b.address(in, &ops[1])
	in.Off2 = in.Off
	b.source(in, &opSpec{name: "size", typ: U32}, &ops[2])
	rest := ops[3:]
	if ignores {
		rest = ops[5:]
	}
	if !group {
		in.Space = event.Shared
		b.address(in, &rest[0])
		in.Off3, rest = in.Off, rest[1:]
	}
	if ignores {
		b.source(in, &opSpec{name: "left", typ: U32}, &ops[3])
		b.source(in, &opSpec{name: "right", typ: U32}, &ops[4])
	}
	if multicast {
		b.multicast(in, &rest[0])
		rest = rest[1:]
	}
	in.Space, in.Off = to, off
	if hint {
		n := len(in.Src)
		b.source(in, &opSpec{name: "c", typ: B64}, &rest[0])
		in.Src, rest = in.Src[:n], rest[1:]
	}
	if masked {
		b.source(in, &opSpec{name: "mask", typ: B16}, &rest[0])
	}
}

// copyOperands decodes the operands of cp.async. Src is the address in shared memory (plus Off), the address in global
// memory (plus Off2), and the number of bytes to read, or the predicate that says that none is read, or a Sink.
func (b *body) copyOperands(in *Inst) {
	ops := in.Source.Operands
	if len(ops) < 3 || len(ops) > 5 {
		b.errorf(in.Source.Pos, "%s%s takes 3 to 5, not %d operands", in.Source.Op, in.Source.Mods, len(ops))
		return
	}
	b.address(in, &ops[0])
	to, off := in.Space, in.Off
	in.Space = event.Global
	b.address(in, &ops[1])
	in.Space, in.Off, in.Off2 = to, off, in.Off
	size, text := immediate(ops[2].Name, U32)
	in.Type = map[uint64]Type{4: B32, 8: B64, 16: B128}[size]
	if ops[2].Kind != ptx.OperandImm || text != "" || in.Type == NoType || in.Has("cg") && size != 16 {
		b.errorf(ops[2].Pos, "%s%s: the size must be 16, or with .ca 4 or 8, not %s", in.Source.Op, in.Source.Mods, describe(&ops[2]))
		return
	}
	rest := ops[3:]
	if in.Has("L2::cache_hint") {
		if len(rest) == 0 {
			b.errorf(in.Source.Pos, "%s%s: the cache policy is missing", in.Source.Op, in.Source.Mods)
			return
		}
		n := len(in.Src)
		b.source(in, &opSpec{name: "c", typ: B64}, &rest[len(rest)-1])
		in.Src, rest = in.Src[:n], rest[:len(rest)-1]
	}
	switch {
	case len(rest) == 0:
		in.Src = append(in.Src, Operand{})
	case len(rest) > 1:
		b.errorf(rest[1].Pos, "%s%s takes a cache policy only with .L2::cache_hint", in.Source.Op, in.Source.Mods)
	case rest[0].Kind == ptx.OperandNot || b.isPredicate(&rest[0]):
		b.source(in, &opSpec{name: "b", typ: Pred}, &rest[0])
		in.Ignores = true
	default:
		b.source(in, &opSpec{name: "b", typ: U32}, &rest[0])
	}
}

// multicast decodes the mask of the blocks to which a bulk copy writes.
func (b *body) multicast(in *Inst, o *ptx.Operand) {
	in.Multicast = len(in.Src)
	b.source(in, &opSpec{name: "mask", typ: B16}, o)
}

const noteStoreAsync = "The store is made through the generic proxy. The value is that at the issue. It is written, and counts for " +
	"the mbarrier, like the data of cp.async.bulk."

// bindQueryCancel binds the instructions that read the response of try_cancel: a word that says whether it cancelled
// blocks, and the three coordinates of the first one.
func bindQueryCancel(in *Inst) {
	word := func(a *Args, i int) uint64 { return a.S[i/2] >> (32 * (i % 2)) & 0xffff_ffff }
	at := 0
	for i, c := range []string{"is_canceled", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"} {
		if in.Has(c) {
			at = i
		}
	}
	if in.Has("v4") {
		in.Eval = func(_ *Inst, a *Args) {
			a.D[0], a.D[1], a.D[2], a.D[3] = word(a, 1), word(a, 2), word(a, 3), 0
		}
		return
	}
	in.Eval = func(_ *Inst, a *Args) { a.D[0] = word(a, at) }
}

// storeOperands decodes the operands of st.async, red.async and clusterlaunchcontrol.try_cancel. Src is the address in
// shared memory (plus Off), the address of the mbarrier (plus Off3), and the values.
func (b *body) storeOperands(in *Inst) {
	ops := in.Source.Operands
	want := 3
	if in.Op == OpTryCancel {
		want = 2
	}
	if !b.takes(in, ops, want) {
		return
	}
	in.Space = event.Shared
	b.address(in, &ops[0])
	off := in.Off
	b.address(in, &ops[want-1])
	in.Off3, in.Off = in.Off, off
	switch {
	case want == 2:
	case in.Vec > 1:
		b.tuple(in, &opSpec{name: "b", typ: in.Type, count: int(in.Vec)}, &ops[1])
	default:
		b.source(in, &opSpec{name: "b", typ: in.Type}, &ops[1])
	}
}
