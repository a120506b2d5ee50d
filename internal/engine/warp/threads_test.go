package warp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/session"
)

// sequential is an engine that executes the threads of a launch by requests, one after the other. A thread runs until
// it waits at a barrier or has read, and memory holds the last write. Every request saves and restores the thread's
// state.
type sequential struct {
	requests int
	refused  string
}

var errRefused = errors.New("not for single threads")

// Run implements engine.Engine.
func (e *sequential) Run(_ context.Context, l *engine.Launch) (engine.Stats, error) {
	const most = 300_000 // requests
	th := engine.NewThreads(l, engine.ThreadOptions{})
	defer th.Close()
	n, block := th.Count(), int(l.Block.Count())
	if n > 4096 {
		e.refused = "too large"
		return engine.Stats{}, errRefused
	}
	type thread struct {
		state  engine.State
		q      engine.Request
		waits  bool // at a barrier
		exited bool
	}
	threads := make([]thread, n)
	shared := make([][]byte, (n+block-1)/block)
	for i := range threads {
		threads[i].state, threads[i].q = th.Start(i)
	}
	for i := range shared {
		shared[i] = make([]byte, 256<<10)
	}
	for left := n; left > 0; {
		moved := false
		for i := range threads {
			t := &threads[i]
			for !t.exited && !t.waits {
				if e.requests++; e.requests > most {
					e.refused = "too long"
					return engine.Stats{}, errRefused
				}
				moved = true
				kind := t.q.Kind
				switch kind {
				case engine.RequestExit:
					t.exited = true
					left--
					continue
				case engine.RequestBarrier:
					t.waits = true
					continue
				case engine.RequestFault, engine.RequestUnsupported, engine.RequestArrive:
					e.refused = t.q.Message
					return engine.Stats{}, errRefused
				}
				value := uint64(0)
				if kind != engine.RequestFence {
					data := shared[i/block]
					if t.q.Space == event.Global {
						b, err := l.Program.Memory.Bytes(t.q.Addr, uint64(t.q.Size))
						if err != nil {
							e.refused = "an access past the end"
							return engine.Stats{}, errRefused
						}
						data = b
					} else {
						data = data[t.q.Addr:][:t.q.Size]
					}
					var word [8]byte
					copy(word[:], data)
					value = binary.LittleEndian.Uint64(word[:])
					stored, writes := t.q.Value, kind == engine.RequestStore
					if kind == engine.RequestAtomic {
						stored, writes = t.q.Update(value)
					}
					if writes {
						binary.LittleEndian.PutUint64(word[:], stored)
						copy(data, word[:])
					}
				}
				t.state, t.q = th.Resume(i, t.state, value)
				if kind == engine.RequestLoad && t.q.Back || kind == engine.RequestAtomic {
					break // it may wait for another
				}
			}
		}
		// The threads that a barrier is of go on when all wait at it, or have exited.
		for i := range threads {
			q := threads[i].q
			if !threads[i].waits {
				continue
			}
			var of []int
			together, sum := true, 0
			for o := i / block * block; o < min((i/block+1)*block, n); o++ {
				lane := o % block
				if q.Members != 0 && (lane/32 != i%block/32 || q.Members>>(lane%32)&1 == 0) || threads[o].exited {
					continue
				}
				of = append(of, o)
				together = together && threads[o].waits && threads[o].q.Barrier == q.Barrier && threads[o].q.Members == q.Members && threads[o].q.Warp == q.Warp
				sum += int(threads[o].q.Value)
			}
			if !together {
				continue
			}
			value := map[isa.Op]bool{isa.OpAnd: sum == len(of), isa.OpOr: sum > 0}[q.Reduce]
			var lanes []*engine.Request
			for _, o := range of {
				at := threads[o].q
				lanes = append(lanes, &at)
			}
			for k, o := range of {
				t := &threads[o]
				t.waits, moved = false, true
				result := uint64(0)
				if q.Reduce == isa.OpPopc {
					result = uint64(sum)
				} else if value {
					result = 1
				}
				if q.Warp {
					result, _ = lanes[k].Exchange(lanes)
				}
				t.state, t.q = th.Resume(o, t.state, result)
			}
		}
		if !moved {
			e.refused = "deadlock"
			return engine.Stats{}, errRefused
		}
	}
	return engine.Stats{}, nil
}

// TestThreads runs the race-free programs of the corpus by requests, and compares the results with their launch files.
// It shows that nothing that a state omits matters.
func TestThreads(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	ran, refused := 0, map[string]int{}
	for _, p := range all {
		if p.Racy() || len(p.Wants) > 0 {
			continue
		}
		e := &sequential{}
		o := &session.Options{Engine: func() engine.Engine { return e }, Bare: true, Seeds: 1, Jobs: 1}
		in, err := session.CorpusInput(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Launch.Expects) == 0 {
			continue
		}
		r, err := session.Check(context.Background(), o, in)
		switch {
		case err != nil:
			t.Errorf("%s: %v", p.Path(), err)
		case e.refused != "":
			refused[e.refused]++
		case r.Program != nil && r.Program.Exit != 0:
			t.Errorf("%s: %v", p.Path(), r.Notes)
		default:
			ran++
		}
	}
	t.Logf("%d programs, refused %v", ran, refused)
	if ran < 195 {
		t.Errorf("only %d programs ran; refused are %v", ran, refused)
	}
}
