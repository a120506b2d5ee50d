package barracuda

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// A litmus is a stream and the detectors' verdicts on it. A stream is operations separated by semicolons: WARP MASK
// OPERATION OPERANDS, with the mask in hexadecimal. The launch has two blocks of two warps; warps 0 and 1 belong to the
// first block.
//
//	ld x, st x, stv x (each lane another value), atm x, atm.cta x, cas x, exch x, ld.acquire x, st.release x
//	fence.cta, fence.gl, bar (the last warp of the block completes it), part (bar.arrive), sync, exit
//	if REST (the mask's lanes go first, then those of REST), else, fi
//
// Locations: x, y, z in global memory, s in the block's shared memory. The place of an operation is its number, from 1.
type litmus struct {
	name, stream string
	base, plus   string // pairs of places with the paper's name of the race; "" for none; plus "=": like base
}

var litmusTests = []litmus{
	// Figure 5.4.
	{"READEXCL: ordered reads and a write", "0 1 ld x; 0 1 ld x; 0 1 st x", "", "="},
	{"READINFLATE, WRITESHARED: every reader counts", "0 1 ld x; 2 1 ld x; 1 1 st x", "1-3 intra-block, 2-3 inter-block", "="},
	{"READSHARED: three readers", "0 1 ld x; 1 1 ld x; 2 1 ld x; 3 1 st x", "1-4 inter-block, 2-4 inter-block, 3-4 intra-block", "="},
	{"WRITEEXCL: two writes", "0 1 st x; 2 1 st x", "1-2 inter-block", "="},
	{"a write and a read", "0 1 st x; 1 1 ld x", "1-2 intra-block", "="},
	{"a write forgets the readers", "0 1 ld x; 0 1 st x; 2 1 st x", "2-3 inter-block", "="},
	{"ENDINSN: lanes of a warp, two instructions", "0 1 st x; 0 2 ld x", "", "1-2 divergence"},
	{"ENDINSN: inactive lanes learn nothing", "0 3 if c; 0 1 st x; 0 c else; 0 4 st x; 0 f fi", "2-4 divergence", "="},
	{"lanes of one instruction, other values", "0 3 stv x", "1-1 divergence", "="},
	{"lanes of one instruction, one value", "0 3 st x", "", "="},
	{"IF: what comes before is ordered with both paths", "0 1 st x; 0 3 if c; 0 2 ld x; 0 c else; 0 4 ld x; 0 f fi", "", "1-3 divergence, 1-5 divergence"},
	{"ELSEENDIF: fi orders both paths with what follows", "0 3 if c; 0 1 st x; 0 c else; 0 4 st y; 0 f fi; 0 2 ld x; 0 1 ld y", "", "2-6 divergence, 4-7 divergence"},
	{"an empty else path", "0 3 if c; 0 1 st x; 0 f fi; 0 4 ld x", "", "2-4 divergence"},
	{"nested paths", "0 7 if 8; 0 1 if 6; 0 1 st x; 0 6 else; 0 2 st x; 0 7 fi; 0 8 else; 0 8 ld x; 0 f fi", "3-5 divergence, 5-8 divergence", "="},
	{"shared memory is each block's own", "0 1 st s; 2 1 st s", "", "="},

	// Figure 5.5, BAR and ATOM.
	{"BAR orders the block", "0 1 st x; 0 f bar; 1 f bar; 1 2 ld x", "", "="},
	{"BAR orders no other block", "0 1 st x; 0 f bar; 1 f bar; 2 1 ld x", "1-4 inter-block", "="},
	{"BAR after divergence", "0 3 if c; 0 1 st x; 0 c else; 0 4 ld y; 0 f fi; 0 f bar; 1 f bar; 1 1 st x", "", "="},
	{"BAR with inactive threads", "0 3 if c; 0 3 bar; 1 f bar", "2 barrier-divergence", ""},
	{"bar.arrive releases only", "0 1 st x; 0 f part; 1 f bar; 1 1 ld x; 1 1 st y; 0 1 ld y", "5-6 intra-block", "="},
	{"INITATOMEXCL: an atomic operation after a write", "0 1 st x; 2 1 atm x", "1-2 inter-block", "="},
	{"INITATOMSHRD: after readers", "0 1 ld x; 1 1 ld x; 2 1 atm x", "1-3 inter-block, 2-3 inter-block", "="},
	{"ATOMEXCL: atomic operations", "0 1 atm x; 2 1 atm x; 3 1 atm x", "", "="},
	{"ATOMEXCL: with a read between", "0 1 atm x; 0 1 ld x; 2 1 atm x", "2-3 inter-block", "="},
	{"ATOMSHARED", "0 1 atm x; 0 f bar; 1 f bar; 0 1 ld x; 1 1 ld x; 2 1 atm x", "4-6 inter-block, 5-6 inter-block", "="},
	{"atomic operations order nothing", "0 1 st y; 0 1 atm x; 2 1 atm x; 2 1 ld y", "1-4 inter-block", "="},
	{"a write after an atomic operation", "0 1 atm x; 2 1 st x", "1-2 inter-block", "="},

	// Figure 5.5, REL and ACQ; section 5.4.1, the operations that they are inferred from.
	{"ACQGLOBAL, RELGLOBAL", "0 1 st y; 0 1 fence.gl; 0 1 st x; 2 1 ld x; 2 1 fence.gl; 2 1 ld y", "", "="},
	{"RELBLOCK, ACQBLOCK, one block", "0 1 st y; 0 1 fence.cta; 0 1 st x; 1 1 ld x; 1 1 fence.cta; 1 1 ld y", "", "="},
	{"RELBLOCK, ACQBLOCK, two blocks", "0 1 st y; 0 1 fence.cta; 0 1 st x; 2 1 ld x; 2 1 fence.cta; 2 1 ld y", "1-6 inter-block", "="},
	{"RELGLOBAL, ACQBLOCK: one global fence is enough", "0 1 st y; 0 1 fence.gl; 0 1 st x; 2 1 ld x; 2 1 fence.cta; 2 1 ld y", "", "="},
	{"RELBLOCK, ACQGLOBAL", "0 1 st y; 0 1 fence.cta; 0 1 st x; 2 1 ld x; 2 1 fence.gl; 2 1 ld y", "", "="},
	{"a release replaces the one before", "0 1 st y; 0 1 fence.gl; 0 1 st x; 1 1 fence.gl; 1 1 st x; 2 1 ld x; 2 1 fence.gl; 2 1 ld y", "1-8 inter-block", "="},
	{"a release of a block leaves those of others", "0 1 st y; 0 1 fence.cta; 0 1 st x; 2 1 fence.cta; 2 1 st x; 1 1 ld x; 1 1 fence.cta; 1 1 ld y", "", "="},
	{"no fence before the store: a race on the flag too", "0 1 st y; 0 1 st x; 2 1 ld x; 2 1 fence.gl; 2 1 ld y", "1-5 inter-block", "="},
	{"no fence after the load", "0 1 st y; 0 1 fence.gl; 0 1 st x; 2 1 ld x; 2 1 ld y", "1-5 inter-block", "="},
	{"an access between fence and store", "0 1 st y; 0 1 fence.gl; 0 1 ld z; 0 1 st x; 2 1 ld x; 2 1 fence.gl; 2 1 ld y", "1-7 inter-block", "="},
	{"a release is no write, an acquire no read", "0 1 fence.gl; 0 1 st x; 2 1 fence.gl; 2 1 st x; 3 1 ld x; 3 1 fence.gl", "", "="},
	{"a poll, and the fence behind the loop", "0 1 st y; 2 1 ld x; 2 1 ld x; 0 1 fence.gl; 0 1 st x; 2 1 ld x; 2 1 fence.gl; 2 1 ld y", "", "="},
	{"cas takes a lock, exch gives it back", "0 1 cas x; 0 1 fence.gl; 0 1 st y; 0 1 fence.gl; 0 1 exch x; 2 1 cas x; 2 1 fence.gl; 2 1 st y", "", "="},
	{"cas without a fence", "0 1 cas x; 0 1 st y; 0 1 fence.gl; 0 1 exch x; 2 1 cas x; 2 1 st y", "2-6 inter-block", "="},
	{"a store without a fence gives the lock back", "0 1 cas x; 0 1 st y; 0 1 st x; 2 1 cas x; 2 1 st y", "2-5 inter-block, 3-4 inter-block", "="},
	{"a fence before cas does not make it a release", "0 1 st y; 0 1 fence.gl; 0 1 cas x; 2 1 ld x; 2 1 fence.gl; 2 1 ld y", "1-6 inter-block", "="},
	{"a fence after exch does not make it an acquire", "0 1 st y; 0 1 fence.gl; 0 1 st x; 2 1 exch x; 2 1 fence.gl; 2 1 ld y", "1-6 inter-block", "="},
	{"other atomic operations beside a fence do both", "0 1 st y; 0 1 fence.gl; 0 1 atm x; 1 1 fence.gl; 1 1 atm x; 2 1 atm x; 2 1 fence.gl; 2 1 ld y", "", "="},
	{"operations with an order", "0 1 st y; 0 1 st.release x; 2 1 ld.acquire x; 2 1 ld y", "", "="},
	{"an acquire serves the active lanes", "0 1 st y; 0 1 fence.gl; 0 1 st x; 2 3 ld x; 2 3 fence.gl; 2 2 ld y; 2 4 ld y", "", "1-7 inter-block"},
	{"but no other path", "0 1 st y; 0 1 fence.gl; 0 1 st x; 2 3 if c; 2 3 ld x; 2 3 fence.gl; 2 c else; 2 4 ld y", "1-8 inter-block", "="},

	// 000, section 5.1.
	{"atomic operations of block scope, two blocks", "0 1 atm.cta x; 2 1 atm.cta x", "", "1-2 inter-block"},
	{"atomic operations of block scope, one block", "0 1 atm.cta x; 1 1 atm.cta x", "", "="},
	{"one of block scope, one of global", "0 1 atm.cta x; 2 1 atm x", "", "="},
	{"an atomic operation of block scope under a global fence", "0 1 st y; 0 1 fence.gl; 0 1 atm.cta x; 2 1 atm.cta x; 2 1 fence.gl; 2 1 ld y", "", "1-6 inter-block"},
	{"__syncwarp orders its lanes", "0 1 st x; 0 3 sync; 0 2 ld x; 0 4 ld x", "", "1-4 divergence"},
	{"an exited lane is ordered with nobody", "0 1 st x; 0 1 exit; 0 2 ld x", "", "1-3 divergence"},
}

var operation = regexp.MustCompile(`^([0-3]) ([0-9a-f]+) (\w+)(?:\.(\w+))?(?: (\w+))?$`)

// parse makes the events of a litmus stream.
func parse(t *testing.T, text string) *event.Batch {
	b := &event.Batch{Launches: []event.Launch{{ID: 1, Kernel: "k", Grid: event.Dim3{X: 2, Y: 1, Z: 1}, Block: event.Dim3{X: 36, Y: 1, Z: 1}}}}
	// In the first warp of a block, lanes 4 to 31 only take part in barriers.
	b.Events = append(b.Events, event.Event{Kind: event.KernelBegin, Launch: 1})
	arrived := map[uint32]int{}
	for i, op := range strings.Split(text, "; ") {
		f := operation.FindStringSubmatch(op)
		if f == nil {
			t.Fatalf("%q is no operation", op)
		}
		warp, _ := strconv.ParseUint(f[1], 10, 32)
		mask, _ := strconv.ParseUint(f[2], 16, 32)
		e := event.Event{Launch: 1, Warp: uint32(warp), Mask: uint32(mask), Place: uint32(i + 1), Size: 4, Space: event.Global}
		if (f[3] == "bar" || f[3] == "part") && warp%2 == 0 && mask == 0xf {
			e.Mask = ^uint32(0)
		}
		if f[5] == "s" {
			e.Space = event.Shared
		}
		e.Addr = map[string]uint64{"x": 0x1000, "y": 0x1100, "z": 0x1200, "s": 0x10}[f[5]]
		operate(&e, b, f[3], f[4], f[5])
		b.Events = append(b.Events, e)
		if e.Kind == event.Arrive {
			if arrived[e.Warp/2]++; arrived[e.Warp/2] == 2 {
				b.Events = append(b.Events, event.Event{Launch: 1, Warp: e.Warp, Mask: 1, Kind: event.BarrierDone})
			}
		}
	}
	b.Events = append(b.Events, event.Event{Kind: event.KernelEnd, Launch: 1})
	return b
}

func operate(e *event.Event, b *event.Batch, op, order, operand string) {
	scope := event.ScopeGPU
	if order == "cta" {
		scope = event.ScopeCTA
	}
	switch op {
	case "ld":
		e.Kind, e.Flags = event.Load, event.FlagRead
	case "st", "stv":
		e.Kind, e.Flags, e.Val = event.Store, event.FlagWrite|event.FlagValues, uint32(len(b.Values))
		for i := range lanesOf(e.Mask) {
			if op == "st" {
				i = 0
			}
			b.Values = append(b.Values, uint64(i))
		}
	case "atm", "cas", "exch":
		e.Kind, e.Flags, e.Order, e.Scope = event.Atomic, event.FlagRead|event.FlagWrite, event.Relaxed, scope
		e.RMW = map[string]event.RMW{"cas": event.CompareAndSwap, "exch": event.Exchange}[op]
	case "fence":
		e.Kind, e.Order, e.Scope = event.Fence, event.SC, scope
	case "bar":
		e.Kind, e.Flags = event.Arrive, event.FlagWait
	case "part":
		e.Kind, e.Aux = event.Arrive, 64
	case "sync":
		e.Kind = event.WarpSync
	case "exit":
		e.Kind = event.Exit
	case "if":
		rest, _ := strconv.ParseUint(operand, 16, 32)
		e.Kind, e.Aux = event.Branch, uint32(rest)
	case "else":
		e.Kind = event.Else
	case "fi":
		e.Kind = event.Reconverge
	default:
		panic("BUG: operation " + op)
	}
	switch order {
	case "acquire":
		e.Order, e.Scope = event.Acquire, event.ScopeGPU
	case "release":
		e.Order, e.Scope = event.Release, event.ScopeGPU
	}
}

// verdict returns the findings of a stream in the format of a litmus.
func verdict(d detect.Detector, b *event.Batch) string {
	d.Events(b)
	class := regexp.MustCompile(`: (\S+) race\)$`)
	var out []string
	for _, f := range d.Findings() {
		if f.Class == detect.Divergence {
			out = append(out, fmt.Sprint(f.Accesses[0].Place, " ", f.Kind))
			continue
		}
		x, y := f.Accesses[0].Place, f.Accesses[1].Place
		out = append(out, fmt.Sprintf("%d-%d %s", min(x, y), max(x, y), class.FindStringSubmatch(f.Message)[1]))
	}
	return strings.Join(out, ", ")
}

func TestLitmus(t *testing.T) {
	for _, l := range litmusTests {
		t.Run(l.name, func(t *testing.T) {
			if l.plus == "=" {
				l.plus = l.base
			}
			b := parse(t, l.stream)
			if got := verdict(newTest(false, "on"), b); got != l.base {
				t.Errorf("barracuda says %q, want %q", got, l.base)
			}
			if got := verdict(newTest(true, "on"), b); got != l.plus {
				t.Errorf("barracuda+ says %q, want %q", got, l.plus)
			}
		})
	}
}
