package isa

import "fencepost.dev/fencepost/internal/event"

// syncRows is the barriers and fences of the manual's "Parallel Synchronization and Communication Instructions".
var syncRows = []*Row{
	{Op: "bar", Doc: "Parallel Synchronization: bar", Class: Barrier, Event: event.Arrive, Bind: bindBar, Forms: forms(
		"{.cta}.op a:u32{, b:u32}; op: sync",
		"{.cta}.op a:u32, b:u32; op: arrive",
		"{.cta}.red.op.u32 d, a:u32{, b:u32}, c:pred; op: popc",
		"{.cta}.red.op.pred d, a:u32{, b:u32}, c; op: and or")},
	{Op: "barrier", Doc: "Parallel Synchronization: barrier", Class: Barrier, Event: event.Arrive, Bind: bindBar, Forms: forms(
		"{.cta}.op{.aligned} a:u32{, b:u32}; op: sync",
		"{.cta}.op{.aligned} a:u32, b:u32; op: arrive",
		"{.cta}.red.op{.aligned}.u32 d, a:u32{, b:u32}, c:pred; op: popc",
		"{.cta}.red.op{.aligned}.pred d, a:u32{, b:u32}, c; op: and or")},
	{Op: "barrier", Doc: "Parallel Synchronization: barrier.cluster.arrive", Class: Copy, Event: event.ClusterArrive, Bind: bindOp(OpClusterArrive), Forms: forms(
		".cluster.arrive{.sem}{.aligned}; sem: release relaxed"), Note: "Without an order it is release."},
	{Op: "barrier", Doc: "Parallel Synchronization: barrier.cluster.wait", Class: Copy, Event: event.ClusterWait, Bind: bindOp(OpClusterWait), Forms: forms(
		".cluster.wait{.sem}{.aligned}; sem: acquire")},
	{Op: "bar", Doc: "Parallel Synchronization: bar.warp.sync", Class: WarpBarrier, Event: event.WarpSync, Forms: forms(
		".warp.sync a:b32")},
	{Op: "fence", Doc: "Parallel Synchronization: fence", Class: Fence, Event: event.Fence, Bind: bindFence, Forms: forms(
		"{.sem}.scope; sem: sc acq_rel acquire release"), Note: "Without an order it is acq_rel."},
	{Op: "membar", Doc: "Parallel Synchronization: membar", Class: Fence, Event: event.Fence, Bind: bindFence, Forms: forms(
		".scope; scope: cta gl sys"), Note: "The same as fence.sc of that scope; gl is gpu."},
	{Op: "fence", Doc: "Parallel Synchronization: fence with sync_restrict", Class: Fence, Event: event.Fence, Bind: bindFence, Forms: forms(
		".sem.sync.scope; sem: acquire; sync: sync_restrict::shared::cluster; scope: cluster",
		".sem.sync.scope; sem: release; sync: sync_restrict::shared::cta; scope: cluster"),
		Note: "Like the fence without sync_restrict: it applies to all objects, and not only to mbarriers in that memory."},
	{Op: "fence", Doc: "Parallel Synchronization: fence.proxy", Class: Hint, Note: noteProxy, Forms: forms(
		".proxy.alias", ".proxy.alias.order.sys; order: acquire release", ".proxy.tensormap::generic.release.scope")},
	{Op: "fence", Doc: "Parallel Synchronization: fence.proxy.tensormap", Class: Copy, Event: event.MapFence, Bind: bindOp(OpMapFence), Forms: forms(
		".proxy.tensormap::generic.acquire.scope [a], b:u32"), Note: "It applies to the tensor map at that address, whatever the scope."},
	{Op: "fence", Doc: "Parallel Synchronization: fence.proxy.async", Class: Copy, Event: event.ProxyFence, Bind: bindProxyFence,
		Forms: forms(".proxy.async{.space}; space: global shared::cta shared::cluster",
			".proxy.async::generic.order.sync.cluster; order: acquire; sync: sync_restrict::shared::cluster",
			".proxy.async::generic.order.sync.cluster; order: release; sync: sync_restrict::shared::cta"),
		Note: "The forms with sync_restrict are fence.proxy.async and order nothing else: the mbarriers before and after them do."},
	{Op: "fence", Doc: "Parallel Synchronization: fence.mbarrier_init", Class: Fence, Event: event.InitFence, Bind: bindFence, Forms: forms(".mbarrier_init.sem.scope; sem: release; scope: cluster"),
		Note: "It releases only mbarrier.init by its thread. The default detector supports it; for the others it is no fence."},
	{Op: "membar", Doc: "Parallel Synchronization: membar.proxy", Class: Hint, Note: noteProxy, Forms: forms(
		".proxy.alias")},
	{Op: "membar", Doc: "Parallel Synchronization: membar.proxy.async", Class: Copy, Event: event.ProxyFence, Bind: bindProxyFence,
		Forms: forms(".proxy.async{.space}; space: global shared::cta shared::cluster")},
}

const noteProxy = "No effect: no memory is accessed under other addresses, and a release to the tensormap proxy orders nothing by itself."

// bindProxyFence binds the space that a fence concerns: event.NoSpace is all.
func bindProxyFence(in *Inst) {
	if in.Op = OpProxyFence; in.Has("async::generic") {
		in.Space = event.Shared
	}
}

// bindBar marks bar, which is barrier with .aligned.
func bindBar(in *Inst) {
	if in.Row.Op == "bar" {
		in.Aligned = true
	}
}

func bindFence(in *Inst) {
	switch {
	case in.Row.Op == "membar":
		in.Order = event.SC
	case in.Order == event.Weak:
		in.Order = event.AcqRel
	}
}
