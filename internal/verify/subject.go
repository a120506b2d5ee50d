package verify

import (
	"cmp"
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/kernel"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
)

// subject is the program to explore, with names of its parts.
type subject interface {
	explore.Program
	thread(i int) (name, of string, place model.Place) // "P0", "cta 0"
	coordinates(i int) (block, thread event.Dim3)
	location(loc int32) string
	value(loc int32, v int64) string
	// mbarrier reports whether a location is an mbarrier.
	mbarrier(loc int32) bool
	frames(pos int32) []event.Frame // of a place in the source, innermost first
	// failure describes a failing step and what the thread does there.
	failure(step *explore.Op) (kind detect.Kind, class detect.Class, title, what string)
	// Symmetric returns for each thread the preceding one in its class of symmetric threads, or -1.
	Symmetric() []int
}

// litmusTest is a litmus test.
type litmusTest struct{ *litmus.Test }

func (t litmusTest) thread(i int) (name, of string, place model.Place) {
	th := &t.Threads[i]
	of = fmt.Sprintf("cta %d", th.Place.CTA&(1<<10-1))
	return th.Name, of, th.Place
}

func (t litmusTest) coordinates(i int) (block, thread event.Dim3) {
	return event.Dim3{X: uint32(t.Threads[i].Place.CTA)}, event.Dim3{X: uint32(i)}
}

func (t litmusTest) location(loc int32) string { return t.Location(loc) }

func (t litmusTest) value(_ int32, v int64) string { return fmt.Sprint(v) }

func (t litmusTest) mbarrier(int32) bool { return false }

func (t litmusTest) frames(pos int32) []event.Frame {
	line, col := t.Line(pos)
	return []event.Frame{{File: t.File, Line: line, Column: col}}
}

func (t litmusTest) failure(*explore.Op) (kind detect.Kind, class detect.Class, title, what string) {
	return "assertion", detect.API, "failed assertion", "fails here: the condition is false, an index is outside of its array, or it divides by zero"
}

// kernelLaunch is a launch of a kernel.
type kernelLaunch struct{ *kernel.Program }

func (k kernelLaunch) thread(i int) (name, of string, place model.Place) {
	block, in := k.Coordinates(i)
	return fmt.Sprintf("P%d", i), fmt.Sprintf("block %s, thread %s", coordinate(block), coordinate(in)), k.Place(i)
}

// coordinate is "3", or "(3,1,0)" if one number does not suffice.
func coordinate(d event.Dim3) string {
	if d.Y == 0 && d.Z == 0 {
		return fmt.Sprint(d.X)
	}
	return fmt.Sprintf("(%d,%d,%d)", d.X, d.Y, d.Z)
}

func (k kernelLaunch) coordinates(i int) (block, thread event.Dim3) { return k.Coordinates(i) }

func (k kernelLaunch) frames(pos int32) []event.Frame { return k.Launch.Places.Frames(uint32(pos)) }

func (k kernelLaunch) location(loc int32) string {
	space, cta, addr, width := k.Location(loc)
	if space == event.Shared {
		name, at, ok := k.Launch.Program.SharedVar(k.Launch.Func, addr)
		if !ok {
			name, at = "shared memory", 0
		}
		size := 0
		for _, v := range k.Launch.Program.Module.Vars {
			if v.Name == name {
				size = int(v.Size)
			}
		}
		return fmt.Sprintf("%s of block %d", element(variableName(name), addr-at, width, size), cta)
	}
	for _, a := range k.Launch.Arguments {
		if addr >= a.Addr && addr-a.Addr < a.Size {
			return element(a.Name, addr-a.Addr, cmp.Or(a.Elem, width), int(a.Size))
		}
	}
	if a, ok := k.Launch.Program.Memory.Find(addr); ok {
		return element(variableName(a.Name), addr-a.Addr, width, int(a.Size))
	}
	return fmt.Sprintf("%#x", addr)
}

func (k kernelLaunch) value(loc int32, v int64) string {
	if k.mbarrier(loc) {
		return engine.MbarrierText(uint64(v))
	}
	return fmt.Sprint(v)
}

func (k kernelLaunch) mbarrier(loc int32) bool { return k.Mbarrier(loc) }

// variableName is the name of a variable without the function that it is declared in.
func variableName(linker string) string {
	name := report.Demangle(linker)
	if i := strings.LastIndex(name, ")::"); i >= 0 {
		name = name[i+len(")::"):]
	}
	return name
}

// element names the element at an offset of a variable of size bytes, whose elements have width bytes: "x", "x[3]",
// "x[3]+1".
func element(name string, offset uint64, width, size int) string {
	if size != width {
		name = fmt.Sprintf("%s[%d]", name, offset/uint64(width))
	}
	if rest := offset % uint64(width); rest != 0 {
		name += fmt.Sprintf("+%d", rest)
	}
	return name
}

func (k kernelLaunch) failure(step *explore.Op) (kind detect.Kind, class detect.Class, title, what string) {
	fault, message := k.Fault(step)
	class = detect.MemoryFault
	switch fault {
	case engine.Assertion, engine.TrapHit:
		class = detect.API
	case engine.BarrierDivergence:
		class = detect.Divergence
	}
	for _, a := range k.Launch.Arguments { // the device's name of a buffer
		if alloc, ok := k.Launch.Program.Memory.Find(a.Addr); ok && alloc.Name != "" {
			message = strings.ReplaceAll(message, alloc.Name, fmt.Sprintf("%s (%d bytes)", a.Name, a.Size))
		}
	}
	title = map[engine.FaultKind]string{engine.Assertion: "failed assertion", engine.TrapHit: "trap", engine.OutOfBounds: "access out of bounds", engine.OutOfVariable: "out of variable",
		engine.Misaligned: "misaligned access", engine.UseAfterFree: "access to freed memory", engine.ReadOnly: "write to constant memory"}[fault]
	if title == "" {
		title = string(fault)
	}
	return detect.Kind(fault), class, title, "fails here: " + report.DemangleIn(message) // the engine knows linker names of variables
}
