package verify

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// spinProgram writes a program of at most size operations, a third of which spin.
func spinProgram(r *rand.Rand, size int) string {
	var b strings.Builder
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	threads := 2 + r.IntN(3)
	sizes := make([]int, threads)
	for range size {
		sizes[r.IntN(threads)]++
	}
	barriers := r.IntN(4) == 0
	b.WriteString("C spin\nint x, y;\n")
	for t := range threads {
		fmt.Fprintf(&b, "thread T%d @ cta %d {\n", t, r.IntN(2))
		for i := range sizes[t] {
			v, n, scope := pick("x", "x", "y"), r.IntN(3), pick("gpu", "gpu", "cta")
			switch r.IntN(15) {
			case 0, 1:
				fmt.Fprintf(&b, "  while (load(%s, %s, %s) %s %d) ;\n", v, pick("rlx", "acq", "sc"), scope, pick("==", "!="), n)
			case 2:
				fmt.Fprintf(&b, "  while (cas(%s, %d, %d, %s, %s) != %[2]d) ;\n", v, n, r.IntN(3), pick("rlx", "acq"), scope)
			case 3:
				fmt.Fprintf(&b, "  while (%s, %s, %s) != %d) ;\n", pick("exchange("+v+", 1", "fetch_add("+v+", 0", "fetch_max("+v+", 1"), pick("rlx", "acq", "sc"), scope, r.IntN(2))
			case 4:
				fmt.Fprintf(&b, "  while (load(x, acq, %s) == load(y, rlx, %[1]s)) ;\n", scope)
			case 5:
				fmt.Fprintf(&b, "  do { while (load(%s, acq, %s) != 0) ; } while (cas(%[1]s, 0, 1, acq, %[2]s) != 0);\n", v, scope)
			case 6, 7, 8:
				fmt.Fprintf(&b, "  store(%s, %d, %s, %s);\n", v, n, pick("rlx", "rel", "sc"), scope)
			case 9:
				fmt.Fprintf(&b, "  int r%d = load(%s, %s, %s); if (r%[1]d == %[5]d) store(%[6]s, %d, rel, gpu);\n", i, v, pick("rlx", "acq"), scope, n, pick("x", "y"), r.IntN(3))
			case 10:
				fmt.Fprintf(&b, "  int r%d = fetch_add(%s, 1, %s, %s); assert(r%[1]d != 2);\n", i, v, pick("rlx", "acqrel"), scope)
			case 11:
				fmt.Fprintf(&b, "  int r%d = cas(%s, %d, %d, %s, %s);\n", i, v, n, r.IntN(3), pick("rlx", "acqrel"), scope)
			case 12:
				fmt.Fprintf(&b, "  %s = %d;\n", v, n)
			case 13:
				fmt.Fprintf(&b, "  int r%d = %s;\n", i, v)
			default:
				if barriers {
					b.WriteString("  barrier();\n")
				} else {
					fmt.Fprintf(&b, "  fence(%s, %s);\n", pick("acqrel", "sc"), scope)
				}
			}
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// searched returns the executions of a test that are not bounded, with their endings, and the errors.
func searched(t *testing.T, src string, o explore.Options) (map[string]int, map[string]bool, explore.Result) {
	t.Helper()
	test, err := litmus.Parse("random.litmus", src, litmus.Options{Unroll: 4})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	seen, errors := map[string]int{}, map[string]bool{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaves := 0
	o.Races = true
	o.Leaf = func(x explore.Execution, end explore.Ending) {
		if leaves++; leaves > 2000 {
			cancel()
			return
		}
		if end == explore.Blocked {
			return
		}
		id := fmt.Sprint(end, identity(x, test.Locations()))
		if seen[id]++; seen[id] > 1 && !o.Ordered {
			t.Fatalf("the search reaches an execution twice:\n%s\n%s", id, src)
		}
	}
	o.Found = func(e explore.Error, x explore.Execution) bool {
		pos := []int32{e.Pos, e.OtherPos}
		if e.A >= 0 && e.B >= 0 {
			pos = []int32{x.Step(e.A).Pos, x.Step(e.B).Pos}
		}
		slices.Sort(pos)
		errors[fmt.Sprint(e.Kind, pos)] = true
		return true
	}
	r := explore.Explore(ctx, test, o)
	r.Stopped = r.Stopped || leaves > 2000
	return seen, errors, r
}

// TestOvertaken compares the search with one that also continues executions in which a thread waits forever without
// need. Random programs that spin have the same executions and the same errors. If an iteration reads once, no
// execution is bounded.
func TestOvertaken(t *testing.T) {
	want := testsize.Of(100, 150, 4000)
	for _, ordered := range []bool{false, true} {
		r := rand.New(rand.NewPCG(15, 3))
		compared, given, left, graphs, fewer := 0, 0, 0, 0, 0
		if ordered {
			want /= 5
		}
		for compared < want {
			src := spinProgram(r, 4+r.IntN(8))
			all, errors, n := searched(t, src, explore.Options{Ordered: ordered, Overtaken: true})
			if n.Stopped || n.Blocked == 0 {
				continue
			}
			compared++
			got, sameErrors, m := searched(t, src, explore.Options{Ordered: ordered})
			if !maps.Equal(all, got) || !maps.Equal(errors, sameErrors) {
				t.Fatalf("%+v\n%+v\n%v\n%v\n%v\n%v\n%s", n, m, errors, sameErrors, all, got, src)
			}
			if several := strings.Contains(src, "== load") || strings.Contains(src, "do {"); m.Blocked > 0 && !several {
				t.Fatalf("%d executions are given up, and each loop reads once:\n%s", m.Blocked, src)
			}
			given, left, graphs, fewer = given+n.Blocked, left+m.Blocked, graphs+n.Graphs, fewer+m.Graphs
		}
		t.Logf("of %d executions that were given up %d are left, of %d graphs %d", given, left, graphs, fewer)
	}
}

// TestSpinningWrites checks that threads that spin and write what they have read do not hide each other's endless
// waits.
func TestSpinningWrites(t *testing.T) {
	const src = `C spins
int a, b;
grid %s;
kernel { exchange(a, 1, rlx, gpu); while (fetch_add(b, 0, rlx, gpu) == 0) fetch_add(a, 0, rlx, gpu); }`
	for _, grid := range []string{"1, 1", "2, 1", "1, 3"} {
		for _, o := range []Options{{}, {Model: PTX}, {ReadsFrom: true}, {Symmetry: true}} {
			test, err := litmus.Parse("spins.litmus", fmt.Sprintf(src, grid), litmus.Options{Unroll: 4, PTX: o.Model == PTX})
			if err != nil {
				t.Fatal(err)
			}
			r := Litmus(context.Background(), test, o)
			if len(r.Findings) != 1 || r.Findings[0].Kind != "liveness" || r.Blocked > 0 {
				t.Errorf("grid %s, %+v: %d findings, %+v", grid, o, len(r.Findings), r.Result)
			}
		}
	}
}

// TestEndless checks that a thread that writes forever and reads nothing is reported. It may write again a value that
// another thread waits for.
func TestEndless(t *testing.T) {
	for _, c := range []struct {
		thread string
		want   string
	}{
		{"while (1) store(x, 1, rlx);", Error},
		{"while (1) { store(x, 1, rlx); fence(sc); store(x, 2, rlx); }", Error},
		{"int n; for (n = 0; n < 3; n++) store(x, 1, rlx);", OK},
		{"int n; for (n = 0; n < 100; n++) store(x, 1, rlx);", Bounded},
		{"while (load(y, rlx) == 0) store(x, 1, rlx);", Error},
		{"while (1) { store(x, 1, rlx); barrier(); }", Bounded},
	} {
		for _, model := range []string{SRC11, PTX} {
			src := "C t\nint x, y;\nthread A @ cta 0 { " + c.thread + " }\n"
			if c.want == Error {
				src += "thread B @ cta 1 { while (load(x, rlx) == 0) ; while (load(x, rlx) == 2) ; }\n"
			}
			r := verifyText(t, c.thread, src, litmus.Options{Unroll: 8}, Options{Model: model})
			if r.Verdict() != c.want || c.want == Error && (len(r.Findings) != 1 || r.Findings[0].Kind != "liveness" || r.Findings[0].Sides[0].Thread != "A") {
				t.Errorf("%s, %s: %s %+v", c.thread, model, r.Summary(), r.Findings)
			}
		}
	}
	for body, want := range map[string]string{
		"L: st.relaxed.gpu.global.u32 [x], 1; bra L;": Error,
		"L: st.relaxed.gpu.global.u32 [x], 1; fence.sc.gpu; st.relaxed.gpu.global.u32 [y], 2; st.relaxed.gpu.global.u32 [x], 3; bra L;": Error,
		// The first iterations are not as those in which the thread stays.
		"mov.u32 %r1, 0; L: st.relaxed.gpu.global.u32 [x], %r1; min.u32 %r1, %r1, 2; add.u32 %r1, %r1, 1; bra L;":        Error,
		"mov.u32 %r1, 0; L: st.relaxed.gpu.global.u32 [x], 1; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 5; @%p0 bra L;": OK,
		"L: st.relaxed.gpu.global.u32 [x], 1; ld.relaxed.gpu.global.u32 %r0, [y]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L;":  Error,
		"L: st.relaxed.gpu.global.u32 [x], 1; bar.sync 0; bra L;":                                                        Bounded,
	} {
		for _, model := range []string{SRC11, PTX} {
			if r := verifyLaunch(t, launchOf(t, lockVariables, body, 1, 1), Options{Model: model, Unroll: 8}); r.Verdict() != want {
				t.Errorf("%s, %s: %s %s %+v", body, model, r.Summary(), r.Refusal, r.Findings)
			}
		}
	}
}

// TestEndlessAfterRead checks that a thread that never continues is reported, whether or not it has read the last value
// before.
func TestEndlessAfterRead(t *testing.T) {
	for _, thread := range []string{
		"if (load(x, rlx, gpu) == 0) while (1) ;",
		"if (fetch_add(x, 0, rlx, gpu) == 0) while (1) ;",
		"if (load(x, rlx, gpu) == 0) while (1) fence(sc, gpu);",
		"int k = 0; while (k < 2) { if (k == 1) k = 1; else if (load(x, rlx, gpu) == 0) k = 1; else k = 2; }",
		"int k = 0; while (k < 2) { if (k == 1) k = 1; else if (fetch_add(x, 0, rlx, gpu) == 0) k = 1; else k = 2; }",
		"if (load(x, rlx, gpu) == 0) while (1) store(y, 1, rlx, gpu);",
	} {
		src := "C t\nint x, y;\nthread A @ cta 0 { " + thread + " }\nthread B @ cta 1 { store(x, 1, rlx, gpu); }\n"
		for _, o := range []Options{{}, {Model: PTX}, {ReadsFrom: true}} {
			r := verifyText(t, thread, src, litmus.Options{PTX: o.Model == PTX}, o)
			if r.Executions != 1 || len(r.Findings) != 1 || r.Findings[0].Kind != "liveness" || r.Findings[0].Sides[0].Thread != "A" {
				t.Errorf("%s, %+v: %s %+v", thread, o, r.Summary(), r.Findings)
			}
		}
	}
}

// TestAttemptThatSpins checks that a thread is reported that polls a variable at several places, and at the last of
// them spins on the value that it left for the first.
func TestAttemptThatSpins(t *testing.T) {
	const body = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 1; @%p0 bra A; st.relaxed.gpu.global.u32 [x], 1; ret;\n" +
		"A: ld.relaxed.gpu.global.u32 %r0, [x]; setp.ne.u32 %p0, %r0, 0; @%p0 bra END;\n" +
		"B: ld.relaxed.gpu.global.u32 %r0, [x]; setp.ne.u32 %p0, %r0, 0; @%p0 bra B; bra A;\nEND:"
	for _, model := range []string{SRC11, PTX} {
		r := verifyLaunch(t, launchOf(t, lockVariables, body, 2, 1), Options{Model: model})
		if r.Refusal != "" || len(r.Findings) != 1 || r.Findings[0].Kind != "liveness" {
			t.Errorf("%s: %s %+v %+v", model, r.Summary(), r.Refusal, r.Findings)
		}
	}
}

// TestCircling checks that threads are reported that reach the bound of a loop and would never leave it, and no threads
// that may leave it.
func TestCircling(t *testing.T) {
	const lock = "while (cas(l, 0, 1, acq, gpu) != 0) ; "
	for _, c := range []struct {
		threads string
		circles bool
	}{
		{"grid 2, 1; kernel { while (load(y, acq, gpu) == 0) store(x, 1, rlx, gpu); }", true},
		{"thread A @ cta 0 { while (load(y, acq, gpu) == 0) store(x, 1, rlx, gpu); } thread B @ cta 1 { while (load(x, acq, gpu) != 2) ; }", true},
		{"thread A { int v = 0; while (v == 0) { " + lock + "v = y; store(l, 0, rel, gpu); } }", true},
		{"thread A { int v = 0; while (v == 0) { " + lock + "v = y; store(l, 2, rel, gpu); store(l, 0, rel, gpu); } } thread B @ cta 1 { while (load(x, rlx, gpu) == 0) ; }", true},
		{"thread A @ cta 0 { int v = 0; while (v == 0) { " + lock + "v = y; store(l, 0, rel, gpu); } } thread B @ cta 1 { " + lock + "y = 1; store(l, 0, rel, gpu); }", false},
		{"thread A @ cta 0 { do store(x, 1, rlx, gpu); while (load(y, acq, gpu) != 2); } thread B @ cta 1 { store(y, 2, rel, gpu); }", false},
		// The other thread may see the lock taken, or the variable set.
		{"grid 2, 1; kernel { while (load(y, rlx, gpu) == 0 && cas(l, 0, 1, rlx, gpu) == 0) store(l, 0, rlx, gpu); store(y, 1, rlx, gpu); }", false},
		{"thread A @ cta 0 { do { store(x, 1, rlx, gpu); store(x, 0, rlx, gpu); } while (load(y, rlx, gpu) == 0); } thread B @ cta 1 { while (load(x, rlx, gpu) == 0) ; store(y, 1, rlx, gpu); }", false},
		// It has come back to a state, and then reads another value.
		{"thread A @ cta 0 { store(x, 1, rlx, gpu); } thread B @ cta 1 { int k = 0; while (k < 4) { if (k == 0) { if (load(x, rlx, gpu) == 0) k = 1; else k = 2; } else if (k == 1) k = 0; else k++; } }", false},
		// Something changes.
		{"thread A { while (load(y, rlx, gpu) == 0) fetch_add(x, 1, rlx, gpu); }", false},
		{"thread A { int n = 0; do { store(x, n, rlx, gpu); n++; } while (load(y, rlx, gpu) == 0); }", false},
		{"thread A { int n = 0; do { store(x, 1, rlx, gpu); n++; } while (n < 100); }", false},
		{"thread A { while (load(x, rlx, gpu) < 100) fetch_add(x, 1, rlx, gpu); }", false},
	} {
		for _, o := range []Options{{}, {Symmetry: true}, {Model: PTX}} {
			r := verifyText(t, c.threads, "C t\nint x, y, l;\n"+c.threads+"\n", litmus.Options{Unroll: 4, PTX: o.Model == PTX}, o)
			if told := len(r.Findings) == 1 && r.Findings[0].Kind == "liveness"; told != c.circles || len(r.Findings) > 1 || r.Cut == 0 {
				t.Errorf("%s, %+v: %s %+v", c.threads, o, r.Summary(), r.Findings)
			} else if told && !strings.Contains(r.Findings[0].Graph, "earlier iterations of loops left out") {
				t.Errorf("%s, %+v: all turns are drawn:\n%s", c.threads, o, r.Findings[0].Graph)
			}
		}
	}
}
