package warp

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// box is shared memory of a warp in which element e, of 16 bits, has the value e.
const box = `
	.shared .align 16 .b8 box[1024];
	mad.lo.u32 %r20, %ln, 0x100010, 0x10000;
	mov.u32 %r21, box;
	mad.lo.u32 %r21, %ln, 32, %r21;
	mov.u32 %r22, 0;
fill:
	st.shared.u32 [%r21], %r20;
	add.u32 %r20, %r20, 0x20002;
	add.u32 %r21, %r21, 4;
	add.u32 %r22, %r22, 4;
	setp.lt.u32 %p7, %r22, 32;
	@%p7 bra fill;
	bar.warp.sync -1;
	mov.u32 %r1, 77;
	mov.u32 %r2, 77;
	mov.u32 %r3, 77;
	mov.u32 %r4, 77;
`

// before is code that sets %r7 to a row for each lane. all is code that loads these rows.
const (
	before = "mov.u32 %r6, box; mad.lo.u32 %r7, %ln, 16, %r6;\n"
	all    = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8,%r8,%r8,%r8}, [%r7];\n"
)

// toOut stores %r1 to %r4 of each lane.
const toOut = `
	mul.wide.u32 %rd1, %gid, 16;
	add.u64 %rd1, %rd1, %out;
	st.global.v4.u32 [%rd1], {%r1,%r2,%r3,%r4};
`

// loads are the result registers of the forms of ldmatrix.
var loads = []struct {
	n    int
	text string
}{{1, "x1%s{%%r1}"}, {2, "x2%s{%%r1,%%r2}"}, {4, "x4%s{%%r1,%%r2,%%r3,%%r4}"}}

// TestLoadMatrix loads matrices from rows in order and in other orders, by addresses of all kinds. It compares the
// values of each lane, and the event, with the manual's figure.
func TestLoadMatrix(t *testing.T) {
	for _, rows := range []struct {
		name, index string // of the row that a lane points to
		row         func(lane int) int
	}{
		{"in order", "mov.u32 %r5, %ln;", func(lane int) int { return lane }},
		{"in disorder", "mad.lo.u32 %r5, %ln, 5, 3; and.b32 %r5, %r5, 63;", func(lane int) int { return (5*lane + 3) % 64 }},
		{"one", "mov.u32 %r5, 9;", func(int) int { return 9 }},
	} {
		for _, load := range loads {
			for _, trans := range []string{"", ".trans"} {
				for _, c := range []struct{ mods, address string }{
					{".shared.b16", "[%r7+-16]"}, {".shared::cta.b16", "[%rd6+-16]"}, {".b16", "[%rd7+-16]"},
				} {
					inst := fmt.Sprintf("ldmatrix.sync.aligned.m8n8."+load.text, trans+c.mods+" ") + ", " + c.address + ";"
					if load.n == 2 { // any order of modifiers
						inst = strings.Replace(inst, "m8n8.x2", "x2.m8n8", 1)
					}
					t.Run(rows.name+" "+strings.Fields(inst)[0], func(t *testing.T) {
						g := newRig(t, kernel(box+rows.index+`
	mov.u32 %r6, box;
	mad.lo.u32 %r7, %r5, 16, %r6;
	add.u32 %r7, %r7, 16;
	cvt.u64.u32 %rd6, %r7;
	mul.wide.u32 %rd7, %r5, 16;
	mov.u64 %rd5, box;
	cvta.shared.u64 %rd5, %rd5;
	add.u64 %rd7, %rd5, %rd7;
	add.u64 %rd7, %rd7, 16;
	`+inst+toOut))
						everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
							g.t = t
							out := g.buffer(128)
							read := &reads{}
							g.mustRun(launch{out: out, set: func(l *engine.Launch) {
								set(l)
								l.Sink = read
							}})
							got := g.words(out, 128)
							for lane := range 32 {
								for k := range 4 {
									want := uint32(77)
									if k < load.n {
										at := func(row, col int) uint32 { return uint32(8*rows.row(8*k+row) + col) }
										row, col := lane/4, lane%4*2
										want = at(row, col) | at(row, col+1)<<16
										if trans != "" {
											want = at(col, row) | at(col+1, row)<<16
										}
									}
									if got[4*lane+k] != want {
										t.Fatalf("lane %d, matrix %d: %#x, want %#x", lane, k, got[4*lane+k], want)
									}
								}
							}
							if len(read.list) != 8*load.n {
								t.Fatalf("%d rows are read, want %d", len(read.list), 8*load.n)
							}
							for i, l := range read.list {
								if want := (laneRead{i, event.Shared, event.Weak, uint64(16 * rows.row(i)), 16, 2}); l != want {
									t.Fatalf("lane %d reads %+v, want %+v", i, l, want)
								}
							}
						})
					})
				}
			}
		}
	}
}

// laneRead is a read of a lane according to an event.
type laneRead struct {
	lane    int
	space   event.Space
	order   event.Order
	addr    uint64
	size    uint8
	element uint32
}

// reads records the loads of shared memory.
type reads struct{ list []laneRead }

func (r *reads) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind != event.Load || e.Flags&^(event.FlagScattered|event.FlagRows) != event.FlagRead|event.FlagVector {
			continue
		}
		for m := e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			r.list = append(r.list, laneRead{lane, e.Space, e.Order, b.AddrOf(e, lane), e.Size, e.Aux})
		}
	}
}

// TestLoadMatrixEvents checks that only the lanes that give addresses read, also in the second warp.
func TestLoadMatrixEvents(t *testing.T) {
	g := newRig(t, kernel(`
	.shared .align 16 .b8 box[1024];
	mov.u32 %r6, box;
	mad.lo.u32 %r7, %tx, 16, %r6;
	ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r7,%r8}, [%r7];
	ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 %r1, [box+32];
	st.global.u32 [%mine], %r8;`))
	out := g.buffer(64)
	o := g.mustRun(launch{block: 64, out: out, set: func(l *engine.Launch) { l.Needs = event.NeedShared }})
	o.wantEvents(t, out, `
		load w0 0000ffff shared r16 0+16
		load w0 000000ff shared r16 20+0
		load w1 0000ffff shared r16 200+16
		load w1 000000ff shared r16 20+0`)
}

// TestLoadMatrixFaults gives lanes invalid addresses. They are errors only if the lane's address is used.
func TestLoadMatrixFaults(t *testing.T) {
	const x2 = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1,%r2}, "
	for _, c := range []struct {
		name, body string
		kind       engine.FaultKind
		text       string
		lane       uint32
		count      int
	}{
		{"misaligned", "setp.eq.u32 %p1, %ln, 5; @%p1 add.u32 %r7, %r7, 8;" + x2 + "[%r7];", engine.Misaligned,
			"reads 16 bytes at offset 0x58 of shared memory (box + 88), which is not a multiple of 16", 5, 1},
		{"all misaligned", all + x2 + "[%r7+4];", engine.Misaligned, "offset 0x4 of shared memory (box + 4)", 0, 16},
		{"past the end", "setp.ge.u32 %p1, %ln, 14; @%p1 add.u32 %r7, %r7, 0x400;" + x2 + "[%r7];", engine.OutOfBounds,
			"reads 16 bytes at offset 0x4e0 of shared memory, of which the block has 1024 bytes: 224 bytes past the end", 14, 2},
		{"irrelevant", "setp.ge.u32 %p1, %ln, 16; @%p1 add.u32 %r7, %r7, 0x7fffff1;" + x2 + "[%r7];", "", "", 0, 0},
		{"global", "setp.ge.u32 %p1, %ln, 15; cvt.u64.u32 %rd5, %r7; cvta.shared.u64 %rd5, %rd5; @%p1 mov.u64 %rd5, %out;" +
			"ldmatrix.sync.aligned.m8n8.x2.b16 {%r1,%r2}, [%rd5];", engine.OutOfBounds,
			"lane 15 gives address 0x200000000000 to ldmatrix.sync.aligned.m8n8.x2.b16, which is not one of shared memory", 15, 1},
		{"all global", all + "ldmatrix.sync.aligned.m8n8.x2.b16 {%r1,%r2}, [%out];", engine.OutOfBounds, "lane 0 gives address 0x200000000000 to", 0, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g := newRig(t, kernel(box+before+c.body+toOut))
				out := g.buffer(128)
				if c.kind == "" {
					g.mustRun(launch{out: out, set: set})
					return
				}
				o := g.run(launch{out: out, set: set})
				f := o.wantFault(t, c.kind, c.text)
				if o.err != nil || f.Count != c.count || o.stats.Fault != c.kind || len(f.Stands) != 1 || f.Stands[0].Thread.X != c.lane || f.Stands[0].Doing != "reads" {
					t.Errorf("ended with %v, %+v", o.err, f)
				}
				for lane := range 32 { // the row of a faulting lane is zero
					for k := range 2 {
						row, got := 8*k+lane/4, g.words(out, 128)[4*lane+k]
						want := uint32(0)
						if good := uint32(row) < c.lane || uint32(row) >= c.lane+uint32(c.count); good {
							want = uint32(8*row+lane%4*2)*0x10001 + 0x10000
						}
						if got != want {
							t.Fatalf("lane %d, matrix %d: %#x, want %#x", lane, k, got, want)
						}
					}
				}
			})
		})
	}
}

// TestLoadMatrixMissingLanes executes ldmatrix in warps without all their lanes.
func TestLoadMatrixMissingLanes(t *testing.T) {
	const x1 = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r7];\n"
	const half = "setp.lt.u32 %p1, %ln, 16;\n"
	for _, c := range []struct {
		name, body string
		block      int
		text       string
		warning    bool
		err        error
		stands     string // what the first two lanes do
	}{
		{"exited", "setp.ge.u32 %p1, %ln, 20; @%p1 ret;\n" + x1, 32,
			"ldmatrix.sync.aligned.m8n8.x1.shared.b16 needs all 32 lanes of a warp, but lanes 0xfff00000 have exited: its result is undefined",
			false, nil, "executes ldmatrix.sync.aligned.m8n8.x1.shared.b16, exited"},
		{"exits late", half + "@%p1 bra now;\nbar.warp.sync 0xffff0000;\nret;\nnow:\n" + x1, 32,
			"but lanes 0xffff0000 have exited", false, nil, "executes ldmatrix.sync.aligned.m8n8.x1.shared.b16, exited"},
		{"addresses missing", all + "setp.lt.u32 %p1, %ln, 4; @%p1 ret;\n" + x1, 32, "but lanes 0xf have exited", false, nil, ""},
		{"few threads", x1, 20, "needs all 32 lanes of a warp, but the warp has 20 threads", false, nil, "executes ldmatrix.sync.aligned.m8n8.x1.shared.b16"},
		{"guarded", half + "@%p1 " + x1 + "bar.sync 0;\n", 64, "lanes of a warp wait for others that their member mask names", false, engine.ErrDeadlock, ""},
		{"elsewhere", half + "@%p1 bra other;\n" + x1 + "bra done;\nother:\nbar.warp.sync -1;\ndone:\n", 32, "never execute the same instruction", false, engine.ErrDeadlock, ""},
		{"another form", half + "@%p1 bra other;\n" + x1 + "bra done;\nother:\n" + strings.Replace(x1, "x1", "x1.trans", 1) + "done:\n", 32,
			"never execute the same instruction", false, engine.ErrDeadlock, ""},
		{"apart", half + "@%p1 bra other;\n" + x1 + "bra done;\nother:\n" + x1 + "done:\n", 32,
			"lanes 0xffffffff of a warp execute one ldmatrix.sync.aligned.m8n8.x1.shared.b16 together, but at different places", true, nil, ""},
		{"at different times", "setp.eq.u32 %p1, %ln, 3;\n@!%p1 bra late;\nmov.u32 %r3, 0;\nagain: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 50; @%p1 bra again;\nlate:\n" + x1,
			32, "", false, nil, ""},
		{"guarded by all", "setp.lt.u32 %p1, %ln, 32;\n@%p1 " + x1, 32, "", false, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g := newRig(t, kernel(box+before+c.body+toOut))
				l := launch{block: c.block, out: g.buffer(256), set: set}
				var o *outcome
				if c.text == "" {
					o = g.mustRun(l)
				} else {
					o = g.run(l)
					f := o.wantFault(t, engine.WarpDivergence, c.text)
					if !errors.Is(o.err, c.err) || f.Warning != c.warning {
						t.Errorf("ended with %v, %+v", o.err, f)
					}
					var doing []string
					for _, s := range f.Stands {
						doing = append(doing, s.Doing)
					}
					if got := strings.Join(doing, ", "); c.stands != "" && got != c.stands {
						t.Errorf("stands: %s, want %s", got, c.stands)
					}
				}
				if o.err != nil {
					return
				}
				lost := uint32(0) // rows without an address are zero
				if c.name == "addresses missing" {
					lost = 4
				}
				for lane := lost; lane < 16; lane++ {
					want := (8*(lane/4)+lane%4*2)*0x10001 + 0x10000
					if lane/4 < lost {
						want = 0
					}
					if got := g.words(l.out, 64)[4*lane]; got != want {
						t.Errorf("lane %d got %#x, want %#x", lane, got, want)
					}
				}
			})
		})
	}
}

// TestMatricesNoDiff compares the engines on matrices of all forms, from any rows, between stores to these rows, in
// converged and diverged warps.
func TestMatricesNoDiff(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 29))
		pick := func(words ...string) string { return words[r.IntN(len(words))] }
		reg := func() string { return fmt.Sprintf("%%q%d", r.IntN(6)) }
		var b strings.Builder
		b.WriteString("\t.shared .align 16 .b8 box[2048];\n\t.reg .b32 %q<6>;\n\tmov.u32 %q0, %gid; mul.lo.u32 %q1, %gid, 2654435761; mov.u32 %q2, %n; add.u32 %q3, %n, 3; not.b32 %q4, %tx; shr.u32 %q5, %q1, 7;\n")
		b.WriteString("\tsetp.lt.u32 %p7, %ln, 20; setp.lt.u32 %p6, %ln, 32; mov.u32 %r6, box; and.b32 %r7, %tx, 32; mad.lo.u32 %r6, %r7, 32, %r6; cvt.u64.u32 %rd6, %r6; mov.u64 %rd7, box; cvta.shared.u64 %rd8, %rd7; sub.u64 %rd8, %rd8, %rd7;\n")
		for i := range 12 {
			if r.IntN(2) == 0 {
				fmt.Fprintf(&b, "\tmad.lo.u32 %%r5, %%ln, 4, %%r6; st.shared.u32 [%%r5+%d], %s; bar.warp.sync -1;\n", 128*r.IntN(8), reg())
				continue
			}
			row := pick("and.b32 %r5, "+reg()+", 1008;", "shl.b32 %r5, %ln, 4;", "shl.b32 %r5, %ln, 5; and.b32 %r5, %r5, 1008;", "mov.u32 %r5, 48;", "and.b32 %r5, %n, 1008;")
			space, at := ".shared", "add.u32 %r5, %r5, %r6;"
			address := "[%r5]"
			if r.IntN(3) == 0 {
				space, at, address = "", "cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd6; add.u64 %rd5, %rd5, %rd8;", "[%rd5]"
			}
			regs := []string{"%q0", "%q1", "%q2", "%q3", "%q4", "%q5", "_"}
			r.Shuffle(len(regs), func(i, k int) { regs[i], regs[k] = regs[k], regs[i] })
			n := 1 << r.IntN(3)
			late := r.IntN(3) == 0
			fmt.Fprintf(&b, "\t%s %s\n", row, at)
			if late {
				fmt.Fprintf(&b, "\t@%%p7 bra L%d; add.u32 %%q5, %%q5, 1;\nL%d:\n", i, i)
			}
			if r.IntN(3) == 0 {
				from := strings.ReplaceAll(strings.Join(regs[:n], ","), "_", "%q1")
				fmt.Fprintf(&b, "\t%sstmatrix.sync.aligned.m8n8.x%d%s%s.b16 %s, {%s}; bar.warp.sync -1;\n", pick("", "", "@%p6 "), n, pick("", ".trans"), space, address, from)
				continue
			}
			fmt.Fprintf(&b, "\t%sldmatrix.sync.aligned.m8n8.x%d%s%s.b16 {%s}, %s; bar.warp.sync -1;\n", pick("", "", "@%p6 "), n, pick("", ".trans"), space, strings.Join(regs[:n], ","), address)
		}
		b.WriteString("\tmul.wide.u32 %rd1, %gid, 32; add.u64 %rd1, %rd1, %out;\n")
		for i := range 6 {
			fmt.Fprintf(&b, "\tst.global.u32 [%%rd1+%d], %%q%d;\n", 4*i, i)
		}
		g := newRig(t, kernel(b.String()))
		d := &diff{t: t}
		if _, err := d.Run(t.Context(), g.prepare(launch{grid: 2, block: 64, out: g.buffer(128 * 8), n: uint32(r.IntN(4000))})); err != nil || d.strict == 0 || t.Failed() {
			t.Fatalf("seed %d: %v\n%s", seed, err, b.String())
		}
	}
}
