package order

import "maps"

// Atomics are the last atomic accesses of variables, which conflict only with accesses that are not atomic. Few
// variables have any, so a detector calls Has first.
type Atomics struct {
	marks []uint64 // a bit for each variable
	of    map[uint32]*atomics
}

// atomics has the last atomic accesses of each thread to one variable.
type atomics struct{ reads, writes Clock }

// Has reports whether a variable has atomic accesses.
func (a *Atomics) Has(variable uint32) bool {
	i := int(variable >> 6)
	return i < len(a.marks) && a.marks[i]>>(variable&63)&1 != 0
}

// Add records an atomic access.
func (a *Atomics) Add(variable uint32, now Epoch, write bool) {
	if !a.Has(variable) {
		a.put(variable, &atomics{})
	}
	if x := a.of[variable]; write {
		x.writes.Set(now)
	} else {
		x.reads.Set(now)
	}
}

func (a *Atomics) put(variable uint32, x *atomics) {
	for len(a.marks) <= int(variable>>6) {
		a.marks = append(a.marks, 0)
	}
	a.marks[variable>>6] |= 1 << (variable & 63)
	if a.of == nil {
		a.of = map[uint32]*atomics{}
	}
	a.of[variable] = x
}

// Conflicts calls each for the atomic accesses that conflict with a plain one, by thread.
func (a *Atomics) Conflicts(variable uint32, write bool, each func(e Epoch, wrote bool)) {
	x := a.of[variable]
	for _, e := range x.writes {
		each(e, true)
	}
	if write {
		for _, e := range x.reads {
			each(e, false)
		}
	}
}

// Part gives a new variable the atomic accesses of the variable that it was a part of.
func (a *Atomics) Part(variable, of uint32) {
	if a.Has(of) {
		x := a.of[of]
		a.put(variable, &atomics{reads: append(Clock(nil), x.reads...), writes: append(Clock(nil), x.writes...)})
	}
}

// Forget removes the accesses of a variable.
func (a *Atomics) Forget(variable uint32) {
	if a.Has(variable) {
		a.marks[variable>>6] &^= 1 << (variable & 63)
		delete(a.of, variable)
	}
}

// Bytes is the size of a in memory.
func (a *Atomics) Bytes() uint64 {
	n := uint64(cap(a.marks)) * 8
	for x := range maps.Values(a.of) {
		n += 64 + x.reads.Bytes() + x.writes.Bytes()
	}
	return n
}
