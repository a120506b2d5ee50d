package history

// readers is loads of a word that nobody has written, by several threads: as a word each. word.lanes says how many.
type readers [8]word

// readersOf gives those of a word.
func (h *Fast) readersOf(w *word) []word {
	return h.readers[w.stamp&^readFlag][:w.lanes]
}

// share gives a word that has one load room for those of others.
func (h *Fast) share(w *word) {
	n := uint32(len(h.readers))
	if k := len(h.freeReaders); k > 0 {
		n, h.freeReaders = h.freeReaders[k-1], h.freeReaders[:k-1]
	} else {
		h.readers = append(h.readers, readers{})
	}
	h.readers[n][0] = *w
	*w = word{n | readFlag, 1}
}

// read adds a load to those of a word. It says false, having done nothing, where there is no room.
func (h *Fast) read(w *word, number, lane uint32) bool {
	all := h.readersOf(w)
	if all[0].stamp < h.current.firstStamp {
		h.inheritReaders(w, number)
		all = h.readersOf(w)
	}
	for i := range all {
		x := &all[i]
		if x.stamp == number {
			x.lanes |= lane
			return true
		}
		if x.lanes == lane && h.supersedes(number, &h.stamps[x.stamp]) {
			x.stamp = number
			return true
		}
	}
	if len(all) == len(readers{}) {
		return false
	}
	h.readers[w.stamp&^readFlag][len(all)] = word{number, lane}
	w.lanes++
	return true
}

// inheritReaders keeps of the loads of a launch that has ended one for each site, and none for that of a load by one that follows.
func (h *Fast) inheritReaders(w *word, number uint32) {
	n := &h.stamps[number]
	block := &h.readers[w.stamp&^readFlag]
	kept := uint32(0)
next:
	for _, x := range block[:w.lanes] {
		s := &h.stamps[x.stamp]
		if s.launch != n.launch && h.summed(s.launch) {
			if s.site == n.site && n.launch.Follows(s.launch) {
				continue
			}
			for _, o := range block[:kept] {
				if y := &h.stamps[o.stamp]; y.site == s.site && y.launch == s.launch {
					continue next
				}
			}
		}
		block[kept] = x
		kept++
	}
	if kept == 0 {
		block[0], kept = word{number, 0}, 1
	}
	w.lanes = kept
}
