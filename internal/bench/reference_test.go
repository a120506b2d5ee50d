package bench

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"math"
	"math/big"
	"testing"
)

// references compute the results of each kernel in the simplest way, from the problem's buffers.
var references = map[string]func(t *testing.T, p *Problem) [][]byte{
	"saxpy": func(_ *testing.T, p *Problem) [][]byte {
		x, y := floatsOf(p, 0), floatsOf(p, 1)
		for i := range y {
			y[i] = fma(1.5, x[i], y[i])
		}
		return [][]byte{floatBytes(y)}
	},
	"stencil": func(_ *testing.T, p *Problem) [][]byte {
		in := floatsOf(p, 0)
		out := make([]float32, len(in))
		at := func(i int) float32 {
			if i < 0 || i >= len(in) {
				return 0
			}
			return in[i]
		}
		for i := range in {
			out[i] = fma(0.25, at(i-1), fma(0.25, at(i+1), 0.5*at(i)))
		}
		return [][]byte{floatBytes(out)}
	},
	"histogram": func(_ *testing.T, p *Problem) [][]byte {
		bins := make([]uint32, 256)
		for _, b := range p.Buffers[0].Data {
			bins[b]++
		}
		return [][]byte{bytesOf(bins)}
	},
	"matmul": func(_ *testing.T, p *Problem) [][]byte {
		a, b, n := floatsOf(p, 0), floatsOf(p, 1), int(p.Args[0])
		c := make([]float32, n*n)
		for i := range c {
			for k := range n {
				c[i] = fma(a[i/n*n+k], b[k*n+i%n], c[i])
			}
		}
		return [][]byte{floatBytes(c)}
	},
	"reduce": func(_ *testing.T, p *Problem) [][]byte {
		sum := uint32(0)
		for _, w := range wordsOf(p, 0) {
			sum += w
		}
		return [][]byte{bytesOf([]uint32{sum})}
	},
	"scan": func(_ *testing.T, p *Problem) [][]byte {
		in := wordsOf(p, 0)
		out := make([]uint32, len(in))
		for i := 1; i < len(in); i++ {
			out[i] = out[i-1] + in[i-1]
		}
		return [][]byte{bytesOf(out)}
	},
	"transpose": func(_ *testing.T, p *Problem) [][]byte {
		in, n := wordsOf(p, 0), int(p.Args[0])
		out := make([]uint32, n*n)
		for i := range in {
			out[i%n*n+i/n] = in[i]
		}
		return [][]byte{bytesOf(out)}
	},
	"bfs": func(_ *testing.T, p *Problem) [][]byte {
		first, edges, dist := wordsOf(p, 0), wordsOf(p, 1), wordsOf(p, 3)
		for changed := true; changed; { // until no distance changes
			changed = false
			for v := range dist {
				for _, w := range edges[first[v]:first[v+1]] {
					if dist[v] != math.MaxUint32 && dist[v]+1 < dist[w] {
						dist[w] = dist[v] + 1
						changed = true
					}
				}
			}
		}
		return [][]byte{bytesOf(dist)}
	},
	"nbody": func(_ *testing.T, p *Problem) [][]byte {
		pos, vel := floatsOf(p, 0), floatsOf(p, 1)
		newpos, newvel := append([]float32(nil), pos...), append([]float32(nil), vel...)
		for i := 0; i < len(pos); i += 4 {
			var pull [3]float64
			for j := 0; j < len(pos); j += 4 {
				var d [3]float64
				r2 := 1e-2
				for k := range d {
					d[k] = float64(pos[j+k]) - float64(pos[i+k])
					r2 += d[k] * d[k]
				}
				for k := range d {
					pull[k] += d[k] * float64(pos[j+3]) / (r2 * math.Sqrt(r2))
				}
			}
			for k := range pull {
				v := float64(vel[i+k]) + pull[k]*0.01
				newvel[i+k], newpos[i+k] = float32(v), float32(float64(pos[i+k])+v*0.01)
			}
		}
		return [][]byte{floatBytes(newpos), floatBytes(newvel)}
	},
	"blackscholes": func(_ *testing.T, p *Problem) [][]byte {
		price, strike, years := floatsOf(p, 0), floatsOf(p, 1), floatsOf(p, 2)
		call, put := make([]float32, len(price)), make([]float32, len(price))
		cdf := func(d float64) float64 { return 0.5 * math.Erfc(-d/math.Sqrt2) }
		for i := range price {
			const rate, volatility = 0.02, 0.3
			s, x, t := float64(price[i]), float64(strike[i]), float64(years[i])
			d1 := (math.Log(s/x) + (rate+volatility*volatility/2)*t) / (volatility * math.Sqrt(t))
			d2 := d1 - volatility*math.Sqrt(t)
			discounted := x * math.Exp(-rate*t)
			call[i] = float32(s*cdf(d1) - discounted*cdf(d2))
			put[i] = float32(discounted*cdf(-d2) - s*cdf(-d1))
		}
		return [][]byte{floatBytes(call), floatBytes(put)}
	},
	"sha256": func(t *testing.T, p *Problem) [][]byte {
		in, n := wordsOf(p, 0), int(p.Args[0])
		out := make([]uint32, 8*n)
		for i := range n {
			h := sha256.New()
			for range p.Args[1] {
				for k := range 16 {
					h.Write(binary.BigEndian.AppendUint32(nil, in[k*n+i]))
				}
			}
			// The state after whole blocks, before padding: four bytes that name the format, and eight words.
			state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			for k := range 8 {
				out[k*n+i] = binary.BigEndian.Uint32(state[4+4*k:])
			}
		}
		return [][]byte{bytesOf(out)}
	},
	"rowproduct": func(_ *testing.T, p *Problem) [][]byte {
		a, b, n := wordsOf(p, 0), wordsOf(p, 1), int(p.Args[0])
		c := make([]uint32, n*n)
		for i := range c {
			for k := range n {
				c[i] += a[i/n*n+k] * b[k*n+i%n]
			}
		}
		return [][]byte{bytesOf(c)}
	},
	"convolve": func(_ *testing.T, p *Problem) [][]byte {
		in, weights, n := wordsOf(p, 0), wordsOf(p, 1), int(p.Args[0])
		out := make([]uint32, n*n)
		for i := range out {
			for k, w := range weights {
				x, y := i%n+k%5-2, i/n+k/5-2
				if min(x, y) >= 0 && max(x, y) < n {
					out[i] += w * in[y*n+x]
				}
			}
		}
		return [][]byte{bytesOf(out)}
	},
	"spmv": func(_ *testing.T, p *Problem) [][]byte {
		first, column, value, x := wordsOf(p, 0), wordsOf(p, 1), wordsOf(p, 2), wordsOf(p, 3)
		y := make([]uint32, p.Args[0])
		for row := range y {
			for k := first[row]; k < first[row+1]; k++ {
				y[row] += value[k] * x[column[k]]
			}
		}
		return [][]byte{bytesOf(y)}
	},
	"structs": func(_ *testing.T, p *Problem) [][]byte {
		out := wordsOf(p, 0)
		for i := 0; i < len(out); i += 5 {
			place, speed, mass, age := out[i]+out[i+1], out[i+1]^out[i+2], out[i+2], out[i+3]+1
			out[i+4] += place % 2 * age
			copy(out[i:], []uint32{place, speed, mass, age})
		}
		return [][]byte{bytesOf(out)}
	},
	"bytes": func(_ *testing.T, p *Problem) [][]byte {
		in := p.Buffers[0].Data
		out := make([]byte, len(in))
		for i := range in {
			out[i] = byte((3*int(in[i]) + int(in[min(i+1, len(in)-1)])) / 4)
		}
		return [][]byte{out}
	},
	"bytecounters": func(_ *testing.T, p *Problem) [][]byte {
		out := make([]uint32, 64)
		for _, b := range p.Buffers[0].Data {
			out[b&63]++
		}
		return [][]byte{bytesOf(out)}
	},
	"permute": func(_ *testing.T, p *Problem) [][]byte {
		from, to, in := wordsOf(p, 0), wordsOf(p, 1), wordsOf(p, 2)
		out := make([]uint32, len(in))
		for i := range out {
			out[to[i]] = in[from[i]]
		}
		return [][]byte{bytesOf(out)}
	},
	"counter": func(_ *testing.T, p *Problem) [][]byte {
		count := uint32(0)
		for _, w := range wordsOf(p, 0) {
			count += w & 1
		}
		return [][]byte{bytesOf([]uint32{count})}
	},
	"bins": func(_ *testing.T, p *Problem) [][]byte {
		out := make([]uint32, 256)
		for _, b := range p.Buffers[0].Data {
			out[b]++
		}
		return [][]byte{bytesOf(out)}
	},
	"hashtable": func(_ *testing.T, p *Problem) [][]byte {
		keys, count := wordsOf(p, 0), map[uint32]uint32{}
		for _, k := range keys {
			count[k]++
		}
		out := make([]uint32, len(keys))
		for i, k := range keys {
			out[i] = count[k]
		}
		return [][]byte{bytesOf(out)}
	},
}

func wordsOf(p *Problem, buffer int) []uint32 {
	data := p.Buffers[buffer].Data
	out := make([]uint32, len(data)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}

func floatsOf(p *Problem, buffer int) []float32 {
	w := wordsOf(p, buffer)
	out := make([]float32, len(w))
	for i := range out {
		out[i] = math.Float32frombits(w[i])
	}
	return out
}

func floatBytes(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, f := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

// fma returns a*b+c with a single rounding. math.FMA would round to float64 before.
func fma(a, b, c float32) float32 {
	const enough = 400 // number of bits from the largest to the smallest term
	exact := func(x float32) *big.Float { return new(big.Float).SetPrec(enough).SetFloat64(float64(x)) }
	sum := exact(a)
	sum.Mul(sum, exact(b)).Add(sum, exact(c))
	f, _ := sum.Float32()
	return f
}
