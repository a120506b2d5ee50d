// Package fatbin reads CUDA fat binaries: the containers that nvcc embeds in host programs, with the PTX and machine
// code of one translation unit, often compressed. It reads them both from memory, as a program registers them at run
// time (Parse), and from files (File): executables, shared libraries, objects, .fatbin, .cubin and .ptx files.
//
// NVIDIA does not document the container. The format here was determined from files that nvcc 13 made. Input is treated
// as hostile: sizes are checked before use and decompression is bounded.
package fatbin

import (
	"bytes"
	"fmt"
)

// Kind is the kind of an entry of a fat binary.
type Kind uint16

// The kinds of entry. Others are kept with their number.
const (
	PTX       Kind = 1   // PTX text
	ELF       Kind = 2   // machine code (SASS) in an ELF file, "cubin"
	LTO       Kind = 8   // NVVM IR for link-time optimisation
	Container Kind = 256 // several entries compressed together (nvcc -concat); Parse returns those entries instead
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case PTX:
		return "PTX"
	case ELF:
		return "SASS"
	case LTO:
		return "LTO IR"
	case Container:
		return "container"
	}
	return fmt.Sprintf("kind %d", uint16(k))
}

// Entry is one image of a fat binary.
type Entry struct {
	Kind   Kind
	Unit   int    // index of its fat binary among those parsed together
	Arch   int    // compute capability times ten: 80 for compute_80 or sm_80
	Suffix string // "a" (architecture-specific), "f" (family-specific) or ""
	Major  int    // version of the PTX ISA for PTX entries, else of the image format
	Minor  int
	Name   string // source file or identifier given by nvcc, "" if there is none
	Text   []byte // PTX: the text, unpacked, without its NUL padding. Other kinds: nil
	Offset int64  // of the entry's header, from the start of what was parsed
	Size   int64  // bytes of the payload as stored; unpacked for an entry of a container
}

// Error is an error in a container with its place.
type Error struct {
	Offset int64 // bytes from the start of what was parsed
	Msg    string
}

// Error returns the message with its offset.
func (e *Error) Error() string { return fmt.Sprintf("fat binary, offset %#x: %s", e.Offset, e.Msg) }

// Best returns the PTX to load on a device of compute capability want (80 for 8.0): one for each fat binary
// (Entry.Unit) and each name in it, in their order. It is the highest one not above want, as a driver chooses. If all
// are above, it is the lowest, because the emulator refuses unknown instructions rather than targets. PTX that is
// specific to another architecture or family ("a", "f") is used only if there is no other. NVIDIA's device runtime is
// left out.
func Best(entries []Entry, want int) []Entry {
	type key struct {
		unit int
		name string
	}
	at := map[key]int{}
	var best []Entry
	for _, e := range WithoutDeviceRuntime(entries) {
		if e.Kind != PTX {
			continue
		}
		k := key{e.Unit, e.Name}
		i, ok := at[k]
		switch {
		case !ok:
			at[k] = len(best)
			best = append(best, e)
		case better(e, best[i], want):
			best[i] = e
		}
	}
	return best
}

// BuiltFor is the architecture for which a program with such entries was built (90 for compute_90): the highest one
// below 100 for which it has PTX, or else the lowest. It is 0 if the program has no PTX, or has only machine code for
// the devices below 10.0. Such a program, for example PyTorch, does not need a newer device.
func BuiltFor(entries []Entry) int {
	arch, older := 0, false
	for _, e := range WithoutDeviceRuntime(entries) {
		if a := e.Arch; e.Kind == PTX && (arch == 0 || (a < 100 && (a > arch || arch >= 100)) || (a >= 100 && a < arch)) {
			arch = a
		}
		older = older || e.Kind == ELF && e.Arch < 100
	}
	if older && arch >= 100 {
		return 0
	}
	return arch
}

// better reports whether a is a better choice than b.
func better(a, b Entry, want int) bool {
	fit := func(e Entry) int { // smaller is better
		switch {
		case e.Suffix == "a" && e.Arch != want, e.Suffix == "f" && (e.Arch > want || e.Arch/10 != want/10):
			return 2
		case e.Arch > want:
			return 1
		}
		return 0
	}
	if fa, fb := fit(a), fit(b); fa != fb {
		return fa < fb
	}
	if a.Arch == b.Arch {
		return a.Suffix == "" && b.Suffix != ""
	}
	if a.Arch <= want && b.Arch <= want {
		return a.Arch > b.Arch
	}
	return a.Arch < b.Arch
}

// WithoutDeviceRuntime returns entries without the fat binary of NVIDIA's libcudadevrt.a. Every program that was
// compiled separately (-rdc=true) contains it, whether it launches kernels from kernels or not. It is 760 KB of PTX for
// a newer target and uses functions that only the driver can supply.
func WithoutDeviceRuntime(entries []Entry) []Entry {
	drop := map[int]bool{}
	for _, e := range entries {
		if e.Kind == PTX && isDeviceRuntime(e.Text) {
			drop[e.Unit] = true
		}
	}
	if len(drop) == 0 {
		return entries
	}
	var kept []Entry
	for _, e := range entries {
		if !drop[e.Unit] {
			kept = append(kept, e)
		}
	}
	return kept
}

// isDeviceRuntime recognises the device runtime by the file name in its mangled names and by the driver function for
// launches that it uses.
func isDeviceRuntime(text []byte) bool {
	const head = 1 << 16 // declarations come first
	text = text[:min(len(text), head)]
	return bytes.Contains(text, []byte("_22_cuda_device_runtime_cu_")) && bytes.Contains(text, []byte("cnpLaunchDevice"))
}
