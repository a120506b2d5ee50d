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
	"fencepost.dev/fencepost/internal/verify/kernel"
)

// pollKernel writes functions that poll variables in loops and store the read values in local memory, and a kernel
// whose threads call them.
func pollKernel(r *rand.Rand) (functions, body string) {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	var b strings.Builder
	const polls = 2
	for f := range polls {
		fmt.Fprintf(&b, ".func (.reg .b32 %%left) poll%d() {\n.local .align 8 .b8 slot[16]; .reg .b32 %%r<4>; .reg .pred %%p0;\nmov.u32 %%r3, 0; st.local.u64 [slot], 0; st.local.u64 [slot+8], 0;\nHEAD:\n", f)
		for i := range 1 + r.IntN(3) {
			fmt.Fprintf(&b, "ld.%s.gpu.global.u32 %%r1, [%s];\n", pick("relaxed", "acquire"), pick("x", "x", "lock"))
			if r.IntN(2) == 0 {
				fmt.Fprintf(&b, "st.local.u32 [slot+%d], %%r1;\n", 4*r.IntN(2))
			}
			to := pick("HEAD", "END")
			if i == 0 {
				to = "END"
			}
			fmt.Fprintf(&b, "setp.%s.u32 %%p0, %%r1, %d; @%%p0 bra %s;\n", pick("eq", "ne", "ge"), 1+r.IntN(2), to)
			switch r.IntN(5) {
			case 0: // counts, up to some number
				fmt.Fprintf(&b, "ld.local.u32 %%r2, [slot+8]; add.u32 %%r2, %%r2, 1; min.u32 %%r2, %%r2, %d; st.local.u32 [slot+8], %%r2;\n", 1+r.IntN(3))
			case 1: // compares with what was read before
				fmt.Fprintf(&b, "ld.local.u32 %%r2, [slot+4]; setp.ne.u32 %%p0, %%r1, %%r2; st.local.u32 [slot+4], %%r1; @%%p0 bra %s;\n", pick("HEAD", "END"))
			case 3: // counts in a register, up to some number, after which it leaves or not
				fmt.Fprintf(&b, "add.u32 %%r3, %%r3, 1; min.u32 %%r3, %%r3, %d; setp.ge.u32 %%p0, %%r3, 3; @%%p0 bra %s;\n", 2+r.IntN(2), pick("HEAD", "END"))
			case 2: // leaves after some attempts
				fmt.Fprintf(&b, "ld.local.u32 %%r2, [slot+12]; add.u32 %%r2, %%r2, 1; st.local.u32 [slot+12], %%r2; setp.ge.u32 %%p0, %%r2, 3; @%%p0 bra END;\n")
			}
		}
		fmt.Fprintf(&b, "bra HEAD;\nEND:\n")
		if r.IntN(2) == 0 {
			fmt.Fprintf(&b, "ld.local.u32 %%left, [slot+%d]; ret;\n}\n", 4*r.IntN(3))
		} else {
			b.WriteString("mov.u32 %left, %r1; ret;\n}\n")
		}
	}
	functions = b.String()
	b.Reset()
	for t := range 2 {
		fmt.Fprintf(&b, "setp.ne.u32 %%p0, %%b, %d; @%%p0 bra OVER%d;\n", t, t)
		for range 2 + r.IntN(2) {
			switch r.IntN(5) {
			case 0:
				if r.IntN(2) == 0 { // adds, as often as another thread does meanwhile
					v, label := pick("x", "lock"), b.Len()
					fmt.Fprintf(&b, "ld.%s.gpu.global.u32 %%r1, [%s];\nAGAIN%d: mov.u32 %%r2, %%r1; add.u32 %%r3, %%r2, 1; atom.%s.gpu.global.cas.b32 %%r1, [%s], %%r2, %%r3; "+
						"setp.ne.u32 %%p0, %%r1, %%r2; @%%p0 bra AGAIN%d;\n", pick("relaxed", "acquire"), v, label, pick("relaxed", "acquire", "acq_rel", "release"), v, label)
					continue
				}
				fmt.Fprintf(&b, "atom.acq_rel.gpu.global.add.u32 %%r0, [%s], 1;\n", pick("x", "lock"))
			case 1:
				fmt.Fprintf(&b, "st.%s.gpu.global.u32 [%s], %d;\n", pick("relaxed", "release"), pick("x", "lock"), 1+r.IntN(2))
			case 2:
				b.WriteString(pick("st.global.u32 [four], 1;\n", "ld.global.u32 %r0, [four];\n"))
			default:
				fmt.Fprintf(&b, "call (%%r0), poll%d, ();\n", r.IntN(polls))
				if r.IntN(2) == 0 {
					b.WriteString("st.relaxed.gpu.global.u32 [four+4], %r0;\n")
				}
			}
		}
		fmt.Fprintf(&b, "ret;\nOVER%d:\n", t)
	}
	return functions, b.String()
}

// TestVainRandom checks that the errors and the final memory are the same with and without useless iterations.
func TestVainRandom(t *testing.T) {
	n := testsize.Of(200, 250, 5000)
	r := rand.New(rand.NewPCG(36, 1))
	fewer, wrong, compared, counted := 0, 0, 0, 0
	for range n {
		functions, body := pollKernel(r)
		l := launchOf(t, lockVariables+".global .u32 four[4];\n"+functions, body, 2, 1)
		run := func(use kernel.Options) (errors, states []string, res explore.Result, refusal *kernel.Refusal) {
			use.Unroll = 20
			p, err := kernel.New(l, use)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			found, ends := map[string]bool{}, map[string]bool{}
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			leaves := 0
			res = explore.Explore(ctx, p, explore.Options{Races: true, Exits: true,
				Found: func(e explore.Error, x explore.Execution) bool {
					what := fmt.Sprint(e.Kind)
					if e.A >= 0 && e.B >= 0 {
						a, b := x.Step(e.A).Pos, x.Step(e.B).Pos
						what += fmt.Sprint(min(a, b), max(a, b))
					}
					found[what] = true
					return true
				},
				Leaf: func(x explore.Execution, end explore.Ending) {
					if leaves++; leaves > 20000 { // larger programs are left out
						stop()
					}
					if end != explore.Complete {
						return
					}
					var memory []string
					for loc := range int32(p.Locations()) {
						_, _, addr, _ := p.Location(loc)
						if len(x.Coherence(loc)) > 0 {
							memory = append(memory, fmt.Sprint(addr, "=", x.Final(loc)))
						}
					}
					slices.Sort(memory)
					ends[strings.Join(memory, " ")] = true
				}})
			return slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(ends)), res, p.Refusal()
		}
		errors, states, res, refusal := run(kernel.Options{})
		if refusal != nil && refusal.Attempts {
			counted++
			errors, states, res, _ = run(kernel.Options{Attempts: true})
		}
		wantErrors, wantStates, want, _ := run(kernel.Options{Vain: true})
		if res.Stopped || want.Stopped || want.Cut > 0 {
			continue
		}
		compared++
		if res.Cut > 0 || !slices.Equal(errors, wantErrors) || !slices.Equal(states, wantStates) || res.Executions > want.Executions {
			t.Errorf("%v %v in %d executions, want %v %v in %d\n%s%s", errors, states, res.Executions, wantErrors, wantStates, want.Executions, functions, body)
		}
		if res.Executions < want.Executions {
			fewer++
		}
		if len(errors) > 0 {
			wrong++
		}
	}
	t.Log(n, "programs,", compared, "compared,", fewer, "with fewer executions,", wrong, "with errors,", counted, "that use what they count")
	if compared < n/3 || fewer < n/20 || wrong < n/10 || counted < n/50 {
		t.Errorf("%d programs compared, %d with fewer executions, %d with errors, %d that use what they count: the test is idle", compared, fewer, wrong, counted)
	}
}
