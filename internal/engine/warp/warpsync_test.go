package warp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// TestUndefinedShuffle has shuffles read from lanes that do not take part. Bit i of astray is set for lane i if it does
// so. Such a lane gets its own value.
func TestUndefinedShuffle(t *testing.T) {
	const exit = "setp.ge.u32 %p1, %ln, 20;\n\t@%p1 ret;\n\t"
	const part = "setp.lt.u32 %p1, %ln, 16;\n\t@!%p1 bra other;\n\t"
	const apart = part + "shfl.sync.up.b32 %r1, %tx, 1, 0, 0x0000ffff;\n\tbra done;\nother:\n\t"
	for _, c := range []struct {
		name, body string
		block      int
		astray     int // bits of the lanes whose reads are undefined
		message    string
		stands     int
	}{
		{"all", "shfl.sync.bfly.b32 %r1, %tx, 16, 31, -1;", 32, 0, "", 0},
		{"exited", exit + "shfl.sync.bfly.b32 %r1, %tx, 16, 31, -1;", 32, 12, "lane 4 reads lane 20, which has exited, by shfl.sync.bfly.b32 with member mask 0xffffffff", 2},
		{"segment", exit + "shfl.sync.bfly.b32 %r1, %tx, 2, 0x1c1f, -1;", 32, 0, "", 0},
		{"clamped", exit + "shfl.sync.down.b32 %r1, %tx, 16, 19, -1;", 32, 0, "", 0},
		{"clamp up", exit + "shfl.sync.up.b32 %r1, %tx, 3, 0, -1;", 32, 0, "", 0},
		{"fewer threads", "shfl.sync.down.b32 %r1, %tx, 1, 31, -1;", 20, 1, "lane 19 reads lane 20, but the warp has 20 threads, by", 1},
		{"not named", part + "shfl.sync.down.b32 %r1, %tx, 8, 31, 0xffff;\nother:", 32, 8, "lane 8 reads lane 16, which the mask does not name, by shfl.sync.down.b32 with member mask 0xffff:", 1},
		{"width", part + "shfl.sync.down.b32 %r1, %tx, 8, 0x101f, 0xffff;\nother:", 32, 0, "", 0},
		{"lanes", exit + "add.u32 %r2, %ln, 2;\n\tshfl.sync.idx.b32 %r1, %tx, %r2, 31, -1;", 32, 2, "lane 18 reads lane 20, which has exited, by", 2},
		{"own register", exit + "add.u32 %r1, %ln, 2;\n\tshfl.sync.idx.b32 %r1, %tx, %r1, 31, -1;", 32, 2, "lane 18 reads lane 20,", 2},
		{"late", apart + "shfl.sync.idx.b32 %r1, %tx, 3, 31, 0xffff0000;\ndone:", 32, 16, "lane 16 reads lane 3, which the mask does not name", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g := newRig(t, kernel("mov.u32 %r1, %tx;\n\t"+c.body+"\n\tst.global.u32 [%mine], %r1;"))
				out := g.buffer(32)
				if c.astray == 0 {
					g.mustRun(launch{block: c.block, out: out, set: set})
					return
				}
				o := g.run(launch{block: c.block, out: out, set: set})
				f := o.wantFault(t, engine.UndefinedShuffle, c.message)
				if o.err != nil || !f.Warning || f.Count != c.astray || len(f.Stands) != c.stands {
					t.Errorf("ended with %v, %+v", o.err, f)
				}
				reader := f.Stands[0].Thread.X
				if v := g.words(out, 32)[reader]; v != reader {
					t.Errorf("lane %d got %d", reader, v)
				}
			})
		})
	}
}

// TestSkippedByLanes makes lanes wait for others that pass them and exit, or that return.
func TestSkippedByLanes(t *testing.T) {
	const store, skip = "\n\tst.global.u32 [%mine], %tx;", "setp.ge.u32 %p1, %ln, 20;\n\t@%p1 bra over;\n\t"
	for _, c := range []struct {
		name, body, message string
	}{
		{"a vote", skip + "vote.sync.ballot.b32 %r1, %p1, -1;\nover:" + store,
			"lanes 0xfffff of a warp execute vote.sync.ballot.b32 without lanes 0xfff00000, which their mask names: those skipped it and have exited"},
		{"a barrier", skip + "bar.warp.sync -1;\nover:" + store, "execute bar.warp.sync without lanes 0xfff00000"},
		{"lanes of the mask", skip + "vote.sync.ballot.b32 %r1, %p1, 0x3fffff;\nover:" + store, "without lanes 0x300000,"},
		{"others", skip + "vote.sync.ballot.b32 %r1, %p1, 0xfffff;\nover:" + store, ""},
		{"nothing after it", skip + "vote.sync.ballot.b32 %r1, %p1, -1;\nover:", ""},
		{"an early return", "setp.ge.u32 %p1, %ln, 20;\n\t@%p1 ret;\n\tvote.sync.ballot.b32 %r1, %p1, -1;" + store, ""},
		{"the next turn", "mov.u32 %r2, 0;\nloop:\n\tadd.u32 %r2, %r2, 1;\n\tsetp.eq.u32 %p1, %r2, %tx;\n\t@%p1 bra over;\n\tbar.warp.sync -1;\nover:\n\tsetp.lt.u32 %p1, %r2, 32;\n\t@%p1 bra loop;" + store,
			"execute bar.warp.sync without lanes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(c.body))
			o := g.run(launch{block: 32, out: g.buffer(32)})
			if c.message == "" && len(o.faults) == 0 {
				return
			}
			f := o.wantFault(t, engine.WarpDivergence, c.message)
			if o.err != nil || c.message == "" || !f.Warning || len(f.Stands) != 2 || f.Stands[1].Doing != "exited" {
				t.Errorf("ended with %v, %+v", o.err, f)
			}
		})
	}
}

// TestUndefinedShuffleWaits makes the halves of a warp wait for each other at one shuffle that reads from exited lanes.
func TestUndefinedShuffleWaits(t *testing.T) {
	g := newRig(t, kernel(`
	setp.ge.u32 %p1, %ln, 24;
	@%p1 ret;
	and.b32 %r2, %ln, 1;
	setp.eq.u32 %p2, %r2, 0;
	mov.u32 %r3, 0;
again:
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p3, %r3, 9;
	and.pred %p3, %p2, %p3;
	@%p3 bra again;
	mov.u32 %r1, -1;
	shfl.sync.bfly.b32 %r1, %ln, 8, 31, %r1;
	st.global.u32 [%mine], %r1;`))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g.t = t
		out := g.buffer(32)
		o := g.run(launch{out: out, set: set})
		if f := o.wantFault(t, engine.UndefinedShuffle, "lane 16 reads lane 24, which has exited"); f.Count != 8 {
			t.Errorf("count %d", f.Count)
		}
		for i, v := range g.words(out, 24) {
			if want := uint32(i ^ 8); want < 24 && v != want || want >= 24 && v != uint32(i) {
				t.Errorf("lane %d got %d", i, v)
			}
		}
	})
}

// warpLevel has each of the warp-level instructions, with the member mask %r9.
var warpLevel = []string{
	"shfl.sync.idx.b32 %r1, %ln, 0, 31, %r9;",
	"vote.sync.ballot.b32 %r1, %p1, %r9;",
	"match.any.sync.b32 %r1, %ln, %r9;",
	"redux.sync.add.u32 %r1, %ln, %r9;",
	"elect.sync %r1|%p2, %r9;",
	"bar.warp.sync %r9;",
}

func mnemonicOf(inst string) string { return strings.Fields(inst)[0] }

// TestWarpDivergence makes the lower half of a warp wait for the upper half in each warp-level instruction, while the
// upper half waits elsewhere.
func TestWarpDivergence(t *testing.T) {
	elsewhere := append([]string{"bar.sync 0;", "bar.sync 1, 64;", "shfl.sync.up.b32 %r1, %ln, 0, 0, %r9;"}, warpLevel...)
	for i, inst := range warpLevel {
		for k, other := range elsewhere {
			if mnemonicOf(inst) == mnemonicOf(other) || testing.Short() && (i+k)%3 != 0 {
				continue
			}
			t.Run(mnemonicOf(inst)+" "+mnemonicOf(other), func(t *testing.T) {
				g := newRig(t, kernel(fmt.Sprintf(`
	mov.u32 %%r9, -1;
	setp.lt.u32 %%p1, %%ln, 16;
	@%%p1 bra lower;
	%s
	bra done;
lower:
	%s
done:
	st.global.u32 [%%mine], %%r1;`, other, inst)))
				everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
					g.t = t
					o := g.run(launch{block: 64, out: g.buffer(64), set: set})
					f := o.wantFault(t, engine.WarpDivergence, "for others that their member mask names")
					if !errors.Is(o.err, engine.ErrDeadlock) || f.Warning {
						t.Errorf("ended with %v, %+v", o.err, f)
					}
					want := fmt.Sprintf("waits at %s with member mask 0xffffffff for lanes 0xffff0000", mnemonicOf(inst))
					if !strings.Contains(fmt.Sprint(f.Stands), want) {
						t.Errorf("nobody %s: %+v", want, f.Stands)
					}
				})
			})
		}
	}
}

// TestWarpDifferentMasks executes one instruction with masks of which none is complete.
func TestWarpDifferentMasks(t *testing.T) {
	for _, inst := range warpLevel {
		g := newRig(t, kernel(`
	or.b32 %r9, %ln, 0xfffffff0;
	mov.u32 %r8, 1;
	shl.b32 %r8, %r8, %ln;
	or.b32 %r9, %r9, %r8;
	`+inst))
		o := g.run(launch{out: g.buffer(32)})
		if f := o.wantFault(t, engine.WarpDivergence, "with the same mask"); !errors.Is(o.err, engine.ErrDeadlock) || len(f.Stands) < 10 {
			t.Errorf("%s: ended with %v, %+v", inst, o.err, f)
		}
	}
}

// TestWarpNoDivergence checks that no lane waits for exited lanes, and that halves with their own masks continue
// independently.
func TestWarpNoDivergence(t *testing.T) {
	for _, inst := range warpLevel {
		for _, frame := range []string{
			"mov.u32 %%r9, -1;\n\t@%%p1 ret;\n\t%s",
			"selp.b32 %%r9, 0x000001ff, 0xfffffe00, %%p1;\n\t%s",
			"selp.b32 %%r9, 0x000001ff, 0xfffffe00, %%p1;\n\t@%%p1 bra other;\n\t%[1]s\n\tbra done;\nother:\n\tvote.sync.all.pred %%p3, %%p1, %%r9;\n\t%[1]s\ndone:\n",
		} {
			inst := strings.Replace(inst, "%ln, 0, 31", "%ln, %ln, 31", 1) // its own lane
			g := newRig(t, kernel("setp.lt.u32 %p1, %ln, 9;\n\tsetp.eq.u32 %p3, 0, 0;\n\t"+fmt.Sprintf(frame, inst)))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g.t = t
				g.mustRun(launch{block: 64, out: g.buffer(64), set: set})
			})
		}
	}
}

// TestMaskWithoutSomeLanes has half of the lanes execute an instruction outside their mask. Each of these is alone, and
// the others exchange their values.
func TestMaskWithoutSomeLanes(t *testing.T) {
	want := map[string][2]uint32{ // lanes 3 and 20
		"shfl.sync.idx.b32": {0, 20}, "vote.sync.ballot.b32": {0xffff, 1 << 20}, "match.any.sync.b32": {1 << 3, 1 << 20},
		"redux.sync.add.u32": {120, 20}, "elect.sync": {0, 20}, "bar.warp.sync": {7, 7},
	}
	for _, inst := range warpLevel {
		for _, where := range []string{"%s", "@%%p1 bra lower;\n\t%[1]s\n\tbra done;\nlower:\n\t%[1]s\ndone:"} {
			g := newRig(t, kernel("setp.lt.u32 %p1, %ln, 16;\n\tsetp.eq.u32 %p3, 0, 0;\n\tmov.u32 %r1, 7;\n\tmov.u32 %r9, 0xffff;\n\t"+
				fmt.Sprintf(where, strings.Replace(inst, "%p1", "%p3", 1))+"\n\tst.global.u32 [%mine], %r1;"))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				g.t = t
				out := g.buffer(32)
				o := g.run(launch{out: out, set: set})
				f := o.wantFault(t, engine.MemberMask, "lane 16 executes "+mnemonicOf(inst)+" with member mask 0xffff, which does not name the lane")
				if o.err != nil || f.Count != 16 || f.Warning {
					t.Errorf("ended with %v, %+v", o.err, f)
				}
				if w := g.words(out, 32); w[3] != want[mnemonicOf(inst)][0] || w[20] != want[mnemonicOf(inst)][1] {
					t.Errorf("%s: lane 3 got %#x, lane 20 %#x", inst, w[3], w[20])
				}
			})
		}
	}
}

// TestWarpPlaces checks that lanes may arrive at bar.warp.sync at different places, and that other instructions then
// cause one warning, at the first of the places.
func TestWarpPlaces(t *testing.T) {
	for _, inst := range warpLevel {
		g := newRig(t, kernel(fmt.Sprintf(`
	mov.u32 %%r9, -1;
	mov.u32 %%r5, 0;
again:
	xor.b32 %%r6, %%r5, %%ln;
	and.b32 %%r6, %%r6, 1;
	setp.eq.u32 %%p1, %%r6, 0;
	@%%p1 bra other;
	%[1]s
	bra done;
other:
	%[1]s
done:
	add.u32 %%r5, %%r5, 1;
	setp.lt.u32 %%p1, %%r5, 4;
	@%%p1 bra again;`, inst)))
		everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
			g.t = t
			if mnemonicOf(inst) == "bar.warp.sync" {
				g.mustRun(launch{out: g.buffer(32), set: set})
				return
			}
			o := g.run(launch{out: g.buffer(32), set: set})
			f := o.wantFault(t, engine.WarpDivergence, "lanes 0xffffffff of a warp execute one "+mnemonicOf(inst)+" together, but at different places")
			if o.err != nil || !f.Warning || f.Count != 4 || len(f.Stands) != 2 || f.Stands[0].Threads != 16 {
				t.Errorf("ended with %v, %+v", o.err, f)
			}
		})
	}
}

// TestReduxQualifiers checks that instructions that differ in a qualifier do not synchronise.
func TestReduxQualifiers(t *testing.T) {
	for _, pair := range [][2]string{
		{"redux.sync.min.u32 %r1, %ln, -1;", "redux.sync.min.s32 %r1, %ln, -1;"},
		{"redux.sync.min.f32 %f1, %f2, -1;", "redux.sync.min.abs.f32 %f1, %f2, -1;"},
		{"vote.sync.any.pred %p2, %p1, -1;", "vote.sync.all.pred %p2, %p1, -1;"},
		{"match.any.sync.b32 %r1, %ln, -1;", "match.any.sync.b64 %r1, %out, -1;"},
	} {
		g := newRig(t, kernel("mov.f32 %f2, 0f3f800000;\n\tsetp.lt.u32 %p1, %ln, 5;\n\t@%p1 bra other;\n\t"+pair[0]+"\n\tbra done;\nother:\n\t"+pair[1]+"\ndone:"))
		o := g.run(launch{out: g.buffer(32)})
		o.wantFault(t, engine.WarpDivergence, "never execute the same instruction")
	}
}
