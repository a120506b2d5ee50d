package opt

import (
	"math/bits"
	"slices"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/isa"
)

// Many targets have no instruction for an atomic access of one or two bytes. libcu++ then reads and swaps the aligned
// word that contains them, whose address is P & -4 (or P & -2). It uses the result through a shift by 8*(P%4) and a
// mask. A swap writes back the other bytes of the value that it compares with. In the source, the access touches only
// the element at P.
// element at P.

// Elements are the accesses of a kernel to aligned words that implement accesses to one or two bytes.
type Elements struct {
	funcs []funcElements // of the kernel, and of the functions that remain calls
	Bases int            // number of instructions that align the address of an element: see Element.Base
}

// funcElements are the elements of a function that Build builds. Paths are as sitePath returns them.
type funcElements struct {
	fn      *isa.Func
	inlined map[string]bool // paths of the calls that are inlined
	list    map[string]Element
	bases   map[string]int
}

// Element describes the element that an access to a word touches.
type Element struct {
	Base int   // number of the and.b64 that computes the word's address from the element's address, its first source
	Size uint8 // bytes
}

// FindElements finds the elements of a kernel and of the functions that it calls. The result does not depend on the
// shape of a launch. An access that may use other bytes of its word is not an element.
func FindElements(kernel *isa.Func, shared *isa.Shared) (Elements, error) {
	if !MayHaveElements(kernel) {
		return Elements{}, nil
	}
	// With the largest block, no special register is a constant.
	funcs, err := Build(kernel, Env{Block: [3]uint32{1024, 1024, 64}, Shared: shared})
	if err != nil {
		return Elements{}, err
	}
	var all Elements
	for _, f := range funcs {
		// Without unrolling, each instruction remains one.
		fixpoint(f, slices.DeleteFunc(Passes(), func(p Pass) bool { return p.Name == "unroll" }), nil)
		Order(f)
		all.add(f)
	}
	if all.Bases == 0 {
		return Elements{}, nil
	}
	return all, nil
}

// add finds the elements of a function.
func (e *Elements) add(f *Func) {
	of := funcElements{fn: f.Fn, inlined: map[string]bool{}, list: map[string]Element{}, bases: map[string]int{}}
	for _, s := range f.Sites {
		if s.Call >= 0 {
			of.inlined[sitePath(f.Sites, s.Call)] = true
		}
	}
	f.eachElement(func(access, base int32, size uint8) {
		at := sitePath(f.Sites, base)
		k, ok := of.bases[at]
		if !ok {
			k = e.Bases
			of.bases[at] = k
			e.Bases++
		}
		of.list[sitePath(f.Sites, access)] = Element{k, size}
	})
	e.funcs = append(e.funcs, of)
}

// of returns the elements of a function, or nil if the function has none or is inlined at every call.
func (e *Elements) of(fn *isa.Func) *funcElements {
	for i := range e.funcs {
		if e.funcs[i].fn == fn {
			return &e.funcs[i]
		}
	}
	return nil
}

// Placed finds the elements of a launch by place.
type Placed struct {
	of    Elements
	site  func(place uint32) (fn *isa.Func, at int, caller uint32)
	known map[uint32]placed
}

// placed describes the relation of the instruction at a place to elements.
type placed struct {
	element Element // Size is 0 if it accesses none
	base    int     // its number, if it aligns the address of an element; otherwise -1
	level   int     // see Access
}

// At returns a kernel's elements by place, or nil if the kernel has none. site resolves a place to an instruction, and
// to the place of the call of its function, which is 0 for a kernel.
func (e Elements) At(site func(place uint32) (fn *isa.Func, at int, caller uint32)) *Placed {
	if e.Bases == 0 {
		return nil
	}
	return &Placed{of: e, site: site, known: map[uint32]placed{}}
}

// Access returns the element that the access at a place touches. level is the number of calls between the access and
// the call of the function in which the element was found. The address was aligned in that call of the function, and
// not in another one if the function is recursive.
func (p *Placed) Access(place uint32) (e Element, level int, ok bool) {
	x := p.find(place)
	return x.element, x.level, x.element.Size != 0
}

// Base returns the number of the instruction at a place if it aligns the address of an element. level is as for Access.
func (p *Placed) Base(place uint32) (number, level int, ok bool) {
	x := p.find(place)
	return x.base, x.level, x.base >= 0
}

func (p *Placed) find(place uint32) placed {
	x, ok := p.known[place]
	if !ok {
		x = p.resolve(place)
		p.known[place] = x
	}
	return x
}

// resolve follows the call stack of a place to the last function that was called by a call that is not inlined. The
// path begins there.
func (p *Placed) resolve(place uint32) placed {
	type call struct {
		fn *isa.Func
		at int
	}
	var stack []call // innermost first
	for place != 0 {
		fn, at, caller := p.site(place)
		stack = append(stack, call{fn, at})
		place = caller
	}
	x := placed{base: -1}
	var of *funcElements
	var path []byte
	for _, c := range slices.Backward(stack) {
		if of == nil || !of.inlined[string(path)] {
			of, path, x.level = p.of.of(c.fn), path[:0], -1
		}
		path = appendStep(path, c.at)
		x.level++
	}
	if of == nil {
		return x
	}
	x.element = of.list[string(path)]
	if k, ok := of.bases[string(path)]; ok {
		x.base = k
	}
	return x
}

// sitePath identifies a site by the calls from the function that was built first, and by its own instruction.
func sitePath(sites []Site, at int32) string {
	var path []byte
	if s := &sites[at]; s.Call >= 0 {
		path = append(path, sitePath(sites, s.Call)...)
	}
	return string(appendStep(path, int(sites[at].At)))
}

func appendStep(path []byte, at int) []byte {
	return append(path, byte(at), byte(at>>8), byte(at>>16), byte(at>>24))
}

// AttachElements adds the address of its element to each access that touches one: Elem is then the element's size, and
// the last of Args its address.
func (f *Func) AttachElements(all Elements) {
	of := all.of(f.Fn)
	if of == nil || len(of.list) == 0 {
		return
	}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op != Load && in.Op != Atomic || in.Site < 0 {
				continue
			}
			e, ok := of.list[sitePath(f.Sites, in.Site)]
			if d := f.Def(in.Args[0]); ok && d != nil {
				if _, ok := f.alignment(d); ok {
					in.Elem, in.Args = e.Size, append(slices.Clip(in.Args), d.Args[0])
				}
			}
		}
	}
}

// MayHaveElements reports whether the function, or a function that it may call, has both instructions that are needed
// to recognise an element.
func MayHaveElements(fn *isa.Func) bool { return fn.Any(wordAccess) && fn.Any(AlignsDown) }

// wordAccess reports whether the instruction can access an element.
func wordAccess(in *isa.Inst) bool {
	if in.Vec > 1 || in.Off != 0 {
		return false
	}
	switch in.Class {
	case isa.Load:
		return in.Order >= event.Relaxed && (in.Type.Size() == 2 || in.Type.Size() == 4)
	case isa.Atomic:
		return in.Op == isa.OpCas && in.Type.Size() == 4 && len(in.Dst) == 1
	}
	return false
}

// AlignsDown reports whether the instruction is and.b64 with -4 or -2, like the one at Element.Base.
func AlignsDown(in *isa.Inst) bool {
	return in.Class == isa.Pure && in.Type.Size() == 8 && in.Guard < 0 && in.RoundsTo() > 0
}

// aligned is an Aux of And. Fold then keeps the And, so that the address that it aligns stays known.
const aligned = 1

// alignment returns the number of bytes to which an And aligns an address.
func (f *Func) alignment(in *Instr) (int, bool) {
	if in.Op != And || in.Aux != aligned || in.Site < 0 {
		return 0, false
	}
	s := f.Sites[in.Site]
	c, ok := f.ConstOf(in.Args[1])
	if !ok || !AlignsDown(&s.Fn.Insts[s.At]) || -c != 2 && -c != 4 {
		return 0, false
	}
	return int(-c), true
}

// use is one use of a value.
type use struct {
	in *Instr
	at int // index in Args, or -1 for the guard
}

// words are the accesses to the word that contains one address. Its methods analyse the uses of their results.
type words struct {
	f     *Func
	uses  map[Value][]use
	p     Value          // the address of the element
	width int            // bytes of the word
	list  []*Instr       // the accesses
	word  map[Value]bool // values that hold the contents of the word
	size  int            // bytes of the element, as derived from the uses so far
	steps int            // number of steps of need
}

// eachElement analyses every word. It yields the sites of the accesses to elements and of the instructions that align
// their addresses.
func (f *Func) eachElement(yield func(access, base int32, size uint8)) {
	uses := map[Value][]use{}
	type key struct {
		p     Value
		width int
	}
	var order []key
	of := map[key]*words{}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			for i, a := range in.Args {
				if a != NoValue {
					uses[a] = append(uses[a], use{in, i})
				}
			}
			if in.Guard != NoValue {
				uses[in.Guard] = append(uses[in.Guard], use{in, -1})
			}
			if width, ok := f.alignment(in); ok {
				k := key{in.Args[0], width}
				if of[k] == nil {
					of[k] = &words{f: f, uses: uses, p: k.p, width: width, word: map[Value]bool{}}
					order = append(order, k)
				}
			}
		}
	}
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			if in.Op < Load || in.Op > Atomic {
				continue
			}
			d := f.Def(in.Args[0])
			if width, ok := f.alignment(d); ok {
				w := of[key{d.Args[0], width}]
				w.list = append(w.list, in)
			}
		}
	}
	for _, k := range order {
		w := of[k]
		if !w.only() {
			continue
		}
		for _, in := range w.list {
			yield(in.Site, f.Def(in.Args[0]).Site, uint8(w.size))
		}
	}
}

// only reports whether everything read from the word is used only for the element, and whether swaps write the other
// bytes back unchanged.
func (w *words) only() bool {
	for _, in := range w.list {
		if in.Imm != 0 || in.Site < 0 || in.Guard != NoValue || !wordAccess(in.Inst) || in.Inst.Type.Size() != w.width {
			return false
		}
		if in.Dst[0] != NoValue {
			w.word[in.Dst[0]] = true
		}
	}
	w.spread()
	for _, in := range w.list {
		if in.Op == Atomic && !w.swaps(in) {
			return false
		}
	}
	for v := range w.word { // the order does not matter: size becomes the largest
		for _, u := range w.uses[v] {
			if !w.allowed(v, u) {
				return false
			}
		}
	}
	return len(w.list) > 0 && w.size > 0 && w.size < w.width
}

// swaps reports whether a swap compares with contents of the word and writes back their bytes around the element.
func (w *words) swaps(in *Instr) bool {
	was, to := in.Args[1], in.Args[2]
	if !w.word[was] {
		return false
	}
	d := w.f.Def(to)
	switch {
	case to == was:
		return true
	case d == nil:
		return false
	case d.Op == Or:
		return w.keeps(d.Args[0], was) || w.keeps(d.Args[1], was)
	}
	return w.keeps(to, was)
}

// keeps reports whether v consists of the bytes of a word around the element.
func (w *words) keeps(v, word Value) bool {
	d := w.f.Def(v)
	if d == nil || d.Op != And || d.Args[0] != word && d.Args[1] != word {
		return false
	}
	for _, mask := range d.Args {
		if _, ok := w.rest(mask); ok {
			return true // putBack has checked the rest of the value
		}
	}
	return false
}

// spread adds copies of words, and phis whose arguments are all words.
func (w *words) spread() {
	var todo []Value
	for v := range w.word {
		todo = append(todo, v)
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, u := range w.uses[v] {
			if w.forwards(u.in) && !w.word[u.in.Result()] {
				w.word[u.in.Result()] = true
				todo = append(todo, u.in.Result())
			}
		}
	}
	for again := true; again; {
		again = false
		for v := range w.word {
			d := w.f.Def(v)
			if w.forwards(d) && slices.ContainsFunc(d.Args, func(a Value) bool { return !w.word[a] }) {
				delete(w.word, v)
				again = true
			}
		}
	}
}

// forwards reports whether the result is one of the arguments, with all bits of the word.
func (w *words) forwards(in *Instr) bool {
	return in.Op == Phi || in.Op == Copy || in.Op == ZExt && int(in.Imm) >= 8*w.width
}

// allowed reports whether a use of a word touches only the element. It updates size.
func (w *words) allowed(v Value, u use) bool {
	in := u.in
	switch {
	case u.at < 0:
		return false
	case w.forwards(in) && w.word[in.Result()]:
		return true
	case in.Op == Cmp: // the use tests whether a swap succeeded
		return (Cond(in.Imm) == EQ || Cond(in.Imm) == NE) && (w.outcome(in.Args[0], in.Args[1]) || w.outcome(in.Args[1], in.Args[0]))
	case in.Op == Atomic:
		return slices.Contains(w.list, in) && (u.at == 1 || w.puts(in, u.at, v))
	case in.Op == And:
		other := in.Args[1-u.at]
		if n, ok := w.window(other); ok {
			w.size = max(w.size, n)
			return true
		}
		if n, ok := w.rest(other); ok {
			w.size = max(w.size, n)
			return w.putBack(v, in.Result(), n)
		}
	case (in.Op == ShrU || in.Op == ShrS) && u.at == 0 && w.shift(in.Args[1]):
		return w.low(w.need(in.Result(), maxNeed))
	}
	if at, ok := w.offset(); ok && at == 0 { // the shift by 0 was removed
		return w.low(w.needOf(u, maxNeed))
	}
	return false
}

// outcome reports whether v is the result of a swap that compared with another value.
func (w *words) outcome(v, compared Value) bool {
	return slices.ContainsFunc(w.list, func(in *Instr) bool { return in.Op == Atomic && in.Dst[0] == v && in.Args[1] == compared })
}

// low records that the n low bits of the shifted word are used.
func (w *words) low(n int) bool {
	if n > 16 {
		return false
	}
	w.size = max(w.size, (n+7)/8)
	return true
}

// puts reports whether Args[at] is the new value of a swap that compares with the word v.
func (w *words) puts(in *Instr, at int, v Value) bool { return at == 2 && in.Args[1] == v }

// putBack reports whether rest, the bytes of word v around the element, is only written back: combined with bits of the
// element, by swaps that compare with v.
func (w *words) putBack(v, rest Value, size int) bool {
	for _, u := range w.uses[rest] {
		in := u.in
		switch {
		case u.at < 0:
			return false
		case in.Op == Atomic && slices.Contains(w.list, in) && w.puts(in, u.at, v):
		case in.Op == Or && w.inside(in.Args[1-u.at], size):
			for _, u := range w.uses[in.Result()] {
				if u.in.Op != Atomic || !slices.Contains(w.list, u.in) || !w.puts(u.in, u.at, v) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// offset returns the offset of the element in the word, if it is known.
func (w *words) offset() (int, bool) {
	c, ok := w.f.ConstOf(w.p)
	return int(c) & (w.width - 1), ok
}

// shift reports whether v is 8 times the offset of the element.
func (w *words) shift(v Value) bool {
	if at, ok := w.offset(); ok {
		c, ok := w.f.ConstOf(v)
		return ok && c == uint64(8*at)
	}
	mask, by, ok := w.bitsOf(v)
	return ok && by == 3 && mask == uint64(8*(w.width-1))
}

// bitsOf returns mask and by if v is P << by & mask.
func (w *words) bitsOf(v Value) (mask uint64, by int, ok bool) {
	f := w.f
	full := f.Width(v).Mask()
	if v == w.p {
		return full, 0, true
	}
	d := f.Def(v)
	switch d.Op {
	case Copy:
		return w.bitsOf(d.Args[0])
	case ZExt:
		mask, by, ok = w.bitsOf(d.Args[0])
		return mask & (full >> (f.Width(v).Bits() - min(int(d.Imm), f.Width(v).Bits()))), by, ok
	case And, Shl:
		c, isConst := f.ConstOf(d.Args[1])
		if !isConst {
			return 0, 0, false
		}
		mask, by, ok = w.bitsOf(d.Args[0])
		if d.Op == And {
			return mask & c, by, ok
		}
		return mask << c & full, by + int(c), ok && c < 64
	}
	return 0, 0, false
}

// window reports whether v is 1 in exactly the bits of the element, and returns the size of the element.
func (w *words) window(v Value) (size int, ok bool) {
	for n := 1; n < w.width; n *= 2 {
		ones := uint64(1)<<(8*n) - 1
		if at, ok := w.offset(); ok {
			if c, ok := w.f.ConstOf(v); ok && c == ones<<(8*at)&(1<<(8*w.width)-1) {
				return n, true
			}
			continue
		}
		if d := w.f.Def(v); d.Op == Shl && w.shift(d.Args[1]) {
			if c, ok := w.f.ConstOf(d.Args[0]); ok && c == ones {
				return n, true
			}
		}
	}
	return 0, false
}

// rest reports whether v is 1 in exactly the bits of the other bytes, and returns the size of the element.
func (w *words) rest(v Value) (size int, ok bool) {
	if at, ok := w.offset(); ok {
		c, ok := w.f.ConstOf(v)
		for n := 1; n < w.width && ok; n *= 2 {
			if full := uint64(1)<<(8*w.width) - 1; c&full == full&^((uint64(1)<<(8*n)-1)<<(8*at)) {
				return n, true
			}
		}
		return 0, false
	}
	if d := w.f.Def(v); d.Op == Not {
		return w.window(d.Args[0])
	}
	return 0, false
}

// inside reports whether all bits of v that may be set are bits of an element of size bytes.
func (w *words) inside(v Value, size int) bool {
	ones := uint64(1)<<(8*size) - 1
	if at, ok := w.offset(); ok {
		return w.f.possible(v, 8)&^(ones<<(8*at)) == 0
	}
	d := w.f.Def(v)
	switch d.Op {
	case Shl:
		return w.shift(d.Args[1]) && w.f.possible(d.Args[0], 8)&^ones == 0
	case And:
		for _, a := range d.Args {
			if n, ok := w.window(a); ok && n <= size {
				return true
			}
		}
	}
	c, ok := w.f.ConstOf(v)
	return ok && c == 0
}

// possible returns the bits of v that may be set. depth bounds the search.
func (f *Func) possible(v Value, depth int) uint64 {
	full := f.Width(v).Mask()
	d := f.Def(v)
	if d == nil || depth == 0 {
		return full
	}
	arg := func(i int) uint64 { return f.possible(d.Args[i], depth-1) }
	switch d.Op {
	case Const:
		return d.Imm
	case Copy:
		return arg(0)
	case ZExt:
		return arg(0) & (^uint64(0) >> (64 - d.Imm))
	case And:
		return arg(0) & arg(1)
	case Or, Xor:
		return arg(0) | arg(1)
	case Sel:
		return arg(1) | arg(2)
	case Cmp:
		return 1
	case Phi:
		all := uint64(0)
		for i := range d.Args {
			all |= arg(i)
		}
		return all
	case Shl:
		if c, ok := f.ConstOf(d.Args[1]); ok {
			return arg(0) << c & full
		}
	case Load:
		if !d.Inst.Type.Signed() && d.Inst.Type.Size() < 4 {
			return 1<<(8*d.Inst.Type.Size()) - 1
		}
	}
	return full
}

// maxNeed is the maximum depth of the search of need, and maxSteps the maximum number of its steps for one word.
const (
	maxNeed  = 24
	maxSteps = 1 << 12
)

// need returns how many of the low bits of v are used, or 64 if all may be.
func (w *words) need(v Value, depth int) int {
	n := 0
	for _, u := range w.uses[v] {
		n = max(n, w.needOf(u, depth))
	}
	return n
}

// needOf is need for one use.
func (w *words) needOf(u use, depth int) int {
	in := u.in
	if w.steps++; depth == 0 || u.at < 0 || w.steps > maxSteps {
		return 64
	}
	result := func() int { return w.need(in.Result(), depth-1) }
	switch in.Op {
	case ZExt, SExt:
		return min(int(in.Imm), result())
	case And:
		if c, ok := w.f.ConstOf(in.Args[1-u.at]); ok && bits.Len64(c) <= 16 {
			return min(bits.Len64(c), result())
		}
		return result()
	case Add, Sub, Mul, Or, Xor, Not, Phi, Copy: // low bits of the result depend only on low bits
		return result()
	case Sel:
		if u.at > 0 {
			return result()
		}
	case Store:
		if u.at > 0 && in.Inst.Vec <= 1 {
			return 8 * in.Inst.Type.Size()
		}
	}
	return 64
}
