package hb

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
)

// A litmus test is a program of lines, run in order:
//
//	begin AGENT BLOCKS THREADS        a launch; launches are numbered from 1
//	early AGENT BLOCKS THREADS        one that may begin early
//	end LAUNCH
//	host AGENT signal|wait TOKEN
//	host AGENT read|write ADDR SIZE
//	host AGENT free ADDR SIZE
//	THREADS OP [ADDR[:SIZE]] [=VALUE]
//
// THREADS is LAUNCH.BLOCK.LANES, lanes as 0, 0+1+2 or *; lanes of one warp act in one instruction. Lane numbers from 32 on
// are of the next warp. OP is an instruction as PTX spells it: ld, st, ld.volatile, ld.acquire.gpu, atom.relaxed.cta,
// swap.relaxed.gpu (a compare-and-swap), cas (a failed one), red.release.gpu, fence.acq_rel.gpu, bar.sync N, bar.arrive N,
// bar.done N, syncwarp, exit, launch_dependents, wait (griddepcontrol). ADDR is x, y, z, f (global, 16 bytes apart), with s in front for shared memory, and +N. The
// place of an instruction is its line number.
type litmus struct {
	t *testing.T
	b event.Batch
}

var litmusKinds = map[string]event.Kind{"ld": event.Load, "st": event.Store, "atom": event.Atomic, "swap": event.Atomic, "red": event.Atomic,
	"cas": event.Atomic, "fence": event.Fence, "bar": event.Arrive, "syncwarp": event.WarpSync, "exit": event.Exit,
	"launch_dependents": event.GridLaunch, "wait": event.GridWait}

var orders = map[string]event.Order{"volatile": event.Volatile, "relaxed": event.Relaxed, "acquire": event.Acquire,
	"release": event.Release, "acq_rel": event.AcqRel, "sc": event.SC}

var scopes = map[string]event.Scope{"cta": event.ScopeCTA, "cluster": event.ScopeCluster, "gpu": event.ScopeGPU, "sys": event.ScopeSys}

func number(t *testing.T, s string) (n uint64) {
	for _, c := range s {
		if c < '0' || c > '9' {
			t.Fatalf("not a number: %q", s)
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

func (l *litmus) line(n int, s string) {
	f := strings.Fields(s)
	if len(f) == 0 {
		return
	}
	num := func(i int) uint64 { return number(l.t, f[i]) }
	switch f[0] {
	case "begin", "early":
		x := event.Launch{ID: uint32(len(l.b.Launches) + 1), Agent: uint32(num(1)), Kernel: "k", Early: f[0] == "early",
			Grid: event.Dim3{X: uint32(num(2)), Y: 1, Z: 1}, Block: event.Dim3{X: uint32(num(3)), Y: 1, Z: 1}}
		l.b.Events = append(l.b.Events, event.Event{Kind: event.KernelBegin, Launch: x.ID, Side: uint32(len(l.b.Launches))})
		l.b.Launches = append(l.b.Launches, x)
	case "end":
		l.b.Events = append(l.b.Events, event.Event{Kind: event.KernelEnd, Launch: uint32(num(1))})
	case "host":
		h := event.HostOp{Agent: uint32(num(1)), Name: "memcpy"}
		h.Kind = map[string]event.HostKind{"signal": event.HostSignal, "wait": event.HostWait, "read": event.HostRead,
			"write": event.HostWrite, "free": event.HostFree}[f[2]]
		if h.Kind <= event.HostWait {
			h.Token = num(3)
		} else {
			_, h.Addr, _ = l.address(f[3])
			h.Size = num(4)
		}
		l.b.Events = append(l.b.Events, event.Event{Kind: event.Host, Side: uint32(len(l.b.Hosts))})
		l.b.Hosts = append(l.b.Hosts, h)
	default:
		l.device(uint32(n), f)
	}
}

func (l *litmus) address(s string) (event.Space, uint64, uint8) {
	size := uint64(4)
	if i := strings.IndexByte(s, ':'); i >= 0 {
		size = number(l.t, s[i+1:])
		s = s[:i]
	}
	var off uint64
	if i := strings.IndexByte(s, '+'); i >= 0 {
		off = number(l.t, s[i+1:])
		s = s[:i]
	}
	space := event.Global
	if len(s) == 2 && s[0] == 's' {
		space, s = event.Shared, s[1:]
	}
	i := strings.Index("xyzf", s)
	if i < 0 || len(s) != 1 {
		l.t.Fatalf("no address: %q", s)
	}
	return space, 0x1000 + uint64(i)*16 + off, uint8(size)
}

func (l *litmus) device(place uint32, f []string) {
	who := strings.Split(f[0], ".")
	launch := &l.b.Launches[number(l.t, who[0])-1]
	e := event.Event{Launch: launch.ID, Place: place}
	first := uint32(number(l.t, who[1])) * launch.WarpsPerBlock()
	e.Warp = first
	if who[2] == "*" {
		e.Mask = 1<<min(launch.Block.X, 31) - 1
		if launch.Block.X >= 32 {
			e.Mask = ^uint32(0)
		}
	} else {
		for _, s := range strings.Split(who[2], "+") {
			n := uint32(number(l.t, s))
			e.Warp = first + n/32
			e.Mask |= 1 << (n % 32)
		}
	}
	op := strings.Split(f[1], ".")
	e.Kind = litmusKinds[op[0]]
	if e.Kind == event.None {
		l.t.Fatalf("no operation: %q", f[1])
	}
	for _, m := range op[1:] {
		if o, ok := orders[m]; ok {
			e.Order = o
		}
		if s, ok := scopes[m]; ok {
			e.Scope = s
		}
	}
	if op[0] == "bar" {
		e.Barrier = uint8(number(l.t, f[2]))
		switch op[1] {
		case "sync":
			e.Flags = event.FlagWait
		case "done":
			e.Kind = event.BarrierDone
		}
	}
	if e.Kind == event.Load || e.Kind == event.Store || e.Kind == event.Atomic {
		l.access(&e, op[0], f)
	}
	l.b.Events = append(l.b.Events, e)
}

func (l *litmus) access(e *event.Event, op string, f []string) {
	e.Space, e.Addr, e.Size = l.address(f[2])
	if op == "swap" {
		e.RMW = event.CompareAndSwap
	}
	switch op {
	case "ld", "cas":
		e.Flags = event.FlagRead
	case "st":
		e.Flags = event.FlagWrite
	case "red":
		e.Flags = event.FlagRead | event.FlagWrite | event.FlagRed
	default:
		e.Flags = event.FlagRead | event.FlagWrite
	}
	if e.Kind == event.Store {
		e.Flags |= event.FlagValues
		e.Val = uint32(len(l.b.Values))
		for i := 0; i < 32; i++ {
			v := uint64(place8(e.Warp, i, e.Place))
			if len(f) > 3 {
				v = number(l.t, f[3][1:])
			}
			for w := 0; w < event.ValueWords(e.Size); w++ {
				l.b.Values = append(l.b.Values, v)
			}
		}
	}
}

// place8 makes values that differ by thread and place.
func place8(warp uint32, lane int, place uint32) uint32 { return warp<<16 ^ uint32(lane)<<8 ^ place }

// TestLitmus compares the findings of each program, in the form "line-line kind severity" and in order of lines.
func TestLitmus(t *testing.T) {
	for _, x := range litmusTests {
		t.Run(x.name, func(t *testing.T) {
			for model, want := range map[detect.Model]string{detect.ModelCUDA: x.want, detect.ModelPTX: x.ptx, detect.ModelHRF: x.hrf} {
				if want == "" {
					want = x.want
				}
				if want == "none" {
					want = ""
				}
				l := &litmus{t: t}
				for i, s := range strings.Split(strings.TrimSpace(x.program), "\n") {
					l.line(i+1, s)
				}
				compareWithOracle(t, &l.b, model, x.name)
				d := New(detect.Config{Model: model})
				d.Events(&l.b)
				if got := brief(d.Findings()); got != want {
					t.Errorf("model %d: got %q, want %q\n%s", model, got, want, oracle.Print(&l.b))
				}
			}
		})
	}
}

func brief(fs []detect.Finding) string {
	var out []string
	for _, f := range fs {
		side := func(a detect.Access) string {
			if a.Host != "" {
				return a.Host
			}
			return string(digits(a.Place))
		}
		out = append(out, side(f.Accesses[0])+"-"+side(f.Accesses[1])+" "+string(f.Kind)+" "+f.Severity.String())
	}
	return strings.ReplaceAll(sorted(out), "\n", "; ")
}

func digits(n uint32) []byte {
	if n < 10 {
		return []byte{byte('0' + n)}
	}
	return append(digits(n/10), byte('0'+n%10))
}
