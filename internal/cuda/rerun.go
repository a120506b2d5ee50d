package cuda

import (
	"context"
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/simt"
)

// By round robin the warps of a small kernel run one after the other: none waits for a lock, finds a queue full or loses an exchange, and
// what the code does then is not executed. So small launches of kernels whose threads may contend are executed once more, as
// simt.Contended, on the memory that they began with. The sink is told of both executions, as of two launches of the stream.

// Bounds of what is executed once more, in warp instructions; to copy copyBytes counts as one.
const (
	// rerunFree is what may be executed of each kernel, rerunShare the part of what all launches have executed that may be, too.
	rerunFree  = 1 << 18
	rerunShare = 4
	// rerunBytes is how much memory may be allocated.
	rerunBytes = 32 << 20
	// rerunFactor times the steps of a launch, and rerunSteps, are what it may have the second time.
	rerunFactor, rerunSteps = 8, 1 << 14
	copyBytes               = 512
)

// reruns is what a device keeps to execute launches once more.
type reruns struct {
	spent, ran    uint64  // by launches the second time, and the first
	before, after []saved // the buffers are used again
}

// saved is what an allocation held.
type saved struct {
	bytes []byte // of the memory
	copy  []byte
}

// mayRerun says that a launch may be executed once more, as far as is known before it is executed.
func (c *Context) mayRerun(k *Kernel, l *simt.Launch) bool {
	d := c.dev
	warps := (l.Block.Count() + 31) / 32 * l.Grid.Count()
	return d.cfg.Rerun && d.cfg.Schedule == simt.Fair && d.cfg.Seed == 0 && l.Sink != nil && warps > 1 && !l.Early &&
		d.contexts == 1 && len(c.gpus) == 1 && k.contends()
}

// contends says that threads of the kernel may contend, and that it changes nothing but memory.
func (k *Kernel) contends() bool {
	if !k.examined {
		k.examined = true
		k.contending = k.fn.Any((*isa.Inst).Contends) && !k.fn.Any(func(in *isa.Inst) bool {
			return in.Op == isa.OpGridLaunch || in.Callee != nil && (in.Callee.Builtin == "malloc" || in.Callee.Builtin == "free")
		})
	}
	return k.contending
}

// mayAfford says that so much more may be executed of a kernel.
func (r *reruns) mayAfford(k *Kernel, cost uint64) bool {
	return k.rerun+cost <= rerunFree || r.spent+cost <= r.ran/rerunShare
}

func (r *reruns) spend(k *Kernel, cost uint64) {
	k.rerun += cost
	r.spent += cost
}

// save keeps what the memory holds. It says false where that is too much, or the program may change it meanwhile.
func (c *Context) save(k *Kernel, to []saved) ([]saved, bool) {
	d := c.dev
	live := slices.DeleteFunc(d.mem.Known(), func(a simt.Alloc) bool { return a.Freed || a.Const })
	size, visible := uint64(0), false
	for _, a := range live {
		size += a.Size
		visible = visible || a.Kind == simt.ManagedAlloc || a.Kind == simt.PinnedAlloc
	}
	if size > rerunBytes || !d.reruns.mayAfford(k, 2*size/copyBytes) || visible && c.alone != nil && !c.alone() {
		return to, false
	}
	d.reruns.spend(k, size/copyBytes)
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

// rerun executes a launch that has ended once more, l as it was before, on the memory that it began with.
func (c *Context) rerun(ctx context.Context, k *Kernel, l simt.Launch, stats simt.Stats) {
	d := c.dev
	a := &d.reruns
	if !a.mayAfford(k, stats.Warps) {
		return
	}
	var ok bool
	if a.after, ok = c.save(k, a.after); !ok {
		return
	}
	for i := range a.before {
		copy(a.before[i].bytes, a.before[i].copy)
	}
	l.ID |= event.Rerun
	l.Schedule, l.MaxSteps, l.Printf, l.Progress = simt.Contended, rerunFactor*stats.Warps+rerunSteps, nil, nil
	if most := d.cfg.MaxSteps; most != 0 {
		l.MaxSteps = min(l.MaxSteps, most)
	}
	if told := l.OnFault; told != nil {
		l.OnFault = func(f simt.Fault) {
			if f.Kind != simt.StepLimit {
				told(f)
			}
		}
	}
	stats, _ = d.execute(ctx, &l) // how it ends is not the program's business
	a.spend(k, stats.Warps)
	for i := range a.after {
		copy(a.after[i].bytes, a.after[i].copy)
	}
}
