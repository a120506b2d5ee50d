package cuda

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/ptx"
)

// written is a text that a compiler compiled at run time. Usually it is in no file.
type written struct{ name, text string }

// writtenMark begins, in PTX, a text that Fencepost's libnvrtc (standin/src/nvrtc.c) has appended. writtenLine begins a
// line of it.
const (
	writtenMark = "\n// fencepost: source "
	writtenLine = "// | "
)

// writtenIn returns the texts appended to PTX.
func writtenIn(image string) (all []written) {
	for _, part := range strings.Split(image, writtenMark)[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		var text strings.Builder
		for l := range strings.Lines(rest) {
			l, ok := strings.CutPrefix(l, writtenLine)
			if !ok {
				break
			}
			text.WriteString(l)
		}
		all = append(all, written{name, text.String()})
	}
	return all
}

// tellWritten reports the texts from which a module was compiled, under their names in places: with the folder in which
// the compiler ran.
func (d *Device) tellWritten(all []written, trees []*ptx.Module) {
	if d.cfg.OnSource == nil {
		return
	}
	for _, w := range all {
		for _, t := range trees {
			for _, decl := range t.Decls {
				if f, ok := decl.(*ptx.File); ok && (f.Name == w.name || strings.HasSuffix(f.Name, "/"+w.name)) {
					d.cfg.OnSource(f.Name, w.text)
				}
			}
		}
	}
}

// source receives a text from a program that compiles, such as a notebook's cell.
func (p *process) source(_ context.Context, r *request) ([]uint64, []byte, error) {
	if name, text, ok := strings.Cut(string(r.blob), "\n"); ok && p.ctx.dev.cfg.OnSource != nil {
		p.ctx.dev.cfg.OnSource(printable(name), text)
	}
	return nil, nil, nil
}

// named returns the memory to which the pointers among a launch's parameters point, with the parameters' names, each up
// to the end of its allocation. PTX has no names for parameters; they are known if the source is available.
func (k *Kernel) named(params []byte) (list []engine.Argument) {
	if len(k.module.sources) == 0 {
		return nil
	}
	if k.formals == nil {
		k.formals = []formal{}
		for _, w := range k.module.sources {
			if f := formals(w.text, k.Name(), len(k.Params())); f != nil {
				k.formals = f
			}
		}
	}
	for i, f := range k.formals {
		p := k.Params()[i]
		if f.name == "" || p.Size != 8 || p.Off+8 > len(params) {
			continue
		}
		to := binary.LittleEndian.Uint64(params[p.Off:])
		a, ok := k.module.program.Memory.Find(to)
		if !ok || a.Freed {
			continue
		}
		n := engine.Argument{Name: f.name, Addr: to, Size: a.Addr + a.Size - to}
		if size := uint64(elementSizes[f.element]); size > 0 && n.Size%size == 0 {
			n.Elem, n.Type = int(size), f.element+"["+strconv.FormatUint(n.Size/size, 10)+"]"
		}
		list = append(list, n)
	}
	// Of two pointers into one allocation the nearer one names an address.
	slices.SortStableFunc(list, func(a, b engine.Argument) int { return cmp.Compare(b.Addr, a.Addr) })
	return list
}
