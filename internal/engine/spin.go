package engine

import (
	"bytes"
	"errors"
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
)

// ErrHostWait is the error of a launch whose threads loop until memory changes that the host can write.
var ErrHostWait = errors.New("its threads loop until memory changes that the host can write, and a launch runs to its end before the host goes on")

// ErrDeviceWait is the error of a launch, on one of several devices, whose threads loop until memory changes that
// kernels on other devices can write.
var ErrDeviceWait = errors.New("its threads loop until memory changes that a kernel on another device can write, and a launch runs to its end before the next one begins")

// When and for how long launches are watched.
const (
	// spinFirst is the cost of a launch, in which polls count pollCost, at which it is first watched. SpinRounds is the
	// number of rounds for which it is then watched.
	spinFirst  = 1 << 17
	SpinRounds = 1 << 10
	// spinStrain is the least cost that a warp runs until every group of its lanes has had a slice: each group waits at
	// most one period for every other one.
	spinStrain = 64 * Starved
)

// spin finds launches that run for ever without progress: all threads that can step loop, waiting for memory that
// nobody changes. From time to time, when its cost has grown by half, a launch is watched for some rounds. A poll costs
// more than other steps, so a launch that only polls is watched before detectors have judged millions of its polls. The
// launch spins if during the watch nothing was stored, no atomic changed a value, no thread arrived at a barrier, and
// every warp that can step returned to its state at the beginning, with all its lanes having run. Each thread then
// depends only on what does not change, so no other order of the threads would make progress from here.
//
// Threads that read clocks do not return to their state, and may wait for time to pass. Clocks are therefore stopped
// while such a launch is watched. When it has returned to its state, time passes quickly for some rounds, by hours in
// total and in steps of varied sizes, which ends every wait for a time. If the launch then returns to its state once
// more, it spins.
//
// Not judged are launches that ask which lanes are active while they are watched, and launches that may still get new
// blocks or see writes by the host.
type spin struct {
	first   uint64 // spinFirst
	at      uint64 // the cost at which to watch next
	Phase   spinPhase
	rounds  int
	timed   bool // the launch reads clocks
	Active  bool // since spinQuiet began, lanes have asked which lanes are active, so that the grouping of lanes matters
	asked   bool // timed is valid
	waited  bool // time has passed quickly, and nothing has happened
	stands  bool // clocks are stopped, and show stood
	stood   uint64
	ahead   uint64 // time that has passed quickly, added to clocks
	random  uint64
	hostMet bool // since spinQuiet began, memory that the host can write was accessed with a scope that includes the host
	peerMet bool // the same for memory that another device can write
	warps   []spinning
	blocks  []arrivals

	resident int // number of resident blocks when spinQuiet began
}

type spinPhase uint8

// The phases of watching a launch.
const (
	SpinIdle   spinPhase = iota
	spinQuiet            // waiting for a round without stores
	spinSettle           // clocks are stopped, and threads forget what they showed before
	spinWatch
	spinHurry // time passes quickly
)

// spinning is a watched warp, with its state at the beginning.
type spinning struct {
	w      *Warp
	live   uint32
	ready  uint32
	strain uint64
	whole  stand
	stands [32]uint64
	splits []Split
	image  any
	alone  bool // its lanes ran together
	back   bool // it has been in this state again
}

// arrivals are the counts of the barriers of a block.
type arrivals struct {
	c         *CTA
	completed uint64
	counts    []int
}

// spins checks, between rounds, whether the launch makes progress. If it does not, it returns the error that ends the
// launch.
func (r *Run) spins() error {
	s, p := &r.Sched, &r.Sched.Spin
	if s.spent < p.at || s.started < s.blocks || r.Launch.HostWrites {
		return nil
	}
	if !p.asked {
		p.asked, p.timed = true, r.Launch.Func.ReadsClocks()
	}
	switch {
	case p.Phase == SpinIdle:
		p.Phase, p.hostMet, p.peerMet, p.Active, p.resident = spinQuiet, false, false, false, len(s.resident)
		r.Memory.ForgetLookups() // every allocation in use is then looked up again
		r.forgetWrites()
		return nil
	case p.Active, r.wrote():
		p.later(s.spent)
		return nil
	case p.Phase == spinQuiet && len(s.resident) != p.resident:
		p.Phase = SpinIdle // what an ended block has stored is not known
		return nil
	case p.Phase == spinQuiet && p.timed:
		p.stand(r)
		return nil
	case p.Phase == spinQuiet, p.Phase == spinSettle && p.rounds > p.limit(r)/4:
		p.begin(r)
		return nil
	case p.Phase == spinSettle:
		p.rounds++
		return nil
	case p.Phase == spinHurry && p.moved():
		p.later(s.spent)
		return nil
	case p.Phase == spinHurry:
		if p.rounds++; p.rounds > p.limit(r) {
			p.waited, p.warps, p.blocks = true, nil, nil
			p.stand(r)
		}
		return nil
	}
	if p.rounds++; p.rounds > p.limit(r) || p.moved() {
		p.later(s.spent)
		return nil
	}
	if !p.returned(r) {
		return nil
	}
	if p.timed && !p.waited {
		p.Phase, p.rounds, p.stands = spinHurry, 0, false
		return nil
	}
	if p.hostMet {
		r.Faults.reportStopped(r, ErrHostWait)
		return ErrHostWait
	}
	if p.peerMet {
		r.Faults.reportStopped(r, ErrDeviceWait)
		return ErrDeviceWait
	}
	if s.stuck {
		r.Faults.reportStuck(r)
	}
	r.Faults.reportSpin(r)
	return ErrDeadlock
}

// stand stops clocks.
func (p *spin) stand(r *Run) {
	p.Phase, p.rounds, p.stood, p.stands = spinSettle, 0, r.time(), true
}

// limit returns the number of rounds for which a launch is watched.
func (p *spin) limit(r *Run) int {
	if r.Launch.Schedule == PCT {
		return 32 * (len(r.Sched.warps) + 1) // a round is the turn of one warp
	}
	return SpinRounds
}

// time returns the value of clocks.
func (r *Run) time() uint64 {
	p := &r.Sched.Spin
	switch {
	case p.stands:
		return p.stood
	case p.Phase == spinHurry:
		p.random = p.random*0x5851f42d4c957f2d + 0x14057b7ef767814f
		p.ahead += p.random >> 28
	}
	return r.Clock + p.ahead
}

// later ends the watch until the cost of the launch, now spent, has grown by half.
func (p *spin) later(spent uint64) {
	p.at = spent + max(spent/2, p.first)
	p.Phase, p.warps, p.blocks, p.waited, p.stands = SpinIdle, nil, nil, false, false
}

func (r *Run) forgetWrites() {
	for _, w := range r.Sched.warps {
		w.Writes = 0
	}
}

// wrote reports whether a resident warp has stored, or changed a value, since forgetWrites.
func (r *Run) wrote() bool {
	return slices.ContainsFunc(r.Sched.warps, func(w *Warp) bool { return w.Writes != 0 })
}

// begin records the state of the launch.
func (p *spin) begin(r *Run) {
	p.Phase, p.rounds = spinWatch, 0
	for _, w := range r.Sched.warps {
		if w.Runnable() {
			image, alone := r.Machine.Image(w)
			p.warps = append(p.warps, spinning{w: w, live: w.Live, ready: w.Ready, strain: w.Strain, whole: w.Whole, stands: w.stands,
				splits: slices.Clone(w.Splits), image: image, alone: alone || r.Launch.Schedule == Lockstep})
		}
	}
	for _, c := range r.Sched.resident {
		p.blocks = append(p.blocks, arrivals{c, c.Completed, c.counts()})
	}
}

func (c *CTA) counts() []int {
	n := make([]int, len(c.Bars))
	for i := range c.Bars {
		n[i] = c.Bars[i].Count
	}
	return n
}

// moved reports whether a block has ended or a thread has arrived at a barrier.
func (p *spin) moved() bool {
	return slices.ContainsFunc(p.blocks, func(a arrivals) bool {
		return a.c.gone || a.c.Completed != a.completed || !slices.Equal(a.c.counts(), a.counts)
	})
}

// returned reports whether every warp has been in its first state again.
func (p *spin) returned(r *Run) bool {
	all := true
	for i := range p.warps {
		k := &p.warps[i]
		k.back = k.back || k.again(r)
		all = all && k.back
	}
	return all
}

// again reports whether a warp is in its first state, and every lane has run since.
func (k *spinning) again(r *Run) bool {
	w := k.w
	ran := w.Strain - k.strain
	return ran != 0 && (k.alone || ran >= spinStrain) &&
		w.Live == k.live && w.Ready == k.ready && w.Whole == k.whole && w.stands == k.stands && slices.Equal(w.Splits, k.splits) &&
		r.Machine.Still(w, k.image)
}

// Meets records that in accesses an allocation, which may be nil.
func (r *Run) Meets(b *devmem.Block, in *loader.Instr) {
	if b == nil || in.Order != event.Volatile && in.Scope != event.ScopeSys {
		return
	}
	r.Sched.Spin.hostMet = r.Sched.Spin.hostMet || b.Kind == devmem.ManagedAlloc || b.Kind == devmem.PinnedAlloc
	r.Sched.Spin.peerMet = r.Launch.Device != 0
}

// refImage is the state of the lanes of a warp of engine ref.
type refImage struct {
	mask  uint32
	lanes []lane
}

func (m refMachine) Image(w *Warp) (image any, alone bool) {
	k := refImage{mask: w.Ready, lanes: slices.Clone(w.lanes)}
	for l := k.mask; l != 0; l &= l - 1 {
		ln := &k.lanes[bits.TrailingZeros32(l)]
		ln.up, ln.allRegs = slices.Clone(ln.up), slices.Clone(ln.allRegs)
		ln.param, ln.local = slices.Clone(ln.param), slices.Clone(ln.local)
	}
	return k, w.group == w.Ready
}

func (m refMachine) Still(w *Warp, image any) bool {
	k := image.(refImage)
	for l := k.mask; l != 0; l &= l - 1 {
		a, b := &w.lanes[bits.TrailingZeros32(l)], &k.lanes[bits.TrailingZeros32(l)]
		if a.frame != b.frame || a.depth != b.depth || !slices.Equal(a.up, b.up) || !slices.Equal(a.allRegs, b.allRegs) ||
			!bytes.Equal(a.param, b.param) || !bytes.Equal(a.local, b.local) {
			return false
		}
	}
	return true
}
