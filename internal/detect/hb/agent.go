package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
	"fencepost.dev/fencepost/internal/event"
)

// agent is a host thread or a stream.
type agent struct {
	id    uint32
	knows *clock.Foreign // its own epoch included
	epoch uint32
	class map[hostKey]uint32
}

type hostKey struct {
	kind   event.HostKind
	name   string
	staged bool
}

func (d *Detector) agentOf(id uint32) *agent {
	a := d.agents[id]
	if a == nil {
		a = &agent{id: id, class: map[hostKey]uint32{}}
		d.agents[id] = a
	}
	return a
}

// next begins a new epoch of the agent.
func (a *agent) next() {
	a.epoch++
	a.knows = a.knows.WithAgent(a.id, a.epoch)
}

func (d *Detector) begin(info event.Launch) {
	a := d.agentOf(info.Agent)
	a.next()
	l := newLaunch(info, a.knows, &d.spare)
	if !d.cellsOnly && l.wpb <= 32 {
		l.scripts = newScripts(l.wpb)
	}
	d.launches[info.ID] = l
}

func (d *Detector) end(id uint32) {
	l := d.launches[id]
	if l == nil || l.end != 0 {
		return
	}
	var open []*block
	for _, b := range l.running() {
		open = append(open, b)
	}
	slices.SortFunc(open, func(x, y *block) int { return int(int64(x.index) - int64(y.index)) })
	for _, b := range open {
		for i := range b.warps {
			w := &b.warps[i]
			for m := w.live; m != 0; m &= m - 1 {
				l.beyond = l.beyond.Join(w.view(bits.TrailingZeros32(m)).beyond)
			}
		}
		d.endBlock(b)
	}
	a := d.agentOf(l.info.Agent)
	a.next()
	l.end, l.scripts = a.epoch, nil
	a.knows = a.knows.Join(l.beyond).Without(func(id uint32) bool {
		o := d.launches[id]
		return o == nil || over(o, a.knows) // cooled, or known wholly
	})
	d.retire(l)
}

func (d *Detector) host(h *event.HostOp) {
	a := d.agentOf(h.Agent)
	switch h.Kind {
	case event.HostSignal:
		a.next()
		d.tokens[h.Token] = a.knows
	case event.HostWait:
		a.knows = a.knows.Join(d.tokens[h.Token])
	case event.HostRead, event.HostWrite:
		d.hostAccess(a, h)
	case event.HostAlloc, event.HostFree:
		d.reuse(h.Addr, h.Size)
	}
}

// hostAccess judges and records an access of the host side.
func (d *Detector) hostAccess(ag *agent, h *event.HostOp) {
	if h.Size == 0 || h.Addr+h.Size < h.Addr {
		return
	}
	ag.next()
	name := h.Name
	if name == "" {
		name = "an access of the host"
	}
	key := hostKey{h.Kind, name, h.Staged}
	id, ok := ag.class[key]
	if !ok {
		id = d.newClass(class{agent: ag.id, host: name, place: d.hostPlace(name), reads: h.Kind == event.HostRead,
			side: detect.Side{Write: h.Kind == event.HostWrite, Staged: h.Staged}, key: classKey{space: event.Global, kind: event.Host, flags: event.Flags(h.Kind)}})
		ag.class[key] = id
	}
	a := &d.act
	*a = actor{class: &d.classes[id], id: id, agent: ag, lanes: 1, d: d, from: h.Addr}
	end := h.Addr + h.Size
	var last samePages
	few := h.Addr // up to there, the pages that are not there are too few for a range
	for at := h.Addr; at < end; {
		if at >= few {
			next := d.hostRange(id, ag.epoch, at, end)
			if next > at {
				at = next
				continue
			}
			if few = roundUp(at); few == at {
				few = d.mem.nextPage(at, end)
			}
		}
		next := min((at/pageBytes+1)*pageBytes, end)
		p := d.mem.page(at)
		if h.Kind != event.HostRead || !d.notesBefore(p, a.agent.knows) {
			d.coolEnded(p)
			d.denoteSpan(p, p.addr, p.addr+pageBytes)
		}
		d.judgeHost(p, at, next)
		first, n, ok := p.sharedCold()
		ok = ok && next-at == pageBytes
		if ok && last.after != nil && last.before == first && last.n == n {
			p.share(last.after)
		} else {
			d.recordHost(p, id, ag.epoch, at, next)
			if ok {
				p.share(p.cold)
				last = samePages{sameLines{before: first, n: n}, p.cold}
			}
		}
		at = next
	}
	d.findings.Settle()
}

// judgeHost judges an access of the host side to the part of a page, which happens after all that is noted there.
func (d *Detector) judgeHost(p *page, addr, end uint64) {
	d.checkCold(p, addr, end)
	for i := range p.notes {
		if p.notes[i] == 0 {
			d.expand(p, uint64(i))
		}
	}
	for i := 0; i < pageLines && p.lines != nil; i++ {
		ln := p.lines[i]
		if ln == nil {
			continue
		}
		for j := range ln.cells {
			c := &ln.cells[j]
			at := p.addr + uint64(i*lineCells+j)*cellBytes
			if c.chunk == 0 || at+cellBytes <= addr || at >= end {
				continue
			}
			bytes := coverage(at, addr, end-addr)
			d.mem.each(c, func(e *entry) { d.checkOther(e, &d.classes[e.class()], p, at, bytes) })
		}
	}
	if d.act.class.side.Write {
		p.overwrite(addr, end-addr, nil)
	}
}

// recordHost makes the access a cold one.
func (d *Detector) recordHost(p *page, id, epoch uint32, addr, end uint64) {
	for at := addr; at < end; {
		n := cellBytes - at%cellBytes // to the end of the cell
		if n = min(n, end-at); n == cellBytes {
			n = (end - at) &^ (cellBytes - 1)
		}
		x := cold{class: id, epoch: epoch, bytes: coverage(at&^3, at, n)}
		for c := at; c < at+n; c += cellBytes {
			i := c % pageBytes / cellBytes
			x.cells[i/64] |= 1 << (i % 64)
		}
		d.addCold(p, x)
		at += n
	}
}

// reuse forgets all accesses to [addr, addr+size): it became or ceased to be an allocation.
func (d *Detector) reuse(addr, size uint64) {
	if size == 0 || addr+size < addr {
		return
	}
	end := addr + size
	removed := false
	for _, edge := range []uint64{addr, end} {
		if edge%pageBytes != 0 && d.mem.rangeCold(edge) != nil {
			d.mem.page(edge)
		}
	}
	if from, to := roundUp(addr), end&^(pageBytes-1); from < to {
		d.mem.setRange(from, to, nil)
	}
	for at := d.mem.nextPage(addr, end); at < end; at = d.mem.nextPage(at, end) {
		next := min((at/pageBytes+1)*pageBytes, end)
		p := d.mem.find(at)
		switch {
		case p == nil:
		case next-at == pageBytes:
			p.overwrite(at, pageBytes, nil)
			d.mem.remove(at)
			removed = true
		default:
			d.forgetPart(p, at, next)
		}
		at = next
	}
	if removed {
		d.breakHabits()
	}
}

// roundUp gives the first page from addr on.
func roundUp(addr uint64) uint64 { return (addr + pageBytes - 1) &^ (pageBytes - 1) }

func (d *Detector) forgetPart(p *page, addr, end uint64) {
	d.coolEnded(p)
	p.overwrite(addr, end-addr, nil)
	p.ownCold(0)
	var kept []cold
	for at := addr &^ 3; at < end; at += cellBytes {
		gone := coverage(at, addr, end-addr)
		i := at % pageBytes / cellBytes
		var cells pageCells
		cells[i/64] = 1 << (i % 64)
		for j := range p.cold {
			c := &p.cold[j]
			if c.bytes&gone == 0 || c.cells[i/64]&cells[i/64] == 0 {
				continue
			}
			if left := c.bytes &^ gone; left != 0 {
				kept = append(kept, cold{launch: c.launch, class: c.class, epoch: c.epoch, chain: c.chain, bytes: left, cells: cells, run: run{first: c.thread(p, at) - uint64(p.base)*32}})
			}
			c.without(&cells)
		}
		d.expand(p, at%pageBytes/lineBytes)
		ln := p.expanded(at % pageBytes / lineBytes)
		if ln == nil {
			continue
		}
		d.mem.each(&ln.cells[at%lineBytes/cellBytes], func(e *entry) {
			if e.head &^= gone; e.head&headBytes == 0 {
				d.mem.forget(e)
			}
		})
	}
	p.cold = slices.DeleteFunc(append(p.cold, kept...), func(c cold) bool { return c.empty() })
}
