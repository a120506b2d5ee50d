package hb

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/clock"
)

// cold is accesses of one class in a page that only order as a whole: those of a launch that has ended and no thread of
// which is known by itself, or one operation of a host agent.
type cold struct {
	launch *launch // nil for the host
	class  uint32  // one for all launches, or of a host operation
	epoch  uint32  // of the agent, for the host
	bytes  uint32  // of each cell
	chain  bool    // strong writes, in the chain that made the current value
	shift  uint8   // cells of an access: 1<<shift
	cells  pageCells
	// The threads, by cell of the page, less those of the warps below page.base: runs in ascending order, and what comes to them
	// from line to line. So pages of which the same is to be said have the same colds.
	jump uint64
	run
	more []run
	// each is, in place of more where that would take more room, the thread of each cell from run.from on.
	// They are threads of less than 1<<32, and count modulo that.
	each []uint32
}

// run is threads warp*32+lane = first + step*(cell>>shift - from>>shift) of the cells of a cold from cell from on.
type run struct {
	from, first, step uint64
}

// thread gives one of the threads that accessed the cell at an address of page p.
func (c *cold) thread(p *page, addr uint64) uint64 {
	if c.launch == nil {
		return 0
	}
	cell := addr % pageBytes / cellBytes
	r := &c.run
	if c.each != nil {
		return uint64(c.each[cell-r.from] + p.base*32)
	}
	for i := range c.more {
		if c.more[i].from > cell {
			break
		}
		r = &c.more[i]
	}
	return uint64(p.base)*32 + r.first + r.step*(cell>>c.shift-r.from>>c.shift) + c.jump*(cell/lineCells)
}

// without takes cells out.
func (c *cold) without(cells *pageCells) {
	for i := range c.cells {
		c.cells[i] &^= cells[i]
	}
}

func (c *cold) empty() bool { return c.cells == pageCells{} }

// known says that f includes all of c.
func (d *Detector) known(c *cold, f *clock.Foreign) bool {
	if c.launch != nil {
		return over(c.launch, f)
	}
	return f.Agent(d.classes[c.class].agent) >= c.epoch
}

// checkCold judges the accesses of the actor's lanes to the part of [addr, end) in page p with p's cold accesses.
func (d *Detector) checkCold(p *page, addr, end uint64) {
	a := &d.act
	if a.blk != nil {
		all := true
		for i := range p.cold {
			all = all && d.known(&p.cold[i], a.blk.start)
		}
		if all {
			p.warmed = a.blk.info.ID
			return
		}
	}
	end = min(end, p.addr+pageBytes)
	for i := range p.cold {
		if c := &p.cold[i]; !d.known(c, a.beyond()) {
			d.meetCold(p, c, addr, end)
		}
	}
}

func (d *Detector) meetCold(p *page, c *cold, addr, end uint64) {
	a := &d.act
	k := &d.classes[c.class]
	cat := detect.Classify(k.side, a.class.side, detect.Relation{})
	if cat == detect.NoRace {
		return
	}
	for at := addr &^ 3; at < end; at += cellBytes {
		i := int(at % pageBytes / cellBytes)
		if c.cells[i/64]>>uint(i%64)&1 == 0 {
			continue
		}
		bytes := c.bytes & coverage(at, addr, end-addr)
		if bytes == 0 {
			continue
		}
		t := c.thread(p, at)
		m := meeting{d: d, k: k, launch: c.launch, best: cat, lanes: a.lanes, warp: uint32(t / 32), lane: int(t % 32)}
		if c.chain {
			d.observed(&m, p, at, c.bytes, k)
		}
		if m.lanes == 0 {
			continue
		}
		d.report(&entry{head: c.class<<headShift | c.bytes}, &m, at, bytes)
		if !c.chain && c.bytes == headBytes {
			at += d.sameCold(p, c, at+cellBytes, end)
		}
	}
}

// sameCold adds the whole cells from at on that a cold access covers without a gap to the bytes that race: a copy of a
// large buffer meets millions of cells which tell nothing new. It gives how many bytes those are.
func (d *Detector) sameCold(p *page, c *cold, at, end uint64) (n uint64) {
	for at+n+cellBytes <= end {
		if i := (at + n) % pageBytes / cellBytes; c.cells[i/64]>>(i%64)&1 == 0 {
			break
		}
		n += cellBytes
	}
	if n != 0 {
		d.addresses(c.class, at, at+n)
	}
	return n
}

// cool turns what a launch that has ended left in shadow memory into cold accesses and gives its classes back, unless notes stay.
func (d *Detector) cool(l *launch) {
	stay := l.pages[:0]
	for _, p := range l.pages {
		d.coolPage(l, p)
		if p.noter == l.info.ID && p.notes == [pageLines]uint32{} {
			p.noter, p.open, p.stale = 0, false, false
		}
		if p.noter == l.info.ID {
			stay = append(stay, p)
		}
	}
	clear(l.pages[len(stay):])
	d.mem.forms.forget()
	d.cooled = [len(d.cooled)]samePages{}
	l.pages, l.logs, l.ended, l.listed = stay, nil, nil, nil
	if len(stay) == 0 {
		d.finish(l)
	} else {
		d.stay(l)
	}
}

// finish gives back the classes of a launch of which nothing but cold accesses is left.
func (d *Detector) finish(l *launch) {
	for _, id := range l.classes {
		d.classes[id] = class{}
		d.free = append(d.free, id)
	}
	slices.Sort(d.free) // the order of classes must not depend on that of a map
	d.mem.notebook.deeds.forget(l)
	l.pages, l.classes = nil, nil
	delete(d.launches, l.info.ID)
}

// Bounds of d.warm.
const (
	manyWarm    = 32
	tooManyWarm = 1024
)

// retire cools a launch that has ended. One that has released something waits, for single threads of it may still become known
// to others. When many wait, those are cooled that every agent knows wholly, and when too many, the oldest: a thread
// of a stream that has not been ordered after it for a thousand launches, and yet acquires from it, would then not be believed.
func (d *Detector) retire(l *launch) {
	if !l.published {
		d.cool(l)
		return
	}
	d.warm = append(d.warm, l)
	if len(d.warm) <= manyWarm {
		return
	}
	keep := d.warm[:0]
	for i, w := range d.warm {
		known := len(d.warm)-i > tooManyWarm
		if !known {
			known = true
			for _, a := range d.agents {
				known = known && over(w, a.knows)
			}
			for _, o := range d.launches {
				known = known && (o.end != 0 || over(w, o.start))
			}
		}
		if known {
			d.cool(w)
		} else {
			keep = append(keep, w)
		}
	}
	clear(d.warm[len(keep):])
	d.warm = keep
}

// coldClass gives the class that stands for class k of all launches.
func (d *Detector) coldClass(k *class) uint32 {
	if k.cold != 0 {
		return k.cold
	}
	id, ok := d.colds[k.key]
	if !ok {
		c := *k
		c.launch = nil
		id = d.newClass(c)
		d.colds[k.key] = id
	}
	if ok {
		k.cold = id
	}
	return id
}

// coolPage turns what a launch that has ended left in a page into cold accesses.
func (d *Detector) coolPage(l *launch, p *page) {
	for i := range d.cooled {
		if s := &d.cooled[i]; s.after != nil && s.of(p) {
			p.base = p.marks[s.first].warp
			d.mem.dropForms(p)
			p.share(s.after)
			return
		}
	}
	same, ok := d.sameForms(l, p)
	if ok {
		p.rebase(p.marks[same.first].warp)
	}
	d.cooling = d.cooling[:0]
	d.coolPacks(l, p)
	d.coolRolls(l, p)
	for i := 0; i < pageLines && p.lines != nil; i++ {
		ln := p.lines[i]
		if ln == nil {
			continue
		}
		busy := false
		for j := range ln.cells {
			c := &ln.cells[j]
			if c.chunk == 0 {
				continue
			}
			d.mem.each(c, func(e *entry) {
				k := e.class()
				if d.classes[k].launch != l {
					busy = true
					return
				}
				d.coolEntry(e, k, i*lineCells+j)
				d.mem.forget(e)
			})
		}
		if !busy {
			d.mem.recycle(ln)
			p.lines[i] = nil
		}
	}
	d.addCooling(p)
	if ok {
		p.share(p.cold)
		d.cooled[d.turn%uint(len(d.cooled))] = samePages{same, p.cold}
		d.turn++
	}
	if l.published && p.noter == l.info.ID {
		d.coolNotes(p, 0)
	}
}

// addCooling adds to the cold accesses of a page what was gathered.
func (d *Detector) addCooling(p *page) {
	for _, g := range d.cooling {
		k := &d.classes[g.class]
		x := g.cold(p, d.coldClass(k))
		x.launch = k.launch
		d.addCold(p, x)
	}
}

// gathered is the accesses of one class to a page that become cold.
type gathered struct {
	class, bytes uint32
	chain        bool
	shift        uint8
	cells        pageCells
	threads      [pageBytes / cellBytes]uint64
	runs         []run // scratch
}

// gatheredOf gives what is gathered of a class.
func (d *Detector) gatheredOf(k, of uint32, chain bool) *gathered {
	for _, g := range d.cooling {
		if g.class == k && g.bytes == of && g.chain == chain {
			return g
		}
	}
	n := len(d.cooling)
	if n < cap(d.cooling) {
		d.cooling = d.cooling[:n+1]
	} else {
		d.cooling = append(d.cooling, nil)
	}
	if d.cooling[n] == nil {
		d.cooling[n] = new(gathered)
	}
	g := d.cooling[n]
	g.class, g.bytes, g.chain, g.shift, g.cells = k, of, chain, 0, pageCells{}
	if size := d.classes[k].key.size; of == headBytes && size > cellBytes {
		g.shift = uint8(bits.TrailingZeros8(size / cellBytes))
	}
	return g
}

func (g *gathered) put(cell int, thread uint64) {
	g.cells[cell/64] |= 1 << uint(cell%64)
	g.threads[cell] = thread
}

// cold gives what was gathered of a launch, with as few runs of threads as come from going through the cells.
func (g *gathered) cold(p *page, class uint32) cold {
	x := cold{class: class, bytes: g.bytes, chain: g.chain, shift: g.shift, cells: g.cells}
	base := uint64(p.base) * 32
	first, last := g.bounds()
	most := len(g.threads) // runs
	if g.fits(first, last) {
		most = 4 * (last + 1 - first) / runBytes // more take more room than each
	}
	runs, all := g.inRuns(base, max(most, 1))
	if !all {
		x.from = uint64(first)
		x.each = make([]uint32, last+1-first)
		for i := range x.each {
			x.each[i] = uint32(g.threads[first+i] - base)
		}
		return x
	}
	x.run = runs[0]
	x.more = slices.Clone(runs[1:])
	return x
}

// bounds gives the first and the last cell.
func (g *gathered) bounds() (first, last int) {
	first = -1
	for i, w := range g.cells {
		if w == 0 {
			continue
		}
		if first < 0 {
			first = i*64 + bits.TrailingZeros64(w)
		}
		last = i*64 + bits.Len64(w) - 1
	}
	return first, last
}

// inRuns gives the threads, less base, as runs of cells. It says false if these are more than most.
func (g *gathered) inRuns(base uint64, most int) (runs []run, all bool) {
	var r run
	runs = g.runs[:0]
	begun, stepped := false, false
	for i, w := range g.cells {
		for ; w != 0; w &= w - 1 {
			at := i*64 + bits.TrailingZeros64(w)
			t := g.threads[at] - base
			cell := uint64(at)
			far := cell>>g.shift - r.from>>g.shift
			if begun && !stepped && far > 0 && int64(t-r.first)%int64(far) == 0 {
				r.step, stepped = uint64(int64(t-r.first)/int64(far)), true
			}
			if begun && t == r.first+r.step*far {
				continue
			}
			if begun {
				if runs = append(runs, r); len(runs) == most {
					g.runs = runs
					return nil, false
				}
			}
			r, begun, stepped = run{from: cell, first: t}, true, false
		}
	}
	g.runs = append(runs, r)
	return g.runs, true
}

// runBytes is the size of a run.
const runBytes = 24

// fits says that the threads of cells first to last take 32 bits each.
func (g *gathered) fits(first, last int) bool {
	var all uint64
	for _, t := range g.threads[first : last+1] {
		all |= t
	}
	return all < 1<<32
}

// coolEntry adds an entry to the cold accesses being gathered.
func (d *Detector) coolEntry(e *entry, k uint32, cell int) {
	t := uint64(e.warp)*32 + uint64(bits.TrailingZeros32(e.lanes))
	if e.head&headMany != 0 {
		t = uint64(e.warp)*32 + uint64(e.exec&31)
	}
	d.gatheredOf(k, e.head&headBytes, e.head&headChain != 0).put(cell, t)
}

// addCold adds x. Older accesses alike that happen before all of x are dropped where x covers them: whatever may race
// with them races with x too.
func (d *Detector) addCold(p *page, x cold) {
	p.warmed, p.open = 0, false
	p.ownCold(1)
	n := 0
	for i := range p.cold {
		c := &p.cold[i]
		// An access outside the chain cannot give way to one inside, which an observer of the value does not race with.
		if c.bytes == x.bytes && (c.chain || !x.chain) && d.alike(c.class, x.class) && d.before(c, &x) {
			c.without(&x.cells)
		}
		if c.empty() {
			continue
		}
		if n != i {
			p.cold[n] = *c
		}
		n++
	}
	clear(p.cold[n:])
	p.cold = append(p.cold[:n], x)
}

// ownCold makes sure that the page's cold accesses, and room for n more, are its own.
func (p *page) ownCold(n int) {
	if p.shares {
		p.cold, p.shares = append(make([]cold, 0, len(p.cold)+n), p.cold...), false
	}
}

// sameLines is what pages have in common whose cold accesses become the same.
type sameLines struct {
	forms   [pageLines]uint32 // those that lines have
	warps   [pageLines]uint32 // what the forms are relative to, less that of the first
	first   int               // line with a form
	before  *cold             // cold accesses that the page shared with others
	n       int               // of before
	threads bool              // one of before is of a launch
	base    uint32            // with threads: that of before, less the one of after
}

// samePages remembers what a page's cold accesses became.
type samePages struct {
	sameLines
	after []cold
}

// of says that p is such a page.
func (s *sameLines) of(p *page) bool {
	base := p.marks[s.first].warp
	for i := range p.marks {
		if m := &p.marks[i]; m.form != s.forms[i] || m.form != 0 && m.warp-base != s.warps[i] {
			return false
		}
	}
	if !p.packsOnly() || s.threads && p.base-base != s.base {
		return false
	}
	before, n, ok := p.sharedCold()
	return ok && before == s.before && n == s.n
}

// packsOnly says that all of the page's lines with something in them are packed.
func (p *page) packsOnly() bool {
	return (p.lines == nil || *p.lines == [pageLines]*line{}) && p.notes == [pageLines]uint32{}
}

// sharedCold gives what pages that share their cold accesses have in common; not ok when p does not.
func (p *page) sharedCold() (first *cold, n int, ok bool) {
	if len(p.cold) == 0 {
		return nil, 0, true
	}
	return &p.cold[0], len(p.cold), p.shares
}

// share gives a page cold accesses that it shares.
func (p *page) share(colds []cold) {
	p.cold, p.shares, p.warmed, p.open = colds, true, 0, false
}

// hasThreads says that one of the page's cold accesses is of a launch.
func (p *page) hasThreads() bool {
	for i := range p.cold {
		if p.cold[i].launch != nil {
			return true
		}
	}
	return false
}

// rebase makes the page's cold accesses relative to another warp.
func (p *page) rebase(base uint32) {
	far := uint64(p.base)*32 - uint64(base)*32
	p.base = base
	if far == 0 || !p.hasThreads() {
		return
	}
	p.ownCold(0)
	for i := range p.cold {
		c := &p.cold[i]
		c.more, c.each = slices.Clone(c.more), slices.Clone(c.each)
		c.first += far
		for j := range c.more {
			c.more[j].first += far
		}
		for j := range c.each {
			c.each[j] += uint32(far)
		}
	}
}

// alike says that races with accesses of two classes of cold accesses are the same findings.
func (d *Detector) alike(x, y uint32) bool {
	p, q := &d.classes[x], &d.classes[y]
	return x == y || p.host != "" && p.host == q.host && p.side == q.side
}

// before says that cold accesses c happen before all of x, of an agent that is acting now if of one.
func (d *Detector) before(c, x *cold) bool {
	if x.launch != nil {
		return d.known(c, x.launch.start)
	}
	return d.known(c, d.agentOf(d.classes[x.class].agent).knows)
}

// unchainCold takes the cold accesses to a scalar out of the chain of its current value.
func (d *Detector) unchainCold(p *page, at uint64, bytes uint32, size uint8) {
	i := at % pageBytes / cellBytes
	var cells pageCells
	cells[i/64] = 1 << (i % 64)
	for j := 0; j < len(p.cold); j++ {
		c := &p.cold[j]
		if !c.chain || c.bytes&bytes == 0 || c.cells[i/64]&cells[i/64] == 0 || d.classes[c.class].side.Unit != int(size) {
			continue
		}
		x := cold{launch: c.launch, class: c.class, bytes: c.bytes, cells: cells, run: run{first: c.thread(p, at) - uint64(p.base)*32}}
		p.ownCold(1)
		p.cold[j].without(&cells)
		d.addCold(p, x)
		j = -1 // addCold may have moved the others
	}
}
