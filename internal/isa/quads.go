package isa

import "math"

// quads is mma.m8n8k4 of f16: four products at once, each by four lanes of the lower half of a warp and the four that
// are 16 above (PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type").
type quads struct {
	colA, colB  bool // the lanes hold columns
	f16, from16 bool // D and C
}

const quadForm = ".sync.aligned.m8n8k4.alayout.blayout."
const quadLayouts = "; alayout: row col; blayout: row col"

func bindQuads(in *Inst, types []string) {
	at := len(in.Mods) - 6
	p := &quads{colA: in.Mods[at] == "col", colB: in.Mods[at+1] == "col", f16: types[0] == "f16", from16: types[3] == "f16"}
	in.Lanes = p.multiply
}

// inC returns the place of an element of C among the lanes of the first product: its lane, and its index among the
// elements of the lane.
func (p *quads) inC(row, col int, half bool) (lane, i int) {
	if half {
		return row%4 + row/4*16, col
	}
	return row&1 + col&2 + row/4*16, row&2 + col&4 + col&1
}

// factor returns element k of a row of A, or of a column of B, for the four rows that the lanes from first on hold:
// each lane holds one row, or, if across is set, one element of every row.
func (p *quads) factor(s [][32]uint64, first, row, k int, across bool) float32 {
	if across {
		row, k = k, row
	}
	return half(uint32(s[k/2][first+row]>>(16*(k%2))) & 0xffff)
}

func (p *quads) multiply(_ *Inst, w *WarpArgs) {
	for first := 0; first < 16; first += 4 {
		var a, b [8][4]float32 // b by columns
		for n := range 8 {
			for k := range 4 {
				a[n][k] = p.factor(w.S[:2], first+n/4*16, n%4, k, p.colA)
				b[n][k] = p.factor(w.S[2:4], first+n/4*16, n%4, k, !p.colB)
			}
		}
		for row := range 8 {
			for col := range 8 {
				lane, i := p.inC(row, col, p.from16)
				var sum float32
				if c := w.S[4:]; p.from16 {
					sum = half(uint32(c[i/2][first+lane]>>(16*(i%2))) & 0xffff)
				} else {
					sum = math.Float32frombits(uint32(c[i][first+lane]))
				}
				for k := range 4 {
					sum += float32(a[row][k] * b[col][k]) // never fused
				}
				switch lane, i := p.inC(row, col, p.f16); {
				case p.f16 && i%2 == 0:
					w.D[i/2][first+lane] = fmtF16.round(float64(sum), RN)
				case p.f16:
					w.D[i/2][first+lane] |= fmtF16.round(float64(sum), RN) << 16
				case sum != sum:
					w.D[i][first+lane] = fmtF32.nan
				default:
					w.D[i][first+lane] = uint64(math.Float32bits(sum))
				}
			}
		}
	}
}
