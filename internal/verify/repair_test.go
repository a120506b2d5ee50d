package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/candidates"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/litmus"
	"fencepost.dev/fencepost/internal/verify/model"
	"fencepost.dev/fencepost/internal/verify/repair"
)

// repairs has programs with errors, and the lines of the diff that repairs them.
var repairs = []struct{ name, src, want string }{
	{"scope of a release", `C a
int lock, x;
grid 2, 1;
kernel {
  while (exchange(lock, 1, acq, gpu) != 0) ;
  x = x + 1;
  store(lock, 0, rel, cta);
}
forall (x == 2)
`, `
-  store(lock, 0, rel, cta);
+  store(lock, 0, rel, gpu);`},
	{"a thread that passes on", `C a
int x, f, g;
thread A @ cta 0 { x = 1; store(f, 1, rel, gpu); }
thread B @ cta 1 {
  while (load(f, rlx, gpu) == 0) ;
  store(g, 1, rlx, gpu);
}
thread C @ cta 2 { while (load(g, acq, gpu) == 0) ; int r = x; }
`, `
+  fence(acqrel, gpu);`},
	{"release and acquire", `C a
int lock, x;
grid 2, 1;
kernel {
  while (exchange(lock, 1, rlx, gpu) != 0) ;
  x = x + 1;
  store(lock, 0, rlx, gpu);
}
`, `
-  while (exchange(lock, 1, rlx, gpu) != 0) ;
+  while (exchange(lock, 1, acq, gpu) != 0) ;
-  store(lock, 0, rlx, gpu);
+  store(lock, 0, rel, gpu);`},
	{"a release, where there is a fence before the access", `C a
int lock, x;
grid 2, 1;
kernel {
  while (exchange(lock, 1, rlx, gpu) != 0) ;
  fence(acqrel, gpu);
  x = x + 1;
  store(lock, 0, rlx, gpu);
}
`, `
-  store(lock, 0, rlx, gpu);
+  store(lock, 0, rel, gpu);`},
	{"not atomic", `C a
int x;
thread A @ cta 0 { x = 1; }
thread B @ cta 1 {
  int a = x;
}
`, `
-thread A @ cta 0 { x = 1; }
+thread A @ cta 0 { store(x, 1, rlx, gpu); }
-  int a = x;
+  int a = load(x, rlx, gpu);`},
	{"a barrier", `C a
int x[2];
grid 1, 2;
kernel {
  x[threadIdx] = threadIdx;
  int a = x[1 - threadIdx];
  assert(a == 1 - threadIdx);
}
`, `
+  barrier();`},
	{"store buffering", `C a
int x, y;
thread A {
  store(x, 1, rlx);
  int a = load(y, rlx);
}
thread B {
  store(y, 1, rlx);
  int b = load(x, rlx);
}
~exists (A:a == 0 /\ B:b == 0)
`, `
+  fence(sc, cta);
+  fence(sc, cta);`},
	{"an exit before a barrier", `C a
int x[2];
grid 1, 2;
kernel {
  x[threadIdx] = 1;
  if (threadIdx == 1)
    return;
  barrier();
  int a = x[1];
}
`, `
-    return;
+    { barrier(); return; }`},
	{"PTX style", `PTX MP
{ x = 0; y = 0; }
 P0@cta 0,gpu 0       | P1@cta 1,gpu 0 ;
 st.weak x, 1         | LC: ;
 st.relaxed.cta y, 1  | ld.relaxed.gpu r0, y ;
                      | bne r0, 1, LC ;
                      | ld.weak r1, x ;
forall (P1:r1 == 1)
`, `
- st.relaxed.cta y, 1  | ld.relaxed.gpu r0, y ;
+ st.release.gpu y, 1  | ld.acquire.gpu r0, y ;`},
}

func changed(diff string) string {
	s := ""
	for l := range strings.Lines(diff) {
		if l = strings.TrimSuffix(l, "\n"); (l[0] == '-' || l[0] == '+') && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "+++") {
			s += "\n" + l
		}
	}
	return s
}

func TestRepair(t *testing.T) {
	for k := range 2 * len(repairs) {
		c, o := repairs[k/2], Options{Model: []string{SRC11, PTX}[k%2]}
		l := litmus.Options{PTX: o.Model == PTX}
		test, err := litmus.Parse("a.litmus", c.src, l)
		if err != nil {
			t.Fatal(err)
		}
		if r := Litmus(context.Background(), test, o); r.Verdict() != Error {
			t.Errorf("%s: %s before the repair", c.name, r.Verdict())
		}
		r := RepairLitmus(context.Background(), test, c.src, l, o)
		if r.Proof == nil || r.Proof.Verdict() != OK || changed(r.Diff) != c.want {
			t.Errorf("%s, %s: %d tried, %q, %v; diff\n%s", c.name, o.Model, r.Tried, r.Reason, r.Changes, r.Diff)
			if r.Proof != nil {
				t.Logf("%s %+v", r.Proof.Summary(), r.Proof.Findings)
			}
		}
		t.Logf("%s: %d tried", c.name, r.Tried)
	}
}

// TestRepairPeterson repairs a lock that needs fences, or sc accesses, at several places: without them no read could
// synchronise the threads.
func TestRepairPeterson(t *testing.T) {
	src := `C a
int flag[2], turn, x;
grid 2, 1;
kernel {
  int other = 1 - tid;
  store(flag[tid], 1, rlx);
  store(turn, other, rlx);
  while (load(flag[other], acq) == 1 && load(turn, acq) == other) ;
  x = x + 1;
  store(flag[tid], 0, rel);
}
forall (x == 2)
`
	for model, want := range map[string]string{SRC11: `
-  store(flag[tid], 1, rlx);
-  store(turn, other, rlx);
-  while (load(flag[other], acq) == 1 && load(turn, acq) == other) ;
+  store(flag[tid], 1, sc);
+  store(turn, other, sc);
+  while (load(flag[other], sc) == 1 && load(turn, acq) == other) ;`, PTX: `
+  fence(sc, gpu);
+  fence(sc, gpu);`} {
		l, o := litmus.Options{PTX: model == PTX}, Options{Model: model}
		test, err := litmus.Parse("a.litmus", src, l)
		if err != nil {
			t.Fatal(err)
		}
		if r := RepairLitmus(context.Background(), test, src, l, o); r.Proof == nil || r.Proof.Verdict() != OK || changed(r.Diff) != want {
			t.Errorf("%s: %d tried, %q, %v; diff\n%s", model, r.Tried, r.Reason, r.Changes, r.Diff)
		}
	}
}

// TestRepairMany repairs a program that needs changes at more places than all smaller patches can be tried for: the
// same lock in two threads with separate code, all of it relaxed.
func TestRepairMany(t *testing.T) {
	thread := func(me, other int) string {
		return fmt.Sprintf(`thread P%[1]d @ cta %[1]d {
  store(flag%[1]d, 1, rlx, gpu);
  store(turn, %[2]d, rlx, gpu);
  while (load(flag%[2]d, rlx, gpu) == 1 && load(turn, rlx, gpu) == %[2]d) ;
  x = x + 1;
  store(flag%[1]d, 0, rlx, gpu);
}
`, me, other)
	}
	src := "C a\nint flag0, flag1, turn, x;\n" + thread(0, 1) + thread(1, 0) + "forall (x == 2)\n"
	for model, want := range map[string]int{SRC11: 8, PTX: 8} {
		l, o := litmus.Options{PTX: model == PTX}, Options{Model: model}
		test, err := litmus.Parse("a.litmus", src, l)
		if err != nil {
			t.Fatal(err)
		}
		if r := RepairLitmus(context.Background(), test, src, l, o); r.Proof == nil || r.Proof.Verdict() != OK || len(r.Changes) != want {
			t.Errorf("%s: %d tried, %q, %v; diff\n%s", model, r.Tried, r.Reason, r.Changes, r.Diff)
		}
	}
}

// TestRepairExists repairs a test whose condition asks for a state that only the error allows. The condition is then
// false, which must be reported.
func TestRepairExists(t *testing.T) {
	const src = "C a\nint x, y;\nthread A @ cta 0 { x = 1; store(y, 1, rlx, gpu); }\n" +
		"thread B @ cta 1 { int a = load(y, acq, gpu); if (a == 1) { int b = x; } }\nexists (B:a == 1 /\\ B:b == 0)\n"
	test, err := litmus.Parse("a.litmus", src, litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := RepairLitmus(context.Background(), test, src, litmus.Options{}, Options{})
	var b strings.Builder
	r.Text(&b)
	if want := "repaired, but no execution ends in a state that the condition names: the condition does not hold in 2 executions"; !strings.Contains(b.String(), want) ||
		r.Report().Verdict != OK {
		t.Errorf("%s, %s", r.Report().Verdict, b.String())
	}
}

// TestRepairPlaces checks that changes in one line of a test are distinguished by their columns.
func TestRepairPlaces(t *testing.T) {
	const src = "PTX SB\n{ x=0; y=0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1 ;\n" +
		" ld.relaxed.gpu r0, y | ld.relaxed.gpu r0, x ;\n~exists (P0:r0 == 0 /\\ P1:r0 == 0)\n"
	test, err := litmus.Parse("sb.litmus", src, litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := RepairLitmus(context.Background(), test, src, litmus.Options{}, Options{})
	want := []string{"sb.litmus:5:2: insert a fence before it: sc, gpu scope", "sb.litmus:5:25: insert a fence before it: sc, gpu scope"}
	if !slices.Equal(r.Changes, want) {
		t.Errorf("%q, want %q", r.Changes, want)
	}
}

// TestRepairRandom repairs random programs, and checks that the proposed source is the one that was explored: it has no
// error.
func TestRepairRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	n := testsize.Of(500, 500, 1000)
	wrong, mended := [2]int{}, [2]int{}
	for i := range n {
		m := i % 2
		o := Options{Model: []string{SRC11, PTX}[m]}
		l := litmus.Options{Unroll: 4, PTX: o.Model == PTX}
		src := randomProgram(r, 3+r.IntN(4))
		test, err := litmus.Parse("random.litmus", src, l)
		if l.PTX && err != nil {
			continue // sc accesses
		}
		if err != nil {
			t.Fatal(err)
		}
		if Litmus(context.Background(), test, Options{Model: o.Model, First: true}).Verdict() != Error {
			continue
		}
		wrong[m]++
		fixed := RepairLitmus(context.Background(), test, src, l, o)
		if fixed.Reason != "" {
			continue
		}
		if mended[m]++; fixed.Proof.Verdict() == Error || fixed.Diff == "" {
			t.Errorf("%s\n%s\n%v %+v", src, fixed.Diff, fixed.Changes, fixed.Proof.Findings)
		}
	}
	t.Logf("%d programs are wrong, %d are mended", wrong, mended)
	for m := range wrong {
		if mended[m] < wrong[m]/2 || wrong[m] < n/20 {
			t.Errorf("only %d of %d programs are mended", mended, wrong)
		}
	}
}

// TestPatches explores random programs with random changes, applied to their steps and written in their source. The
// executions must be the same.
func TestPatches(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	kinds := map[string]int{}
	for i := range 4000 {
		l := litmus.Options{Unroll: 4, PTX: i%4 == 0}
		src := randomProgram(r, 3+r.IntN(4))
		test, err := litmus.Parse("random.litmus", src, l)
		if l.PTX && err != nil {
			continue // sc accesses
		}
		if err != nil {
			t.Fatal(err)
		}
		ops := map[int32]explore.Op{}
		run := func(p explore.Program) explore.Result {
			o := explore.Options{Leaf: func(x explore.Execution, end explore.Ending) {
				for _, e := range x.Events() {
					ops[e.Op.Pos] = e.Op
				}
			}}
			if !l.PTX {
				return explore.Explore(context.Background(), p, o)
			}
			kinds["ptx"]++
			r, err := candidates.Enumerate(context.Background(), p, model.PTX{}, o, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		run(test)
		var places []int32
		for pos := range ops {
			places = append(places, pos)
		}
		slices.Sort(places)
		if len(places) == 0 {
			continue
		}
		patch := repair.Patch{}
		for range 1 + r.IntN(2) {
			pos := places[r.IntN(len(places))]
			op := ops[pos]
			scope := model.Scope(1 + r.IntN(4))
			c := repair.Change{}
			kind := ""
			switch k := r.IntN(6); {
			case k == 0:
				kind, c.Before = "before", repair.Fence{Order: model.SC, Scope: scope}
			case k == 1 && (op.Kind == explore.Read || op.Kind == explore.Write || op.Kind == explore.Update):
				kind, c.After = "after", repair.Fence{Order: model.AcqRel, Scope: scope}
			case k == 2:
				kind, c.Barrier = "barrier", true
			case op.Kind == explore.Arrive:
				kind, c.Drop = "drop", true
			default:
				kind = "order"
				c.Order = []model.Order{model.SC, map[explore.OpKind]model.Order{explore.Write: model.Release}[op.Kind], model.Relaxed}[r.IntN(3)]
				if c.Scope = scope; !op.Order.Atomic() {
					c.Order, c.Atomic = model.Relaxed, true
				}
			}
			kinds[kind]++
			patch = patch.And(repair.Patch{pos: c})
		}
		text, err := litmus.Edit(src, patch)
		if err != nil {
			kinds["not written"]++
			continue
		}
		changed, err := litmus.Parse("random.litmus", text, l)
		if l.PTX && err != nil {
			continue // an access that has become sc
		}
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, patch.Key(), text)
		}
		got := run(&repair.Program{Program: test, Patch: patch, Site: func(pos int32) int32 { return pos }})
		want := run(changed)
		if got.Executions != want.Executions || got.Stuck != want.Stuck {
			t.Fatalf("%+v, want %+v\n%s\n%s%s", got, want, patch.Key(), src, Diff("", src, text))
		}
	}
	t.Log(kinds)
}

// TestPatchInLoop checks that a fence inserted into an iteration with two reads causes no deadlock: it is not one of
// the iteration's steps.
func TestPatchInLoop(t *testing.T) {
	test, err := litmus.Parse("a.litmus", `C a
int x, y;
thread A { store(x, 1, rlx); }
thread B {
  int a = 0, b = 0;
  do {
    a = load(x, rlx);
    b = load(y, rlx);
  } while (a == 0 && b == 0);
}
`, litmus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var second int32
	site := func(pos int32) int32 {
		if line, _ := litmus.Line(pos); line == 8 {
			second = pos
		}
		return pos
	}
	p := &repair.Program{Program: test, Patch: repair.Patch{0: {}}, Site: site}
	plain := explore.Explore(context.Background(), p, explore.Options{})
	p.Patch = repair.Patch{second: {Before: repair.Fence{Order: model.SC, Scope: model.Sys}}}
	if r := explore.Explore(context.Background(), p, explore.Options{}); r.Executions != plain.Executions || r.Stuck != 0 || plain.Executions != 1 {
		t.Errorf("%+v, without the fence %+v", r, plain)
	}
}

// TestRepairKernel repairs kernels, and explores the changed PTX.
func TestRepairKernel(t *testing.T) {
	for _, c := range []struct {
		name, body  string
		grid, block uint32
		want        string // the instructions that are changed
	}{
		{"narrow scope", "	atom.relaxed.cta.global.add.u32 %r0, [x], 1;", 2, 1, `
-	atom.relaxed.cta.global.add.u32 %r0, [x], 1;
+	atom.relaxed.gpu.global.add.u32 %r0, [x], 1;`},
		{"lock without acquire", strings.Replace(lockPTX, "acquire", "relaxed", 1), 2, 1, `
-LOCK:	atom.relaxed.gpu.global.cas.b32 %r0, [lock], 0, 1;
+LOCK:	atom.acquire.gpu.global.cas.b32 %r0, [lock], 0, 1;`},
		{"lock without release in one block", strings.Replace(lockPTX, "release", "relaxed", 1), 1, 2, `
-	atom.relaxed.gpu.global.exch.b32 %r2, [lock], 0;
+	atom.release.gpu.global.exch.b32 %r2, [lock], 0;`},
		{"volatile", "	st.volatile.global.u32 [x], %b;", 2, 1, `
-	st.volatile.global.u32 [x], %b;
+	st.relaxed.gpu.global.u32 [x], %b;`},
		{"a volatile flag", `
	setp.ne.u32 %p0, %b, 0;
	@%p0 bra R;
	st.global.u32 [x], 1;
	st.volatile.global.u32 [lock], 1;
	ret;
R:	ld.volatile.global.u32 %r0, [lock];
	setp.eq.u32 %p0, %r0, 0;
	@%p0 bra R;
	fence.sc.gpu;
	ld.global.u32 %r1, [x];`, 2, 1, `
-	st.volatile.global.u32 [lock], 1;
+	st.release.sys.global.u32 [lock], 1;`},
		{"a fence of the block", `
	setp.ne.u32 %p0, %b, 0;
	@%p0 bra READ;
	st.global.u32 [x], 1;
	membar.cta;
	st.relaxed.gpu.global.u32 [lock], 1;
	ret;
READ:	ld.acquire.gpu.global.u32 %r0, [lock];
	setp.eq.u32 %p0, %r0, 0;
	@%p0 bra READ;
	ld.global.u32 %r1, [x];`, 2, 1, `
-	st.relaxed.gpu.global.u32 [lock], 1;
+	st.release.gpu.global.u32 [lock], 1;`},
		{"a barrier that half of the threads skip", `
	setp.ne.u32 %p0, %t, 0;
	@%p0 bra SKIP;
	bar.sync 0;
SKIP:	ret;`, 1, 2, `
-	bar.sync 0;`},
		{"a barrier between accesses of some threads", `
	setp.ne.u32 %p0, %t, 1;
	@%p0 bra JOIN;
	st.global.u32 [x], 1;
JOIN:	setp.eq.u32 %p0, %t, 1;
	@%p0 bra END;
	ld.global.u32 %r0, [x];
END:	ret;`, 1, 3, `
+	bar.sync 0;`},
		{"a barrier in a loop", `
	mov.u32 %r1, 2;
	mov.u64 %rd0, x;
	mul.wide.u32 %rd1, %t, 4;
	add.u64 %rd0, %rd0, %rd1;
NEXT:	setp.ge.u32 %p0, %t, %r1;
	@%p0 bra SKIP;
	mul.wide.u32 %rd1, %r1, 4;
	add.u64 %rd1, %rd0, %rd1;
	ld.global.u32 %r2, [%rd1];
	st.global.u32 [%rd0], %r2;
SKIP:	shr.u32 %r1, %r1, 1;
	setp.ne.u32 %p0, %r1, 0;
	@%p0 bra NEXT;`, 1, 4, `
+	bar.sync 0;`},
	} {
		src := kernelText(".global .u32 lock;\n.global .u32 x[4];\n", c.body)
		for _, m := range []string{SRC11, PTX} {
			o := Options{Unroll: litmus.DefaultUnroll, Model: m}
			r, places, err := RepairKernel(context.Background(), launchText(t, src, c.grid, c.block), nil, nil, o, Text{Can: func(places []Place) bool {
				_, err := EditPTX(src, places)
				return err == nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "volatile" && m == PTX { // which has volatile accesses as atomics
				if r.Reason != "there is no error that a change could rule out" {
					t.Errorf("%s: %s%v", c.name, r.Reason, r.Changes)
				}
				continue
			}
			text, err := EditPTX(src, places)
			if err != nil {
				t.Fatal(err)
			}
			proof := verifyLaunch(t, launchText(t, text, c.grid, c.block), o)
			if got := changed(Diff("k.ptx", src, text)); got != c.want || proof.Verdict() != OK || r.Reason != "" {
				t.Errorf("%s, %s: %s%v %s, %d tried; changed:%s", c.name, m, r.Reason, r.Changes, proof.Summary(), r.Tried, got)
			}
		}
	}
}

// TestSameFile checks which places are in the source that is repaired: not those in a file of the same name in another
// folder.
func TestSameFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, f := range []string{"k.cu", "impl/k.cu"} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, name string
		want       bool
	}{
		{dir + "/k.cu", "k.cu", true},
		{dir + "/impl/../k.cu", "./k.cu", true},
		{dir + "/link/k.cu", "k.cu", true},
		{dir + "/impl/k.cu", "k.cu", false},
		{"/elsewhere/k.cu", "k.cu", false},
		{"src/k.cu", "k.cu", true},
		{"k.cu", "src/k.cu", true},
	} {
		if got := sameFile(c.file, c.name); got != c.want {
			t.Errorf("%s in %s: %v", c.file, c.name, got)
		}
	}
}
