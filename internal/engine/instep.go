package engine

// InStep reports whether a block consists of full warps, is alone in its cluster, no thread of it has exited or waits
// at a barrier, and only events of accesses are needed.
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

// ExitBlock ends all threads of a block that is InStep. used is the warps in which something has been written elsewhere
// than here since they began.
func (r *Run) ExitBlock(c *CTA, used uint32) {
	for i, w := range c.Warps {
		w.Live, w.Ready, w.Regroup, w.unused = 0, 0, true, used>>i&1 == 0
	}
	c.Live = 0
	c.cluster.live -= c.Threads
}
