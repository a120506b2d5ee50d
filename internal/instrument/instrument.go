// Package instrument rewrites PTX so that programs record their own behaviour on any device. In mode log, each access
// to global and shared memory, atomic, fence, barrier, exit and call writes a record to a log that the host reads
// (BARRACUDA, sections 5.5.1 and 5.5.2). In mode hirace, the device code checks each access when it is made ("HiRace",
// section IV). The package contains the device code, makes events from records, and reads the races that the device
// code has found.
package instrument

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/opt"
	"fencepost.dev/fencepost/ptx"
)

//go:generate go run ./gen

//go:embed device/log.ptx
var logCode string

//go:embed device/hirace.ptx
var hiraceCode string

// deviceCode is the PTX of device/*.cu.
var deviceCode = [...]string{Log: logCode, HiRace: hiraceCode}

// Mode is the behaviour of instrumented programs.
type Mode uint8

// The modes.
const (
	Log    Mode = iota // write a log of their operations
	HiRace             // detect races by HiRace
)

// reserved is the prefix of the names of the device code.
const reserved = isa.ToolPrefix

// Ours reports whether a name belongs to the device code.
func Ours(name string) bool { return strings.HasPrefix(name, reserved) }

// LogSymbol is the variable of an instrumented module that points to the log. While it is zero, nothing is logged.
const LogSymbol = reserved + "log"

// Kind is the kind of a record.
type Kind uint8

// The kinds of records. The comments describe the value of a record.
const (
	Access    Kind = iota // a load, store or atomic: the address
	Fence                 // nothing
	Barrier               // barrier | threads<<32; threads is 0 for all
	WarpSync              // the member mask
	Exit                  // nothing
	CallBegin             // nothing: the lanes are about to call
	CallEnd               // nothing: the lanes have returned
	Join                  // nothing: the lanes have reached the end of a branch together

	StoreWord  // 8 bytes of a store, the first bytes first; an Access follows
	TileStride // the distance between the lines of a matrix; an Access follows

	AlignDown // an address that is aligned down: see opt.Element.Base

	MbarrierOperand // the operand of the Mbarrier that follows: a count, bytes, or the argument of a test
	Mbarrier        // an operation on an mbarrier: its address; Record.Failed are the tests that found the phase incomplete

	// Asynchronous copies.
	CopyTo     // the destination, in shared memory; a CopyFrom follows
	CopySize   // the number of bytes that the copy reads
	CopyFrom   // the source, in global memory
	CopyCommit // nothing
	CopyWait   // the number of groups that need not be complete

	// The functions of fencepost.h.
	SwitchThread  // whether accesses of the lanes are checked from now on
	SwitchAddress // an address; a SwitchMemory follows
	SwitchBytes   // the size of the memory at the address
	SwitchMemory  // whether accesses to the memory are checked from now on
)

// Site is an instrumented instruction. Records refer to it by its index in Program.Sites.
type Site struct {
	Kind  Kind
	Func  *isa.Func // of the original module
	Index int32     // in Func.Insts; len(Func.Insts) after the last one
}

// Inst returns the instruction, or nil after the last one.
func (s *Site) Inst() *isa.Inst {
	if int(s.Index) == len(s.Func.Insts) {
		return nil
	}
	return &s.Func.Insts[s.Index]
}

// Program is an instrumented program.
type Program struct {
	Modules []*ptx.Module // in place of Module.Source, in the same order
	Sites   []Site
	// Static is the number of instructions. Logged is the number of instrumented ones (figure 5.11). Pruned is the
	// number that Options.Prune omitted.
	Static, Logged, Pruned int
	// Unchecked are the kernels that are not instrumented, by name, with the reason: something in the kernel, or in a
	// function that it may call, cannot be instrumented.
	Unchecked map[string]*Error
}

// Options select what is instrumented.
type Options struct {
	Mode Mode
	// Prune omits accesses that another access of the same basic block covers (section 5.5.3). Findings then name fewer
	// places.
	Prune bool
	// Partly leaves kernels that cannot be instrumented unchanged, and lists them in Program.Unchecked. If it is not
	// set, they are an error.
	Partly bool
}

// Error lists what cannot be instrumented.
type Error struct {
	Missing []string // sorted by place: "kernel.ptx:12: cp.async.ca.shared.global"
}

// Error implements error.
func (e *Error) Error() string {
	const most = 5
	list := e.Missing
	more := ""
	if len(list) > most {
		list, more = list[:most], fmt.Sprintf(" and %d more", len(list)-most)
	}
	return "cannot be instrumented: " + strings.Join(list, ", ") + more
}

// minTarget is the oldest supported architecture of instrumented code, and minVersion the oldest ISA. The ld.acquire in
// __fencepost_begin needs them. So does independent thread scheduling: without it, a waiting leader would block the
// lanes that it waits for.
const minTarget = 70

var minVersion = ptx.Version{Major: 6, Minor: 4}

// Instrument instruments a decoded program. It does not change the trees of m. The error is an *Error.
func Instrument(m *isa.Module, o Options) (*Program, error) {
	p, missing := instrument(m, o, nil)
	if len(missing) == 0 {
		return p, nil
	}
	whole := slices.ContainsFunc(missing, func(x lack) bool { return x.f == nil && !x.all })
	if whole || !o.Partly {
		return nil, errorOf(missing)
	}
	asIs, unchecked := map[*isa.Func]bool{}, map[string]*Error{}
	for _, f := range m.Funcs {
		reached := f.Reachable()
		if of := slices.DeleteFunc(slices.Clone(missing), func(x lack) bool { return !x.all && !slices.Contains(reached, x.f) }); len(of) > 0 {
			if asIs[f] = true; f.Entry {
				unchecked[f.Name] = errorOf(of)
			}
		}
	}
	p, missing = instrument(m, o, asIs)
	if len(missing) > 0 {
		panic(fmt.Sprintf("BUG: what cannot be instrumented was instrumented: %v", missing))
	}
	p.Unchecked = unchecked
	return p, nil
}

// lack is something in a function that cannot be instrumented. If f is nil, it is in the module as a whole.
type lack struct {
	f    *isa.Func
	all  bool // it leaves all functions unchanged
	what string
}

func errorOf(missing []lack) *Error {
	e := &Error{}
	for _, x := range missing {
		e.Missing = append(e.Missing, x.what)
	}
	return e
}

// instrument instruments all functions except those in asIs. It returns what cannot be instrumented.
func instrument(m *isa.Module, o Options, asIs map[*isa.Func]bool) (*Program, []lack) {
	r := &rewriter{out: &Program{}, options: o, funcs: map[*ptx.Func]*isa.Func{}, logs: loggers(m), elements: map[*isa.Func]bool{}}
	if o.Mode == Log {
		r.joins = joins(m)
	}
	for _, f := range m.Funcs {
		if f.Decl.Body != nil && !asIs[f] {
			r.funcs[f.Decl] = f
		}
		if o.Mode == Log && f.Entry && opt.MayHaveElements(f) {
			for _, g := range f.Reachable() {
				r.elements[g] = true
			}
		}
	}
	for _, tree := range m.Source {
		r.out.Modules = append(r.out.Modules, r.module(tree))
	}
	return r.out, r.missing
}

// Text instruments the PTX of one file and returns the PTX to replace it.
func Text(name, text string, o Options) (string, *Program, error) {
	tree, err := ptx.Parse(name, text)
	if err != nil {
		return "", nil, err
	}
	m, err := isa.Decode(tree)
	if err != nil {
		return "", nil, err
	}
	for _, f := range m.Funcs {
		if f.Err != nil {
			return "", nil, f.Err
		}
	}
	p, err := Instrument(m, o)
	if err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	err = ptx.Print(&out, p.Modules[0])
	return out.String(), p, err
}

// kindOf returns the kind of record of an instruction of a function. ok is false for instructions that are not
// instrumented.
func kindOf(f *isa.Func, in *isa.Inst) (k Kind, ok bool) {
	switch in.Class {
	case isa.Load, isa.Store, isa.Atomic, isa.Matrix, isa.Tile:
		s := spaceOf(in)
		return Access, s == event.Global || s == event.Shared || s == event.Generic
	case isa.Copy:
		switch in.Op {
		case isa.OpCopy:
			return CopyFrom, true
		case isa.OpCommit:
			return CopyCommit, true
		case isa.OpWaitGroup, isa.OpWaitAll:
			return CopyWait, true
		}
	case isa.Mbarrier:
		return Mbarrier, in.Op != isa.OpPending
	case isa.Fence:
		return Fence, true
	case isa.Barrier:
		return Barrier, true
	case isa.WarpBarrier:
		return WarpSync, true
	case isa.Exit:
		return Exit, true
	case isa.Ret:
		return Exit, f.Entry
	}
	return 0, false
}

// spaceOf returns the space of a memory instruction, if the PTX determines it.
func spaceOf(in *isa.Inst) event.Space {
	if in.Space != event.Generic {
		return in.Space
	}
	switch in.Src[0].Kind {
	case isa.GlobalAddr:
		return event.Global
	case isa.SharedAddr:
		return event.Shared
	case isa.LocalAddr:
		return event.Local
	case isa.ParamAddr:
		return event.Param
	}
	return event.Generic
}

// strong reports whether an access may synchronise. Such accesses are logged in the order in which they take effect.
func strong(in *isa.Inst) bool { return in.Class == isa.Atomic || in.Order != event.Weak }

// missing reports whether an instruction has events that the device code of the mode does not support. Instructions of
// all classes that are not listed here do. HiRace supports no order by mbarriers: it would report every pair of accesses
// that an mbarrier orders.
func (m Mode) missing(in *isa.Inst) bool {
	switch in.Class {
	case isa.Mbarrier:
		return in.Op != isa.OpPending && (m != Log || in.Has("shared::cluster"))
	case isa.Copy:
		return in.Op != isa.OpCopy && in.Op != isa.OpCommit && in.Op != isa.OpWaitGroup && in.Op != isa.OpWaitAll
	case isa.Pure:
		return in.Row.Op == "mapa" // accesses to shared memory of other blocks follow
	case isa.Special, isa.Load, isa.Store, isa.Matrix, isa.Tile, isa.Fence, isa.Barrier, isa.Warp, isa.WarpBarrier, isa.Branch, isa.Call, isa.Ret,
		isa.Exit, isa.Trap, isa.Hint:
		return false
	case isa.Atomic:
		return in.Op == isa.OpCas && in.Type.Size() > 8
	case isa.Texture:
		return in.Op != isa.OpQuery
	}
	return true
}

// loggers returns the functions that log, or that call a function that logs.
func loggers(m *isa.Module) map[*isa.Func]bool {
	logs := map[*isa.Func]bool{}
	for changed := true; changed; {
		changed = false
		for _, f := range m.Funcs {
			if !logs[f] && logsItself(f, logs) {
				logs[f], changed = true, true
			}
		}
	}
	return logs
}

func logsItself(f *isa.Func, logs map[*isa.Func]bool) bool {
	for i := range f.Insts {
		in := &f.Insts[i]
		if _, ok := kindOf(f, in); ok {
			return true
		}
		if in.Class == isa.Call && (in.Callee == nil || logs[in.Callee]) {
			return true
		}
	}
	return false
}
