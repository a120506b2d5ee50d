package oracle

import "fencepost.dev/fencepost/internal/event"

// Locked makes the stream of a random program whose threads, in several warps and blocks, access a few words in
// critical sections of one lock, one after the other. Most take the lock properly; some omit a fence or the lock, or
// use a scope that is too narrow. pick is as for Random.
func Locked(pick func(n int) int) *event.Batch {
	g := &generator{pick: pick, b: &event.Batch{}, agents: 1 + pick(2), space: 0x1000, span: 8}
	care := 2 + pick(30) // one in care steps of a section is wrong
	for i := 4 + pick(20); i > 0; i-- {
		if len(g.running) == 0 || g.pick(15) == 0 {
			g.scatterHost(3)
			continue
		}
		l := g.running[g.pick(len(g.running))]
		wpb := l.info.WarpsPerBlock()
		block := l.blocks[g.pick(len(l.blocks))]
		e := event.Event{Launch: l.info.ID, Warp: block*wpb + uint32(g.pick(int(wpb)))}
		w := l.warps[e.Warp]
		free := w.live &^ w.waits
		e.Mask = free & (1 << uint(g.pick(3)))
		switch {
		case free == 0:
		case g.pick(12) == 0:
			e.Mask, e.Place = free, 9
			g.wholeBarrier(l, block, e)
		case e.Mask != 0:
			g.section(e, free, care)
		}
	}
	for _, l := range g.running {
		g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
	}
	return g.b
}

// section makes a critical section of a thread. Sometimes the other lanes of free do the same in step with it, at other
// addresses.
func (g *generator) section(e event.Event, free uint32, care int) {
	wrong := func() bool { return g.pick(care) == 0 }
	scope := func() event.Scope {
		if wrong() {
			return event.ScopeCTA
		}
		return event.ScopeGPU
	}
	fence := func(place uint32) {
		if wrong() {
			return
		}
		f := e
		f.Kind, f.Order, f.Scope, f.Place = event.Fence, []event.Order{event.AcqRel, event.SC}[g.pick(2)], scope(), place
		g.emit(f)
	}
	lock := func(place uint32) {
		if wrong() {
			return
		}
		a := e
		a.Kind, a.Order, a.Scope, a.Place = event.Atomic, event.Relaxed, scope(), place
		a.Space, a.Size, a.Addr, a.Flags = event.Global, 4, g.wordAt(4), event.FlagRead|event.FlagWrite
		g.emit(a)
	}
	lock(1)
	fence(2)
	for i := 1 + g.pick(4); i > 0; i-- {
		x := e
		x.Space, x.Size, x.Place = event.Global, 4, 3+uint32(g.pick(5))
		x.Kind, x.Flags = event.Load, event.FlagRead
		switch x.Place {
		case 5, 6:
			x.Kind, x.Flags = event.Store, event.FlagWrite
		case 7:
			x.Kind, x.Flags, x.Order, x.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, event.ScopeCTA
		}
		x.Addr = g.wordAt(g.pick(3))
		if x.Place == 6 {
			x.Flags |= event.FlagValues
			x.Val = uint32(len(g.b.Values))
			g.b.Values = append(g.b.Values, uint64(g.pick(4)/3))
		}
		if g.pick(6) == 0 && x.Place != 6 {
			x.Mask, x.Stride = free, 128+4
		}
		g.emit(x)
	}
	fence(8)
	lock(9)
}

// Buckets makes a random program of threads that lock buckets side by side by compare-and-swap, access them and unlock,
// like insertions into a hash table. A bucket is a lock and two words. The lanes of a warp act in step, each on a
// bucket of its own. Some omit a fence or the lock, or use a scope that is too narrow. pick is as for Random.
func Buckets(pick func(n int) int) *event.Batch {
	g := &generator{pick: pick, b: &event.Batch{}, agents: 1 + pick(2), space: 0x1000, span: 8}
	s := &buckets{generator: g, care: 3 + pick(60), owned: make([]bool, 1+pick(4)), lanes: map[[3]uint32]*bucketLane{}}
	for i := 10 + pick(60); i > 0; i-- {
		if len(g.running) == 0 || g.pick(20) == 0 {
			g.scatterHost(1)
			continue
		}
		s.step(g.running[g.pick(len(g.running))])
	}
	for _, l := range g.running {
		g.emit(event.Event{Kind: event.KernelEnd, Launch: l.info.ID})
	}
	return g.b
}

type buckets struct {
	*generator
	care  int // one in care steps is wrong
	owned []bool
	lanes map[[3]uint32]*bucketLane
}

// bucketLane is the progress of a lane with its bucket.
type bucketLane struct{ bucket, stage int }

// step advances those lanes of a warp that have made the same progress.
func (s *buckets) step(l *runningLaunch) {
	wpb := l.info.WarpsPerBlock()
	block := l.blocks[s.pick(len(l.blocks))]
	e := event.Event{Launch: l.info.ID, Warp: block*wpb + uint32(s.pick(int(wpb)))}
	first := -1
	var of [32]*bucketLane
	for _, lane := range lanesOf(l.warps[e.Warp].live &^ l.warps[e.Warp].waits) {
		key := [3]uint32{e.Launch, e.Warp, uint32(lane)}
		if s.lanes[key] == nil {
			s.lanes[key] = &bucketLane{bucket: s.pick(len(s.owned))}
		}
		of[lane] = s.lanes[key]
		if first < 0 || s.pick(3) == 0 && e.Mask == 1<<first {
			first, e.Mask = lane, 1<<lane
		} else if of[lane].stage == of[first].stage && s.pick(4) > 0 {
			e.Mask |= 1 << lane
		}
	}
	if e.Mask == 0 {
		return
	}
	stage := of[first].stage
	next := stage + 1
	switch stage {
	case 0:
		s.take(e, &of)
		return
	case 1, 3:
		if s.pick(s.care) > 0 {
			e.Kind, e.Order, e.Scope, e.Place = event.Fence, []event.Order{event.AcqRel, event.SC}[s.pick(2)], s.wide(), uint32(2*stage)
			s.emit(e)
		}
	case 2:
		s.touch(e, &of, 1+s.pick(2))
		if s.pick(3) > 0 {
			next = stage
		}
	default:
		e.Kind, e.RMW, e.Order, e.Scope, e.Place = event.Atomic, event.Exchange, event.Relaxed, s.wide(), 3
		e.Space, e.Size, e.Flags = event.Global, 4, event.FlagRead|event.FlagWrite
		s.at(&e, &of, 0)
		s.emit(e)
		next = 0
	}
	for _, lane := range lanesOf(e.Mask) {
		if of[lane].stage = next; next == 0 {
			s.owned[of[lane].bucket] = false
			of[lane].bucket = s.pick(len(s.owned))
		}
	}
}

// take makes lanes try to lock their buckets.
func (s *buckets) take(e event.Event, of *[32]*bucketLane) {
	e.Kind, e.RMW, e.Order, e.Scope, e.Place = event.Atomic, event.CompareAndSwap, event.Relaxed, s.wide(), 1
	e.Space, e.Size = event.Global, 4
	got := e
	got.Mask = 0
	for _, lane := range lanesOf(e.Mask) {
		x := of[lane]
		if wrong := s.pick(s.care) == 0; s.owned[x.bucket] && !wrong {
			continue
		}
		s.owned[x.bucket] = true
		x.stage = 1
		got.Mask |= 1 << lane
	}
	e.Mask &^= got.Mask
	got.Flags, e.Flags = event.FlagRead|event.FlagWrite, event.FlagRead
	for _, x := range []event.Event{got, e} {
		if x.Mask != 0 {
			s.at(&x, of, 0)
			s.emit(x)
		}
	}
}

// touch makes lanes access a word of their buckets.
func (s *buckets) touch(e event.Event, of *[32]*bucketLane, word int) {
	e.Space, e.Size, e.Place = event.Global, 4, 7+uint32(s.pick(4))
	e.Kind, e.Flags = event.Load, event.FlagRead
	if e.Place > 8 {
		e.Kind, e.Flags = event.Store, event.FlagWrite
	}
	if s.pick(s.care) == 0 {
		word = 0
	}
	s.at(&e, of, word)
	if e.Place == 10 {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(s.b.Values))
		for range lanesOf(e.Mask) {
			s.b.Values = append(s.b.Values, uint64(s.pick(5)/4))
		}
	}
	s.emit(e)
}

// at gives lanes the addresses of a word of their buckets.
func (s *buckets) at(e *event.Event, of *[32]*bucketLane, word int) {
	e.Flags |= event.FlagScattered
	e.Side = uint32(len(s.b.Addrs))
	for _, lane := range lanesOf(e.Mask) {
		s.b.Addrs = append(s.b.Addrs, s.space+uint64(12*of[lane].bucket+4*word))
	}
}

// wide returns a scope that includes all threads, and sometimes one that does not.
func (s *buckets) wide() event.Scope {
	if s.pick(s.care) == 0 {
		return event.ScopeCTA
	}
	return event.ScopeGPU
}
