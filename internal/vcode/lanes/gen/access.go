package main

import (
	"bytes"
	"fmt"
	"strings"
)

// access is an operation of Run that loads or stores, or one that holds only where nothing wraps: what may stop Run.
type access struct {
	name   string
	file   string // of D: what is loaded or stored
	size   int    // bytes of an element in memory
	signed bool   // elements are extended by their sign
	store  bool
	add    bool // to what is there, in place of storing
	how    how
}

// how the lanes of an access lie.
type how string

const (
	line    how = "line"    // side by side
	same    how = "same"    // at one address: D is a scalar
	rows    how = "rows"    // 16 lanes side by side, and 16 more an Access.Row away
	spread  how = "spread"  // 16 lanes at one address, and 16 more an Access.Row away
	pattern how = "pattern" // at offsets that a vector of 32 bits a lane holds
	each    how = "each"    // at addresses of their own, of 64 bits
	eachLow how = "eachLow" // the same of 32 bits
)

// accesses lists them: the operations of a kind together.
func accesses() []*access {
	var list []*access
	add := func(name, file string, size int, signed bool, h how) {
		list = append(list, &access{name: "Load" + name, file: file, size: size, signed: signed, how: h})
		if file != "scalars" && !signed {
			list = append(list, &access{name: "Store" + strings.Replace(name, "U", "", 1), file: file, size: size, store: true, how: h})
		}
	}
	for _, e := range []struct {
		name   string
		size   int
		signed bool
	}{{"8U", 1, false}, {"8S", 1, true}, {"16U", 2, false}, {"16S", 2, true}, {"32", 4, false}} {
		add(e.name+"Line", "vectors32", e.size, e.signed, line)
		add(e.name+"Same", "scalars", e.size, e.signed, same)
	}
	add("64Line", "vectors64", 8, false, line)
	add("64Same", "scalars", 8, false, same)
	add("32Rows", "vectors32", 4, false, rows)
	list = append(list, &access{name: "Load32Spread", file: "vectors32", size: 4, how: spread})
	add("32Pattern", "vectors32", 4, false, pattern)
	add("64Pattern", "vectors64", 8, false, pattern)
	for _, e := range []struct {
		name, file string
		size       int
		signed     bool
	}{{"32", "vectors32", 4, false}, {"64", "vectors64", 8, false}, {"8U", "vectors32", 1, false}, {"8S", "vectors32", 1, true},
		{"16U", "vectors32", 2, false}, {"16S", "vectors32", 2, true}} {
		add(e.name+"Each", e.file, e.size, e.signed, each)
		add(e.name+"EachLow", e.file, e.size, e.signed, eachLow)
	}
	for _, e := range []struct {
		name, file string
		size       int
	}{{"32", "vectors32", 4}, {"64", "vectors64", 8}} {
		list = append(list, &access{name: "Increase" + e.name + "Each", file: e.file, size: e.size, store: true, add: true, how: each},
			&access{name: "Increase" + e.name + "EachLow", file: e.file, size: e.size, store: true, add: true, how: eachLow})
	}
	return list
}

// files names the register files of the operands.
func (a *access) files() []string {
	switch a.how {
	case pattern:
		return []string{a.file, "scalars", "reaches", "vectors32"}
	case each:
		return []string{a.file, "vectors64", "reaches"}
	case eachLow:
		return []string{a.file, "vectors32", "reaches"}
	}
	return []string{a.file, "scalars", "reaches"}
}

// accessNames are the operations of this file in the order of their codes, with what they take.
func accessNames() (names []string, files [][]string) {
	for _, a := range accesses() {
		names, files = append(names, a.name), append(files, a.files())
	}
	for _, name := range []string{"SteadyS", "SteadyU"} {
		names, files = append(names, name), append(files, []string{"scalars", "scalars", "literal", "literal"})
	}
	names, files = append(names, "Goto"), append(files, []string{"literal", "literal", "literal", "literal"})
	names, files = append(names, "IfScalar"), append(files, []string{"literal", "scalars", "literal", "literal"})
	names, files = append(names, "IfPred"), append(files, []string{"literal", "preds", "literal", "literal"})
	return names, files
}

// accessTable writes the Go table of what the accesses are.
func accessTable() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// accessOps says what the operations from OpLoad8ULine on do.\nvar accessOps = [...]accessOp{\n")
	for _, a := range accesses() {
		fmt.Fprintf(&b, "\t{how: %s, size: %d, signed: %v, store: %v, add: %v},\n", a.how, a.size, a.signed, a.store, a.add)
	}
	b.WriteString("}\n")
	return b.Bytes()
}
