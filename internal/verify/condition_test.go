package verify

import (
	"context"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// TestUndecided checks that nothing is reported of a condition if a loop reaches its bound and no earlier execution
// decides it.
func TestUndecided(t *testing.T) {
	for _, c := range []struct {
		condition, verdict, text string
	}{
		{"exists (x == 99)", Bounded, "condition exists: no execution that was explored satisfies it, and not all were explored\n"},
		{"exists (x == 7)", Bounded, "condition exists: holds\n"},
		{"forall (x == 7)", Bounded, "condition forall: holds in the executions that were explored, which are not all\n"},
		{"forall (x == 99)", Error, "condition forall: does not hold\n"},
		{"~exists (x == 7)", Error, "condition ~exists: does not hold\n"},
		{"~exists (x == 99)", Bounded, "condition ~exists: holds in the executions that were explored, which are not all\n"},
	} {
		// B writes 7 or comes to its bound.
		src := "C t\nint x, y;\nthread A { store(y, 1, rlx, cta); }\nthread B { int i; if (load(y, rlx, cta) == 0) x = 7; else for (i = 0; i < 100; i++) x = i; }\n" + c.condition + "\n"
		test, err := litmus.Parse("t.litmus", src, litmus.Options{Unroll: 8})
		if err != nil {
			t.Fatal(err)
		}
		r := Litmus(context.Background(), test, Options{})
		var b strings.Builder
		r.Text(&b, func(string, int) string { return "" }, func(_, s string) string { return s })
		decided := strings.HasSuffix(c.text, "hold\n") || strings.HasSuffix(c.text, "holds\n")
		if known := r.Report().Condition != nil; r.Verdict() != c.verdict || !strings.Contains(b.String(), c.text) || known != decided {
			t.Errorf("%s: %s, known %v\n%s", c.condition, r.Verdict(), known, &b)
		}
	}
}

// TestWhy checks the reasons why fences do not order a write and a read of data, d, around a flag.
func TestWhy(t *testing.T) {
	for _, c := range []struct{ writer, reader, why, fix string }{
		{"fence(rel, gpu); d = 1;\nstore(f, 1, rlx, gpu);", "fence(acq, gpu); int v = d;",
			"the fence of thread A at line 3 does not come after line 3 of thread A", "put a release fence in thread A between line 3 of thread A and line 4"},
		{"d = 1; fence(rel, cta);\nstore(f, 1, rlx, gpu);", "fence(acq, gpu); int v = d;", "the scope cta of the fence at line 3 does not include the other thread", "give the fence at line 3 the scope gpu"},
		{"d = 1; fence(rel, gpu);\nstore(f, 1, rlx, gpu);", "fence(acq, cta); int v = d;", "the scope cta of the fence at line 7 does not include the other thread", "give the fence at line 7 the scope gpu"},
		{"d = 1;\nstore(f, 1, rel, gpu);", "int v = d; fence(acq, gpu);", "the read is no acquire", "make the read at line 6 an acquire, or put an acquire fence after it"},
	} {
		src := "C t\nint d, f;\nthread A @ cta 0 { " + c.writer + " }\nthread B @ cta 1 {\nwhile (load(f, rlx, gpu) == 0) ;\n" + c.reader + " }\n"
		test, err := litmus.Parse("t.litmus", src, litmus.Options{Unroll: 8})
		if err != nil {
			t.Fatal(err)
		}
		r := Litmus(context.Background(), test, Options{})
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Why, c.why) || r.Findings[0].Fix != c.fix {
			t.Errorf("%s: %+v", src, r.Findings)
		}
	}
}

// TestWhyDeadlock checks the report that a thread for which the others wait waits at a barrier.
func TestWhyDeadlock(t *testing.T) {
	src := "C t\nint lock;\ngrid 1, 2;\nkernel {\nwhile (exchange(lock, 1, acq, cta) != 0) ;\nbarrier();\nstore(lock, 0, rel, cta);\n}\n"
	test, err := litmus.Parse("t.litmus", src, litmus.Options{Unroll: 8})
	if err != nil {
		t.Fatal(err)
	}
	const want = "thread P1 waits for lock, last written by thread P0 at line 5; thread P0 waits at the barrier at line 6."
	if r := Litmus(context.Background(), test, Options{}); len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Why, want) {
		t.Errorf("%+v", r.Findings)
	}
}

// TestVacuous checks that a program without complete executions is not proved.
func TestVacuous(t *testing.T) {
	for _, model := range []string{SRC11, PTX} {
		r := verifyText(t, model, "C t\nint x;\nthread A { assume(load(x, rlx) == 1); }\nforall (x == 0)\n", litmus.Options{}, Options{Model: model})
		if r.Verdict() != Bounded || !strings.Contains(r.Summary(), "no execution is complete") {
			t.Errorf("%s: %s, %s", model, r.Verdict(), r.Summary())
		}
	}
}

// TestCounted checks that a loop may count its iterations, for example for a growing pause, if the count is not used
// otherwise.
func TestCounted(t *testing.T) {
	const lock = "C t\nint lock, x;\ngrid 2, 1;\nkernel { int n = 0; while (cas(lock, 0, 1, acq) != 0) { n = n * 2 + 1; } x = x + 1; store(lock, 0, rel); }\n"
	for condition, want := range map[string]string{"forall (x == 2)": OK, "forall (x == 2 /\\ P0:n >= 0)": Bounded} {
		for _, model := range []string{SRC11, PTX} {
			if r := verifyText(t, condition, lock+condition, litmus.Options{Unroll: 4}, Options{Model: model}); r.Verdict() != want || want == OK && r.Executions != 2 {
				t.Errorf("%s, %s: %s", condition, model, r.Summary())
			}
		}
	}
}
