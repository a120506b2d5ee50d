package isa

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// TestArms checks shapes whose answer is plain.
func TestArms(t *testing.T) {
	const head = ".reg .pred %p<4>; .reg .b32 %r; .reg .b64 %rd; .local .b32 mine; .shared .b32 ours;\n"
	for _, c := range []struct {
		name, text, want string
		again            bool
	}{
		{"if and else", "@%p1 bra L; st.global.u32 [%rd], 1; bra J; L: ld.global.u32 %r, [%rd]; J: st.global.u32 [%rd], 2; ret;",
			"1:0b0/10 2:0b0/10 3:0b0/01", false},
		{"the same in a loop", "H: @%p1 bra L; st.global.u32 [%rd], 1; bra J; L: ld.global.u32 %r, [%rd]; J: @%p2 bra H; ret;",
			"1:0b0/10 2:0b0/10 3:0b0/01", true},
		{"an if without else", "@%p1 bra J; st.global.u32 [%rd], 1; J: ld.global.u32 %r, [%rd]; ret;", "", false},
		{"two ifs", "@%p1 bra J; st.global.u32 [%rd], 1; J: @%p1 bra K; ld.global.u32 %r, [%rd]; K: ret;", "", false},
		{"an if in a loop", "H: @%p1 bra J; st.global.u32 [%rd], 1; J: @%p2 bra H; ret;", "", false},
		{"an early return", "@%p1 bra L; st.global.u32 [%rd], 1; ret; L: ret;", "", false},
		{"arms that read", "@%p1 bra L; ld.global.u32 %r, [%rd]; bra J; L: ld.global.u32 %r, [%rd]; J: ret;", "", false},
		{"memory of the thread", "@%p1 bra L; st.local.u32 [mine], 1; bra J; L: st.global.u32 [%rd], 1; J: ret;", "", false},
		{"a retry", "H: @%p1 bra L; ld.global.u32 %r, [%rd]; bra H; L: st.global.u32 [%rd], 1; ret;", "", false},
		{"a retry whose end returns", "H: ld.global.u32 %r, [%rd]; @%p1 bra L; @%p2 bra X; bra H; L: st.global.u32 [%rd], 1; ret; X: ret;",
			"0:0b1/10 1:0b1/10 2:0b1/10 3:0b1/10 4:0b1/11 5:0b1/11 6:0b1/10", false},
	} {
		f := kernel(t, head+c.text)
		arms, again := f.Arms()
		var got []string
		for i := range f.Insts {
			for _, a := range arms[i] {
				got = append(got, fmt.Sprintf("%d:0b%d/%02b", i, a.Branch, a.Taken))
			}
		}
		if s := strings.Join(got, " "); s != c.want || again != c.again {
			t.Errorf("%s: %q, again %t; want %q, %t", c.name, s, again, c.want, c.again)
		}
	}
}

// TestArmsOfCheck checks that a call that does not return, as of an assertion, is an arm that ends there.
func TestArmsOfCheck(t *testing.T) {
	f := decode(t, `.func stop()
.noreturn
{
	st.global.u32 [0], 1;
	trap;
}
.visible .entry k()
{
	.reg .pred %p; .reg .b32 %r; .reg .b64 %rd;
	@%p bra L;
	call stop;
L:	st.global.u32 [%rd], 1;
	ld.global.u32 %r, [%rd];
	ret;
}`).ByName["k"]
	arms, _ := f.Arms()
	if got := fmt.Sprint(arms); f.Err != nil || got != "[[] [{0 2}] [{0 1}] [{0 1}] [{0 1}] []]" {
		t.Errorf("arms %s, %v", got, f.Err)
	}
}

// TestArmsRandom compares the arms of random control flow with their definition.
func TestArmsRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 2))
	some := 0
	for range 600 {
		n := 3 + rnd.IntN(9)
		var b strings.Builder
		b.WriteString(".reg .pred %p; .reg .b32 %r; .reg .b64 %rd;\n")
		for i := range n {
			fmt.Fprintf(&b, "L%d:", i)
			switch rnd.IntN(6) {
			case 0:
				b.WriteString("st.global.u32 [%rd], 1;\n")
			case 1:
				b.WriteString("ld.global.u32 %r, [%rd];\n")
			case 2:
				fmt.Fprintf(&b, "bra L%d;\n", rnd.IntN(n))
			case 3, 4:
				fmt.Fprintf(&b, "@%%p bra L%d;\n", rnd.IntN(n))
			case 5:
				b.WriteString("@%p ret;\n")
			}
		}
		b.WriteString("ret;")
		f := kernel(t, b.String())
		arms, _ := f.Arms()
		succ := successors(f)
		for i := range f.Insts {
			if f.Insts[i].Class != Branch {
				continue
			}
			// The instructions on each arm: what it reaches without the post-dominator.
			at := int(f.IPDom[i])
			on := make([]map[int]bool, len(succ[i]))
			used, writes := map[int]bool{}, false
			for k, s := range succ[i] {
				on[k] = map[int]bool{}
				if s != at && s != end {
					on[k] = reach(succ, s, at)
					on[k][s] = true
				}
				for x := range on[k] {
					if x != end && f.Insts[x].accesses() {
						used[k] = true
						writes = writes || f.Insts[x].Class == Store
					}
				}
			}
			for x := range f.Insts {
				want := map[int]bool{}
				for k := range on {
					if on[k][x] && len(used) > 1 && writes && succ[i][0] != succ[i][1] {
						want[k] = true
					}
				}
				var got event.Arm
				for _, a := range arms[x] {
					if int(a.Branch) == i {
						got = a
					}
				}
				for k := range succ[i] {
					if (got.Taken>>k&1 != 0) != want[k] {
						t.Fatalf("instruction %d lies on arms %b of the branch %d, want %v\n%s", x, got.Taken, i, want, b.String())
					}
				}
				some += len(want)
			}
		}
	}
	if some < 1000 {
		t.Errorf("only %d instructions lie on arms", some)
	}
}
