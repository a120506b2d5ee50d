package opt

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/ptx"
)

// graph makes blocks without instructions. edges are pairs of IDs.
func graph(n int, edges [][2]int) *Func {
	f := &Func{}
	for i := range n {
		f.Blocks = append(f.Blocks, &Block{ID: i})
	}
	for _, e := range edges {
		a, b := f.Blocks[e[0]], f.Blocks[e[1]]
		a.Succs, b.Preds = append(a.Succs, b), append(b.Preds, a)
	}
	return f
}

func joinIDs(f *Func, b, stop int) []int {
	var ids []int
	for _, x := range f.joins(f.Blocks[b], stop) {
		ids = append(ids, x.ID)
	}
	slices.Sort(ids)
	return ids
}

// TestJoins checks where lanes that diverge at a branch reconverge.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int
		edges   [][2]int
		b, stop int
		want    []int
	}{
		{"if", 3, [][2]int{{0, 1}, {0, 2}, {1, 2}}, 0, 2, []int{2}},
		{"if else", 4, [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 0, 3, []int{3}},
		{"both edges to one block", 2, [][2]int{{0, 1}, {0, 1}}, 0, 1, []int{1}},
		{"while: the header is no join", 4, [][2]int{{0, 1}, {1, 2}, {1, 3}, {2, 1}}, 1, 3, nil},
		{"do while", 3, [][2]int{{0, 1}, {1, 1}, {1, 2}}, 1, 2, nil},
		{"continue: the header is a join, and the latch", 5, [][2]int{{0, 1}, {1, 2}, {1, 4}, {2, 3}, {2, 1}, {3, 1}}, 2, 1, []int{1}},
		{"break: what follows the loop is one", 5, [][2]int{{0, 1}, {1, 2}, {1, 4}, {2, 3}, {2, 4}, {3, 1}}, 2, 4, []int{4}},
	} {
		if got := joinIDs(graph(c.n, c.edges), c.b, c.stop); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestJoinsDisjoint compares joins with their definition: the ends of two paths by different edges that share no block
// before. In graphs without loops they are equal; in others there may be more.
func TestJoinsDisjoint(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		n, loops := 3+r.IntN(5), r.IntN(2) == 0
		var edges [][2]int
		for i := range n {
			for range 1 + r.IntN(2) {
				switch {
				case loops && r.IntN(3) == 0:
					edges = append(edges, [2]int{i, r.IntN(n)})
				case i+1 < n:
					edges = append(edges, [2]int{i, i + 1 + r.IntN(n-i-1)})
				}
			}
		}
		f := graph(n, edges)
		b, stop := r.IntN(n), PostDominators(f)
		got := joinIDs(f, b, stop[b])
		for x := range n {
			want, have := disjoint(f, f.Blocks[b], x, stop[b]), slices.Contains(got, x)
			if want && !have || have && !want && !loops {
				t.Fatalf("%v from %d to %d: %v; block %d joined %v", edges, b, stop[b], got, x, want)
			}
		}
	}
}

// disjoint reports whether two paths from b to block x, by different edges, share only their ends.
func disjoint(f *Func, b *Block, x, stop int) bool {
	var ways func(at *Block, passed uint) []uint // sets of blocks before x
	ways = func(at *Block, passed uint) []uint {
		var list []uint
		if at.ID == x {
			list = append(list, passed)
		}
		if at == b || at.ID == stop || at.ID == x || passed>>at.ID&1 != 0 {
			return list
		}
		for _, s := range at.Succs {
			list = append(list, ways(s, passed|1<<at.ID)...)
		}
		return list
	}
	for i, s := range b.Succs {
		for _, u := range b.Succs[i+1:] {
			for _, p := range ways(s, 0) {
				for _, q := range ways(u, 0) {
					if p&q == 0 {
						return true
					}
				}
			}
		}
	}
	return false
}

// TestShapes checks how stored values vary between lanes: u is the same in all lanes, aN differs by N between adjacent
// lanes, and "" is any variation.
func TestShapes(t *testing.T) {
	src := `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
	.reg .pred %q<4>; .reg .b32 %r<40>; .reg .b64 %d<20>; .reg .f32 %f<4>;
	.local .align 4 .b32 own[32];
	ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
`
	cases := []struct{ code, want string }{
		{"mov.u32 %r0, %tid.x;", "a1"}, {"mov.u32 %r0, %r1;", "u"}, {"mov.u32 %r0, %laneid;", "a1"}, {"mov.u32 %r0, %ctaid.x;", "u"}, {"mov.u32 %r0, %lanemask_lt;", ""},
		{"add.u32 %r0, %r2, %r1;", "a1"}, {"sub.u32 %r0, %r1, %r2;", "a-1"}, {"sub.u32 %r0, %r2, %r2;", "u"}, {"mul.lo.u32 %r0, %r2, 12;", "a12"}, {"shl.b32 %r0, %r2, 3;", "a8"},
		{"shl.b32 %r0, %r2, 31;", "a2147483648"}, {"mul.lo.u32 %r3, %r2, 2097152; add.u32 %r3, %r3, %r1; mul.lo.u32 %r0, %r3, 3;", "a6291456"}, {"shl.b32 %r3, %r2, 21; add.u32 %r3, %r3, %r1; shl.b32 %r0, %r3, 2;", "a8388608"},
		{"mul.lo.u32 %r0, %r2, -3;", "a-3"}, {"mul.lo.u32 %r0, %r2, %r1;", ""}, {"mul.lo.u32 %r0, %r1, %r1;", "u"}, {"shl.b32 %r0, %r2, %r1;", ""}, {"shr.u32 %r0, %r2, 1;", ""}, {"shr.u32 %r0, %r1, 1;", "u"},
		{"and.b32 %r0, %r2, 3;", ""}, {"and.b32 %r0, %r1, 3;", "u"}, {"div.u32 %r0, %r1, 7;", "u"}, {"div.u32 %r0, %r2, 7;", ""}, {"not.b32 %r0, %r1;", "u"},
		{"cvt.u64.u32 %d2, %r2; st.global.u64 [%d1], %d2;", "a1"}, {"add.s32 %r3, %r2, 5; mul.wide.s32 %d2, %r3, 4; st.global.u64 [%d1], %d2;", "a4"}, {"mul.wide.u32 %d2, %r2, 6; st.global.u64 [%d1], %d2;", "a6"},
		{"sub.u32 %r3, %r1, %r2; mul.wide.s32 %d2, %r3, 4; st.global.u64 [%d1], %d2;", "a-4"}, {"sub.u32 %r3, %r1, %r2; cvt.s64.s32 %d2, %r3; st.global.u64 [%d1], %d2;", "a-1"},
		{"mul.wide.u32 %d2, %r1, 6; st.global.u64 [%d1], %d2;", "u"}, {"mul.wide.u32 %d2, %r2, %r1; st.global.u64 [%d1], %d2;", ""}, {"cvt.u32.u16 %r0, %r2;", ""},
		{"mul.lo.u32 %r3, %r2, 2097152; cvt.u64.u32 %d2, %r3; st.global.u64 [%d1], %d2;", ""},
		{"ld.global.u32 %r0, [%d1];", "u"}, {"mul.wide.u32 %d2, %r2, 4; add.u64 %d2, %d2, %d1; ld.global.u32 %r0, [%d2];", ""}, {"setp.lt.u32 %q1, %r2, 9; @%q1 ld.global.u32 %r0, [%d1];", ""},
		{"mov.u64 %d2, own; add.u64 %d2, %d2, %d1; ld.local.u32 %r0, [%d2];", ""}, {"ld.u32 %r0, [%d1];", "u"}, {"ld.volatile.global.u32 %r0, [%d1];", "u"}, {"atom.global.add.u32 %r0, [%d1], 1;", ""},
		{"setp.lt.u32 %q1, %r1, 9; selp.u32 %r0, 5, %r1, %q1;", "u"}, {"setp.lt.u32 %q1, %r1, 9; add.u32 %r3, %r2, 5; selp.u32 %r0, %r2, %r3, %q1;", "a1"}, {"setp.lt.u32 %q1, %r2, 9; selp.u32 %r0, 5, 7, %q1;", ""}, {"setp.lt.u32 %q1, %r1, 9; selp.u32 %r0, %r2, %r1, %q1;", ""},
		{"mov.u32 %r0, 1; setp.lt.u32 %q1, %r2, 9; @%q1 bra L#; mov.u32 %r0, 2; L#:", ""}, {"mov.u32 %r0, 1; setp.lt.u32 %q1, %r1, 9; @%q1 bra L#; mov.u32 %r0, 2; L#:", "u"},
		{"mov.u32 %r0, 0; L#: add.u32 %r0, %r0, 1; setp.lt.u32 %q1, %r0, %r1; @%q1 bra L#;", "u"}, {"mov.u32 %r0, 0; L#: add.u32 %r0, %r0, 1; setp.lt.u32 %q1, %r0, %r2; @%q1 bra L#;", ""},
		{"mov.u32 %r0, %r2; mov.u32 %r4, 0; L#: add.u32 %r0, %r0, 4; add.u32 %r4, %r4, 1; setp.lt.u32 %q1, %r4, %r1; @%q1 bra L#;", "a1"}, {"mov.u32 %r0, %clock;", "u"},
		{"shfl.sync.idx.b32 %r0, %r2, 0, 31, -1;", ""}, {"cvt.rn.f32.u32 %f1, %r1; mov.b32 %r0, %f1;", "u"}, {"cvt.rn.f32.u32 %f1, %r2; mov.b32 %r0, %f1;", ""},
	}
	for i, c := range cases {
		code := c.code
		if !strings.Contains(code, "st.global") {
			code += " st.global.u32 [%d1], %r0;"
		}
		src := src + strings.ReplaceAll(code, "#", "1") + " ret; }\n"
		tree, err := ptx.Parse("k.ptx", src)
		if err != nil {
			t.Fatal(i, err)
		}
		m, err := isa.Decode(tree)
		if err != nil || m.Kernels()[0].Err != nil {
			t.Fatal(i, err, m.Kernels()[0].Err)
		}
		k := m.Kernels()[0]
		fs, err := Build(k, Env{Block: [3]uint32{64, 1, 1}, Shared: m.SharedLayout(k)})
		if err != nil {
			t.Fatal(err)
		}
		optimiseVerified(t, "k.ptx", fs[0])
		for _, b := range fs[0].Blocks {
			for _, in := range b.Instrs {
				if in.Op != Store {
					continue
				}
				if got := fs[0].Values[in.Args[1]].Shape.String(); got != c.want {
					t.Errorf("%s varies as %q, want %q\n%v", c.code, got, c.want, fs[0])
				}
			}
		}
	}
}
