package hb

import (
	"slices"

	"fencepost.dev/fencepost/internal/detect"
)

// pageRange is whole pages of global memory that all have the same cold accesses, those of host operations on a large range. Pages in
// it are made when something else touches them, with these accesses; the range says nothing about a page that is there.
// It makes host operations cost what was touched of their range, and nothing depends on it otherwise.
type pageRange struct {
	from, end uint64
	cold      []cold
}

// rangePages is from how many pages without shadow on, one after the other, a host operation makes a range of them: 8 MiB.
const rangePages = 1 << 12

// rangeAt gives the number of the first range that ends behind addr.
func (s *shadow) rangeAt(addr uint64) int {
	i, _ := slices.BinarySearchFunc(s.ranges, addr, func(r pageRange, addr uint64) int {
		if r.end <= addr {
			return -1
		}
		return 1
	})
	return i
}

// rangeCold gives the accesses that a page has which is not there yet.
func (s *shadow) rangeCold(addr uint64) []cold {
	if i := s.rangeAt(addr); i < len(s.ranges) && s.ranges[i].from <= addr {
		return s.ranges[i].cold
	}
	return nil
}

// nextPage gives the address of the first page that is there of those in [addr, end), or end.
func (s *shadow) nextPage(addr, end uint64) uint64 {
	for n := addr / pageBytes; n*pageBytes < end; {
		k := n / dirPages
		r, ok := s.dirs[k]
		if !ok {
			n = (k + 1) * dirPages
			continue
		}
		for ; n/dirPages == k; n++ {
			if r.at(n%dirPages) != nil {
				return min(max(n*pageBytes, addr), end)
			}
		}
	}
	return end
}

// setRange replaces what is known of the pages in [from, end) that are not there; no cold accesses forget it.
func (s *shadow) setRange(from, end uint64, cold []cold) {
	i := s.rangeAt(from)
	j := i
	var parts []pageRange
	for ; j < len(s.ranges) && s.ranges[j].from < end; j++ {
		if r := s.ranges[j]; r.from < from {
			parts = append(parts, pageRange{r.from, from, r.cold})
		}
	}
	if len(cold) > 0 {
		parts = append(parts, pageRange{from, end, cold})
	}
	if i < j {
		if r := s.ranges[j-1]; r.end > end {
			parts = append(parts, pageRange{end, r.end, r.cold})
		}
	}
	s.ranges = slices.Replace(s.ranges, i, j, parts...)
}

// hostRange judges and records an access of the host side to pages from addr on that are not there, and gives where it
// ends: at addr where they are too few for a range, at the first page that is there, or where what is known of them changes.
func (d *Detector) hostRange(id, epoch uint32, addr, end uint64) uint64 {
	end = end &^ (pageBytes - 1)
	if addr%pageBytes != 0 || addr >= end || end-addr < d.rangePages*pageBytes || d.mem.find(addr) != nil {
		return addr
	}
	end = d.mem.nextPage(addr, end)
	if end-addr < d.rangePages*pageBytes {
		return addr
	}
	if i := d.mem.rangeAt(addr); i < len(d.mem.ranges) {
		if r := &d.mem.ranges[i]; r.from > addr {
			end = min(end, r.from)
		} else {
			end = min(end, r.end)
		}
	}
	p := &page{addr: addr}
	if cold := d.mem.rangeCold(addr); cold != nil {
		p.share(cold)
	}
	d.judgeHost(p, addr, addr+pageBytes)
	for i := range p.cold {
		c := &p.cold[i]
		races := detect.Classify(d.classes[c.class].side, d.act.class.side, detect.Relation{}) != detect.NoRace
		if races && !d.known(c, d.act.agent.knows) {
			d.addresses(c.class, addr, end)
		}
	}
	d.recordHost(p, id, epoch, addr, addr+pageBytes)
	d.mem.setRange(addr, end, p.cold)
	return end
}
