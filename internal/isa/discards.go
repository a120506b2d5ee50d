package isa

import "fencepost.dev/fencepost/internal/event"

// Use is what becomes of the result of an atomic operation or of a call.
type Use uint8

const (
	Used      Use = iota // or not known
	Returned             // the function returns it, and does nothing else with it
	Discarded            // nothing uses it
)

// Discards says, for each instruction that is an atomic operation or a call, what becomes of its result; of others it says Used.
// A value that is moved is used where what it was moved to is.
func (f *Func) Discards() []Use {
	out := make([]Use, len(f.Insts)+1) // falling off the end is a place too
	var d *discards
	for i := range f.Insts {
		if in := &f.Insts[i]; in.Class == Atomic && len(in.Dst) > 0 || in.Class == Call && len(in.RetOps) > 0 {
			if d == nil {
				d = newDiscards(f)
			}
			out[i] = d.use(i)
		}
	}
	return out
}

// discards are the instructions that read registers and parameters.
type discards struct {
	f     *Func
	reads map[int32][]int32 // by register
	loads map[int32][]int32 // of results, by the call before them in the code: compilers let a load follow its call
	other bool              // parameters are accessed in other ways
}

func newDiscards(f *Func) *discards {
	d := &discards{f: f, reads: map[int32][]int32{}, loads: map[int32][]int32{}}
	last := map[uint64]int32{} // calls that gave results, by their offset
	for i := range f.Insts {
		in := &f.Insts[i]
		for _, o := range in.RetOps {
			if o.Kind == ParamAddr {
				last[o.Imm] = int32(i)
			}
		}
		read := func(o *Operand) {
			if o.Kind == Reg {
				d.reads[o.Reg] = append(d.reads[o.Reg], int32(i))
			}
		}
		for k := range in.Src {
			read(&in.Src[k])
		}
		for k := range in.ArgOps {
			read(&in.ArgOps[k])
		}
		if in.Guard >= 0 {
			d.reads[in.Guard] = append(d.reads[in.Guard], int32(i))
		}
		switch {
		case len(in.Src) == 0 || in.Src[0].Kind != ParamAddr:
		case in.Class == Load:
			if call, ok := last[in.Src[0].Imm+uint64(in.Off)]; ok {
				d.loads[call] = append(d.loads[call], int32(i))
			}
		case in.Class != Store:
			d.other = true
		}
	}
	return d
}

// use follows the result of instruction i.
func (d *discards) use(i int) Use {
	out := Discarded
	seen := map[int32]bool{}
	var work []int32 // registers
	follow := func(list []Operand) {
		for _, o := range list {
			if o.Kind == Reg && !seen[o.Reg] {
				seen[o.Reg] = true
				work = append(work, o.Reg)
			}
		}
	}
	in := &d.f.Insts[i]
	if d.other && in.Class == Call {
		return Used
	}
	for _, load := range d.loads[int32(i)] {
		follow(d.f.Insts[load].Dst)
	}
	follow(in.RetOps)
	for follow(in.Dst); len(work) > 0; {
		reg := work[len(work)-1]
		work = work[:len(work)-1]
		for _, i := range d.reads[reg] {
			switch in := &d.f.Insts[i]; {
			case in.Class == Pure && in.Row.Op == "mov" && in.Guard != reg:
				follow(in.Dst)
			case d.returns(in) && in.Guard < 0:
				out = Returned
			default:
				return Used
			}
		}
	}
	return out
}

// returns reports whether an instruction stores a result of the function.
func (d *discards) returns(in *Inst) bool {
	if d.f.Entry || in.Class != Store || in.Space != event.Param || in.Src[0].Kind != ParamAddr {
		return false
	}
	at := int64(in.Src[0].Imm) + in.Off
	for _, r := range d.f.Sig.Rets {
		if int64(r.Off) <= at && at < int64(r.Off)+int64(r.Size) {
			return true
		}
	}
	return false
}
