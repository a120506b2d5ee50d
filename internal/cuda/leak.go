package cuda

// allocatedBy records the place in the program of an allocation, if leaks are searched for.
func (p *process) allocatedBy(addr uint64, r *request) {
	d := p.ctx.dev
	if !d.cfg.Leaks || addr == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a, ok := p.ctx.allocs[addr]; ok {
		a.frames, a.leaks = p.stack(r), true
		p.ctx.allocs[addr] = a
	}
}

// leaks reports the allocations that exist at the end of the context. On a lost device nothing can be freed, so there
// it reports none. The device is locked.
func (c *Context) leaks() {
	if !c.dev.cfg.Leaks || c.sticky != nil {
		return
	}
	for _, addr := range sortedKeys(c.allocs) {
		a := c.allocs[addr]
		if !a.leaks {
			continue
		}
		call := kindCalls[a.kind]
		if a.pool != nil {
			call = "cudaMallocAsync"
		}
		known, _ := c.dev.mem.Find(addr)
		c.dev.fail(&Failure{Kind: Leak, Call: call, Frames: a.frames, Bytes: a.size, Msg: known.Name})
	}
}
