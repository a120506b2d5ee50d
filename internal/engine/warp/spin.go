package warp

import (
	"bytes"
	"slices"

	"fencepost.dev/fencepost/internal/engine"
)

// snapshot is the state of a warp of engine warp.
type snapshot struct {
	groups  []group
	scalars [][]uint64 // by group
	v32     []v32
	v64     []v64
	preds   []uint32
	local   []byte
	frames  []callFrame
}

// mostImage is the greatest state, in bytes, of a warp that is watched for spinning. A recursion may have made the
// stack of a warp long.
const mostImage = 4 << 20

// registers returns all registers of a warp, including those of frames that are not the running one.
func (v *registers) registers() ([]v32, []v64, []uint32) {
	if s := v.stack; s != nil {
		return s.v32, s.v64, s.preds
	}
	return v.v32, v.v64, v.preds
}

// Image returns nil for a warp whose state is greater than mostImage.
func (x *machine) Image(w *engine.Warp) (image any, alone bool) {
	v := regsOf(w)
	if v == nil || v.size() > mostImage {
		return nil, false
	}
	r32, r64, preds := v.registers()
	k := &snapshot{groups: slices.Clone(v.groups), v32: slices.Clone(r32), v64: slices.Clone(r64),
		preds: slices.Clone(preds), local: slices.Clone(v.local)}
	if v.stack != nil {
		k.frames = slices.Clone(v.stack.frames)
		for i := range k.frames {
			k.frames[i].saved = slices.Clone(k.frames[i].saved)
		}
	}
	for i := range v.groups {
		k.scalars = append(k.scalars, slices.Clone(x.scalars(v, v.groups[i].slot)))
	}
	return k, len(v.groups) == 1
}

func (x *machine) Still(w *engine.Warp, image any) bool {
	k, ok := image.(*snapshot)
	v := regsOf(w)
	if !ok || len(v.groups) != len(k.groups) {
		return false
	}
	for i := range v.groups {
		g, h := &v.groups[i], &k.groups[i]
		if g.mask != h.mask || g.pc != h.pc || g.frame != h.frame || !slices.Equal(x.scalars(v, g.slot), k.scalars[i]) {
			return false
		}
	}
	if v.stack != nil && !slices.EqualFunc(v.stack.frames, k.frames, func(a, b callFrame) bool { return a.equal(&b) }) {
		return false
	}
	r32, r64, preds := v.registers()
	return slices.Equal(r32, k.v32) && slices.Equal(r64, k.v64) && slices.Equal(preds, k.preds) && bytes.Equal(v.local, k.local)
}

func (f *callFrame) equal(o *callFrame) bool {
	return f.unit == o.unit && f.at == o.at && f.users == o.users && f.up == o.up && f.call == o.call && f.pc == o.pc && f.depth == o.depth &&
		f.stack == o.stack && f.v32 == o.v32 && f.v64 == o.v64 && f.preds == o.preds && f.local == o.local && slices.Equal(f.saved, o.saved)
}
