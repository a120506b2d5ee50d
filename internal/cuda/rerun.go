package cuda

import (
	"context"
	"slices"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// With round-robin scheduling the warps of a small kernel run one after the other. None waits for a lock, finds a queue
// full or loses an exchange, and the code for these cases is not executed. So small launches of kernels whose threads
// may contend are executed again, with engine.Contended, on their initial memory; the smallest ones are executed with
// other schedules too. The sink receives all executions as consecutive launches of the stream.

// Rerun is a schedule with which launches are executed again.
type Rerun struct {
	Schedule engine.Schedule
	Seed     uint64
}

// Reruns returns the schedules in order. Launch.Rerun counts them from 1.
func Reruns() []Rerun { return reruns[:] }

var reruns = [...]Rerun{{engine.Contended, 0}, {engine.PCT, 1}, {engine.Fair, 1}, {engine.PCT, 2}, {engine.Fair, 2}, {engine.PCT, 3}, {engine.Fair, 3}, {engine.PCT, 4}}

// Bounds of further executions, in warp instructions. Copying copyBytes counts as one instruction.
const (
	// rerunFree is the allowance of each kernel. rerunShare is the additional allowance, as a part of what all launches
	// have executed.
	rerunFree  = 1 << 18
	rerunShare = 4
	// rerunBytes is the greatest amount of allocated memory.
	rerunBytes = 32 << 20
	// rerunFactor times the steps of a launch, plus rerunSteps, is the limit of its second execution.
	rerunFactor, rerunSteps = 8, 1 << 14
	// rerunOthers is the limit of the executions of a launch with schedules other than the first, together.
	rerunOthers = 1 << 16
	copyBytes   = 512
)

// spare is the data that a device keeps for executing launches again.
type spare struct {
	spent, ran    uint64  // warp instructions of further executions, and of first executions
	before, after []saved // the buffers are reused
}

// saved is the contents of an allocation.
type saved struct {
	bytes []byte // of the memory
	copy  []byte
}

// mayRerun reports whether a launch may be executed again, as far as that is known before its execution.
func (c *Context) mayRerun(k *Kernel, l *engine.Launch) bool {
	d := c.dev
	return d.cfg.Rerun && d.cfg.Schedule == engine.Fair && d.cfg.Seed == 0 && l.Sink != nil && l.Block.Count()*l.Grid.Count() > 1 && !l.Early &&
		d.contexts == 1 && len(c.gpus) == 1 && d.launches < 1<<event.RerunShift && k.contends()
}

// contends reports whether threads of the kernel may contend, and the kernel changes only memory.
func (k *Kernel) contends() bool {
	if !k.examined {
		k.examined = true
		k.contending = k.fn.Any((*isa.Inst).Contends) && !k.fn.Any(func(in *isa.Inst) bool {
			return in.Op == isa.OpGridLaunch || in.Callee != nil && (in.Callee.Builtin == "malloc" || in.Callee.Builtin == "free")
		}) && !k.fn.LaunchesKernels()
	}
	return k.contending
}

// mayAfford reports whether a kernel may execute cost more.
func (r *spare) mayAfford(k *Kernel, cost uint64) bool {
	return k.rerun+cost <= rerunFree || r.spent+cost <= r.ran/rerunShare
}

func (r *spare) spend(k *Kernel, cost uint64) {
	k.rerun += cost
	r.spent += cost
}

// save saves the contents of the memory. It returns false if there is too much, or if the program may change it
// meanwhile.
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

// rerun executes again a launch of a given cost that has ended, or that has deadlocked, on its initial memory. l is the
// launch before its first execution.
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
				told(f) // if the launch itself has deadlocked, other places where threads may wait add nothing
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
		took, _ := d.execute(ctx, &again) // how it ends does not concern the program
		a.spend(k, took.Warps)
		spent += took.Warps
	}
	for i := range a.after {
		copy(a.after[i].bytes, a.after[i].copy)
	}
}
