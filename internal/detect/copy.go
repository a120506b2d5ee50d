package detect

import (
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/event"
)

// kindOfCopy returns the kind of a race with an asynchronous copy that was not complete.
func (f *Facts) kindOfCopy() Kind {
	c := f.Copy
	switch {
	case c == nil:
		return CopyNotAwaited
	case c.Unfilled && c.Passed:
		return WrongPhase
	case c.Unfilled:
		return CopyNotAwaited
	case c.Ahead:
		return MissingBarrier
	case c.Tracked && c.Passed:
		return WrongPhase
	case c.Core && (f.Earlier.Op != Read || f.Later.Space != event.Shared):
		return CoreNotAwaited
	case c.Read:
		return SourceWait
	case c.Waited && c.Early && !c.Untold:
		return WaitBeforeCommit
	case c.Waited && !c.Tracked && !c.Untold:
		return GroupPending
	case f.Earlier.Op == Read && f.Later.Space == event.Shared:
		return StageReuse
	}
	return CopyNotAwaited
}

// Overtaken returns the place of a copy into shared memory that overwrites what an earlier copy of its own thread
// writes. An mbarrier tracks the earlier copy, and the thread does not know that it is complete. For other races the
// result is 0. If the copy also overwrites what others may still read, the thread should wait for the readers instead:
// they have waited for the earlier copy.
func (f *Facts) Overtaken() uint32 {
	c := f.Copy
	if f.Kind() != CopyNotAwaited || c == nil || !c.Tracked || !c.Own || !f.Earlier.Async || !f.Later.Async || f.Later.Op != Write || f.Later.Space != event.Shared {
		return 0
	}
	return f.Later.Place
}

// explainCopy explains why an asynchronous copy was not complete.
func (f *Facts) explainCopy() (message, fix string) {
	if c := f.Copy; c != nil && c.Unfilled {
		op, fix := "wgmma.mma_async", "wait for the phase of the mbarrier before the operation: mbarrier.try_wait, wait() of cuda::barrier"
		if c.Core {
			op = "tcgen05.mma or tcgen05.cp"
		}
		why := "its thread has not waited for the mbarrier that signals that the copy is complete"
		if c.Passed {
			why, fix = "its thread has waited for the mbarrier that signals that the copy is complete, and has gone on because another phase was complete", fixPhase
		}
		if !c.Matrix && !c.Core {
			return "a write by a bulk copy of bytes that another thread has read before: nothing had been written there, so that the read came before the copy that fills the buffer: " + why, c.fix()
		}
		return fmt.Sprintf("a write by a bulk copy of bytes that an earlier %s reads: the stage was free, and the operation came before the copy that fills it: %s", op, why), fix
	}
	if f.Copy != nil && f.Copy.Matrix {
		return "a write of bytes that a wgmma.mma_async reads, which may not be complete: " + f.Copy.lacksMatrix(), f.Copy.fixMatrix()
	}
	if f.Copy != nil && f.Copy.Core {
		g := *f // what the tensor cores read from shared memory is not a copy
		g.Earlier.Async = g.Earlier.Async && g.Earlier.Space == event.Tensor
		return fmt.Sprintf("%s of the same bytes of %s, and the first is by an operation of the tensor cores that may not be complete: %s", g.pair(), f.memory(), f.Copy.lacksCore()), f.Copy.fixCore()
	}
	what := "a read of the same bytes as"
	switch {
	case f.Earlier.Op == Read:
		what = "a write of bytes that are the source of"
	case f.Later.Async && f.Later.Op == Read:
		what = "a read by another asynchronous operation of the same bytes as"
	case f.Later.Async:
		what = "a write by another asynchronous copy of the same bytes as"
	case f.Later.Op != Read:
		what = "a write of the same bytes as"
	}
	whose := "another thread's asynchronous copy"
	if c := f.Copy; c != nil && c.Own {
		whose = "the thread's own asynchronous copy"
	}
	fix = f.Copy.fix()
	if f.Earlier.Host == "" && f.Later.Host == "" && f.Earlier.Launch.ID == f.Later.Launch.ID && !f.sameBlock() {
		fix = strings.Replace(fix, thenBarrier, ", before what hands the data over to the other block", 1)
	}
	return fmt.Sprintf("%s %s, which may not be complete: %s", what, whose, f.Copy.lacks()), fix
}

// thenBarrier follows the advice to wait, where the accessing thread did not issue the copy.
const thenBarrier = ", and then __syncthreads() for the threads that did not issue the copy"

// lacks says which wait is missing or wrong.
func (c *CopyState) lacks() string {
	switch {
	case c != nil && c.Ahead:
		return "the second thread has waited for its own, but no __syncthreads() after that makes it wait until the thread that copies has waited too"
	case c != nil && c.Tracked && c.Passed && c.Bulk:
		return "it completes with a phase of an mbarrier, which was not complete; the second thread has waited for that mbarrier, and has gone on because another phase was complete, or because the phase did not expect the copy's bytes"
	case c != nil && c.Tracked && c.Passed:
		return "it completes with a phase of an mbarrier, which was not complete; the second thread has waited for that mbarrier, and has gone on because another phase was complete"
	case c != nil && c.Tracked:
		return "it completes with a phase of a barrier in memory, which was not complete: waiting for that phase orders the two, __syncthreads() does not"
	case c != nil && c.Read:
		return "the thread that copies has waited only until the copy has read its source (.read), not until it has written"
	case c == nil || !c.Waited && c.Committed:
		return "the thread that copies has not waited for the copy's group (a barrier does not wait for it)"
	case !c.Waited:
		return "the copy was not even committed to a group, and its thread has not waited for it (a barrier does not)"
	case c.Early:
		return "the thread that copies waited before the copy was committed to a group, so it did not wait for this one"
	}
	return fmt.Sprintf("the thread that copies has waited, but for all groups except the newest %d, and the copy's is one of these", c.Allowed)
}

func (c *CopyState) fix() string {
	if c != nil && c.Bulk {
		return c.fixBulk()
	}
	then := thenBarrier
	if c != nil && c.Own {
		then = ""
	}
	switch {
	case c != nil && c.Ahead:
		return "put __syncthreads() between the wait for the copies and the access, where all threads of the block reach it"
	case c != nil && c.Tracked && c.Passed:
		return fixPhase
	case c != nil && c.Tracked:
		return "wait for the phase of the barrier before the access: wait(), or arrive_and_wait(), of cuda::barrier, consumer_wait() of cuda::pipeline, mbarrier.test_wait"
	case c != nil && c.Waited && c.Early:
		return "commit the group before the wait: cp.async.commit_group (__pipeline_commit(), producer_commit()), then the wait" + then
	case c != nil && c.Waited:
		return fmt.Sprintf("let the wait leave fewer groups pending than %d: cp.async.wait_group %d or less (__pipeline_wait_prior(%d))%s",
			c.Allowed, c.Allowed-1, c.Allowed-1, then)
	}
	return "wait for the group before the access: cp.async.wait_group 0 (__pipeline_wait_prior(0), consumer_wait() of cuda::pipeline, cooperative_groups::wait)" + then
}

const fixPhase = "wait for the phase of the copy: mbarrier.try_wait.parity with 0 for the first phase after mbarrier.init, 1 for the second, and so on, changed each time that all stages have been used"

// fixBulk returns the fix for a bulk copy.
func (c *CopyState) fixBulk() string {
	then := thenBarrier
	if c.Own {
		then = ""
	}
	switch {
	case c.Tracked && c.Passed:
		return fixPhase + "; and let the phase expect the bytes of all its copies (mbarrier.arrive.expect_tx)"
	case c.Tracked:
		return "wait for the phase of the mbarrier before the access: mbarrier.try_wait, wait() of cuda::barrier"
	case c.Read:
		return "wait for the group without .read: cp.async.bulk.wait_group 0" + then
	case c.Waited && c.Early:
		return "commit the group before the wait: cp.async.bulk.commit_group, then the wait" + then
	case c.Waited && c.Allowed > 0:
		return fmt.Sprintf("let the wait leave fewer groups pending than %d: cp.async.bulk.wait_group %d or less%s", c.Allowed, c.Allowed-1, then)
	}
	return "wait for the group before the access: cp.async.bulk.wait_group 0, or .read if only the source is overwritten" + then
}

// explainProxy explains a missing proxy fence.
func (f *Facts) explainProxy() (message, fix string) {
	if f.Category == CopyProxyFence {
		return fmt.Sprintf("a write by cp.async and a later %s of the same bytes in shared memory are ordered, but no fence.proxy.async lies between the wait for the copy and the second access, which is through the async proxy and may not observe the copy, which writes through the generic proxy", f.Later.Op),
			"execute fence.proxy.async.shared::cta (cde::fence_proxy_async_shared_cta()) after the wait for the copy: in the thread that copies, before the barrier at which the thread of the second waits, or in the thread of the second, after it has waited for the copies"
	}
	if f.Later.Space == event.Global {
		return fmt.Sprintf("%s of the same bytes in global memory are ordered, but no fence.proxy.async of global memory lies between them: the second is through the async proxy and may not observe the first, which the same kernel made through the generic proxy", f.pair()),
			"execute fence.proxy.async.global (cuda::ptx::fence_proxy_async(cuda::ptx::space_global)) after the first, in its thread, before the synchronisation that orders the two, or in the thread of the second, after that synchronisation; or write in an earlier kernel"
	}
	return fmt.Sprintf("%s of the same bytes in shared memory are ordered, but no fence.proxy.async lies between them: the second is through the async proxy and may not observe the first, which is through the generic proxy", f.pair()),
		"execute fence.proxy.async.shared::cta (cde::fence_proxy_async_shared_cta()) after the first, in its thread, before the barrier at which the thread of the second waits"
}

// explainReuse explains why an asynchronous copy may overwrite data that is still in use.
func (f *Facts) explainReuse() (message, fix string) {
	return f.pair() + " of the same bytes in shared memory by threads of one block: nothing signals that the buffer is free before the copy into it is issued" + f.around(),
		"put __syncthreads() between the last access to the buffer and the issue of the copy into it (consumer_release() before producer_acquire() of cuda::pipeline), or use one more stage"
}

// lacksMatrix says which wait for a wgmma.mma_async is missing or wrong.
func (c *CopyState) lacksMatrix() string {
	switch {
	case c.Untold:
		return "nothing signals to the writing thread that the warpgroup has finished with the stage"
	case !c.Waited && !c.Committed:
		return "it was not even committed to a group, and its warpgroup has not waited for it"
	case !c.Waited:
		return "its warpgroup has not waited for its group (a barrier does not wait for it)"
	case c.Early:
		return "its warpgroup waited before the operation was committed to a group, so it did not wait for this one"
	}
	return fmt.Sprintf("its warpgroup has waited, but for all groups except the newest %d, and the operation's is one of these", c.Allowed)
}

func (c *CopyState) fixMatrix() string {
	switch {
	case c.Untold:
		return "let the warpgroup signal that the stage is free after its wgmma.wait_group (mbarrier.arrive), and let the writing thread wait for that (mbarrier.try_wait), or put __syncthreads() between the two"
	case c.Waited && c.Early:
		return "commit the group before the wait: wgmma.commit_group, then the wait"
	case c.Waited && c.Allowed > 0:
		return fmt.Sprintf("let the wait leave fewer groups pending than %d: wgmma.wait_group %d or less; or signal one iteration later that the stage is free", c.Allowed, c.Allowed-1)
	}
	return "execute wgmma.wait_group 0 before the signal that the stage is free"
}

// lacksCore says which wait for a tensor core operation is missing or wrong.
func (c *CopyState) lacksCore() string {
	switch {
	case c.How == event.CoreLoads:
		return "its warp has not waited for it (tcgen05.wait::ld; a barrier does not)"
	case c.How == event.CoreStores:
		return "its warp has not waited for it (tcgen05.wait::st; a barrier does not)"
	case c.Passed:
		return "it completes with a phase of an mbarrier, which was not complete; the second thread has waited for that mbarrier, and has gone on because another phase was complete"
	case c.Tracked:
		return "it completes with a phase of the mbarrier that tcgen05.commit names, which was not complete: waiting for that phase orders the two, __syncthreads() does not"
	}
	return "no later tcgen05.commit of its thread names an mbarrier to wait for"
}

func (c *CopyState) fixCore() string {
	switch {
	case c.How == event.CoreLoads:
		return "execute tcgen05.wait::ld after it, before the barrier between the two"
	case c.How == event.CoreStores:
		return "execute tcgen05.wait::st after it, before the barrier between the two"
	case c.Passed:
		return fixPhase
	case c.Tracked:
		return "wait for the phase of the mbarrier before the access: mbarrier.try_wait"
	}
	return "execute tcgen05.commit in the thread that issued it, and wait for the phase of its mbarrier before the access"
}
