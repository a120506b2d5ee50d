package cuda

// allocatedBy notes where the program stands that has made an allocation, when leaks are looked for.
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

// leaks tells of the allocations that the program has left to the end of the context. A lost device frees nothing, so that
// nobody is to blame there. The device is locked.
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
