package isa

import (
	"bufio"
	"bytes"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

//go:generate go run ./vectors testdata

// TestVectors runs every implementation on the value vectors, which were computed independently (see vectors/). It
// fails if a spelling has no vectors or vectors have no spelling.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no vectors", err)
	}
	known := map[string]*Spelling{}
	list := Spellings()
	for i := range list {
		s := &list[i]
		if known[s.Text] != nil {
			t.Errorf("two forms are spelled %s", s.Text)
		}
		known[s.Text] = s
	}
	done := map[string]int{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := &vectorFile{t: t, name: name, known: known, done: done, sets: map[string][][]uint64{}}
		r.run(text)
	}
	for _, s := range list {
		if done[s.Text] < 2 {
			t.Errorf("%s has %d vectors; run go generate ./internal/isa", s.Text, done[s.Text])
		}
	}
	t.Logf("%d spellings", len(list))
}

// TestSpellingsMean checks that the decoder recognises each spelling as itself, and not as another form with the same
// types in another order (set.eq.u16.f16 and set.eq.f16.u16, cvt.rn.bf16.f16 and cvt.rn.f16.bf16).
func TestSpellingsMean(t *testing.T) {
	for _, s := range Spellings() {
		if s.Row.Op == "wmma" {
			continue // the spellings leave the layouts out
		}
		text := strings.TrimSuffix(s.Text, "/3")
		meant, err := theTable().spellings(s.Row.Op, text[len(s.Row.Op):])
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range meant {
			if m.proto.Type != s.proto.Type || m.proto.Type2 != s.proto.Type2 {
				t.Errorf("%s may mean %s", s.Text, m.form.decl.Display(s.Row.Op))
			}
		}
	}
}

// vectorFile reads one file of vectors.
type vectorFile struct {
	t     *testing.T
	name  string
	line  int
	known map[string]*Spelling
	done  map[string]int
	sets  map[string][][]uint64
	in    *bufio.Scanner
}

func (r *vectorFile) fatalf(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s:%d: %s", r.name, r.line, fmt.Sprintf(format, args...))
}

func (r *vectorFile) next() (string, bool) {
	for r.in.Scan() {
		r.line++
		if s := r.in.Text(); !strings.HasPrefix(s, "#") {
			return s, true
		}
	}
	return "", false
}

func (r *vectorFile) run(text []byte) {
	r.in = bufio.NewScanner(bytes.NewReader(text))
	r.in.Buffer(nil, 1<<20)
	line, ok := r.next()
	for ok {
		f := strings.Fields(line)
		switch f[0] {
		case "inputs":
			line, ok = r.inputs(f[1])
		case "op":
			r.op(f)
			line, ok = r.next()
		case "warp":
			line, ok = r.warp(f[1])
		default:
			r.fatalf("unexpected %q", line)
		}
	}
}

func (r *vectorFile) spelling(text string) *Spelling {
	s := r.known[text]
	if s == nil {
		r.fatalf("%s is in no row of the table; run go generate ./internal/isa", text)
	}
	return s
}

func (r *vectorFile) inputs(name string) (string, bool) {
	for {
		line, ok := r.next()
		if !ok || strings.Contains(line, "op") || strings.HasPrefix(line, "inputs") {
			return line, ok
		}
		r.sets[name] = append(r.sets[name], r.values(strings.Fields(line)))
	}
}

func (r *vectorFile) values(words []string) []uint64 {
	vs := make([]uint64, len(words))
	for i, w := range words {
		v, err := strconv.ParseUint(w, 16, 64)
		if err != nil {
			r.fatalf("%v", err)
		}
		vs[i] = v
	}
	return vs
}

// op runs `op SPELLING INPUTS [ulp N]` with its results on the next line.
func (r *vectorFile) op(f []string) {
	s := r.spelling(f[1])
	ulp := 0.0
	if len(f) == 5 {
		ulp, _ = strconv.ParseFloat(f[4], 64)
	}
	if ulp != s.Form.Ulp {
		r.fatalf("%s has a tolerance of %v ulp, the vectors %v", s.Text, s.Form.Ulp, ulp)
	}
	line, _ := r.next()
	results := strings.Fields(line)
	sets := r.sets[f[2]]
	if len(results) != len(sets) {
		r.fatalf("%d results for %d inputs", len(results), len(sets))
	}
	for i, in := range sets {
		want := r.values(strings.Split(results[i], ","))
		got := evaluate(s, in)
		for k := range want {
			if !near(got[k], want[k], s, ulp) {
				r.t.Errorf("%s:%d: %s %x: result %d is %x, want %x", r.name, r.line, s.Text, in, k, got[k], want[k])
			}
		}
	}
	r.done[s.Text] += len(sets)
}

// evaluate applies a spelling; for an atomic the first input is the old value.
func evaluate(s *Spelling, in []uint64) []uint64 {
	inst := s.Inst()
	if s.Row.Class == Atomic {
		var bc [2]uint64
		copy(bc[:], in[1:])
		return []uint64{inst.RMW(&inst, in[0], bc[0], bc[1])}
	}
	var a Args
	copy(a.S[:], in)
	for i := range a.D {
		a.D[i] = 0xdead
	}
	inst.Eval(&inst, &a)
	return a.D[:]
}

// near compares a result. For approximate forms there is a tolerance in units in the last place.
func near(got, want uint64, s *Spelling, ulp float64) bool {
	if got == want || ulp == 0 {
		return got == want
	}
	f, t := formatOf(s.proto.Type), s.proto.Type
	if t == F16x2 || t == BF16x2 {
		return f.near(got&0xffff, want&0xffff, ulp) && f.near(got>>16, want>>16, ulp)
	}
	if t == F64 && s.Has("ftz") { // the upper halves
		return got&0xffffffff == 0 && f.near(got, want, ulp*(1<<32))
	}
	return f.near(got, want, ulp)
}

func (f *format) near(got, want uint64, ulp float64) bool {
	if got == want {
		return true
	}
	finite := func(x uint64) bool { return x&(f.sign()-1) < f.inf() }
	if !finite(got) || !finite(want) || got&f.sign() != want&f.sign() {
		return false
	}
	d := int64(got) - int64(want)
	return float64(max(d, -d)) <= ulp
}

// warp runs the cases of a warp instruction.
func (r *vectorFile) warp(text string) (string, bool) {
	s := r.spelling(text)
	var w WarpArgs
	src, dst := 0, 0
	ran := false
	for {
		line, ok := r.next()
		f := strings.Fields(line)
		switch {
		case ok && f[0] == "mask":
			w = WarpArgs{Mask: uint32(r.values(f[1:])[0])}
			src, dst, ran = 0, 0, false
			r.done[text]++
		case ok && f[0] == "src":
			r.lanes(f[1:], 0xffffffff, func(l int, v uint64) { w.S[src][l] = v })
			src++
		case ok && f[0] == "dst":
			if !ran {
				inst := s.Inst()
				inst.Lanes(&inst, &w)
				ran = true
			}
			r.lanes(f[1:], w.Mask, func(l int, v uint64) {
				if w.D[dst][l] != v {
					r.t.Errorf("%s:%d: %s mask %x: result %d of lane %d is %x, want %x", r.name, r.line, text, w.Mask, dst, l, w.D[dst][l], v)
				}
			})
			dst++
		default:
			return line, ok
		}
	}
}

// lanes spreads runs of values over the lanes of a mask.
func (r *vectorFile) lanes(words []string, mask uint32, put func(l int, v uint64)) {
	for _, word := range words {
		v, times, _ := strings.Cut(word, "*")
		n := 1
		if times != "" {
			n, _ = strconv.Atoi(times)
		}
		for range n {
			put(bits.TrailingZeros32(mask), r.values([]string{v})[0])
			mask &= mask - 1
		}
	}
	if mask != 0 {
		r.fatalf("values for some lanes are missing")
	}
}
