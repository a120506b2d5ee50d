package engine

import (
	"context"
	"math/bits"
	"time"

	"fencepost.dev/fencepost/internal/isa"
)

// Driven executes a launch one warp instruction at a time, driven by a timing model. The model starts blocks when there
// is room for them, and chooses the warp that steps next, so the number of iterations of a spin loop depends on the
// modelled time. Driven executes instructions like engine ref, and produces the same events.
type Driven struct {
	r     *Run
	began time.Time
}

// DrivenWarp is a warp of a started block.
type DrivenWarp struct {
	r *Run
	w *Warp
	// Step describes the last step.
	Step Step
}

// Step describes what a warp did in a step.
type Step struct {
	Inst  *isa.Inst
	Lanes uint32 // the lanes that executed it: those whose guard held
	// For memory instructions: the lanes that accessed each space. The other lanes accessed constants or parameters, or
	// nothing.
	Global, Shared, Local uint32
	// Addr holds the addresses of these lanes (offsets, in shared and local memory). It is valid until the next step of
	// any warp.
	Addr *[32]uint64
	// Size is the number of bytes that each of them accessed.
	Size uint64
}

// NewDriven prepares a launch. Call Finish to end it.
func NewDriven(ctx context.Context, l *Launch) *Driven {
	r := NewRun(ctx, l)
	r.Machine = refMachine{r}
	if l.Sink != nil {
		r.placeElements()
	}
	r.Out.begin()
	return &Driven{r, time.Now()}
}

// StartBlock starts the next block of the grid and returns its warps; nil if all blocks have been started.
func (d *Driven) StartBlock() []*DrivenWarp {
	s := &d.r.Sched
	if s.started == s.blocks {
		return nil
	}
	c := d.r.single(d.r.nextCluster())
	s.resident = append(s.resident, c)
	warps := make([]*DrivenWarp, len(c.Warps))
	for i, w := range c.Warps {
		warps[i] = &DrivenWarp{r: d.r, w: w}
	}
	return warps
}

// Warps returns the number of warps in a block.
func (d *Driven) Warps() int { return int(d.r.Launch.WarpsPerBlock()) }

// Shared returns the size of a block's shared memory in bytes.
func (d *Driven) Shared() int { return d.r.SharedBytes() }

// Next returns the instruction that the warp executes in its next step, and the call depth. It returns nil if the warp
// cannot step. Only steps of the same block change that.
func (w *DrivenWarp) Next() (in *isa.Inst, depth int) {
	if !w.w.Runnable() {
		return nil, 0
	}
	if w.w.Regroup {
		if w.w.choose(w.r); !w.w.Runnable() {
			return nil, 0
		}
	}
	ln := &w.w.lanes[w.w.lead]
	return ln.code.Insts[ln.pc].Inst, int(ln.depth)
}

// Number returns the number of the warp within the grid, as in events.
func (w *DrivenWarp) Number() uint32 { return w.w.Number }

// Exited reports whether all threads of the warp have exited.
func (w *DrivenWarp) Exited() bool { return w.w.Live == 0 }

// BlockDone reports whether all threads of the warp's block have exited.
func (w *DrivenWarp) BlockDone() bool { return w.w.CTA.Live == 0 }

// Execute makes the warp execute its next instruction; the warp must be able to step. Step then describes it. The error
// says why the launch has ended.
func (w *DrivenWarp) Execute() error {
	r := w.r
	w.Next()
	ln := &w.w.lanes[w.w.lead]
	in := &ln.code.Insts[ln.pc]
	s := Step{Inst: in.Inst, Lanes: w.w.group, Addr: &r.Access.Addr, Size: in.Width}
	if in.Guard >= 0 {
		s.Lanes = w.w.guarded(in)
	}
	r.Access.Global, r.Access.Shared, r.Access.local = 0, 0, 0
	r.step(w.w)
	s.Global, s.Shared, s.Local = r.Access.Global, r.Access.Shared, r.Access.local
	w.Step = s
	return r.halted()
}

// EndBlock ends the block of a warp. All its threads must have exited.
func (d *Driven) EndBlock(w *DrivenWarp) {
	if !w.BlockDone() {
		panic("BUG: a block ends whose threads have not exited")
	}
	d.r.retire()
}

// Stuck reports that no warp can step although blocks have not ended, and returns the error.
func (d *Driven) Stuck() error {
	r := d.r
	r.retire()
	r.Faults.reportStuck(r)
	return ErrDeadlock
}

// Finish ends the launch. err is the reason if it did not run to its end, otherwise nil.
func (d *Driven) Finish(err error) (Stats, error) {
	r := d.r
	if err != nil && err != ErrDeadlock {
		err = r.interrupted(err)
	}
	r.Faults.deliver(r.Launch)
	r.Out.end()
	r.Stats.Elapsed = time.Since(d.began)
	r.Stats.Fault = r.Faults.lost
	if r.workspace != 0 {
		_, _ = r.Memory.Free(r.workspace) // the address is not known elsewhere
	}
	return r.Stats, err
}

// Lines appends the distinct lines of 1<<shift bytes that lanes of a step access, in the order of lanes.
func (s *Step) Lines(to []uint64, lanes uint32, shift uint) []uint64 {
	from := len(to)
	for m := lanes; m != 0; m &= m - 1 {
		at := s.Addr[bits.TrailingZeros32(m)]
	next:
		for l := at >> shift; l <= (at+max(s.Size, 1)-1)>>shift; l++ {
			for i := len(to) - 1; i >= from; i-- {
				if to[i] == l {
					continue next
				}
			}
			to = append(to, l)
		}
	}
	return to
}
