package engine

// InStep reports whether a block is one of whole warps, alone in its cluster, of which nothing has exited and nothing waits at a barrier,
// and no event is asked for but of accesses.
func (r *Run) InStep(c *CTA) bool {
	if r.Out.Sync() || c.Threads%32 != 0 || c.Live != c.Threads || c.grouped || len(c.cluster.ctas) != 1 || c.cluster.arrived != 0 || r.Sched.Spin.Phase != SpinIdle {
		return false
	}
	for i := range c.Bars {
		if c.Met>>i&1 != 0 && c.Bars[i].Expect != 0 {
			return false
		}
	}
	return true
}

// ExitBlock ends all threads of a block that is InStep. Of those of its warps that are in the mask used, something but this has been written
// since they began.
func (r *Run) ExitBlock(c *CTA, used uint32) {
	for i, w := range c.Warps {
		w.Live, w.Ready, w.Regroup, w.unused = 0, 0, true, used>>i&1 == 0
	}
	c.Live = 0
	c.cluster.live -= c.Threads
}
