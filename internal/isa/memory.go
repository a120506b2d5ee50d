package isa

import (
	"math"
	"slices"

	"fencepost.dev/fencepost/internal/event"
)

// memoryRows is the loads, stores and atomics.
var memoryRows = []*Row{
	{Op: "ld", Doc: "Data Movement: ld", Class: Load, Event: event.Load, Forms: forms(
		"{.weak}{.space}{.cop}{.ehint}{.ehint2}{.L2::cache_hint}{.prefetch_size}{.vec}.type d~, [a]{, c:b64}; cop: ca cg cs lu cv; "+ehint2+memTypes,
		"{.weak}.global{.cop}.nc{.ehint}{.ehint2}{.L2::cache_hint}{.prefetch_size}{.vec}.type d~, [a]{, c:b64}; cop: ca cg cs; "+ehint2+memTypes,
		".volatile{.space}{.prefetch_size}{.vec}.type d~, [a]"+memTypes,
		".sem.scope{.space}{.ehint}{.ehint2}{.L2::cache_hint}{.prefetch_size}{.vec}.type d~, [a]{, c:b64}; sem: relaxed acquire; "+ehint2+memTypes,
		".mmio.sem.sys{.global}.type d~, [a]; sem: relaxed acquire"+memTypes)},
	{Op: "ldu", Doc: "Data Movement: ldu", Class: Load, Event: event.Load, Forms: forms("{.global}{.vec}.type d~, [a]" + memTypes)},
	{Op: "st", Doc: "Data Movement: st", Class: Store, Event: event.Store, Forms: forms(
		"{.weak}{.space}{.cop}{.ehint}{.ehint2}{.L2::cache_hint}{.vec}.type [a], b~{, c:b64}; cop: wb cg cs wt; "+storeSpaces+ehint2+memTypes,
		".volatile{.space}{.vec}.type [a], b~; "+storeSpaces+memTypes[2:],
		".sem.scope{.space}{.ehint}{.ehint2}{.L2::cache_hint}{.vec}.type [a], b~{, c:b64}; sem: relaxed release; "+storeSpaces+ehint2+memTypes,
		".mmio.sem.sys{.global}.type [a], b~; sem: relaxed release"+memTypes,
		".async.release.scope{.global}.type [a], b~; scope: gpu sys"+asyncTypes,
		".async.mmio.release.sys{.global}.type [a], b~"+asyncTypes), Note: "st.async to global memory is performed at its issue."},
	{Op: "atom", Doc: "Parallel Synchronization: atom", Class: Atomic, Event: event.Atomic, Bind: bindAtomic, Note: noteAtom, Forms: atomForms("relaxed acquire release acq_rel",
		"d, [a], b", ".op{.L2::cache_hint}.b32", "; op: and or xor exch",
		"d, [a], b", ".op{.L2::cache_hint}.b64", "; op: and or xor exch",
		"d, [a], b", ".op{.L2::cache_hint}.b128", "; op: exch",
		"d, [a], b, c", ".op{.L2::cache_hint}.type", "; op: cas; type: b16 b32 b64 b128",
		"d, [a], b", ".op{.L2::cache_hint}.type", "; op: add; type: u32 s32 u64 f64",
		"d, [a], b", ".op{.noftz}{.L2::cache_hint}.f32", "; op: add",
		"d, [a], b", ".op{.L2::cache_hint}.u32", "; op: inc dec",
		"d, [a], b", ".op{.L2::cache_hint}.type", "; op: min max; type: u32 s32 u64 s64",
		"d, [a], b", ".op.noftz{.L2::cache_hint}.type", "; op: add min max; type: f16 f16x2 bf16 bf16x2",
		"d, [a], b", ".op{.noftz}{.L2::cache_hint}.vec.f32", "; op: add; vec: v2 v4",
		"d, [a], b", ".op.noftz{.L2::cache_hint}.vec.type", "; op: add min max; vec: v2 v4 v8; type: f16 f16x2 bf16 bf16x2")},
	{Op: "red", Doc: "Parallel Synchronization: red", Class: Atomic, Event: event.Atomic, Bind: bindAtomic, Note: noteAtom, Forms: atomForms("relaxed release",
		"[a], b", ".op{.L2::cache_hint}.type", "; op: and or xor; type: b32 b64",
		"[a], b", ".op{.L2::cache_hint}.type", "; op: add; type: u32 s32 u64 f64",
		"[a], b", ".op{.noftz}{.L2::cache_hint}.f32", "; op: add",
		"[a], b", ".op{.L2::cache_hint}.u32", "; op: inc dec",
		"[a], b", ".op{.L2::cache_hint}.type", "; op: min max; type: u32 s32 u64 s64",
		"[a], b", ".op.noftz{.L2::cache_hint}.type", "; op: add min max; type: f16 f16x2 bf16 bf16x2",
		"[a], b", ".op{.noftz}{.L2::cache_hint}.vec.f32", "; op: add; vec: v2 v4",
		"[a], b", ".op.noftz{.L2::cache_hint}.vec.type", "; op: add min max; vec: v2 v4 v8; type: f16 f16x2 bf16 bf16x2")},
	{Op: "red", Doc: "Data Movement: red.async to global memory", Class: Atomic, Event: event.Atomic, Bind: bindAtomic, Note: "Performed at its issue.", Forms: slices.Concat(
		redAsync(".release.gpu"), redAsync(".release.sys"), redAsync(".mmio.release.sys"))},
	{Op: "prefetch", Doc: "Data Movement: prefetch", Class: Hint, Forms: forms(
		"{.space}.level [a]; space: global local; level: L1 L2",
		"{.global}.level [a]; level: L2::evict_last L2::evict_normal",
		"{.space}.tensormap [a]; space: const param")},
	{Op: "prefetchu", Doc: "Data Movement: prefetchu", Class: Hint, Forms: forms(".L1 [a]")},
	{Op: "discard", Doc: "Data Movement: discard", Class: Hint, Forms: forms("{.global}.L2 [a], b:u32"),
		Note: "A hint without effect: the memory keeps its contents."},
	{Op: "applypriority", Doc: "Data Movement: applypriority", Class: Hint, Forms: forms("{.global}.L2::evict_normal [a], b:u32")},
}

const (
	storeSpaces = "space: global shared shared::cta shared::cluster local param param::func; "
	ehint2      = "ehint2: L2::evict_normal L2::evict_first L2::evict_last"
	memTypes    = "; type: b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64"

	asyncTypes = "; type: b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"

	noteAtom = "Without an order it is relaxed, without a scope gpu. Floating-point addition rounds to nearest and keeps subnormals " +
		"(hardware flushes those of f32 in global memory)."
)

// atomForms makes the forms of atom and red from the orders and from triples: operands, operation and lists. Order,
// scope and space may precede or follow the operation.
func atomForms(orders string, parts ...string) []Form {
	var fs []Form
	for i := 0; i < len(parts); i += 3 {
		fs = append(fs, Form{Syntax: "{.sem}{.scope}{.space}" + parts[i+1] + " " + parts[i] + "{, e:b64}" + parts[i+2] +
			"; sem: " + orders + "; space: global shared shared::cta shared::cluster"})
	}
	return fs
}

// redAsync returns the forms of red.async to global memory.
func redAsync(mods string) []Form {
	mods = ".async" + mods + "{.global}.op.type [a], b"
	return forms(mods+"; op: add; type: u32 s32 u64 s64", mods+"; op: and or xor; type: b32",
		mods+"; op: inc dec; type: u32", mods+"; op: min max; type: u32 s32")
}

// memoryDefaults sets order, scope and space of the memory classes if the modifiers omit them.
func memoryDefaults(in *Inst) {
	if in.Has("async") && (in.Class == Store || in.Class == Atomic) {
		in.Order, in.Scope = event.Release, event.ScopeGPU
		if in.Has("sys") {
			in.Scope = event.ScopeSys
		}
	}
	switch in.Class {
	case Load, Store:
		if in.Has("volatile") {
			in.Order, in.Scope = event.Volatile, event.ScopeSys
		}
		if in.Has("mmio") {
			in.Scope = event.ScopeSys
		}
		if in.Has("nc") || in.Has("global") {
			in.Space = event.Global
		}
	case Atomic:
		if in.Order == event.Weak {
			in.Order = event.Relaxed
		}
		if in.Scope == event.NoScope {
			in.Scope = event.ScopeGPU
		}
	case Matrix, Tile, Mbarrier:
	default:
		return
	}
	if in.Space == event.NoSpace {
		in.Space = event.Generic
	}
}

// bindAtomic binds the new value of an atomic operation.
func bindAtomic(in *Inst) {
	in.RMW = atomicOp(in)
}

func atomicOp(in *Inst) func(in *Inst, old, b, c uint64) uint64 {
	t := in.Type
	mask, size := widthMask(t), t.Size()
	switch in.Op {
	case OpAnd:
		return func(_ *Inst, old, b, _ uint64) uint64 { return old & b }
	case OpOr:
		return func(_ *Inst, old, b, _ uint64) uint64 { return old | b }
	case OpXor:
		return func(_ *Inst, old, b, _ uint64) uint64 { return old ^ b }
	case OpExch:
		return func(_ *Inst, _, b, _ uint64) uint64 { return b }
	case OpCas:
		return func(_ *Inst, old, b, c uint64) uint64 {
			if (old^b)&mask == 0 {
				return c & mask
			}
			return old
		}
	case OpInc:
		return func(_ *Inst, old, b, _ uint64) uint64 {
			if uint32(old) >= uint32(b) {
				return 0
			}
			return old + 1
		}
	case OpDec:
		return func(_ *Inst, old, b, _ uint64) uint64 {
			if uint32(old) == 0 || uint32(old) > uint32(b) {
				return b & mask
			}
			return old - 1
		}
	case OpMin, OpMax:
		isMin := in.Op == OpMin
		if t.Float() {
			return halfAtomic(t, func(f *format, a, b uint64) uint64 { return f.minMax(a, b, isMin, false) })
		}
		return func(_ *Inst, old, b, _ uint64) uint64 {
			less := old&mask < b&mask
			if t.Signed() {
				less = signExtend(old, size) < signExtend(b, size)
			}
			if less == isMin {
				return old & mask
			}
			return b & mask
		}
	}
	return atomicAdd(t)
}

// atomicAdd adds integers and floats.
func atomicAdd(t Type) func(in *Inst, old, b, c uint64) uint64 {
	switch {
	case t == F32:
		return func(_ *Inst, old, b, _ uint64) uint64 { return bits32(f32(old) + f32(b)) }
	case t == F64:
		return func(_ *Inst, old, b, _ uint64) uint64 {
			if n, ok := nan64(old, b); ok {
				return n
			}
			s := math.Float64frombits(old) + math.Float64frombits(b)
			return fix64(s, RN, nil)
		}
	case t.Float():
		return halfAtomic(t, func(f *format, a, b uint64) uint64 { return f.add(a, b, RN) })
	}
	mask := widthMask(t)
	return func(_ *Inst, old, b, _ uint64) uint64 { return (old + b) & mask }
}

// halfAtomic applies an operation on a 16-bit format to the elements of a type.
func halfAtomic(t Type, op func(f *format, a, b uint64) uint64) func(in *Inst, old, b, c uint64) uint64 {
	f := formatOf(t)
	if t.Size() == 2 {
		return func(_ *Inst, old, b, _ uint64) uint64 { return op(f, old&0xffff, b&0xffff) }
	}
	return func(_ *Inst, old, b, _ uint64) uint64 {
		return op(f, old&0xffff, b&0xffff) | op(f, old>>16&0xffff, b>>16&0xffff)<<16
	}
}
