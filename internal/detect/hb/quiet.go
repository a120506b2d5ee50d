package hb

// quiet is words of a page whose current value launch wrote by atomics of gpu scope that released nothing. The launch has
// ended and is only known as a whole: quiets take the place of a loc for each word.
//
// Later launches that observe a quiet value need not be kept. Those that note words of the page begin after all of its
// cold accesses, the write among them, so that nobody knows of them and not of the write. For others there is a loc.
type quiet struct {
	launch *launch
	words  pageCells
}

// quietAt says that an aligned word is quiet.
func (p *page) quietAt(addr uint64) bool {
	i := addr % pageBytes / cellBytes
	for j := range p.quiets {
		if p.quiets[j].words[i/64]>>(i%64)&1 != 0 {
			return true
		}
	}
	return false
}

// quieten notes that a launch wrote the current value of a word.
func (p *page) quieten(l *launch, addr uint64) {
	p.rouse(addr)
	i := addr % pageBytes / cellBytes
	p.quietOf(l).words[i/64] |= 1 << (i % 64)
}

func (p *page) quietOf(l *launch) *quiet {
	for j := range p.quiets {
		if p.quiets[j].launch == l {
			return &p.quiets[j]
		}
	}
	keep := p.quiets[:0]
	for _, q := range p.quiets {
		if q.words != (pageCells{}) {
			keep = append(keep, q)
		}
	}
	p.quiets = append(keep, quiet{launch: l})
	return &p.quiets[len(p.quiets)-1]
}

// rouse forgets a quiet word.
func (p *page) rouse(addr uint64) {
	i := addr % pageBytes / cellBytes
	for j := range p.quiets {
		p.quiets[j].words[i/64] &^= 1 << (i % 64)
	}
}

// awaken makes the loc of a quiet word.
func (p *page) awaken(addr uint64) {
	if !p.quietAt(addr) {
		return
	}
	i := addr % pageBytes / cellBytes
	x := p.newLoc(addr, cellBytes)
	x.valid = 1<<cellBytes - 1
	x.wide = true
	const never = ^uint32(0) // no thread is known by itself
	for j := range p.quiets {
		if q := &p.quiets[j]; q.words[i/64]>>(i%64)&1 != 0 {
			x.launch = q.launch
			x.first = observer{q.launch, 0, 0, never}
		}
	}
	p.rouse(addr)
}

// overwriteQuiet tells the quiet words that [addr, addr+size) was written.
func (p *page) overwriteQuiet(addr, size uint64) {
	for at := addr &^ (cellBytes - 1); at < addr+size; at += cellBytes {
		if at < addr || at+cellBytes > addr+size {
			p.awaken(at)
		} else {
			p.rouse(at)
		}
	}
}

// valued says that something of the page was written strongly.
func (p *page) valued() bool { return p.locs != nil || len(p.quiets) > 0 }

// hushWrite lets a word be quiet that atomics of a launch wrote.
func (d *Detector) hushWrite(l *launch, p *page, addr uint64) {
	if len(p.cold) > 0 && p.locAt(addr, cellBytes) == nil && !p.quietAt(addr) {
		d.breakChain(p, addr, cellBytes)
	}
	p.overwrite(addr, cellBytes, nil)
	p.quieten(l, addr)
}
