package vcode

import (
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// lanesRMW returns the operation of package lanes for an atomic. It is NoRMW if there is none or if the registers are
// not those of the atomic's type.
func lanesRMW(e *Effect) lanes.RMW {
	wide, kind := e.Piece == 8, loader.OpV32
	if wide {
		kind = loader.OpV64
	}
	if e.Vec > 1 || e.Piece < 4 || e.Width != e.Piece || e.Wide[0] != wide || len(e.Results) > 1 || len(e.Results) == 1 && e.Results[0].Kind != kind {
		return lanes.NoRMW
	}
	if e.Op == isa.OpCas && e.Wide[1] != wide {
		return lanes.NoRMW
	}
	if e.Type.Float() {
		if e.Op == isa.OpAdd && (e.Type == isa.F32 || e.Type == isa.F64) {
			return lanes.RMWFAdd
		}
		return lanes.NoRMW
	}
	if e.Type.Signed() {
		switch e.Op {
		case isa.OpMin:
			return lanes.RMWMinS
		case isa.OpMax:
			return lanes.RMWMaxS
		}
	}
	return rmws[e.Op]
}

// rmws are the operations on integers, unsigned if the sign matters.
var rmws = map[isa.Op]lanes.RMW{isa.OpAdd: lanes.RMWAdd, isa.OpAnd: lanes.RMWAnd, isa.OpOr: lanes.RMWOr, isa.OpXor: lanes.RMWXor,
	isa.OpExch: lanes.RMWExch, isa.OpCas: lanes.RMWCas, isa.OpMin: lanes.RMWMinU, isa.OpMax: lanes.RMWMaxU, isa.OpInc: lanes.RMWInc,
	isa.OpDec: lanes.RMWDec}
