package bench

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"fencepost.dev/fencepost/internal/event"
)

// Kernels returns the kernels in the order of the table. A size counts elements (saxpy, stencil, histogram, reduce,
// scan, blackscholes, structs, bytes, bytecounters, permute, counter, bins), rows (matmul, transpose, rowproduct,
// convolve, spmv), vertices (bfs), bodies (nbody), threads (sha256) or keys (hashtable).
func Kernels() []*Kernel {
	return []*Kernel{
		{Name: "saxpy", Doc: "coalesced, one fma", Coalesced: true, Sizes: [3]int{1000, 1 << 16, 1 << 22}, New: saxpy},
		{Name: "stencil", Doc: "shared tile, one barrier", Coalesced: true, Sizes: [3]int{1000, 1 << 15, 1 << 21}, New: stencil},
		{Name: "histogram", Doc: "shared and global atomics", Sizes: [3]int{3000, 1 << 16, 1 << 22}, New: histogram},
		{Name: "matmul", Doc: "tiles of 16 x 16", Coalesced: true, Sizes: [3]int{32, 64, 256}, New: matmul},
		{Name: "reduce", Doc: "tree in shared memory", Coalesced: true, Sizes: [3]int{2000, 1 << 15, 1 << 22}, New: reduce},
		{Name: "scan", Doc: "block scans, strided shared memory", Sizes: [3]int{1500, 1 << 13, 1 << 18}, New: scan},
		{Name: "transpose", Doc: "padded tile", Coalesced: true, Sizes: [3]int{64, 192, 2048}, New: transpose},
		{Name: "bfs", Doc: "a launch a level, scattered atomics", Sizes: [3]int{300, 1 << 12, 1 << 17}, New: bfs},
		{Name: "nbody", Doc: "fp32 with rsqrt", Coalesced: true, Tolerance: 1e-4, Sizes: [3]int{256, 256, 2048}, New: nbody},
		{Name: "blackscholes", Doc: "fp32 with logf, expf, sqrtf", Coalesced: true, Tolerance: 1e-3, Sizes: [3]int{300, 1 << 13, 1 << 19}, New: blackscholes},
		{Name: "sha256", Doc: "integer arithmetic, local arrays", Coalesced: true, Sizes: [3]int{40, 128, 1 << 12}, New: sha},
		{Name: "rowproduct", Doc: "strided loads, words that many warps read", Sizes: [3]int{32, 64, 192}, New: rowproduct},
		{Name: "convolve", Doc: "5 x 5 from global memory", Coalesced: true, Sizes: [3]int{32, 64, 512}, New: convolve},
		{Name: "spmv", Doc: "rows of a sparse matrix", Sizes: [3]int{300, 1 << 12, 1 << 16}, New: spmv},
		{Name: "structs", Doc: "structures of five words", Sizes: [3]int{1000, 1 << 14, 1 << 18}, New: structs},
		{Name: "bytes", Doc: "loads and stores of bytes", Coalesced: true, Sizes: [3]int{1000, 1 << 16, 1 << 21}, New: byteFilter},
		{Name: "bytecounters", Doc: "counters of a byte, the bytes of a word used apart", Sizes: [3]int{3000, 1 << 14, 1 << 19}, New: byteCounters},
		{Name: "permute", Doc: "gather and scatter", Sizes: [3]int{1000, 1 << 14, 1 << 18}, New: permute},
		{Name: "counter", Doc: "one global counter", Sizes: [3]int{1000, 1 << 15, 1 << 20}, New: counter},
		{Name: "bins", Doc: "atomics on global bins", Sizes: [3]int{3000, 1 << 15, 1 << 20}, New: bins},
		{Name: "hashtable", Doc: "a spin lock a bucket", Sizes: [3]int{200, 1 << 11, 1 << 15}, New: hashtable},
	}
}

const blockSize = 256

// line is a one-dimensional shape. over returns the number of blocks of size threads that cover n elements.
func line(n int) event.Dim3     { return event.Dim3{X: uint32(n), Y: 1, Z: 1} }
func over(n, size int) int      { return (n + size - 1) / size }
func random() *rand.Rand        { return rand.New(rand.NewPCG(1, 2)) }
func floatArg(f float32) uint64 { return uint64(math.Float32bits(f)) }

// floats returns n random f32 from lo to hi.
func floats(r *rand.Rand, n int, lo, hi float32) []byte {
	out := make([]byte, 0, 4*n)
	for range n {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(lo+(hi-lo)*r.Float32()))
	}
	return out
}

func words(r *rand.Rand, n int) []byte {
	out := make([]byte, 0, 4*n)
	for range n {
		out = binary.LittleEndian.AppendUint32(out, r.Uint32())
	}
	return out
}

func bytesOf(v []uint32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, w := range v {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

func saxpy(n int) *Problem {
	r := random()
	const a = 1.5
	return &Problem{
		Buffers: []Buffer{{Input, floats(r, n, -1, 1)}, {Result, floats(r, n, -1, 1)}},
		Args:    []uint64{uint64(n), floatArg(a)},
		Host: func(m Machine) error {
			return m.Launch("saxpy", line(over(n, blockSize)), line(blockSize), int32(n), float32(a), Ref(0), Ref(1))
		},
	}
}

func stencil(n int) *Problem {
	return &Problem{
		Buffers: []Buffer{{Input, floats(random(), n, -1, 1)}, {Result, make([]byte, 4*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("stencil", line(over(n, blockSize)), line(blockSize), int32(n), Ref(0), Ref(1))
		},
	}
}

func histogram(n int) *Problem {
	r := random()
	in := make([]byte, n)
	for i := range in {
		in[i] = byte(r.Uint32() & r.Uint32()) // so that some bins are fuller than others
	}
	const perThread = 16
	return &Problem{
		Buffers: []Buffer{{Input, in}, {Result, make([]byte, 4*256)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("histogram", line(over(n, blockSize*perThread)), line(256), int32(n), Ref(0), Ref(1))
		},
	}
}

func matmul(n int) *Problem {
	r := random()
	const tile = 16
	return &Problem{
		Buffers: []Buffer{{Input, floats(r, n*n, -1, 1)}, {Input, floats(r, n*n, -1, 1)}, {Result, make([]byte, 4*n*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			grid := event.Dim3{X: uint32(n / tile), Y: uint32(n / tile), Z: 1}
			return m.Launch("matmul", grid, event.Dim3{X: tile, Y: tile, Z: 1}, int32(n), Ref(0), Ref(1), Ref(2))
		},
	}
}

func reduce(n int) *Problem {
	const perBlock = 2 * blockSize
	blocks := over(n, perBlock)
	// The levels alternate between two buffers. The last level goes to the result.
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), n)}, {Result, make([]byte, 4)}, {Scratch, make([]byte, 4*blocks)}, {Scratch, make([]byte, 4*over(blocks, perBlock))}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			from, to, spare := Ref(0), Ref(2), Ref(3)
			for left := n; ; left = over(left, perBlock) {
				if left <= perBlock {
					return m.Launch("reduce", line(1), line(blockSize), int32(left), from, Ref(1))
				}
				if err := m.Launch("reduce", line(over(left, perBlock)), line(blockSize), int32(left), from, to); err != nil {
					return err
				}
				from, to, spare = to, spare, to
			}
		},
	}
}

func scan(n int) *Problem {
	const perBlock = 2 * blockSize
	blocks := over(n, perBlock)
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), n)}, {Result, make([]byte, 4*n)}, {Scratch, make([]byte, 4*blocks)},
			{Scratch, make([]byte, 4*blocks)}, {Scratch, make([]byte, 4)}},
		Args: []uint64{uint64(n)},
		Host: func(m Machine) error {
			if err := m.Launch("scan_blocks", line(blocks), line(blockSize), int32(n), Ref(0), Ref(1), Ref(2)); err != nil {
				return err
			}
			if err := m.Launch("scan_blocks", line(1), line(blockSize), int32(blocks), Ref(2), Ref(3), Ref(4)); err != nil {
				return err
			}
			return m.Launch("add_sums", line(blocks), line(blockSize), int32(n), Ref(1), Ref(3))
		},
	}
}

func transpose(n int) *Problem {
	const tile, rows = 32, 8
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), n*n)}, {Result, make([]byte, 4*n*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			grid := event.Dim3{X: uint32(n / tile), Y: uint32(n / tile), Z: 1}
			return m.Launch("transpose", grid, event.Dim3{X: tile, Y: rows, Z: 1}, int32(n), Ref(0), Ref(1))
		},
	}
}

func nbody(n int) *Problem {
	r := random()
	const dt = 0.01
	return &Problem{
		Buffers: []Buffer{{Input, floats(r, 4*n, 0, 1)}, {Input, floats(r, 4*n, -1, 1)}, {Result, make([]byte, 16*n)}, {Result, make([]byte, 16*n)}},
		Args:    []uint64{uint64(n), floatArg(dt)},
		Host: func(m Machine) error {
			return m.Launch("nbody", line(n/blockSize), line(blockSize), int32(n), float32(dt), Ref(0), Ref(1), Ref(2), Ref(3))
		},
	}
}

func blackscholes(n int) *Problem {
	r := random()
	const rate, volatility = 0.02, 0.3
	return &Problem{
		Buffers: []Buffer{{Input, floats(r, n, 5, 30)}, {Input, floats(r, n, 1, 100)}, {Input, floats(r, n, 0.25, 10)},
			{Result, make([]byte, 4*n)}, {Result, make([]byte, 4*n)}},
		Args: []uint64{uint64(n), floatArg(rate), floatArg(volatility)},
		Host: func(m Machine) error {
			return m.Launch("blackscholes", line(over(n, blockSize)), line(blockSize), int32(n), float32(rate), float32(volatility),
				Ref(0), Ref(1), Ref(2), Ref(3), Ref(4))
		},
	}
}

// shaBlocks is the length of the chain of hashes of a thread.
const shaBlocks = 4

func sha(n int) *Problem {
	const threads = 128
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), 16*n)}, {Result, make([]byte, 4*8*n)}},
		Args:    []uint64{uint64(n), shaBlocks},
		Host: func(m Machine) error {
			return m.Launch("sha256", line(over(n, threads)), line(threads), int32(n), int32(shaBlocks), Ref(0), Ref(1))
		},
	}
}

func rowproduct(n int) *Problem {
	const side = 16
	r := random()
	return &Problem{
		Buffers: []Buffer{{Input, words(r, n*n)}, {Input, words(r, n*n)}, {Result, make([]byte, 4*n*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("rowproduct", square(n/side), square(side), int32(n), Ref(0), Ref(1), Ref(2))
		},
	}
}

func convolve(n int) *Problem {
	const side = 16
	r := random()
	return &Problem{
		Buffers: []Buffer{{Input, words(r, n*n)}, {Input, words(r, 25)}, {Result, make([]byte, 4*n*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("convolve", square(n/side), square(side), int32(n), Ref(0), Ref(1), Ref(2))
		},
	}
}

func square(n int) event.Dim3 { return event.Dim3{X: uint32(n), Y: uint32(n), Z: 1} }

// spmv returns a product with a sparse matrix of up to 16 entries a row.
func spmv(n int) *Problem {
	const most = 16
	r := random()
	first, column := make([]uint32, n+1), []uint32{}
	for row := range n {
		for range r.IntN(most + 1) {
			column = append(column, uint32(r.IntN(n)))
		}
		first[row+1] = uint32(len(column))
	}
	return &Problem{
		Buffers: []Buffer{{Input, bytesOf(first)}, {Input, bytesOf(column)}, {Input, words(r, len(column))}, {Input, words(r, n)}, {Result, make([]byte, 4*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("spmv", line(over(n, blockSize)), line(blockSize), int32(n), Ref(0), Ref(1), Ref(2), Ref(3), Ref(4))
		},
	}
}

func structs(n int) *Problem {
	return &Problem{
		Buffers: []Buffer{{Result, words(random(), 5*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("structs", line(over(n, blockSize)), line(blockSize), int32(n), Ref(0))
		},
	}
}

func byteFilter(n int) *Problem {
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), n/4)}, {Result, make([]byte, n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("bytes", line(over(n, blockSize)), line(blockSize), int32(n), Ref(0), Ref(1))
		},
	}
}

func permute(n int) *Problem {
	r := random()
	from, to := make([]uint32, n), make([]uint32, n)
	for i, k := range r.Perm(n) {
		to[i], from[i] = uint32(k), uint32(r.IntN(n))
	}
	return &Problem{
		Buffers: []Buffer{{Input, bytesOf(from)}, {Input, bytesOf(to)}, {Input, words(r, n)}, {Result, make([]byte, 4*n)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("permute", line(over(n, blockSize)), line(blockSize), int32(n), Ref(0), Ref(1), Ref(2), Ref(3))
		},
	}
}

func counter(n int) *Problem {
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), n)}, {Result, make([]byte, 4)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("counter", line(over(n, blockSize)), line(blockSize), int32(n), Ref(0), Ref(1))
		},
	}
}

func bins(n int) *Problem {
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), n/4)}, {Result, make([]byte, 4*256)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("bins", line(over(n, blockSize)), line(blockSize), int32(n), Ref(0), Ref(1))
		},
	}
}

func byteCounters(n int) *Problem {
	const threads, perThread = 64, 32
	return &Problem{
		Buffers: []Buffer{{Input, words(random(), n/4)}, {Result, make([]byte, 4*64)}},
		Args:    []uint64{uint64(n)},
		Host: func(m Machine) error {
			return m.Launch("bytecounters", line(over(n, threads*perThread)), line(threads), int32(n), Ref(0), Ref(1))
		},
	}
}
