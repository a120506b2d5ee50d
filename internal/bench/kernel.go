// Package bench measures engines and detectors on a set of kernels. It compares them with each other, and with the same
// work in C compiled for this machine. Every ratio is measured within one run, and is shown with a digest of the
// results.
package bench

import (
	"embed"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"

	"fencepost.dev/fencepost/internal/event"
)

//go:generate go run ./build

//go:embed kernels
var files embed.FS

// Kernel is a program of the benchmark. Its files are kernels/NAME.cu, .O0.ptx, .ptx and .c. It is free of races.
type Kernel struct {
	Name string
	Doc  string // a few words
	// Coalesced is set if the lanes of a warp nearly always access adjacent memory.
	Coalesced bool
	// Tolerance is the allowed difference of results, relative to the larger of 1 and the value. It is 0 if IEEE 754
	// makes the results exact. If it is not 0, all results are f32.
	Tolerance float64
	// Sizes are the arguments of New for Tiny, Small and Normal.
	Sizes [3]int
	New   func(n int) *Problem
}

// Size is the amount of work of a kernel.
type Size int

// The sizes. Tiny is for tests, Small for the reference engine, Normal for fast ones.
const (
	Tiny Size = iota
	Small
	Normal
)

// Role is the role of a buffer.
type Role uint8

// The roles.
const (
	Input   Role = iota // only read
	Scratch             // written, and irrelevant afterwards
	Result
)

// Buffer is device memory with its initial contents.
type Buffer struct {
	Role Role
	Data []byte
}

// Problem is a kernel's input and the host program around it.
type Problem struct {
	Buffers []Buffer
	Args    []uint64 // arguments of the native function other than the buffers; f32 as their bits
	Host    func(m Machine) error
}

// Machine has the operations of a host program.
type Machine interface {
	// Launch runs a kernel. An argument is a Ref (for the address of a buffer), an int32, a uint32 or a float32.
	Launch(kernel string, grid, block event.Dim3, args ...any) error
	// Word reads the first four bytes of a buffer. SetWord writes them.
	Word(buffer Ref) (uint32, error)
	SetWord(buffer Ref, v uint32) error
}

// Ref names a buffer of the problem by its index.
type Ref int

// Bytes returns the size of all buffers.
func (p *Problem) Bytes() int {
	n := 0
	for _, b := range p.Buffers {
		n += len(b.Data)
	}
	return n
}

// results returns byte slices with the sizes of the results.
func (p *Problem) results() [][]byte {
	var out [][]byte
	for _, b := range p.Buffers {
		if b.Role == Result {
			out = append(out, make([]byte, len(b.Data)))
		}
	}
	return out
}

// PTX returns the kernel's code in one of the variants.
func (k *Kernel) PTX(v Variant) (string, error) {
	text, err := files.ReadFile("kernels/" + k.Name + v.suffix())
	return string(text), err
}

// Variant is how nvcc compiled a kernel.
type Variant uint8

// The variants.
const (
	Kept    Variant = iota // -Xcicc -O0: accesses are where the source has them
	Default                // nvcc's own optimisation
)

func (v Variant) suffix() string {
	if v == Kept {
		return ".O0.ptx"
	}
	return ".ptx"
}

// Digest identifies results. It is 64 bits of FNV-1a. If results are exact, it is computed over their bytes, otherwise
// over the sums of the values and of their magnitudes, rounded to three decimal digits.
func (k *Kernel) Digest(results [][]byte) string {
	h := fnv.New64a()
	for _, r := range results {
		if k.Tolerance == 0 {
			h.Write(r)
			continue
		}
		var sum, amount float64
		for i := 0; i+4 <= len(r); i += 4 {
			x := float64(float32At(r, i))
			sum += x
			amount += math.Abs(x)
		}
		fmt.Fprintf(h, "%.2e %.2e\n", sum, amount)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// Compare returns an error that describes the difference of two results. It returns nil if they are as equal as
// Tolerance requires.
func (k *Kernel) Compare(got, want [][]byte) error {
	for b := range want {
		for i := 0; i+4 <= len(want[b]); i += 4 {
			g, w := binary.LittleEndian.Uint32(got[b][i:]), binary.LittleEndian.Uint32(want[b][i:])
			if g == w {
				continue
			}
			if k.Tolerance == 0 {
				return fmt.Errorf("result %d: word %d is %#x, and %#x is right", b, i/4, g, w)
			}
			x, y := float64(math.Float32frombits(g)), float64(math.Float32frombits(w))
			if !(math.Abs(x-y) <= k.Tolerance*max(1, math.Abs(y))) {
				return fmt.Errorf("result %d: value %d is %v, and %v is right within %v", b, i/4, x, y, k.Tolerance)
			}
		}
	}
	return nil
}

func float32At(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
}
