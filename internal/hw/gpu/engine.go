package gpu

import (
	"context"
	"fmt"
	"math/bits"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Engine is a GPU, with or without a detector. It implements engine.Engine by executing one launch at a time. It sums
// the counts of launches.
type Engine struct {
	Config   Config
	Detector *Detector // nil for none
	Costs    Costs
	Counts   Counts
}

// Run implements engine.Engine.
func (g *Engine) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	if l.ClusterShape().Count() > 1 {
		return engine.Stats{}, fmt.Errorf("clusters of several blocks are not simulated; the launch has clusters of %v", l.Cluster)
	}
	d := engine.NewDriven(ctx, l)
	m := newMemory(g.Config, g.Detector, g.Costs)
	r := &grid{d: d, m: m, c: &g.Config, shared: uint64(d.Shared())}
	r.sms = make([]sm, g.Config.SMs)
	for i := range r.sms {
		r.sms[i].last = make([]*warp, g.Config.Schedulers)
	}
	err := r.run()
	m.counts.Cycles = max(r.now, r.acked)
	g.Counts.add(&m.counts)
	stats, err := d.Finish(err)
	return stats, err
}

// grid is a launch that is being executed.
type grid struct {
	d      *engine.Driven
	m      *memory
	c      *Config
	shared uint64 // shared memory of a block in bytes
	sms    []sm
	now    uint64
	acked  uint64 // when the stores of all ended blocks are acknowledged
	live   int    // number of running blocks
	over   bool
	lines  []uint64
}

// sm is a streaming multiprocessor.
type sm struct {
	warps  []*warp // the oldest first
	last   []*warp // by scheduler: the warp that issued last
	blocks int
	unit   uint64 // when the memory unit accepts the next instruction
	wake   uint64 // no warp is ready before this time
}

// warp is a warp on an SM.
type warp struct {
	*engine.DrivenWarp
	block    []*warp
	wake     uint64 // when its next instruction can be issued; never if it waits for other warps
	class    isa.Class
	acked    uint64 // when its stores are acknowledged
	depth    int
	pending  []result
	inMemory bool // class belongs to the memory unit
}

// result is a register whose value has not arrived yet.
type result struct {
	reg   int32
	ready uint64
}

const never = ^uint64(0)

// run runs the grid to its end.
func (r *grid) run() error {
	r.fill()
	for r.live > 0 {
		for i := range r.sms {
			if s := &r.sms[i]; s.wake <= r.now {
				if err := r.cycle(i, s); err != nil {
					return err
				}
			}
		}
		next := never
		for i := range r.sms {
			next = min(next, r.sms[i].wake)
		}
		if r.live > 0 && next == never {
			return r.d.Stuck()
		}
		if r.now++; next != never {
			r.now = max(r.now, next)
		}
	}
	return nil
}

// fill starts blocks on SMs that have room, one on each SM in turn. A block that fits no SM gets an SM of its own.
func (r *grid) fill() {
	for i := 0; !r.over; {
		started := false
		for i = range r.sms {
			if s := &r.sms[i]; !r.over && r.room(s) {
				r.start(s)
				started = true
			}
		}
		if !started {
			return
		}
	}
}

func (r *grid) room(s *sm) bool {
	n := s.blocks
	return n == 0 || n < r.c.BlocksPerSM && (n+1)*r.d.Warps() <= r.c.WarpsPerSM && uint64(n+1)*r.shared <= uint64(r.c.SharedBytes)
}

func (r *grid) start(s *sm) {
	block := r.d.StartBlock()
	if block == nil {
		r.over = true
		return
	}
	warps := make([]*warp, len(block))
	for i, w := range block {
		warps[i] = &warp{DrivenWarp: w, block: warps}
		r.ready(warps[i])
	}
	s.warps = append(s.warps, warps...)
	s.blocks++
	s.wake = min(s.wake, r.now)
	r.live++
}

// cycle issues the instructions that the schedulers of an SM can issue now.
func (r *grid) cycle(n int, s *sm) error {
	issued := 0
	for k := range s.last {
		w := s.pick(k, r.now)
		if w == nil {
			continue
		}
		issued++
		s.last[k] = w
		if err := r.issue(n, s, w); err != nil {
			return err
		}
	}
	s.wake = never
	for _, w := range s.warps {
		s.wake = min(s.wake, w.at(s))
	}
	if issued > 0 {
		s.wake = max(s.wake, r.now+1)
	}
	if s.wake != never && s.wake > r.now+1 {
		r.m.counts.Idle += s.wake - r.now - 1
	}
	return nil
}

// at returns the earliest time at which the warp can issue, as far as known.
func (w *warp) at(s *sm) uint64 {
	if w.inMemory && w.wake != never {
		return max(w.wake, s.unit)
	}
	return w.wake
}

// pick returns the warp that scheduler k issues: the one that it issued last if that is ready, otherwise the oldest
// ready one.
func (s *sm) pick(k int, now uint64) *warp {
	if w := s.last[k]; w != nil && w.at(s) <= now {
		return w
	}
	for i, w := range s.warps {
		if i%len(s.last) == k && w.at(s) <= now {
			return w
		}
	}
	return nil
}

// ready computes when the warp's next instruction can be issued.
func (r *grid) ready(w *warp) {
	in, depth := w.Next()
	if in == nil {
		w.wake = never
		return
	}
	at := r.now
	if w.depth != depth {
		// Another function numbers registers differently, so wait for all of them.
		for _, p := range w.pending {
			at = max(at, p.ready)
		}
		w.pending, w.depth = w.pending[:0], depth
	} else {
		kept := w.pending[:0]
		for _, p := range w.pending {
			if p.ready <= r.now {
				continue
			}
			if uses(in, p.reg) {
				at = max(at, p.ready)
			}
			kept = append(kept, p)
		}
		w.pending = kept
	}
	if in.Class == isa.Fence {
		at = max(at, w.acked)
	}
	w.class = in.Class
	w.inMemory = in.Class == isa.Load || in.Class == isa.Store || in.Class == isa.Atomic
	w.wake = at
}

// uses reports whether an instruction reads or writes a register.
func uses(in *isa.Inst, reg int32) bool {
	if in.Guard == reg {
		return true
	}
	for i := range in.Src {
		if o := &in.Src[i]; o.Kind == isa.Reg && o.Reg == reg {
			return true
		}
	}
	for i := range in.Dst {
		if o := &in.Dst[i]; o.Kind == isa.Reg && o.Reg == reg {
			return true
		}
	}
	return false
}

// issue executes the next instruction of a warp, and computes when its results arrive.
func (r *grid) issue(n int, s *sm, w *warp) error {
	if err := w.Execute(); err != nil {
		return err
	}
	r.m.counts.Instructions++
	step := &w.Step
	in := step.Inst
	done := r.now + uint64(r.c.ALULatency)
	others := false
	switch in.Class {
	case isa.Load, isa.Store, isa.Atomic:
		done = r.access(n, s, w)
	case isa.Fence:
		if step.Lanes != 0 {
			done = r.m.fence(r.now, n, int(w.Number()))
			w.acked = max(w.acked, done)
		}
	case isa.Pure, isa.Special, isa.Branch, isa.Call, isa.Ret, isa.Hint:
	default:
		others = true
	}
	if w.Exited() || others || in.Class == isa.Ret {
		if w.BlockDone() {
			r.end(s, w)
			return nil
		}
		for _, o := range w.block {
			if o != w && o.wake == never {
				r.ready(o)
				o.wake = max(o.wake, r.now+1)
			}
		}
	}
	for i := range in.Dst {
		if o := &in.Dst[i]; o.Kind == isa.Reg {
			w.pending = append(w.pending, result{o.Reg, done})
		}
	}
	r.ready(w)
	if w.wake != never {
		w.wake = max(w.wake, r.now+1)
	}
	return nil
}

// end ends the block of a warp and starts other blocks.
func (r *grid) end(s *sm, w *warp) {
	for _, o := range w.block {
		r.acked = max(r.acked, o.acked)
	}
	kept := s.warps[:0]
	for _, o := range s.warps {
		if &o.block[0] != &w.block[0] {
			kept = append(kept, o)
		}
	}
	clear(s.warps[len(kept):])
	s.warps = kept
	clear(s.last)
	s.blocks--
	r.live--
	r.d.EndBlock(w.DrivenWarp)
	r.fill()
}

// access sends a memory instruction through the memory unit of an SM. It returns when the results arrive.
func (r *grid) access(n int, s *sm, w *warp) uint64 {
	step := &w.Step
	in := step.Inst
	t := max(r.now, s.unit)
	done := t + uint64(r.c.ALULatency) // of constants and parameters
	if step.Shared != 0 {
		rounds := conflicts(step)
		done = max(done, t+uint64(r.c.SharedLatency)+rounds-1)
		t += rounds
	}
	if step.Global != 0 {
		r.lines = step.Lines(r.lines[:0], step.Global, lineShift)
		for _, line := range r.lines {
			first, last, bytes, lanes := within(step, line)
			at := t
			var end uint64
			switch in.Class {
			case isa.Load:
				end, at = r.m.load(t, n, line, first, last, in.Order == event.Weak)
			case isa.Store:
				end = r.m.store(t, n, line, first, last, bytes)
				w.acked = max(w.acked, end)
			default:
				end = r.m.atomic(t, n, line, first, last, bytes, lanes, len(in.Dst) > 0)
				w.acked = max(w.acked, end)
			}
			done = max(done, end)
			t = max(t, at) + 1
		}
	}
	// Local memory interleaves the lanes: the words of all lanes at one offset form a line.
	var word uint64 = never
	for m := step.Local; m != 0; m &= m - 1 {
		at := step.Addr[bits.TrailingZeros32(m)] / 4
		if at == word {
			continue
		}
		word = at
		for k := range max(step.Size/4, 1) {
			done = max(done, r.m.local(t, n, uint64(w.Number())<<20|(at+k), in.Class == isa.Store))
			t++
		}
	}
	s.unit = max(t, r.now+1)
	return done
}

// within returns the first and the last byte that a step accesses within a line, the total number of bytes, and the
// number of lanes.
func within(step *engine.Step, line uint64) (first, last, bytes, lanes int) {
	first, last = lineBytes, 0
	var mask [2]uint64
	from := line << lineShift
	for m := step.Global; m != 0; m &= m - 1 {
		at := step.Addr[bits.TrailingZeros32(m)]
		a, b := max(at, from), min(at+step.Size, from+lineBytes)
		if a >= b {
			continue
		}
		lanes++
		first, last = min(first, int(a-from)), max(last, int(b-from)-1)
		for x := a - from; x < b-from; x++ {
			mask[x/64] |= 1 << (x % 64)
		}
	}
	return first, last, bits.OnesCount64(mask[0]) + bits.OnesCount64(mask[1]), lanes
}

// conflicts returns the number of rounds of an access to shared memory, which has 32 banks of 4 bytes. Each bank
// provides one word a round.
func conflicts(step *engine.Step) uint64 {
	var words [32][]uint64
	most := 1
	for m := step.Shared; m != 0; m &= m - 1 {
		at := step.Addr[bits.TrailingZeros32(m)]
	next:
		for x := at / 4; x <= (at+max(step.Size, 1)-1)/4; x++ {
			b := x % 32
			for _, y := range words[b] {
				if x == y {
					continue next
				}
			}
			words[b] = append(words[b], x)
			most = max(most, len(words[b]))
		}
	}
	return uint64(most)
}
