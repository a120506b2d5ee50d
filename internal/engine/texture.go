package engine

import (
	"math"
	"math/bits"

	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/loader"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// taps are the elements that the lanes of a fetch read: one each, or with linear filtering up to eight, with nonzero
// weights, from each of two levels.
type taps struct {
	on    [maxTaps]uint32
	addr  [maxTaps][32]uint64
	sizes [5]uint32 // by log2 of a size: lanes with elements of that size
}

const maxTaps = 16

// Texture executes a texture or surface instruction for the lanes of on, lowest first.
func (r *Run) Texture(w *Warp, in *loader.Instr, on uint32, place uint32) {
	if in.Op == isa.OpSurfaceLoad || in.Op == isa.OpSurfaceStore || in.Op == isa.OpSurfaceRed {
		r.surface(w, in, on, place)
		return
	}
	k := &r.taps
	k.on, k.sizes = [maxTaps]uint32{}, [5]uint32{}
	f := fetch{r: r, w: w, in: in, place: place}
	handle := uint64(0)
	for m := on; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		var out [5]uint32 // the last one: the texels are resident
		if h := r.Machine.Value(w, i, &in.Operands[0]); f.t == nil || h != handle {
			f.t, handle = r.textureOf(w, i, in, place), h
		}
		if t := f.t; t != nil && in.Op == isa.OpQuery {
			out[0] = t.Query(in.Texel.Query)
		} else if t != nil {
			f.lane, f.n = i, 0
			f.do((*[4]uint32)(out[:]))
			out[4] = 1
			k.sizes[bits.TrailingZeros(uint(t.Texel()))] |= 1 << i
		}
		for _, d := range in.Results {
			r.Machine.Put(w, i, d, uint64(out[d.At]))
		}
	}
	if r.Out.Needs&event.NeedGlobal == 0 {
		return
	}
	for i := range k.on {
		if k.on[i] == 0 {
			break // a lane fills its taps from the first on
		}
		r.Access.Addr = k.addr[i]
		r.tellSizes(event.Load, event.FlagRead|event.FlagNonCoherent|event.FlagTexture, w, in, place, k.on[i], &k.sizes)
	}
}

// tellSizes emits the events of accesses by lanes of on, with sizes as in taps.
func (r *Run) tellSizes(kind event.Kind, flags event.Flags, w *Warp, in *loader.Instr, place, on uint32, sizes *[5]uint32) {
	as := loader.Instr{Inst: in.Inst}
	for i, lanes := range sizes {
		if lanes &= on; lanes != 0 {
			as.Width = 1 << i
			r.Out.access(kind, flags, w, &as, place, event.Global, lanes, &r.Access)
		}
	}
}

// textureOf returns the texture of an instruction's object; nil after a fault.
func (r *Run) textureOf(w *Warp, lane int, in *loader.Instr, place uint32) *descriptor.Texture {
	handle := r.Machine.Value(w, lane, &in.Operands[0])
	t := r.textures[handle]
	if t == nil {
		what := "texture"
		if in.Row.Op[0] == 's' {
			what = "surface"
		}
		data, kind := r.globalBytes(handle, descriptor.TextureSize, in, event.FlagRead, place)
		if a, ok := r.Memory.Find(handle); kind == UseAfterFree && ok && a.Kind == devmem.ObjectAlloc {
			r.Faults.At(r, TextureMisuse, w, lane, place, "fetches", "%s is given a %s object that was destroyed", in.Mnemonic(), what)
			return nil
		}
		if kind == "" {
			t = descriptor.DecodeTexture(data)
		}
		if t == nil {
			r.Faults.At(r, TextureMisuse, w, lane, place, "fetches", "%s is given %#x, which is no %s object", in.Mnemonic(), handle, what)
			return nil
		}
		if r.textures == nil {
			r.textures = map[uint64]*descriptor.Texture{}
		}
		r.textures[handle] = t
	}
	x := in.Texel
	surface := in.Row.Op[0] == 's'
	layered, cube := t.Layered, t.Cube
	if surface { // for surfaces, the faces of a cube are layers
		layered, cube = layered || cube, false
	}
	if surface != t.Surface || in.Op != isa.OpQuery && (!t.HasDims(x.Dims) || x.Layered != layered || x.Cube != cube) {
		r.Faults.At(r, TextureMisuse, w, lane, place, "fetches", "%s is given the object of %s", in.Mnemonic(), t)
		return nil
	}
	return t
}

// fetch is a texture fetch of a lane.
type fetch struct {
	r     *Run
	w     *Warp
	in    *loader.Instr
	lane  int
	place uint32
	t     *descriptor.Texture
	n     int // number of taps so far
}

// do returns the four channels, or for tld4 one channel of four elements.
func (f *fetch) do(out *[4]uint32) {
	t, x := f.t, f.in.Texel
	layer, k := int64(0), 0
	if x.Layered {
		layers := int64(t.Depth)
		if x.Cube {
			layers /= 6
		}
		layer = min(int64(uint32(f.r.Machine.Value(f.w, f.lane, &f.in.Operands[1]))), layers-1)
		k = 1
	}
	var at [3]float64
	for d := range x.Coordinates() - k {
		at[d] = f.coordinate(k + d)
	}
	k = x.Coordinates()
	cubeAt := at
	if x.Cube {
		face, u, v := descriptor.FaceOf(at[0], at[1], at[2])
		layer, at[0], at[1] = 6*layer+face, u, v
	}
	whole := t
	level, share := 0, 0
	if t.Levels > 1 {
		level, share = t.Between(f.lod(k, layer, &cubeAt))
	}
	f.level(whole.Level(level), at, layer, out)
	if share != 0 {
		var next [4]uint32
		f.level(whole.Level(level+1), at, layer, &next)
		for c := range out {
			low, high := float64(math.Float32frombits(out[c])), float64(math.Float32frombits(next[c]))
			out[c] = math.Float32bits(float32(low + (high-low)*float64(share)/256))
		}
	}
	f.t = whole
}

// coordinate returns operand k: a coordinate, a level, or a component of a gradient.
func (f *fetch) coordinate(k int) float64 {
	v := uint32(f.r.Machine.Value(f.w, f.lane, &f.in.Operands[1+k]))
	if f.in.Type2 == isa.F32 {
		return float64(math.Float32frombits(v))
	}
	return float64(int32(v))
}

// lod returns the level of detail of a fetch: the given one, or the one that results from two gradients, which begin
// with operand k. cube is the direction in a cube texture.
func (f *fetch) lod(k int, layer int64, cube *[3]float64) float64 {
	x := f.in.Texel
	if x.Detail == isa.DetailLevel {
		return f.coordinate(k)
	}
	if x.Detail != isa.DetailGradients {
		return 0
	}
	most := 0.0
	for g := range 2 {
		var d [3]float64
		n := x.Coordinates()
		if x.Layered {
			n--
		}
		for i := range n {
			d[i] = f.coordinate(k + g*n + i)
		}
		if x.Cube {
			d[0], d[1] = descriptor.FaceGradient(layer%6, *cube, d)
			d[2] = 0
		}
		length := 0.0
		for i := range x.Dims {
			part := d[i] * float64(f.t.Size(i))
			length += part * part
		}
		most = max(most, length)
	}
	return math.Log2(most) / 2
}

// level is do for one level.
func (f *fetch) level(t *descriptor.Texture, at [3]float64, layer int64, out *[4]uint32) {
	f.t = t
	gather := f.in.Op == isa.OpGather
	whole := f.in.Type2 != isa.F32
	near := whole || !t.Filter && !gather
	axes := [3]descriptor.Axis{{}, {}, {At: layer}}
	for d := range f.in.Texel.Dims {
		if axes[d] = (descriptor.Axis{At: int64(at[d])}); !whole {
			axes[d] = t.Axis(d, at[d], near)
		}
	}
	switch {
	case gather:
		var element [4]uint32
		for i, off := range [4][2]int64{{0, 1}, {1, 1}, {1, 0}, {0, 0}} {
			f.element(axes[0].At+off[0], axes[1].At+off[1], axes[2].At, &element)
			out[i] = element[f.in.Texel.Component]
		}
	case near:
		f.element(axes[0].At, axes[1].At, axes[2].At, out)
	default:
		f.filter(&axes, out)
	}
}

// filter returns the weighted mean of the elements around a point.
func (f *fetch) filter(axes *[3]descriptor.Axis, out *[4]uint32) {
	var sum [4]float64
	var element [4]uint32
	for corner := range 1 << f.in.Texel.Dims {
		weight := 1
		at := [3]int64{axes[0].At, axes[1].At, axes[2].At}
		for d := range f.in.Texel.Dims {
			if corner>>d&1 != 0 {
				at[d]++
				weight *= axes[d].Share
			} else {
				weight *= 256 - axes[d].Share
			}
		}
		if weight == 0 {
			continue
		}
		part := float64(weight) / float64(int(1)<<(8*f.in.Texel.Dims))
		f.element(at[0], at[1], at[2], &element)
		for c, v := range element {
			sum[c] += part * float64(math.Float32frombits(v))
		}
	}
	for c := range out {
		out[c] = math.Float32bits(float32(sum[c]))
	}
}

// element reads an element, or the value for elements outside, and records its address.
func (f *fetch) element(x, y, z int64, out *[4]uint32) {
	t := f.t
	at, inside := [3]int64{x, y, z}, true
	for d := range f.in.Texel.Dims {
		var ok bool
		at[d], ok = t.Wrap(d, at[d])
		inside = inside && ok
	}
	if !inside {
		for c := range out {
			out[c] = t.BorderOf(c)
		}
		return
	}
	n := uint64(t.Texel())
	addr := t.Data + uint64(at[0])*n + uint64(at[1])*t.Pitch + uint64(at[2])*t.Slice
	data, kind := f.r.globalBytes(addr, n, f.in, event.FlagRead, f.place)
	if kind != "" {
		f.r.Faults.access(f.r, kind, f.w, f.lane, f.place, touch{event.FlagRead, event.Global, addr, n})
		*out = [4]uint32{}
		return
	}
	k := &f.r.taps
	k.on[f.n] |= 1 << f.lane
	k.addr[f.n][f.lane] = addr
	f.n++
	for c := range out {
		out[c] = t.ChannelOf(data, c)
	}
}
