package racecheck

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// thread is a thread of a launch.
type thread struct{ launch, number uint32 }

// node is an access of one thread.
type node struct {
	e      *event.Event
	t      thread
	block  uint32
	addr   uint64
	values []uint64
}

// plain judges a stream by computing, for every thread, the set of accesses that are ordered before it.
type plain struct {
	nodes []node
	known map[thread]*big.Int
	bars  map[[3]uint32]*bar
	at    map[place]*history
	// By pair of places, the gravest severity: of hazards with the accesses that a byte remembers, and with all
	// accesses.
	least, most map[[2]uint32]detect.Severity
}

type bar struct {
	knows *big.Int
	waits []thread
}

type place struct {
	launch, block uint32
	addr          uint64
}

// history is all accesses to a byte, and those that the byte remembers.
type history struct {
	all   []int
	write int // -1: none
	last  [2]map[thread]int
}

func (p *plain) knows(t thread) *big.Int {
	if p.known[t] == nil {
		p.known[t] = new(big.Int)
	}
	return p.known[t]
}

func lanesOf(e *event.Event) (out []uint32) {
	for m := e.Mask; m != 0; m &= m - 1 {
		out = append(out, uint32(bits.TrailingZeros32(m)))
	}
	return out
}

func (p *plain) run(b *event.Batch) {
	per := map[uint32]uint32{}
	for _, l := range b.Launches {
		per[l.ID] = l.WarpsPerBlock()
	}
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case event.Load, event.Store, event.Atomic:
			for _, l := range lanesOf(e) {
				p.access(node{e, thread{e.Launch, e.Warp*32 + l}, e.Warp / per[e.Launch], b.AddrOf(e, int(l)), b.ValueOf(e, int(l))})
			}
		case event.Arrive:
			x := p.bar(e, per)
			for _, l := range lanesOf(e) {
				t := thread{e.Launch, e.Warp*32 + l}
				x.knows.Or(x.knows, p.knows(t))
				if e.Flags&event.FlagWait != 0 {
					x.waits = append(x.waits, t)
				}
			}
		case event.BarrierDone:
			x := p.bar(e, per)
			for _, t := range x.waits {
				p.knows(t).Or(p.knows(t), x.knows)
			}
			*x = bar{knows: new(big.Int)}
		case event.WarpSync:
			all := new(big.Int)
			for _, l := range lanesOf(e) {
				all.Or(all, p.knows(thread{e.Launch, e.Warp*32 + l}))
			}
			for _, l := range lanesOf(e) {
				p.knows(thread{e.Launch, e.Warp*32 + l}).Set(all)
			}
		}
	}
}

func (p *plain) bar(e *event.Event, per map[uint32]uint32) *bar {
	k := [3]uint32{e.Launch, e.Warp / per[e.Launch], uint32(e.Barrier)}
	if p.bars[k] == nil {
		p.bars[k] = &bar{knows: new(big.Int)}
	}
	return p.bars[k]
}

func (p *plain) access(n node) {
	id := len(p.nodes)
	p.nodes = append(p.nodes, n)
	for a := n.addr; a < n.addr+uint64(n.e.Size); a++ {
		k := place{n.t.launch, n.block, a}
		h := p.at[k]
		if h == nil {
			h = &history{write: -1, last: [2]map[thread]int{{}, {}}}
			p.at[k] = h
		}
		for _, x := range h.all {
			p.judge(p.most, x, id, a)
		}
		if h.write >= 0 {
			p.judge(p.least, h.write, id, a)
		}
		for _, last := range h.last {
			for _, x := range last {
				p.judge(p.least, x, id, a)
			}
		}
		h.all = append(h.all, id)
		switch n.e.Kind {
		case event.Store:
			h.write, h.last = id, [2]map[thread]int{{}, {}}
		case event.Load:
			h.last[0][n.t] = id
		default:
			h.last[1][n.t] = id
		}
	}
	p.knows(n.t).SetBit(p.knows(n.t), id, 1)
}

func (p *plain) judge(out map[[2]uint32]detect.Severity, was, now int, byteAt uint64) {
	x, y := &p.nodes[was], &p.nodes[now]
	if x.t == y.t || x.e.Kind == y.e.Kind && x.e.Kind != event.Store || p.knows(y.t).Bit(was) != 0 {
		return
	}
	s := detect.Error
	lane := func(n *node) uint32 { return 1 << (n.t.number % 32) }
	if x.e.Warp == y.e.Warp && x.e != y.e && (x.e.Mask&lane(y) != 0 || y.e.Mask&lane(x) != 0) {
		s = detect.Warning
	}
	if x.e.Kind == event.Store && y.e.Kind == event.Store && x.values != nil && y.values != nil &&
		byteOf(x, byteAt) == byteOf(y, byteAt) {
		s = detect.Info
	}
	k := [2]uint32{x.e.Place, y.e.Place}
	if old, ok := out[k]; !ok || s > old {
		out[k] = s
	}
}

func byteOf(n *node, at uint64) byte {
	i := at - n.addr
	return byte(n.values[i/8] >> (8 * (i % 8)))
}

// stream makes a random stream in which all memory is shared memory, kernels do not overlap, and every access has its
// own place.
func stream(rng *rand.Rand) *event.Batch {
	first := true
	b := oracle.Random(func(n int) int {
		if first { // the number of agents: one, so that kernels do not overlap
			first = false
			return 0
		}
		return rng.IntN(n)
	})
	for i := range b.Events {
		e := &b.Events[i]
		e.Place = uint32(i) + 1
		if e.Space == event.Global {
			e.Space = event.Shared
		}
	}
	return b
}

// TestRandomStreams compares with the model: hazards with what a byte remembers must be reported, and only unordered
// pairs may be.
func TestRandomStreams(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 300
	}
	seen := map[detect.Severity]int{}
	for seed := range uint64(n) {
		b := stream(rand.New(rand.NewPCG(seed, 7)))
		p := &plain{known: map[thread]*big.Int{}, bars: map[[3]uint32]*bar{}, at: map[place]*history{},
			least: map[[2]uint32]detect.Severity{}, most: map[[2]uint32]detect.Severity{}}
		p.run(b)
		d := Spec.New(detect.Config{})
		d.Events(b)
		found := map[[2]uint32]detect.Severity{}
		for _, f := range d.Findings() {
			found[[2]uint32{f.Accesses[0].Place, f.Accesses[1].Place}] = f.Severity
			seen[f.Severity]++
		}
		for k, want := range p.least {
			if got, ok := found[k]; !ok || got < want {
				t.Fatalf("seed %d: events %v have a hazard of severity %v; found: %v %v\n%s", seed, k, want, ok, got, oracle.Print(b))
			}
		}
		for k, got := range found {
			if most, ok := p.most[k]; !ok || got > most {
				t.Fatalf("seed %d: events %v: found %v, at most %v %v\n%s", seed, k, got, ok, most, oracle.Print(b))
			}
		}
	}
	for _, s := range []detect.Severity{detect.Info, detect.Warning, detect.Error} {
		if seen[s] < n/20 {
			t.Errorf("only %d findings of severity %v in %d streams", seen[s], s, n)
		}
	}
}

// TestTogether compares lanes that read the same words, handled together, with the same lanes one by one.
func TestTogether(t *testing.T) {
	found := 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 5))
		b := oracle.Traffic(rng.IntN)
		for i := range b.Events { // all in shared memory, and more often the same words
			if e := &b.Events[i]; e.Kind >= event.Load && e.Kind <= event.Atomic {
				if e.Space = event.Shared; e.Kind == event.Load && e.Flags&event.FlagScattered == 0 && e.Place%2 == 0 {
					e.Stride = 0
				}
			}
		}
		whole, apart := Spec.New(detect.Config{}), Spec.New(detect.Config{})
		whole.Events(b)
		apart.Events(oracle.Apart(b))
		x, y := whole.Findings(), apart.Findings()
		found += len(x)
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("seed %d: together\n%+v\nand apart\n%+v\n%s", seed, x, y, oracle.Print(b))
		}
	}
	if found < 50 {
		t.Errorf("%d findings only", found)
	}
}
