package lock

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

const (
	gpu = event.ScopeGPU
	cta = event.ScopeCTA
)

// op makes an event of a warp, adjusted by change.
func op(kind event.Kind, lanes uint32, addr uint64, change ...func(*event.Event)) event.Event {
	e := event.Event{Kind: kind, Mask: lanes, Addr: addr, Size: 4, Space: event.Global}
	if kind == event.Atomic {
		e.Order, e.Scope, e.Flags = event.Relaxed, gpu, event.FlagRead|event.FlagWrite
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func scope(s event.Scope) func(*event.Event) { return func(e *event.Event) { e.Scope = s } }
func order(o event.Order) func(*event.Event) { return func(e *event.Event) { e.Order = o } }
func stride(n int64) func(*event.Event)      { return func(e *event.Event) { e.Stride = n } }
func warpNo(n uint32) func(*event.Event)     { return func(e *event.Event) { e.Warp = n } }
func shared(e *event.Event)                  { e.Space = event.Shared }
func failed(e *event.Event)                  { e.Flags = event.FlagRead }
func unread(e *event.Event)                  { e.Flags = event.FlagWrite }
func fence(lanes uint32, s event.Scope, o ...event.Order) event.Event {
	e := event.Event{Kind: event.Fence, Mask: lanes, Order: event.SC, Scope: s}
	for _, x := range o {
		e.Order = x
	}
	return e
}

func cas(lanes uint32, addr uint64, change ...func(*event.Event)) event.Event {
	e := op(event.Atomic, lanes, addr, change...)
	e.RMW = event.CompareAndSwap
	return e
}

func exch(lanes uint32, addr uint64, change ...func(*event.Event)) event.Event {
	e := op(event.Atomic, lanes, addr, change...)
	e.RMW = event.Exchange
	return e
}

func add(lanes uint32, addr uint64) event.Event  { return op(event.Atomic, lanes, addr) }
func load(lanes uint32, addr uint64) event.Event { return op(event.Load, lanes, addr) }
func store(lanes uint32, addr uint64, change ...func(*event.Event)) event.Event {
	return op(event.Store, lanes, addr, change...)
}

// run returns the steps of a stream: "2 acquire.gpu 0x100 by 1" for event 2.
func run(t *Tracker, events []event.Event) string {
	t.Begin(&event.Launch{Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}})
	var out []string
	for i := range events {
		for _, s := range t.Event(&event.Batch{}, &events[i]) {
			at := fmt.Sprintf("%#x", s.Lock.Addr)
			if s.Lock.Shared {
				at = fmt.Sprintf("shared%d:%s", s.Lock.Block, at)
			}
			out = append(out, fmt.Sprintf("%d %s.%s %s by %#x", i, []string{"acquire", "release", "drop"}[s.Kind],
				map[bool]string{true: "gpu", false: "cta"}[s.Device], at, s.Lanes))
		}
	}
	return strings.Join(out, "; ")
}

func TestPatterns(t *testing.T) {
	const m, n, x = 0x100, 0x200, 0x800
	spin := []event.Event{cas(1, m, failed), cas(1, m, failed), cas(1, m), fence(1, gpu), load(1, x), store(1, x), fence(1, gpu), exch(1, m)}
	barracuda := Rules{Scope: OfFence, Failed: true, Adjacent: true, ExchangeOnly: true, Unheld: true}
	scord := Rules{Scope: OfAtomic, Failed: true, Unfenced: true, ExchangeOnly: true}
	tests := []struct {
		name   string
		rules  Rules
		events []event.Event
		want   string
	}{
		{"spin lock", Rules{}, spin, "3 acquire.gpu 0x100 by 0x1; 7 release.gpu 0x100 by 0x1"},
		{"spin lock, 001", barracuda, spin, "3 acquire.gpu 0x100 by 0x1; 7 release.gpu 0x100 by 0x1"},
		{"spin lock, 003", scord, spin, "3 acquire.gpu 0x100 by 0x1; 7 release.gpu 0x100 by 0x1"},
		{"result of the exchange unread", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), exch(1, m, unread)},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"a failed swap acquires nothing", Rules{}, []event.Event{cas(1, m, failed), fence(1, gpu), fence(1, gpu), exch(1, m)}, ""},
		{"but with rule Failed", Rules{Failed: true}, []event.Event{cas(1, m, failed), fence(1, gpu)}, "1 acquire.gpu 0x100 by 0x1"},
		{"no fence, no lock", Rules{}, []event.Event{cas(1, m), load(1, x), exch(1, m), fence(1, gpu)}, ""},
		{"release without fence", Rules{}, []event.Event{cas(1, m), fence(1, gpu), store(1, x), exch(1, m), fence(1, gpu), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 drop.gpu 0x100 by 0x1"},
		{"release without fence, 003", scord, []event.Event{cas(1, m), fence(1, gpu), store(1, x), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"release by a store", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), store(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"release by a volatile store", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), store(1, m, order(event.Volatile))},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"release by an addition", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), add(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"release by a swap back", Rules{Swap: true}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), cas(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"stores do not release with ExchangeOnly", Rules{ExchangeOnly: true}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), store(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 drop.gpu 0x100 by 0x1"},
		{"block lock by its fence", Rules{}, []event.Event{cas(1, m), fence(1, cta), store(1, x), fence(1, cta), exch(1, m)},
			"1 acquire.cta 0x100 by 0x1; 4 release.cta 0x100 by 0x1"},
		{"block lock by its operation", Rules{}, []event.Event{cas(1, m, scope(cta)), fence(1, gpu), fence(1, gpu), exch(1, m, scope(cta))},
			"1 acquire.cta 0x100 by 0x1; 3 release.cta 0x100 by 0x1"},
		{"the same, the fence decides", Rules{Scope: OfFence}, []event.Event{cas(1, m, scope(cta)), fence(1, gpu), fence(1, gpu), exch(1, m, scope(cta))},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"the same, the operation decides", scord, []event.Event{cas(1, m, scope(cta)), fence(1, gpu), exch(1, m, scope(cta))},
			"1 acquire.cta 0x100 by 0x1; 2 release.cta 0x100 by 0x1"},
		{"a narrow fence completes no wide entry, 003", scord, []event.Event{cas(1, m), fence(1, cta), fence(1, gpu)}, "2 acquire.gpu 0x100 by 0x1"},
		{"scopes differ", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, cta), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 release.cta 0x100 by 0x1"},
		{"the widest fence counts", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), fence(1, cta), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 4 release.gpu 0x100 by 0x1"},
		{"an access between swap and fence", Rules{}, []event.Event{cas(1, m), load(1, x), fence(1, gpu)}, "2 acquire.gpu 0x100 by 0x1"},
		{"is not immediate", barracuda, []event.Event{cas(1, m), load(1, x), fence(1, gpu)}, ""},
		{"nor before the exchange", barracuda, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), load(1, x), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 4 drop.gpu 0x100 by 0x1"},
		{"exchange of a lock not held", Rules{}, []event.Event{fence(1, gpu), exch(1, m)}, ""},
		{"with rule Unheld", Rules{Unheld: true}, []event.Event{exch(1, m), fence(1, gpu), exch(1, m), fence(1, gpu), load(1, x), exch(1, m)},
			"2 release.gpu 0x100 by 0x1"},
		{"test and set", Rules{TestAndSet: true}, []event.Event{exch(1, m), exch(1, m), fence(1, gpu), store(1, x), fence(1, gpu), exch(1, m)},
			"2 acquire.gpu 0x100 by 0x1; 5 release.gpu 0x100 by 0x1"},
		{"test and set without the rule", Rules{}, []event.Event{exch(1, m), fence(1, gpu), fence(1, gpu), exch(1, m)}, ""},
		{"an exchange after a fence takes nothing", Rules{TestAndSet: true}, []event.Event{fence(1, gpu), exch(1, m), fence(1, gpu)}, ""},
		{"nor one that nobody reads", Rules{TestAndSet: true}, []event.Event{exch(1, m, unread), fence(1, gpu)}, ""},
		{"lanes with locks of their own", Rules{}, []event.Event{cas(7, m, stride(4)), fence(7, gpu), fence(7, gpu), exch(7, m, stride(4))},
			"1 acquire.gpu 0x100 by 0x1; 1 acquire.gpu 0x104 by 0x2; 1 acquire.gpu 0x108 by 0x4; 3 release.gpu 0x100 by 0x1; 3 release.gpu 0x104 by 0x2; 3 release.gpu 0x108 by 0x4"},
		{"some lanes fail", Rules{}, []event.Event{cas(1, m), cas(6, m, failed), fence(7, gpu), fence(1, gpu), exch(1, m), cas(2, m), fence(2, gpu)},
			"2 acquire.gpu 0x100 by 0x1; 4 release.gpu 0x100 by 0x1; 6 acquire.gpu 0x100 by 0x2"},
		{"not well nested", Rules{}, []event.Event{cas(1, m), fence(1, gpu), cas(1, n), fence(1, gpu), exch(1, m), fence(1, gpu), exch(1, n)},
			"1 acquire.gpu 0x100 by 0x1; 3 acquire.gpu 0x200 by 0x1; 4 release.gpu 0x100 by 0x1; 6 release.gpu 0x200 by 0x1"},
		{"shared memory is per block", Rules{}, []event.Event{cas(1, m, shared, warpNo(3)), fence(1, gpu), func() event.Event { e := fence(1, gpu); e.Warp = 3; return e }()},
			"2 acquire.gpu shared1:0x100 by 0x1"},
		{"cuda::atomic", Rules{}, []event.Event{cas(1, m, order(event.Acquire)), store(1, x), store(1, m, order(event.Release), scope(gpu))},
			"0 acquire.gpu 0x100 by 0x1; 2 release.gpu 0x100 by 0x1"},
		{"cuda::atomic of the block", Rules{}, []event.Event{cas(1, m, order(event.AcqRel), scope(cta)), exch(1, m, order(event.AcqRel), scope(cta))},
			"0 acquire.cta 0x100 by 0x1; 1 release.cta 0x100 by 0x1"},
		{"cuda::atomic that failed", Rules{}, []event.Event{cas(1, m, order(event.Acquire), failed)}, ""},
		{"acquire fence, release fence", Rules{}, []event.Event{cas(1, m), fence(1, gpu, event.Release), fence(1, gpu, event.Acquire), exch(1, m)},
			"2 acquire.gpu 0x100 by 0x1; 3 drop.gpu 0x100 by 0x1"},
		{"the other half alone", Rules{}, []event.Event{cas(1, m), fence(1, gpu, event.Acquire), fence(1, gpu, event.Release), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 release.gpu 0x100 by 0x1"},
		{"exit drops", Rules{}, []event.Event{cas(1, m), fence(1, gpu), op(event.Exit, 3, 0), exch(1, m)}, "1 acquire.gpu 0x100 by 0x1; 2 drop.gpu 0x100 by 0x1"},
		{"lanes hold one lock in scopes of their own", Rules{}, []event.Event{cas(1, m), fence(1, gpu), cas(2, m, scope(cta)), fence(2, gpu), op(event.Exit, 3, 0)},
			"1 acquire.gpu 0x100 by 0x1; 3 acquire.cta 0x100 by 0x2; 4 drop.gpu 0x100 by 0x1; 4 drop.cta 0x100 by 0x2"},
		{"a lane that has begun to take it does not have it", Rules{}, []event.Event{cas(1, m), fence(1, gpu), cas(2, m), fence(1, gpu), op(event.Exit, 3, 0)},
			"1 acquire.gpu 0x100 by 0x1; 4 drop.gpu 0x100 by 0x1"},
		{"a fence completes the acquires of its lanes only", Rules{}, []event.Event{cas(3, m, stride(8)), fence(1, gpu), fence(2, gpu), op(event.Exit, 3, 0)},
			"1 acquire.gpu 0x100 by 0x1; 2 acquire.gpu 0x108 by 0x2; 3 drop.gpu 0x100 by 0x1; 3 drop.gpu 0x108 by 0x2"},
		{"a lane that takes what another has fenced has not fenced", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), cas(2, m), fence(2, gpu), exch(2, m)},
			"1 acquire.gpu 0x100 by 0x1; 4 acquire.gpu 0x100 by 0x2; 5 drop.gpu 0x100 by 0x2"},
		{"another lane's fence is not that of the release", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(2, gpu), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 drop.gpu 0x100 by 0x1"},
		{"and its fence is its own", Rules{}, []event.Event{cas(1, m), fence(1, gpu), fence(1, gpu), cas(2, m), fence(2, gpu), fence(2, cta), exch(2, m)},
			"1 acquire.gpu 0x100 by 0x1; 4 acquire.gpu 0x100 by 0x2; 6 release.cta 0x100 by 0x2"},
		{"with rule Unheld, the scope of the fence counts", Rules{Unheld: true}, []event.Event{fence(1, cta), exch(1, m), fence(1, gpu), exch(1, m, scope(cta))},
			"1 release.cta 0x100 by 0x1; 3 release.cta 0x100 by 0x1"},
		{"taken again without giving back", Rules{}, []event.Event{cas(1, m), fence(1, gpu), cas(1, m), fence(1, gpu)},
			"1 acquire.gpu 0x100 by 0x1; 2 drop.gpu 0x100 by 0x1; 3 acquire.gpu 0x100 by 0x1"},
		{"ticket locks are not seen", Rules{TestAndSet: true}, []event.Event{add(1, m), load(1, n), fence(1, gpu), store(1, x), fence(1, gpu), add(1, n)}, ""},
		{"the last swap before a fence, with rule Last", Rules{Last: true}, []event.Event{cas(3, m, stride(8)), cas(1, n), fence(3, gpu), fence(1, gpu), exch(1, n)},
			"2 acquire.gpu 0x200 by 0x1; 2 acquire.gpu 0x108 by 0x2; 4 release.gpu 0x200 by 0x1"},
		{"locks within locks, with rule Last", Rules{Last: true}, []event.Event{cas(1, m), fence(1, gpu), cas(1, n), fence(1, gpu), fence(1, gpu), exch(1, n), exch(1, m)},
			"1 acquire.gpu 0x100 by 0x1; 3 acquire.gpu 0x200 by 0x1; 5 release.gpu 0x200 by 0x1; 6 release.gpu 0x100 by 0x1"},
		{"written before the fence, with rule Last", Rules{Last: true}, []event.Event{cas(1, m, shared), add(1, m), fence(1, gpu), cas(1, m, shared), store(1, m, shared), fence(1, gpu)},
			"2 acquire.gpu shared0:0x100 by 0x1; 4 drop.gpu shared0:0x100 by 0x1"},
		{"exit before the fence, with rule Last", Rules{Last: true}, []event.Event{cas(3, m), op(event.Exit, 1, 0), fence(3, gpu)}, "2 acquire.gpu 0x100 by 0x2"},
		{"taken again, with rule Last", Rules{Last: true}, []event.Event{cas(1, m), fence(1, gpu), cas(1, m), fence(1, gpu)},
			"1 acquire.gpu 0x100 by 0x1; 3 drop.gpu 0x100 by 0x1; 3 acquire.gpu 0x100 by 0x1"},
		{"an access between, with rules Last and Adjacent", Rules{Last: true, Adjacent: true}, []event.Event{cas(1, m), load(1, x), fence(1, gpu)}, ""},
		{"the operation decides, with rule Last", Rules{Last: true, Scope: OfAtomic}, []event.Event{cas(1, m), fence(1, cta), cas(2, m, scope(cta)), fence(3, cta)},
			"3 acquire.cta 0x100 by 0x2"},
		{"cuda::atomic, with rule Last", Rules{Last: true}, []event.Event{cas(1, m, order(event.Acquire)), store(1, m, order(event.Release), scope(gpu))},
			"0 acquire.gpu 0x100 by 0x1; 1 release.gpu 0x100 by 0x1"},
		{"another warp's fence", Rules{}, []event.Event{cas(1, m), func() event.Event { e := fence(1, gpu); e.Warp = 1; return e }()}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := run(New(tt.rules), tt.events); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestSteadyState checks that neither coalesced accesses nor locking allocates memory.
func TestSteadyState(t *testing.T) {
	requireSteady(t, Rules{TestAndSet: true})
	requireSteady(t, Rules{Last: true, Swap: true})
}

func requireSteady(t *testing.T, rules Rules) {
	t.Helper()
	tr := New(rules)
	tr.Begin(&event.Launch{Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}})
	b := &event.Batch{Events: []event.Event{load(^uint32(0), 64), cas(^uint32(0), 0x100, stride(8)), fence(^uint32(0), gpu), store(1, 0), fence(^uint32(0), gpu), exch(^uint32(0), 0x100, stride(8))}}
	n := testing.AllocsPerRun(100, func() {
		for i := range b.Events {
			tr.Event(b, &b.Events[i])
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if tr.Holds(0) {
		t.Error("locks are held still")
	}
}

// TestLanesHoldApart checks that in any stream a lane releases or drops only what it has acquired, and does not acquire
// twice.
func TestLanesHoldApart(t *testing.T) {
	state := uint64(1)
	pick := func(n int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int(state>>33) % n
	}
	for round := 0; round < 2000; round++ {
		tr := New(Rules{Scope: Scope(pick(3)), Failed: pick(2) == 0, TestAndSet: pick(2) == 0, Adjacent: pick(2) == 0, Unfenced: pick(2) == 0, ExchangeOnly: pick(2) == 0, Last: pick(2) == 0})
		tr.Begin(&event.Launch{Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}})
		type holder struct {
			lane int
			id   ID
		}
		held := map[holder]bool{}
		for i := 0; i < 40; i++ {
			lanes, addr := uint32(1+pick(7)), uint64(0x100+8*pick(2))
			e := []event.Event{cas(lanes, addr, stride(int64(4*pick(2)))), cas(lanes, addr, failed), exch(lanes, addr, scope(event.Scope(1+2*pick(2)))),
				fence(lanes, gpu), fence(lanes, cta), fence(lanes, gpu, event.Order(3+pick(2))), store(lanes, addr), load(lanes, addr),
				add(lanes, addr), cas(lanes, addr, order(event.Order(2+pick(4)))), op(event.Exit, lanes, 0)}[pick(11)]
			for _, s := range tr.Event(&event.Batch{}, &e) {
				for m := s.Lanes; m != 0; m &= m - 1 {
					h := holder{bits.TrailingZeros32(m), s.Lock}
					if held[h] != (s.Kind != Acquire) {
						t.Fatalf("round %d event %d: %+v, held %v", round, i, s, held[h])
					}
					held[h] = s.Kind == Acquire
				}
			}
		}
	}
}

// TestClaims checks that locks that are never given back are dropped, the oldest first.
func TestClaims(t *testing.T) {
	tr := New(Rules{})
	tr.Begin(&event.Launch{Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 32, Y: 1, Z: 1}})
	const n = maxHolds + 5
	var dropped []uint64
	for i := range uint64(n) {
		for _, e := range []event.Event{cas(1, 8*i), fence(1, gpu)} {
			for _, s := range tr.Event(&event.Batch{}, &e) {
				if s.Kind == Drop {
					dropped = append(dropped, s.Lock.Addr/8)
				}
			}
		}
	}
	if got := fmt.Sprint(dropped); got != "[0 1 2 3 4]" {
		t.Errorf("dropped %v", got)
	}
	e := exch(1, 8*(n-1))
	f := fence(1, gpu)
	tr.Event(&event.Batch{}, &f)
	if s := tr.Event(&event.Batch{}, &e); len(s) != 1 || s[0].Kind != Release {
		t.Errorf("the latest is held no longer: %+v", s)
	}
}

// TestFullWarp checks that a warp that holds the most locks and acquires more allocates nothing, and that a tracker of
// one block handles only its warps and drops them with the block.
func TestFullWarp(t *testing.T) {
	l := event.Launch{Grid: event.Dim3{X: 4, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}}
	for _, rules := range []Rules{{}, {Last: true}} {
		tr := New(rules)
		tr.BeginBlock(&l, 2)
		b := &event.Batch{Events: []event.Event{cas(^uint32(0), 0, stride(8), warpNo(5)), fence(^uint32(0), gpu)}}
		b.Events[1].Warp = 5
		taken := 0
		round := func() {
			b.Events[0].Addr += 256
			for i := range b.Events {
				taken += len(tr.Event(b, &b.Events[i]))
			}
		}
		for range 8 {
			round()
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("%+v: %v allocations", rules, n)
		}
		if !tr.Holds(5) || tr.Holds(4) || taken < 100*64 {
			t.Errorf("%+v: %d steps; warp 5 holds %v, warp 4 %v", rules, taken, tr.Holds(5), tr.Holds(4))
		}
		tr.Event(b, &b.Events[0])
		if tr.BeginBlock(&l, 2); tr.Holds(5) || len(tr.Event(b, &b.Events[1])) > 0 {
			t.Errorf("%+v: a block begins with locks", rules)
		}
	}
}

// TestFilter makes warps acquire and release many locks. The filter must find each lock that is held, and no hold may
// remain without lanes.
func TestFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, rules := range []Rules{{}, ScoRD(), {Adjacent: true, TestAndSet: true}} {
		tr := New(rules)
		tr.Begin(&event.Launch{Grid: event.Dim3{X: 1, Y: 1, Z: 1}, Block: event.Dim3{X: 64, Y: 1, Z: 1}})
		most, filtered := 0, 0
		for range 20000 {
			mask, at := rng.Uint32(), 8*rng.Uint64N(2000)
			e := []event.Event{cas(mask, at, stride(8)), cas(mask, at, stride(8)), cas(mask, at), fence(mask, gpu), exch(mask, at, stride(8)), store(mask, at)}[rng.IntN(6)]
			e.Warp = rng.Uint32N(2)
			tr.Event(&event.Batch{}, &e)
			for i := range tr.warps {
				w := &tr.warps[i]
				most = max(most, len(w.holds))
				if w.seen != nil && !w.may(rng.Uint64()) {
					filtered++
				}
				for _, h := range w.holds {
					if !w.may(h.id.Addr) || h.lanes == 0 {
						t.Fatalf("hold %+v of %d, filtered %v", h, len(w.holds), w.seen)
					}
				}
			}
		}
		if most < 32 || filtered < 5000 {
			t.Errorf("%+v: at most %d holds, %d addresses told apart", rules, most, filtered)
		}
	}
}
