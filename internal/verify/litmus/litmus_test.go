package litmus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/verify/explore"
)

// TestErrors checks the message and the position for each mistake.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", `t:1:1: the file is empty: begin it with "C NAME" or "PTX NAME"`},
		{"C\nint x;", `t:2:1: "int" where the name of the test is expected: "C NAME"`},
		{"C a\n", `t:2:1: the end of the file where a declaration is expected: "int", "const", "grid", "kernel" or "thread"`},
		{"C a\nint x", `t:2:6: the end of the file where ";" is expected after a declaration`},
		{"C a\nint x, x;", `t:2:8: "x" is declared twice`},
		{"C a\nint x[0];", `t:2:5: "x" has 0 elements; a test has from 1 to 65536 locations`},
		{"C a\nkernel {}", `t:2:1: a kernel needs the size of its grid before it, as in "grid 2, 4;"`},
		{"C a\ngrid 0, 1;", `t:2:6: the number of blocks is 0; it is from 1 to 1024`},
		{"C a\ngrid 1000, 1000;", `t:2:1: 1000 blocks of 1000 threads are more than 1024 threads`},
		{"C a\nthread A @ block 0 {}", `t:2:12: "block" where a place is expected, as in "@ cta 0, gpu 0"`},
		{"C a\nint x;\nthread A { lod(x, rlx); }", `t:3:12: there is no operation "lod"; did you mean "load"?`},
		{"C a\nint x;\nthread A { load(y, rlx); }", `t:3:17: there is no variable "y"; did you mean "x"?`},
		{"C a\nint x;\nthread A { load(x, rel); }", `t:3:20: "rel" where the order of load is expected: rlx, acq or sc`},
		{"C a\nint x;\nthread A { load(x, acq, block); }", `t:3:25: "block" where a scope is expected: cta, cluster, gpu or sys`},
		{"C a\nint x;\nthread A { fence(rlx); }", `t:3:18: "rlx" where the order of fence is expected: acq, rel, acqrel or sc`},
		{"C a\nint x[2];\nthread A { x = 1; }", `t:3:12: "x" is an array; choose an element: x[0]`},
		{"C a\nint x[2];\nthread A { x[2] = 1; }", `t:3:14: the index 2 is outside of x[2] in thread A`},
		{"C a\nint x;\nthread A { x == 1; }", `t:3:14: "==" where an assignment is expected: =, +=, -=, ++ or --`},
		{"C a\nint x;\nthread A { break; }", `t:3:12: "break" is in no loop`},
		{"C a\nint x;\nthread A { x = 1 / 0; }", `t:3:18: division by zero`},
		{"C a\nint x;\nthread A { barrier(16); }", `t:3:20: the number of a barrier is a constant from 0 to 15`},
		{"C a\nint x;\nthread A { int x; }", `t:3:16: "x" is a shared variable; give the variable of the thread another name`},
		{"C a\nint x;\nthread A { }\nexist (x == 1)", `t:4:1: "exist" where the condition is expected: "exists", "~exists", "forall" or "filter"`},
		{"C a\nint x;\nthread A { }\nexists (A:r == 1)", `t:4:11: the thread A has no register "r"`},
		{"C a\nint x;\nthread A { }\nexists (B:r == 1)", `t:4:9: there is no thread "B"; did you mean "A"?`},
		{"C a\n/* x", `t:2:1: the comment is not closed; end it with "*/"`},
		{"C a\n\"x", `t:2:1: the quoted text does not end on its line`},
		{"C a\nint x = 99999999999999999999;", `t:2:9: "99999999999999999999" is no number; write one of 64 bits, as in 42 or 0x2a`},
		{"PTX a\n{ x = 0;\n P0@cta 0 | P1@cta 1 ;\n st.weak x, 1 | ;", `t:3:2: "P0" begins the line of the threads, and the block of initial values has no "}"`},
		{"PTX a\n{ x = 0;\n P0 | P1 ;\n st.weak x, 1 | ;", `t:3:2: "P0" begins the line of the threads, and the block of initial values has no "}"`},
		{"PTX a\n{ t @ texture aliases x; }", `t:2:7: scoped RC11 has no proxy "texture": use --model ptx`},
		{"PTX a\nP0 ;\nfence.proxy.alias ;", `t:3:1: scoped RC11 has no proxies: fence.proxy needs --model ptx`},
		{"PTX a\nP0 ;\nsust.weak t, 1 ;", `t:3:1: scoped RC11 has no proxies for surfaces, textures and constants: sust needs --model ptx`},
		{"PTX a\nP0 | P0 ;", `t:2:6: the thread "P0" is declared twice`},
		{"PTX a\nP0 | P1 ;\nmov r, 1 ;", `t:3:10: the line ends after column 1; there are 2 threads`},
		{"PTX a\nP0 ;\nst.weak.gpu x, 1 ;", `t:3:1: a weak st has no scope: give it the order relaxed, or leave out gpu`},
		{"PTX a\nP0 ;\nld.cta r, x ;", `t:3:1: a weak ld has no scope: give it the order relaxed, or leave out cta`},
		{"PTX a\nP0 ;\nst.relaxed.release.gpu x, 1 ;", `t:3:1: st has two orders, relaxed and release`},
		{"PTX a\nP0 ;\nst.relaxed.gpu.cta x, 1 ;", `t:3:1: st has two scopes, gpu and cta`},
		{"PTX a\nP0 ;\nst.volatile.release x, 1 ;", `t:3:1: a volatile st has no order of its own: it is relaxed, of scope sys`},
		{"PTX a\nP0 ;\nld.volatile.gpu r, x ;", `t:3:1: a volatile ld has no scope of its own: it is relaxed, of scope sys`},
		{"PTX a\nP0 ;\nfence.sc ;", `t:3:1: fence needs a scope: cta, cluster, gpu or sys`},
		{"PTX a\nP0 ;\nred.relaxed.gpu.cas x, 1, 2 ;", `t:3:1: red needs what it does: add, and, dec, exch, inc, max, min, or, sub, xor`},
		{"PTX a\nP0 ;\nmov r, 1 | mov r, 2 ;", `t:3:10: "|" where ";" is expected after the instruction of the last thread`},
		{"PTX a\nP0 ;\ngoto L ;", `t:3:6: thread P0 has no label "L"`},
		{"PTX a\nP0 ;\nL: ;\nL: ;", `t:4:1: thread P0 has the label "L" twice`},
		{"PTX a\nP0 ;\nmv r, 1 ;", `t:3:1: there is no instruction "mv"; did you mean "mov"?`},
		{"PTX a\nP0 ;\nld.release.gpu r, x ;", `t:3:1: the order of this ld must be one of acquire, relaxed, weak`},
		{"PTX a\nP0 ;\nld.aquire.gpu r, x ;", `t:3:1: ld has no modifier "aquire"; did you mean "acquire"?`},
		{"PTX a\nP0 ;\natom.relaxed.gpu r, x, 1 ;", `t:3:1: atom needs what it does: add, and, cas, dec, exch, inc, max, min, or, sub, xor`},
		{"PTX a\n{ x = 0; }\nP0 ;\nmov x, 1 ;", `t:4:5: "x" is a variable; a register is expected here`},
		{"PTX a\n{ P1:r = 0; }\nP0 ;\n", `t:1:1: the initial values name a thread "P1" that there is none of`},
		{"PTX a\nP0 ;\nmembar.gpu ;", `t:3:1: membar has a scope: membar.cta, membar.gl or membar.sys`},
		{"PTX a\nP0 ;\nbar.cta.sync 1, 2 ;", `t:3:17: a barrier of 2 threads, and the CTA of P0 has 1: barriers of a part of the CTA are not explored`},
		{"PTX a\nP0 ;\nld.relaxed.gpu r, 1 ;", `t:3:19: "1" where a variable is expected`},
		{"PTX a\n{ x = }\nP0 ;\n", `t:2:7: "}" where its initial value is expected, a number`},
		{"PTX a\n{ x = 0 y = 0 }\nP0 ;\n", `t:2:9: "y" where ";" is expected after an initial value`},
		{"PTX a\nP0 ;\nmov r, 1 ;\nlocations [x]", `t:4:12: there is no shared variable "x"`},
		{"PTX a\n(* x", `t:2:1: the comment is not closed; end it with "*)"`},
		{"PTX a\nP0 ;\nbar.cta.sync 16 ;", `t:3:14: the barrier has the number 16; from 0 to 15 is possible`},
		{"C a\nint x;\nthread A { x = " + strings.Repeat("(", 300), `t:3:`},
	} {
		_, err := Parse("t", c.src, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.src, err, c.want)
		}
	}
}

// TestNoGrid checks that the size of a grid is refused if the test names its threads.
func TestNoGrid(t *testing.T) {
	for _, o := range []Options{{Grid: 2}, {Block: 2}} {
		for _, src := range []string{"C a\nthread A {}", "PTX a\nP0 ;"} {
			if _, err := Parse("t", src, o); err == nil || !strings.Contains(err.Error(), "--grid and --block are for one with a kernel") {
				t.Errorf("%q with %+v: %v", src, o, err)
			}
		}
		if _, err := Parse("t", "C a\ngrid 1, 1;\nkernel {}", o); err != nil {
			t.Error(err)
		}
	}
}

// TestPTXStyle executes the constructs of the PTX style, in one thread.
func TestPTXStyle(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"{ x = 3 }\nP0@cta 0,gpu 0;\nld r1, 4;\nld %r2, %r1;\nld r1, -1;\nst.weak x, %r2;", "x=4"},
		{"{ int x = 5; uint32_t y; 0:r1 = 2; };\nP0;\natom.relaxed.gpu.sub r0, x, r1;\nred.relaxed.gpu.inc x, 3;\nred.gpu.dec x, 7;", "x=7"},
		{"P0@cta 0, cluster 0, gpu 0;\nst.global.relaxed.gpu.u32 [x], 1;\nld.volatile.global.u32 r0, [x];\nst.mmio.relaxed.sys x, 9; (* a comment *)", "x=9"},
		{"P0;\nmov r0, 5;\nL: bgt r0, 2, M;\nst.weak x, r0;\nbra E;\nM: sub r0, r0, 1;\ngoto L;\nE: ;", "x=2"},
		{"P0;\nmov r0, 1;\nbge r0, 2, B;\nadd r0, r0, 8;\nB: ble r0, 8, C;\nshl r0, r0, 1;\nC: blt r0, 18, D;\nst.weak x, r0;\nD: ;", "x=18"},
		{"{ P0:r1 = 3; }\nP0;\nmembar.gl;\nbar.cta.sync r1;\nbarrier.cta.arrive 4;\nbar.sync 0, 1;\nmul r1, r1, 7;\nrem r1, r1, 4;\ndiv r1, r1, 1;\nst.release.sys x, r1;", "x=1"},
	} {
		test, err := Parse("t", "PTX a\n\"one\"\n\"two\"\n"+c.body+"\nlocations [x;]\nnot exists\n([x] = 0 or false and true \\/ not ([x] = 0 || false /\\ true) && false)", Options{})
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		got := ""
		explore.Explore(context.Background(), test, explore.Options{Leaf: func(x explore.Execution, end explore.Ending) {
			for _, o := range test.Observed() {
				got += fmt.Sprintf("%s=%d", o.Name(), o.Value(x))
			}
			if end != explore.Complete || test.Condition.Quantifier != NotExists || test.Condition.Formula.Satisfied(x) {
				got += " bad"
			}
		}})
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
}

// run explores a test of one thread and returns the final values of its variables.
func run(t *testing.T, body string) string {
	t.Helper()
	test, err := Parse("t", "C a\nint x, y, a[4] = 7;\nthread A {"+body+"}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	r := explore.Explore(context.Background(), test, explore.Options{
		Leaf: func(x explore.Execution, end explore.Ending) {
			out = fmt.Sprintf("end %d, x=%d y=%d a=%d,%d,%d,%d", end, x.Final(0), x.Final(1), x.Final(2), x.Final(3), x.Final(4), x.Final(5))
		}})
	if r.Graphs == 0 || out == "" {
		t.Fatalf("nothing was explored: %+v", r)
	}
	return out
}

// TestLanguage executes every construct of the scoped-C style.
func TestLanguage(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"x = 1 + 2 * 3 - 4 / 2 % 3;", "end 0, x=5 y=0 a=7,7,7,7"},
		{"int r = 6; x = (r & 3) | (1 << r) ^ (r >> 1); y = -r; a[0] = !r; a[1] = ~r; a[2] = r < 7; a[3] = r >= 7;", "end 0, x=67 y=-6 a=0,-7,1,0"},
		{"x = 1; x += 4; x -= 2; x++; x--; y++; a[1] += 2;", "end 0, x=3 y=1 a=7,9,7,7"},
		{"int i = 2; if (i == 2) x = 1; else x = 2; if (i != 2) y = 1; else { y = 3; }", "end 0, x=1 y=3 a=7,7,7,7"},
		{"for (int i = 0; i < 4; i++) a[i] = i * i;", "end 0, x=0 y=0 a=0,1,4,9"},
		{"int i = 0; while (1) { i++; if (i == 2) continue; if (i > 4) break; x += i; }", "end 0, x=8 y=0 a=7,7,7,7"},
		{"int i = 0; do { i += 2; if (i == 4) continue; x += i; } while (i < 6);", "end 0, x=8 y=0 a=7,7,7,7"},
		{"int i = 3; x = i > 2 && i < 4; y = i < 2 || i == 5; a[0] = i && 0; a[1] = 0 || i;", "end 0, x=1 y=0 a=0,1,7,7"},
		{"int i = 1; if (i == 2 && a[9 - i] == 0) x = 1; return; x = 2;", "end 0, x=0 y=0 a=7,7,7,7"},
		{"x = 5; y = exchange(x, 6, rlx); a[0] = fetch_add(x, 2, rlx); a[1] = cas(x, 8, 9, sc, cta); a[2] = cas(x, 8, 10, rlx);",
			"end 0, x=9 y=5 a=6,8,9,7"},
		{"x = 12; fetch_and(x, 10, rlx); a[0] = x; fetch_or(x, 1, rlx); a[1] = x; fetch_xor(x, 3, rlx); a[2] = x; fetch_min(x, 2, rlx); fetch_max(x, 4, rlx);",
			"end 0, x=4 y=0 a=8,9,10,7"},
		{"store(x, 3, rel, gpu); fence(sc, cta); y = load(x, acq, sys); barrier(); arrive(2);", "end 0, x=3 y=3 a=7,7,7,7"},
		{"int i = 0; while (i < 1000) i++;", "end 2, x=0 y=0 a=7,7,7,7"},
		{"while (load(x, rlx) == 0) ;", "end 3, x=0 y=0 a=7,7,7,7"},
		{"while (1) ;", "end 3, x=0 y=0 a=7,7,7,7"},
		{"assume(x == 1); y = 1;", "end 1, x=0 y=0 a=7,7,7,7"},
		{"assert(x == 1); y = 1;", "end 0, x=0 y=0 a=7,7,7,7"},
		{"int i = 4; a[i] = 1; x = 1;", "end 0, x=0 y=0 a=7,7,7,7"},
	} {
		if got := run(t, c.body); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
}

// FuzzParse checks that any file gives an error with a position, or a test that can be explored.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("../testdata/*.litmus")
	if err != nil || len(names) == 0 {
		f.Fatal("no tests to begin with", err)
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		test, err := Parse("t", src, Options{Unroll: 4})
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Line < 1 || e.Col < 1 || e.Msg == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if len(test.Threads) > 16 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		explore.Explore(ctx, test, explore.Options{Races: true, Leaf: func(x explore.Execution, end explore.Ending) {
			test.Filter.Satisfied(x)
			for _, o := range test.Observed() {
				o.Value(x)
			}
		}})
	})
}
