package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/diff"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/kernel"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/repair"
)

// Place is a change of an instruction of a kernel.
type Place struct {
	Frames []event.Frame // innermost first
	Change repair.Change
}

// Text is the kind of text in which a repair is written.
type Text struct {
	// CUDA says that lines of CUDA source are changed. An instruction of a function that several of them call is then
	// changed separately for each of them. In PTX it is changed for all.
	CUDA bool
	// Can reports whether changes can be written.
	Can func([]Place) bool
}

// RepairKernel searches for a repair of a launch with errors, among the patches that can be written in a text. It also
// returns the changes by instruction.
func RepairKernel(ctx context.Context, l *engine.Launch, expected []Expected, condition *Condition, o Options, in Text) (*Repair, []Place, error) {
	use := kernel.Options{Unroll: o.Unroll, Dependencies: o.Model == PTX, Stops: true, Widths: kernel.Widths{}, Registers: condition.slots()}
	for {
		r, places, refusal, err := repairKernel(ctx, l, expected, condition, o, in, use)
		if refusal == nil || !refusal.Regroup && !refusal.Attempts && !inWords(&use, refusal) {
			return r, places, err
		}
		use.Attempts = use.Attempts || refusal.Attempts
	}
}

// repairKernel searches for a repair. It also returns whether a program was refused.
func repairKernel(ctx context.Context, l *engine.Launch, expected []Expected, condition *Condition, o Options, in Text, use kernel.Options) (
	*Repair, []Place, *kernel.Refusal, error) {
	p, err := kernel.New(l, use)
	if err != nil {
		return nil, nil, nil, err
	}
	defer p.Close()
	v := newVerifier(kernelLaunch{p}, report.ShortName(report.BareName(l.Kernel)), o)
	m := &mender{verifier: v, of: map[int32][]int32{}}
	type site struct {
		ptx  int // the line of the instruction
		file string
		line int
	}
	first, known := map[site]int32{}, map[int32]int32{}
	m.site = func(pos int32) int32 {
		at, ok := known[pos]
		if !ok {
			frames := v.subject.frames(pos)
			key := site{ptx: frames[0].PTXLine}
			if in.CUDA {
				key.file, key.line, _ = place(frames)
			}
			if at, ok = first[key]; !ok {
				at, first[key] = pos, pos
			}
			known[pos] = at
			m.of[at] = append(m.of[at], pos)
		}
		return at
	}
	places := func(patch repair.Patch) []Place {
		var out []Place
		for _, pos := range patch.Places() {
			out = append(out, Place{v.subject.frames(pos), patch[pos]})
		}
		return out
	}
	m.can = func(patch repair.Patch) bool {
		for _, pos := range p.InParts() { // an access in parts cannot become atomic
			if patch[m.site(pos)].Atomic {
				return false
			}
		}
		can := in.Can(places(patch))
		m.leftOut = m.leftOut || in.CUDA && !can
		return can
	}
	switch {
	case condition != nil && condition.Quantifier != litmus.Exists:
		m.violates = func(x explore.Execution) bool {
			return condition.Formula.Satisfied(memoryView{x, p, condition}) != (condition.Quantifier == litmus.ForAll)
		}
	case len(expected) > 0:
		m.violates = func(x explore.Execution) bool {
			for i := range expected {
				if _, ok := expected[i].Judge(p.Final(x, expected[i].Addr, uint64(expected[i].Size))); !ok {
					return true
				}
			}
			return false
		}
	}
	r := m.repair(ctx)
	return r, places(r.Patch), p.Refusal(), nil
}

// EditPTX makes the changes in PTX.
func EditPTX(src string, places []Place) (string, error) {
	changes := map[int]repair.Change{}
	for _, p := range places {
		changes[p.Frames[0].PTXLine] = p.Change
	}
	return repair.EditPTX(src, changes)
}

// sameFile reports whether a place is in the source file of that name. The compiler writes absolute paths. A relative
// path starts from an unknown folder.
func sameFile(file, name string) bool {
	if !filepath.IsAbs(file) {
		return file == name || strings.HasSuffix(file, "/"+name) || strings.HasSuffix(name, "/"+file)
	}
	if path, err := filepath.Abs(name); err == nil && path == filepath.Clean(file) {
		return true
	}
	a, err := os.Stat(name)
	if err != nil {
		return false
	}
	b, err := os.Stat(file) // one of the paths may contain a link to a folder
	return err == nil && os.SameFile(a, b)
}

// EditCUDA makes the changes in a CUDA source file of that name.
func EditCUDA(name, src string, places []Place) (string, error) {
	changes := map[int]repair.CUDA{}
	for _, p := range places {
		file, line, _ := place(p.Frames)
		if !sameFile(file, name) {
			return "", errors.New("a change is not in " + name)
		}
		c := changes[line]
		c.Change = repair.Patch{0: c.Change}.And(repair.Patch{0: p.Change})[0]
		c.Load = c.Load || p.Change.Atomic && strings.Contains(p.Frames[0].Inst, "ld.")
		c.Store = c.Store || p.Change.Atomic && strings.Contains(p.Frames[0].Inst, "st.")
		changes[line] = c
	}
	return repair.EditCUDA(src, changes)
}

// Diff is the unified diff of two texts of a file, "" if they are equal.
func Diff(name, before, after string) string { return diff.Unified(name, before, after) }
