// Command vectors writes the value vectors of internal/isa/testdata: for every spelling of the instruction table, some
// inputs and the results that the PTX manual defines. It computes the results with exact arithmetic (math/big), and
// never with the code of the table. It takes only the list of spellings from the table.
//
//	go run ./vectors testdata
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/isa"
)

// job is a spelling whose vectors are made.
type job struct {
	isa.Spelling
	op  string // the opcode
	typ isa.Type
	in  [][]uint64
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vectors DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

// write writes one file for each chapter of the manual.
func write(dir string) error {
	files := map[string]*file{}
	var order []string
	for _, s := range isa.Spellings() {
		chapter, _, _ := strings.Cut(s.Row.Doc, ":")
		name := strings.ToLower(strings.ReplaceAll(chapter, " ", "-"))
		f := files[name]
		if f == nil {
			f = &file{sets: map[string]string{}}
			f.b.WriteString("# Made by go run ./vectors testdata; see vectors/main.go. Sources and results are raw bits in hexadecimal.\n")
			files[name] = f
			order = append(order, name)
		}
		f.add(s)
	}
	for _, name := range order {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(files[name].b.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// file is a file that is being written.
type file struct {
	b    strings.Builder
	sets map[string]string // from the text of a set of inputs to its name
}

// add writes the vectors of a spelling: the inputs, unless an earlier spelling had the same, and the results.
func (f *file) add(s isa.Spelling) {
	j := &job{Spelling: s, op: s.Row.Op, typ: s.Inst().Type}
	if s.Row.Class == isa.Warp || s.Row.Class == isa.Matrix {
		f.addWarp(j)
		return
	}
	j.in = inputs(j)
	var set strings.Builder
	for _, in := range j.in {
		writeTuple(&set, in, " ")
		set.WriteByte('\n')
	}
	name, ok := f.sets[set.String()]
	if !ok {
		name = fmt.Sprintf("i%d", len(f.sets))
		f.sets[set.String()] = name
		fmt.Fprintf(&f.b, "inputs %s\n%s", name, set.String())
	}
	fmt.Fprintf(&f.b, "op %s %s", s.Text, name)
	if s.Form.Ulp > 0 {
		fmt.Fprintf(&f.b, " ulp %g", s.Form.Ulp)
	}
	f.b.WriteByte('\n')
	w := bufio.NewWriter(&f.b)
	for i, in := range j.in {
		if i > 0 {
			w.WriteByte(' ')
		}
		var t strings.Builder
		writeTuple(&t, oracle(j, in), ",")
		w.WriteString(t.String())
	}
	w.WriteByte('\n')
	w.Flush()
}

func writeTuple(b *strings.Builder, vs []uint64, sep string) {
	for i, v := range vs {
		if i > 0 {
			b.WriteString(sep)
		}
		fmt.Fprintf(b, "%x", v)
	}
}

// oracle computes the results of one vector.
func oracle(j *job, in []uint64) []uint64 {
	if j.Row.Class == isa.Atomic {
		return []uint64{atomic(j, in)}
	}
	chapter, _, _ := strings.Cut(j.Row.Doc, ":")
	switch chapter {
	case "Video":
		return []uint64{video(j, in)}
	case "Integer Arithmetic", "Extended-Precision Arithmetic":
		return integer(j, in)
	case "Mixed Precision":
		return []uint64{mixed(j, in)}
	case "Floating Point", "Half Precision":
		return floating(j, in)
	case "Comparison and Selection":
		return comparing(j, in)
	case "Stack Manipulation":
		return stack(j, in)
	case "Logic and Shift":
		return logic(j, in)
	case "Data Movement":
		return moving(j, in)
	}
	panic("BUG: no oracle for " + j.Text)
}
