package isa

import (
	"strings"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// textureRows is the manual's "Texture Instructions", of textures that are named by a 64-bit object (unified mode).
var textureRows = []*Row{
	{Op: "tex", Doc: "Texture: tex", Class: Texture, Event: event.Load, Bind: bindTexel(OpFetch), Note: noteTexture, Forms: forms(
		".geom.vec.dtype.ctype d{|p:pred}, [a, c]'"+texGeometry+" cube acube"+texTypes,
		".base.geom.vec.dtype.ctype d{|p:pred}, [a, c]'"+texGeometry+" cube acube"+texTypes,
		".level.geom.vec.dtype.ctype d{|p:pred}, [a, c], lod'"+texGeometry+" cube acube"+texTypes,
		".grad.geom.vec.dtype.ctype d{|p:pred}, [a, c], dPdx, dPdy'"+texGeometry+" cube acube"+texTypes)},
	{Op: "tld4", Doc: "Texture: tld4", Class: Texture, Event: event.Load, Bind: bindTexel(OpGather), Note: noteTexture, Forms: forms(
		".comp.geom.vec.dtype.ctype d{|p:pred}, [a, c]'; comp: r g b a; geom: 2d a2d; vec: v4; dtype: u32 s32 f32; ctype: f32")},
	{Op: "txq", Doc: "Texture: txq", Class: Texture, Bind: bindTexel(OpQuery), Forms: forms(".query.b32 d, [a]'; query: width height depth array_size " +
		"num_mipmap_levels num_samples normalized_coords")},
}

// surfaceRows is the manual's "Surface Instructions", of surfaces that are named by a 64-bit object.
var surfaceRows = []*Row{
	{Op: "suld", Doc: "Surface: suld", Class: Texture, Event: event.Load, Bind: bindTexel(OpSurfaceLoad), Forms: forms(
		".b.geom{.cop}{.vec}.dtype.bound d, [a, c]'" + texGeometry + "; cop: ca cg cs cv" + surfaceTypes)},
	{Op: "sust", Doc: "Surface: sust", Class: Texture, Event: event.Store, Bind: bindTexel(OpSurfaceStore), Forms: forms(
		".b.geom{.cop}{.vec}.dtype.bound [a, c], b'"+texGeometry+"; cop: wb cg cs wt"+surfaceTypes,
		".p.geom{.vec}.b32.bound [a, c], b'"+texGeometry+"; vec: v2 v4; bound: trap clamp zero"),
		Note: "sust.p converts to the format of the surface: integers saturate."},
	{Op: "sured", Doc: "Surface: sured", Class: Texture, Event: event.Atomic, Bind: bindTexel(OpSurfaceRed), Forms: forms(
		".b.op.geom.dtype.bound [a, c], b'"+texGeometry+"; op: add min max; dtype: u32 u64 s32 s64; bound: trap clamp zero",
		".b.op.geom.dtype.bound [a, c], b'"+texGeometry+"; op: and or; dtype: b32 b64; bound: trap clamp zero"),
		Note: "Relaxed, of scope gpu."},
	{Op: "suq", Doc: "Surface: suq", Class: Texture, Bind: bindTexel(OpQuery), Forms: forms(".query.b32 d, [a]'; query: width height depth array_size")},
}

const (
	texGeometry  = "; geom: 1d 2d 3d a1d a2d"
	texTypes     = "; vec: v4; dtype: u32 s32 f32; ctype: s32 f32"
	surfaceTypes = "; vec: v2 v4; dtype: b8 b16 b32 b64; bound: trap clamp zero"
	noteTexture  = "The level is 0 if the instruction gives neither a level of detail nor gradients. These are used as in OpenGL, " +
		"without anisotropic filtering. Filtering is as in the CUDA C++ Programming Guide (\"Texture Fetching\"), with weights of 8 " +
		"bits of fraction; there is no filtering across the faces of a cube. Channels that a texture lacks are 0, 0 and 1. All of a " +
		"texture is resident: p is true."
)

// Texel is what a Texture instruction is given: coordinates, and values that it stores.
type Texel struct {
	Dims      int  // of an element's place: 1 to 3; cubes have 2, and 3 coordinates
	Layered   bool // the first coordinate is a layer
	Cube      bool
	Bytes     bool   // surfaces: the x coordinate counts bytes, not elements
	Detail    Detail // tex: what says the level of detail
	Component int    // tld4: the channel
	Query     string // txq, suq
	Boundary  string // surfaces: trap, clamp, zero
}

// Detail is what says which level of a mipmapped texture is fetched from. Operands that say it follow the coordinates.
type Detail uint8

// The ways to say it.
const (
	DetailNone      Detail = iota // level 0
	DetailLevel                   // a level
	DetailGradients               // two gradients of the coordinates but the layer
)

// Coordinates is how many sources are coordinates; they begin at Src[1].
func (t *Texel) Coordinates() int {
	n := t.Dims
	if t.Cube {
		n++
	}
	if t.Layered {
		n++
	}
	return n
}

// bindTexel binds what the modifiers say.
func bindTexel(op Op) func(in *Inst) {
	return func(in *Inst) {
		t := &Texel{Bytes: in.Has("b")}
		for _, m := range in.Mods {
			switch m {
			case "1d", "2d", "3d":
				t.Dims = int(m[0] - '0')
			case "a1d", "a2d":
				t.Dims, t.Layered = int(m[1]-'0'), true
			case "cube", "acube":
				t.Dims, t.Cube, t.Layered = 2, true, m[0] == 'a'
			case "trap", "clamp", "zero":
				t.Boundary = m
			case "level":
				t.Detail = DetailLevel
			case "grad":
				t.Detail = DetailGradients
			}
		}
		switch op {
		case OpGather:
			t.Component, t.Bytes = strings.Index("rgba", in.Mods[0]), false
		case OpQuery:
			t.Query = in.Mods[0]
		case OpSurfaceRed:
			in.Order, in.Scope, in.Type2 = event.Relaxed, event.ScopeGPU, in.Type
			in.RMW = atomicOp(in)
		}
		in.Op, in.Texel = op, t
	}
}

// textureOperands decodes the operands of a Texture instruction: Src is the object, the coordinates, and what a store writes.
func (b *body) textureOperands(in *Inst) {
	ops, t := in.Source.Operands, in.Texel
	fail := func(o *ptx.Operand) {
		b.errorf(o.Pos, "%s%s does not take %s here; known: %s", in.Source.Op, in.Source.Mods, describe(o), in.Row.Forms[0].Display(in.Row.Op))
	}
	stores := in.Op == OpSurfaceStore || in.Op == OpSurfaceRed
	want := 2
	switch t.Detail {
	case DetailLevel:
		want = 3
	case DetailGradients:
		want = 4
	}
	if len(ops) != want {
		b.errorf(in.Source.Pos, "%s%s takes %d, not %d operands: offsets, depth comparison and samplers of their own are not supported", in.Source.Op, in.Source.Mods,
			want, len(ops))
		return
	}
	value, place := &ops[0], &ops[1]
	if stores {
		value, place = place, value
	}
	if place.Kind != ptx.OperandAddr || place.Off != 0 || place.Name != "" || len(place.Args) < 1 {
		fail(place)
		return
	}
	if _, ok := b.registerOperand(&place.Args[0]); !ok {
		b.errorf(place.Args[0].Pos, "%s%s: textures and surfaces are named by a 64-bit object in a register here; references are not supported", in.Source.Op, in.Source.Mods)
		return
	}
	b.source(in, &opSpec{name: "a", typ: U64}, &place.Args[0])
	if in.Op == OpQuery {
		if len(place.Args) != 1 {
			fail(place)
			return
		}
		b.result(in, &opSpec{name: "d", typ: B32}, value)
		return
	}
	if len(place.Args) != 2 {
		fail(place)
		return
	}
	b.coordinates(in, t, &place.Args[1])
	one := opSpec{name: "d", typ: in.Type, wider: true, count: int(max(in.Vec, 1)), dst: !stores}
	if value.Kind == ptx.OperandPair && (in.Op == OpFetch || in.Op == OpGather) {
		b.tuple(in, &one, &value.Args[0])
		b.result(in, &opSpec{name: "p", typ: Pred, dst: true}, &value.Args[1])
	} else {
		b.tuple(in, &one, value)
	}
	for i := 2; i < len(ops); i++ {
		b.detail(in, t, &ops[i])
	}
}

// elementsOf gives the registers of a vector operand, or of one that is written without braces.
func elementsOf(o *ptx.Operand) []ptx.Operand {
	if o.Kind == ptx.OperandVector {
		return o.Args
	}
	return []ptx.Operand{*o}
}

// coordinates decodes the coordinates: a scalar or a vector of as many registers as there are coordinates, or of 4, the last ignored.
func (b *body) coordinates(in *Inst, t *Texel, o *ptx.Operand) {
	list := elementsOf(o)
	n := t.Coordinates()
	if len(list) != n && len(list) != 4 {
		b.errorf(o.Pos, "%s%s takes %d coordinates, not %d", in.Source.Op, in.Source.Mods, n, len(list))
		return
	}
	typ := S32
	if in.Op == OpFetch || in.Op == OpGather {
		typ = in.Type2
	}
	for i := range list[:n] {
		s := opSpec{name: "c", typ: typ}
		if t.Layered && i == 0 {
			s.typ = U32
		}
		b.source(in, &s, &list[i])
	}
}

// detail decodes a level, or a gradient: a scalar or a vector of as many registers as there are coordinates but the layer, or of 4, the rest ignored.
func (b *body) detail(in *Inst, t *Texel, o *ptx.Operand) {
	list, n := elementsOf(o), 1
	if t.Detail == DetailGradients {
		if n = t.Coordinates(); t.Layered {
			n--
		}
	}
	if len(list) != n && len(list) != 4 {
		b.errorf(o.Pos, "%s%s takes a level or gradients of %d numbers, not %d", in.Source.Op, in.Source.Mods, n, len(list))
		return
	}
	for i := range list {
		src := len(in.Src)
		if b.source(in, &opSpec{name: "e", typ: in.Type2}, &list[i]); i >= n {
			in.Src = in.Src[:src]
		}
	}
}

// HalfToFloat gives the value of a number of type f16.
func HalfToFloat(x uint16) float32 { return half(uint32(x)) }

// FloatToHalf rounds to type f16.
func FloatToHalf(x float32) uint16 { return uint16(fmtF16.round(float64(x), RN)) }
