package cuda

import (
	"context"
	"slices"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// By round robin the warps of a small kernel run one after the other: none waits for a lock, finds a queue full or loses an exchange, and
// what the code does then is not executed. So small launches of kernels whose threads may contend are executed once more, as
// engine.Contended, on the memory that they began with, and the smallest ones by other schedules too. The sink is told of all executions, as
// of launches of the stream that follow each other.

// Rerun is a schedule by which launches are executed once more.
type Rerun struct {
	Schedule engine.Schedule
	Seed     uint64
}

// Reruns gives the schedules, in their order. Launch.Rerun counts them from 1.
func Reruns() []Rerun { return reruns[:] }

var reruns = [...]Rerun{{engine.Contended, 0}, {engine.PCT, 1}, {engine.Fair, 1}, {engine.PCT, 2}, {engine.Fair, 2}, {engine.PCT, 3}, {engine.Fair, 3}, {engine.PCT, 4}}

// Bounds of what is executed once more, in warp instructions; to copy copyBytes counts as one.
const (
	// rerunFree is what may be executed of each kernel, rerunShare the part of what all launches have executed that may be, too.
	rerunFree  = 1 << 18
	rerunShare = 4
	// rerunBytes is how much memory may be allocated.
	rerunBytes = 32 << 20
	// rerunFactor times the steps of a launch, and rerunSteps, are what it may have the second time.
	rerunFactor, rerunSteps = 8, 1 << 14
	// rerunOthers is what the executions of a launch by schedules other than the first may take together.
	rerunOthers = 1 << 16
	copyBytes   = 512
)

// spare is what a device keeps to execute launches once more.
type spare struct {
	spent, ran    uint64  // by launches the second time, and the first
	before, after []saved // the buffers are used again
}

// saved is what an allocation held.
type saved struct {
	bytes []byte // of the memory
	copy  []byte
}

// mayRerun says that a launch may be executed once more, as far as is known before it is executed.
func (c *Context) mayRerun(k *Kernel, l *engine.Launch) bool {
	d := c.dev
	return d.cfg.Rerun && d.cfg.Schedule == engine.Fair && d.cfg.Seed == 0 && l.Sink != nil && l.Block.Count()*l.Grid.Count() > 1 && !l.Early &&
		d.contexts == 1 && len(c.gpus) == 1 && d.launches < 1<<event.RerunShift && k.contends()
}

// contends says that threads of the kernel may contend, and that it changes nothing but memory.
func (k *Kernel) contends() bool {
	if !k.examined {
		k.examined = true
		k.contending = k.fn.Any((*isa.Inst).Contends) && !k.fn.Any(func(in *isa.Inst) bool {
			return in.Op == isa.OpGridLaunch || in.Callee != nil && (in.Callee.Builtin == "malloc" || in.Callee.Builtin == "free")
		}) && !k.fn.LaunchesKernels()
	}
	return k.contending
}

// mayAfford says that so much more may be executed of a kernel.
func (r *spare) mayAfford(k *Kernel, cost uint64) bool {
	return k.rerun+cost <= rerunFree || r.spent+cost <= r.ran/rerunShare
}

func (r *spare) spend(k *Kernel, cost uint64) {
	k.rerun += cost
	r.spent += cost
}

// save keeps what the memory holds. It says false where that is too much, or the program may change it meanwhile.
func (c *Context) save(k *Kernel, to []saved) ([]saved, bool) {
	d := c.dev
	if !d.spare.mayAfford(k, k.saving) {
		return to, false
	}
	live := slices.DeleteFunc(d.mem.Known(), func(a devmem.Alloc) bool { return a.Freed || a.Const })
	size, visible := uint64(0), false
	for _, a := range live {
		size += a.Size
		visible = visible || a.Kind == devmem.ManagedAlloc || a.Kind == devmem.PinnedAlloc
	}
	d.spare.spend(k, uint64(len(live)))
	k.saving = uint64(len(live)) + 2*size/copyBytes
	if size > rerunBytes || !d.spare.mayAfford(k, k.saving) || visible && c.alone != nil && !c.alone() {
		return to, false
	}
	d.spare.spend(k, size/copyBytes)
	to = slices.Grow(to[:0], len(live))[:len(live)]
	for i, a := range live {
		bytes, err := d.mem.Bytes(a.Addr, a.Size)
		if err != nil {
			return to, false
		}
		to[i] = saved{bytes, append(to[i].copy[:0], bytes...)}
	}
	return to, true
}

// rerun executes a launch of a cost that has ended, or come to a deadlock, once more, l as it was before, on the memory that it began
// with.
func (c *Context) rerun(ctx context.Context, k *Kernel, l engine.Launch, cost uint64, deadlock bool) {
	d := c.dev
	a := &d.spare
	var ok bool
	if !a.mayAfford(k, cost) {
		return
	}
	if a.after, ok = c.save(k, a.after); !ok {
		return
	}
	l.MaxSteps, l.Printf, l.Progress = rerunFactor*cost+rerunSteps, nil, nil
	if most := d.cfg.MaxSteps; most != 0 {
		l.MaxSteps = min(l.MaxSteps, most)
	}
	if told := l.OnFault; told != nil {
		l.OnFault = func(f engine.Fault) {
			if f.Kind != engine.StepLimit && (f.Kind != engine.Deadlock || !deadlock) {
				told(f) // where the launch itself came to a deadlock, other places where threads may wait then say nothing new
			}
		}
	}
	spent := uint64(0)
	for i, by := range reruns {
		if i > 0 && (spent+cost > rerunOthers || !a.mayAfford(k, cost)) || ctx.Err() != nil {
			break
		}
		for i := range a.before {
			copy(a.before[i].bytes, a.before[i].copy)
		}
		again := l
		again.ID |= uint32(i+1) << event.RerunShift
		again.Schedule, again.Seed = by.Schedule, by.Seed
		took, _ := d.execute(ctx, &again) // how it ends is not the program's business
		a.spend(k, took.Warps)
		spent += took.Warps
	}
	for i := range a.after {
		copy(a.after[i].bytes, a.after[i].copy)
	}
}
