package instrument

import (
	"fmt"
	"math/bits"
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// The kinds of access, as in device/hirace.cu.
const (
	actionRead = iota
	actionWrite
	actionBlockAtomic
	actionDeviceAtomic
)

// actionOf returns the kind of an access. For an asynchronous copy it is that of the access to shared memory. As in
// detector hirace, loads and stores of order relaxed or stronger are atomic.
func actionOf(in *isa.Inst) uint64 {
	switch {
	case in.Class == isa.Atomic || in.Order >= event.Relaxed:
		if in.Scope >= event.ScopeGPU {
			return actionDeviceAtomic
		}
		return actionBlockAtomic
	case in.Class == isa.Store, in.Class == isa.Copy, in.Class == isa.Tile && in.Tiles.Store:
		return actionWrite
	}
	return actionRead
}

// described returns the word that describes an access to the device code.
func described(in *isa.Inst, site int) uint64 {
	space := map[event.Space]uint64{event.Global: 0, event.Shared: 1, event.Generic: 2}[spaceOf(in)]
	return uint64(site) | pieceBytes(in)<<32 | actionOf(in)<<40 | space<<42
}

// checkedAccess returns the code that checks an access to the address in %@v. This is the address of a lane or, if the
// lanes access a matrix together, that of the matrix.
func checkedAccess(src *ptx.Inst, in *isa.Inst, site int) string {
	what := fmt.Sprintf("b64 %d", described(in, site))
	one := call(reserved+"access", "b64 %@v", what)
	switch {
	case in.Class == isa.Matrix:
		return byFirst(bits.OnesCount32(in.Rows()), one)
	case in.Class != isa.Tile:
		return one
	case in.Tiles.Given:
		return byFirst(bits.OnesCount32(in.Tiles.Lanes(0)), one)
	}
	t := in.Tiles
	stride := fmt.Sprintf("mov.b64 %%@w, %d;\n", in.TileStride().Imm)
	if in.TileStride().Kind == isa.Reg {
		stride = "cvt.u64.u32 %@w, " + src.Operands[2].String() + ";\n"
	}
	shape := t.Lines*t.Line/t.Piece | t.Line<<16 | t.Element<<48
	return ".reg .b64 %@w;\n" + stride + call(reserved+"tile", "b64 %@v", "b64 %@w", fmt.Sprintf("b64 %d", shape), what)
}

// byFirst returns code that only the first n lanes of a warp execute.
func byFirst(n int, code string) string {
	return fmt.Sprintf(".reg .b32 %%@l; .reg .pred %%@q; mov.u32 %%@l, %%laneid; setp.ge.u32 %%@q, %%@l, %d;\n@%%@q bra $@others;\n%s$@others:\n", n, code)
}

// checked returns an instruction with the code of HiRace before and after it.
func checked(src *ptx.Inst, in *isa.Inst, k Kind, site int) string {
	switch k {
	case Access:
		return address(src, in) + checkedAccess(src, in, site) + "@op;\n"
	case CopyFrom:
		what := fmt.Sprintf("b64 %d", described(in, site)|1<<42)
		return ".reg .b64 %@f, %@n, %@v;\n" + addressOf(&src.Operands[1], &in.Src[1]) + "mov.b64 %@f, %@v;\n" + copySize(src, in) + "mov.b64 %@n, %@v;\n" +
			addressOf(&src.Operands[0], &in.Src[0]) + call(reserved+"copy", "b64 %@v", "b64 %@f", "b64 %@n", what) + "@op;\n"
	case Barrier:
		id := src.Operands[0]
		if in.Op != isa.OpSync && in.Op != isa.OpArrive {
			id = src.Operands[1] // after the result of bar.red
		}
		s := fmt.Sprintf(".reg .b32 %%@i, %%@w; mov.b32 %%@i, %s;\n", id) + result("%@w", reserved+"arrive", "%@i") + "@op;\n"
		if in.Op == isa.OpArrive {
			return s
		}
		return s + call(reserved+"passed", "b32 %@i", "b32 %@w")
	case WarpSync:
		return ".reg .b32 %@m; mov.b32 %@m, " + src.Operands[0].String() + ";\n@op;\n" + call(reserved+"together", "b32 %@m")
	case Exit:
		return call(reserved+"exit") + "@op;\n"
	}
	panic(fmt.Sprintf("BUG: %s is checked", src.Op))
}

// switches are the functions of fencepost.h. They do nothing in the original program. Instrumented programs call the
// device code in them.
var switches = map[string]bool{"fencepost_check_thread": true, "fencepost_check_memory": true}

// handedOn returns a function body that passes the parameters to the corresponding function of the device code.
func handedOn(d *ptx.Func) string {
	var b strings.Builder
	var args []string
	for i, p := range d.Params {
		v := fmt.Sprintf("%%@%d", i)
		fmt.Fprintf(&b, ".reg .%s %s; ld.param.%s %s, [%s];\n", p.Type, v, p.Type, v, p.Names[0].Name)
		args = append(args, p.Type+" "+v)
	}
	return b.String() + call(strings.Replace(d.Name, "fencepost_", reserved, 1), args...) + "ret;\n"
}

// entered returns a call, preceded by code that passes the number of the call's site to the device code.
func entered(src *ptx.Inst, site int) string {
	return ".reg .b32 %@c;\n{\n" + guarded(src, result("%@c", reserved+"enter", fmt.Sprint(site))) + "}\n@op;\n{\n" +
		guarded(src, call(reserved+"leave", "b32 %@c")) + "}\n"
}

// result returns a call of a function with one argument and a result, each of 32 bits.
func result(to, name, value string) string {
	return fmt.Sprintf("{ .param .b32 @r; .param .b32 @0; st.param.b32 [@0], %s; call (@r), %s, (@0); ld.param.b32 %s, [@r]; }\n", value, name, to)
}
