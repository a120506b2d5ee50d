package flow

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// code returns the flow of kernel k, or of a function k, with a body, and the instructions that are followed by "//
// NAME", by NAME.
func code(t *testing.T, body string) (*Code, map[string]int) {
	t.Helper()
	head := ".visible .entry k(.param .u64 out, .param .u32 n) {"
	if strings.HasPrefix(body, "func") {
		head, body = ".func k(.param .u32 n) {", body[len("func"):]
	}
	text := `.version 8.0
.target sm_80
.address_size 64
.func sync() { bar.sync 0; ret; }
.func maybe(.reg .b32 %x) { .reg .pred %p; setp.eq.u32 %p, %x, 0; @%p bra DONE; bar.sync 0; DONE: ret; }
.func twice(.reg .b32 %x) { call sync; call maybe, (%x); ret; }
.func recurse(.reg .b32 %x) { call recurse, (%x); ret; }
` + head + `
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>;
` + body + "\n}\n"
	m, err := ptx.Parse("k.ptx", text)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := isa.Decode(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range mod.Funcs {
		if f.Name != "k" {
			continue
		}
		if f.Err != nil {
			t.Fatal(f.Err)
		}
		c, named := Of(f), map[string]int{}
		for i, line := range strings.Split(text, "\n") {
			if _, name, ok := strings.Cut(line, "// "); ok {
				named[name] = c.At(i + 1)
			}
		}
		return c, named
	}
	t.Fatal("there is no kernel")
	return nil, nil
}

// shapes are kernels in which p and q race, and the named instructions before which a barrier orders the two.
var shapes = []struct{ name, body, points string }{
	{"straight", `
  st.shared.u32 [0], %r1; // p
  mov.u32 %r2, 1; // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a q"},
	{"a barrier between", `
  st.shared.u32 [0], %r1; // p
  bar.sync 0; // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, ""},
	{"a barrier of some threads between", `
  st.shared.u32 [0], %r1; // p
  bar.sync 0, 64; // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a q"},
	{"a guarded barrier between", `
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 bar.sync 0; // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a q"},
	{"a call of a barrier between", `
  st.shared.u32 [0], %r1; // p
  call sync; // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, ""},
	{"a call that may be a barrier", `
  st.shared.u32 [0], %r1; // p
  call maybe, (%r1); // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a q"},
	{"a call of a call of a barrier between", `
  st.shared.u32 [0], %r1; // p
  call twice, (%r1); // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, ""},
	{"a call of a recursion between", `
  st.shared.u32 [0], %r1; // p
  call recurse, (%r1); // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a q"},
	{"the later one of some threads", `
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 bra NO; // a
  mov.u32 %r2, 1; // b
  ld.shared.u32 %r3, [0]; // q
NO:
  st.global.u32 [%rd1], %r1; // c
  ret;`, "a"},
	{"the later one of some blocks", `
  mov.u32 %r1, %ctaid.x;
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 bra NO; // a
  mov.u32 %r2, 1; // b
  ld.shared.u32 %r3, [0]; // q
NO:
  st.global.u32 [%rd1], %r1; // c
  ret;`, "a b q"},
	{"two branches", `
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra OTHER; // a
  st.shared.u32 [0], %r1; // p
  bra END;
OTHER:
  ld.shared.u32 %r3, [0]; // q
END:
  st.global.u32 [%rd1], %r1;
  ret;`, ""},
	{"a way past a", `
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 bra PAST; // a
  mov.u32 %r2, 1; // b
PAST:
  mov.u32 %r2, 2; // c
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a c q"},
	{"between turns of a loop", `
  ld.param.u32 %r1, [n];
LOOP:
  ld.shared.u32 %r3, [0]; // q
  bar.sync 0; // a
  st.shared.u32 [0], %r1; // p
  sub.u32 %r1, %r1, 1; // b
  setp.ne.u32 %p1, %r1, 0; // c
  @%p1 bra LOOP; // d
  ret;`, "b c d q"},
	{"a loop that threads leave by themselves", `
  mov.u32 %r1, %tid.x;
LOOP:
  ld.shared.u32 %r3, [0]; // q
  bar.sync 0; // a
  st.shared.u32 [0], %r1; // p
  sub.u32 %r1, %r1, 1; // b
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra LOOP; // c
  st.global.u32 [%rd1], %r1;
  ret;`, ""},
	{"a loop that lacks two", `
  ld.param.u32 %r1, [n];
LOOP:
  ld.shared.u32 %r3, [0]; // q
  st.shared.u32 [0], %r1; // p
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra LOOP;
  ret;`, ""},
	{"one instruction in turns of a loop", `
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
LOOP:
  st.shared.u32 [0], %r1; // p q
  sub.u32 %r1, %r1, 1; // a
  setp.ne.u32 %p1, %r1, 0; // b
  @%p1 bra LOOP; // c
  ret;`, "a b c p q"},
	{"after an early return", `
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  st.shared.u32 [0], %r1; // p
  ld.shared.u32 %r3, [0]; // q
DONE:
  ret;`, "q"},
	{"in a function, after a return of some threads", `func
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 bra DONE; // a
  ld.shared.u32 %r3, [0]; // q
DONE:
  ret;`, "a"},
	{"in a function, after a guarded return of some threads", `func
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 ret; // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a"},
	{"in a function, by its parameter", `func
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 bra DONE; // a
  ld.shared.u32 %r3, [0]; // q
DONE:
  st.global.u32 [%rd1], %r1;
  ret;`, "a"},
	{"in a kernel, after a guarded return of some threads", `
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  st.shared.u32 [0], %r1; // p
  @%p1 ret; // a
  ld.shared.u32 %r3, [0]; // q
  ret;`, "a q"},
}

func TestBetween(t *testing.T) {
	for _, s := range shapes {
		c, named := code(t, s.body)
		p, q := named["p"], named["q"]
		if at, ok := named["p q"]; ok {
			p, q = at, at
		}
		for _, pair := range [][2]int{{p, q}, {q, p}} {
			var got []string
			g, ok := c.Between(pair[0], pair[1])
			for name, i := range named {
				if slices.Contains(g.Points, i) {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			if points := strings.Join(got, " "); points != s.points || ok != (points != "") || ok && (g.From != p || g.To != q) {
				t.Errorf("%s: between %v: %+v, %v: before %q, want %q", s.name, pair, g, ok, points, s.points)
			}
		}
	}
}

// TestStored checks that a description that is written and read is the same.
func TestStored(t *testing.T) {
	for _, s := range shapes {
		c, _ := code(t, s.body)
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var d Code
		if err := json.Unmarshal(text, &d); err != nil || !d.Valid() || !reflect.DeepEqual(c, &d) {
			t.Errorf("%s: %s is read as %+v, %v", s.name, text, d, err)
		}
	}
	for _, bad := range []Code{{}, {Lines: []int{1}}, {Lines: []int{1}, Jumps: map[int][]int{0: {1}}},
		{Lines: []int{1}, Jumps: map[int][]int{0: {}, 1: {}}}} {
		if bad.Valid() {
			t.Error(fmt.Sprint(bad) + " is valid")
		}
	}
}

// TestCuts compares with the definition: without a cut, no path leads from p to q.
func TestCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 2000 {
		n := 2 + random.IntN(9)
		c := &Code{Lines: make([]int, n), Jumps: map[int][]int{n - 1: {}}}
		for i := range n {
			for range random.IntN(3) {
				c.Jumps[i] = append(c.Jumps[i], random.IntN(n))
			}
		}
		p, q := random.IntN(n), random.IntN(n)
		var want []int
		for x := range n {
			d := &Code{Lines: c.Lines, Jumps: c.Jumps, Barriers: []int{x}} // which open does not pass
			if c.open(p, q) && (x == q || !d.open(p, q)) {
				want = append(want, x)
			}
		}
		got := c.cuts(p, q)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("from %d to %d of %v: %v, want %v", p, q, c.Jumps, got, want)
		}
		found += len(got)
	}
	if found < 1000 {
		t.Errorf("%d cuts only", found)
	}
}
