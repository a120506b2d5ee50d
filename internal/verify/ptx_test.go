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
)

// ptxCase is a litmus test, whether its condition can be reached, and the clauses of the model without which the answer
// changes.
type ptxCase struct {
	src     string
	reached bool
	idle    []model.PTXDrop
}

// two are the threads of ptxCases: two blocks of a device, unless they have others.
const two = "\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n"

var ptxCases = []ptxCase{
	{"PTX LB" + two + `
 ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y ;
 st.relaxed.gpu y, 1  | st.relaxed.gpu x, 1 ;
exists (P0:r0 == 1 /\ P1:r0 == 1)`, true, nil},
	{"PTX LB-data" + two + `
 ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y ;
 st.relaxed.gpu y, 1  | st.relaxed.gpu x, r0 ;
exists (P0:r0 == 1 /\ P1:r0 == 1)`, true, nil},
	{"PTX LB-thin-air" + two + `
 ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y ;
 xor r1, r0, r0       | xor r1, r0, r0 ;
 add r1, r1, 1        | add r1, r1, 1 ;
 st.relaxed.gpu y, r1 | st.relaxed.gpu x, r1 ;
exists (P0:r0 == 1 /\ P1:r0 == 1)`, false, []model.PTXDrop{model.PTXDropThinAir}},
	{"PTX LB-control" + two + `
 ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y ;
 beq r0, 0, L         | beq r0, 0, L ;
 st.relaxed.gpu y, 1  | st.relaxed.gpu x, 1 ;
 L:                   | L: ;
exists (P0:r0 == 1 /\ P1:r0 == 1)`, false, nil},
	{"PTX LB-update" + two + `
 atom.relaxed.gpu.add r0, x, 1  | ld.relaxed.gpu r0, y ;
 st.relaxed.gpu y, 1            | st.relaxed.gpu x, 1 ;
exists (P0:r0 == 1 /\ P1:r0 == 1)`, true, nil},
	{"PTX LB-exchange\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;" + `
 atom.relaxed.gpu.exch r0, x, 1 | ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y ;
                                | st.relaxed.gpu y, r0 | add r1, r0, 1 ;
                                |                      | st.relaxed.gpu x, r1 ;
exists (P0:r0 == 2)`, true, nil},
	{"PTX LB-through-a-barrier\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 1,gpu 0 ;" + `
 ld.relaxed.gpu r0, y | bar.cta.sync 0       | ld.relaxed.gpu r0, x ;
 bar.cta.sync 0       | st.relaxed.gpu x, 1  | st.relaxed.gpu y, r0 ;
exists (P0:r0 == 1)`, true, nil},
	{"PTX LB-through-a-barrier-that-depends\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 1,gpu 0 ;" + `
 ld.relaxed.gpu r0, y | bar.cta.sync 0       | ld.relaxed.gpu r0, x ;
 beq r0, 0, L         | st.relaxed.gpu x, 1  | st.relaxed.gpu y, r0 ;
 L: bar.cta.sync 0    |                      | ;
exists (P0:r0 == 1)`, false, nil},
	{"PTX MP" + two + `
 st.weak x, 1          | ld.acquire.gpu r0, f ;
 st.release.gpu f, 1   | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, false, []model.PTXDrop{model.PTXDropCausalityFR}},
	{"PTX MP-relaxed" + two + `
 st.weak x, 1          | ld.relaxed.gpu r0, f ;
 st.relaxed.gpu f, 1   | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, nil},
	{"PTX MP-cta" + two + `
 st.weak x, 1          | ld.acquire.gpu r0, f ;
 st.release.cta f, 1   | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, []model.PTXDrop{model.PTXDropScopes}},
	{"PTX MP-weak-flag" + two + `
 st.weak x, 1          | ld.weak r0, f ;
 fence.acq_rel.gpu     | fence.acq_rel.gpu ;
 st.weak f, 1          | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, nil},
	{"PTX MP-fences" + two + `
 st.weak x, 1          | ld.relaxed.gpu r0, f ;
 fence.acq_rel.gpu     | fence.acq_rel.gpu ;
 st.relaxed.gpu f, 1   | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, false, []model.PTXDrop{model.PTXDropReleaseFence, model.PTXDropAcquireFence}},
	{"PTX MP-fence-of-one-direction" + two + `
 st.weak x, 1          | ld.relaxed.gpu r0, f ;
 fence.acquire.gpu     | fence.acquire.gpu ;
 st.relaxed.gpu f, 1   | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, nil},
	{"PTX MP-release-then-write" + two + `
 st.weak x, 1          | ld.acquire.gpu r0, f ;
 st.release.gpu f, 1   | ld.weak r1, x ;
 st.relaxed.gpu f, 2   | ;
exists (P1:r0 == 2 /\ P1:r1 == 0)`, false, []model.PTXDrop{model.PTXDropReleaseWrite}},
	{"PTX MP-read-then-acquire" + two + `
 st.weak x, 1          | ld.relaxed.gpu r0, f ;
 st.release.gpu f, 1   | ld.acquire.gpu r2, f ;
 st.relaxed.gpu g, 1   | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, false, nil},
	{"PTX MP-reduction" + two + `
 st.weak x, 1          | red.relaxed.gpu.add f, 1 ;
 fence.acq_rel.gpu     | fence.acq_rel.gpu ;
 st.relaxed.gpu f, 1   | ld.weak r1, x ;
exists (f == 2 /\ P1:r1 == 0)`, true, nil},
	{"PTX MP-chain\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;" + `
 st.weak x, 1          | atom.relaxed.gpu.add r0, f, 1 | ld.acquire.gpu r0, f ;
 st.release.gpu f, 1   |                               | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P2:r0 == 2 /\ P2:r1 == 0)`, false, []model.PTXDrop{model.PTXDropChain}},
	{"PTX MP-barrier\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;" + `
 st.weak x, 1          | bar.cta.sync 0 ;
 bar.cta.sync 0        | ld.weak r1, x ;
exists (P1:r1 == 0)`, false, []model.PTXDrop{model.PTXDropBarrier}},
	{"PTX SB" + two + `
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1 ;
 fence.sc.gpu          | fence.sc.gpu ;
 ld.relaxed.gpu r0, y  | ld.relaxed.gpu r0, x ;
exists (P0:r0 == 0 /\ P1:r0 == 0)`, false, []model.PTXDrop{model.PTXDropSyncFenceSC}},
	{"PTX SB-acq-rel" + two + `
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1 ;
 fence.acq_rel.gpu     | fence.acq_rel.gpu ;
 ld.relaxed.gpu r0, y  | ld.relaxed.gpu r0, x ;
exists (P0:r0 == 0 /\ P1:r0 == 0)`, true, nil},
	{"PTX SB-cta" + two + `
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1 ;
 fence.sc.cta          | fence.sc.gpu ;
 ld.relaxed.gpu r0, y  | ld.relaxed.gpu r0, x ;
exists (P0:r0 == 0 /\ P1:r0 == 0)`, true, []model.PTXDrop{model.PTXDropScopes}},
	{"PTX FenceSC" + two + `
 fence.sc.gpu          | ld.acquire.gpu r0, f ;
 st.release.gpu f, 1   | fence.sc.gpu ;
 ld.relaxed.gpu r1, z  | st.relaxed.gpu z, 1 ;
exists (P1:r0 == 1 /\ P0:r1 == 1)`, true, nil},
	{"PTX SB-beside-a-fence-of-its-block\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;" + `
 st.relaxed.gpu x, 1   | fence.sc.cta | st.relaxed.gpu y, 1 ;
 fence.sc.gpu          |              | fence.sc.gpu ;
 ld.relaxed.gpu r0, y  |              | ld.relaxed.gpu r0, x ;
exists (P0:r0 == 1 /\ P2:r0 == 0)`, true, nil},
	{"PTX IRIW\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 | P3@cta 3,gpu 0 ;" + `
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1 | ld.acquire.gpu r0, x | ld.acquire.gpu r0, y ;
                       |                     | ld.acquire.gpu r1, y | ld.acquire.gpu r1, x ;
exists (P2:r0 == 1 /\ P2:r1 == 0 /\ P3:r0 == 1 /\ P3:r1 == 0)`, true, nil},
	{"PTX IRIW-sc\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 | P3@cta 3,gpu 0 ;" + `
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1 | ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y ;
                       |                     | fence.sc.gpu         | fence.sc.gpu ;
                       |                     | ld.relaxed.gpu r1, y | ld.relaxed.gpu r1, x ;
exists (P2:r0 == 1 /\ P2:r1 == 0 /\ P3:r0 == 1 /\ P3:r1 == 0)`, false, []model.PTXDrop{model.PTXDropObservation}},
	{"PTX CoRR" + two + `
 st.relaxed.gpu x, 1   | ld.relaxed.gpu r0, x ;
                       | ld.relaxed.gpu r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, false, nil},
	{"PTX CoRR-two-writes" + two + `
 st.relaxed.gpu x, 1   | ld.relaxed.gpu r0, x ;
 st.relaxed.gpu x, 2   | ld.relaxed.gpu r1, x ;
exists (P1:r0 == 2 /\ P1:r1 == 1)`, false, nil},
	{"PTX CoRR-weak" + two + `
 st.weak x, 1          | ld.weak r0, x ;
                       | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, nil},
	{"PTX CoWW\n P0@cta 0,gpu 0 ;" + `
 st.weak x, 1 ;
 st.weak x, 2 ;
exists (x == 1)`, false, nil},
	{"PTX CoWR\n P0@cta 0,gpu 0 ;" + `
 st.weak x, 1 ;
 ld.weak r0, x ;
exists (P0:r0 == 0)`, false, nil},
	{"PTX CoRW-through-a-barrier\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;" + `
 ld.weak r0, x         | bar.cta.sync 0 ;
 bar.cta.sync 0        | st.weak x, 1 ;
exists (P0:r0 == 1)`, false, []model.PTXDrop{model.PTXDropCausalityRF}},
	{"PTX CoWW-through-a-barrier\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;" + `
 st.weak x, 1          | bar.cta.sync 0 ;
 bar.cta.sync 0        | st.weak x, 2 ;
exists (x == 1)`, false, []model.PTXDrop{model.PTXDropCoherence}},
	{"PTX 2+2W" + two + `
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1 ;
 st.relaxed.gpu y, 2   | st.relaxed.gpu x, 2 ;
exists (x == 1 /\ y == 1)`, true, nil},
	{"PTX INC" + two + `
 atom.relaxed.gpu.add r0, x, 1 | atom.relaxed.gpu.add r0, x, 1 ;
exists (P0:r0 == 0 /\ P1:r0 == 0)`, false, []model.PTXDrop{model.PTXDropAtomicity}},
	{"PTX INC-cta" + two + `
 atom.relaxed.cta.add r0, x, 1 | atom.relaxed.cta.add r0, x, 1 ;
exists (P0:r0 == 0 /\ P1:r0 == 0)`, true, []model.PTXDrop{model.PTXDropScopes}},
	{"PTX racing-writes" + two + `
 st.weak x, 1          | st.weak x, 2 ;
 ld.weak r0, x         | ld.weak r0, x ;
exists (P0:r0 == 2 /\ P1:r0 == 1)`, true, []model.PTXDrop{model.PTXDropPartial, model.PTXDropStrong}},
	{"PTX MP-read-then-acquire-of-another\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;" + `
 st.weak x, 1          | ld.relaxed.gpu r0, f | st.relaxed.gpu f, 2 ;
 st.release.gpu f, 1   | ld.acquire.gpu r2, f | ;
                       | ld.weak r1, x        | ;
exists (P1:r0 == 1 /\ P1:r2 == 2 /\ P1:r1 == 0)`, false, []model.PTXDrop{model.PTXDropAcquireRead}},
	{"PTX SB-of-aliases\n{ x = 0; y @ generic aliases x; }" + two + `
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 2 ;
 ld.relaxed.gpu r0, y  | ld.relaxed.gpu r0, x ;
exists (P0:r0 == 0 /\ P1:r0 == 0)`, true, nil},
	{"PTX CoRR-of-an-alias\n{ x = 0; y @ generic aliases x; }" + two + `
 st.relaxed.gpu x, 1   | ld.relaxed.gpu r0, y ;
                       | ld.relaxed.gpu r1, y ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, []model.PTXDrop{model.PTXDropProxy}},
	// Neither of the writes 1 and 2 precedes the other in coherence order, as the scope of the first one excludes the thread of the second one.
	{"PTX CoRR-of-writes-without-order\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 0,gpu 0 | P3@cta 0,gpu 0 ;" + `
 st.relaxed.cta x, 4   | st.relaxed.gpu x, 3 | ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, x ;
 st.relaxed.cta x, 1   | st.relaxed.gpu x, 2 | ld.relaxed.gpu r1, x | ld.relaxed.gpu r1, x ;
exists (P2:r0 == 1 /\ P2:r1 == 3 /\ P3:r0 == 2 /\ P3:r1 == 4)`, false, []model.PTXDrop{model.PTXDropSCPerLocation}},
	{"PTX constant\n{ x = 0; c @ constant aliases x; }\n P0@cta 0,gpu 0 ;" + `
 st.weak x, 1 ;
 cold.weak r0, c ;
exists (P0:r0 == 0)`, true, []model.PTXDrop{model.PTXDropPreserved}},
	{"PTX constant-fence\n{ x = 0; c @ constant aliases x; }\n P0@cta 0,gpu 0 ;" + `
 st.weak x, 1 ;
 fence.proxy.constant ;
 cold.weak r0, c ;
exists (P0:r0 == 0)`, false, nil},
	{"PTX constant-wrong-fence\n{ x = 0; c @ constant aliases x; }\n P0@cta 0,gpu 0 ;" + `
 st.weak x, 1 ;
 fence.proxy.alias ;
 cold.weak r0, c ;
exists (P0:r0 == 0)`, true, nil},
	{"PTX alias\n{ x = 0; y @ generic aliases x; }\n P0@cta 0,gpu 0 ;" + `
 st.weak x, 1 ;
 ld.weak r0, y ;
exists (P0:r0 == 0)`, true, nil},
	{"PTX alias-fence\n{ x = 0; y @ generic aliases x; }\n P0@cta 0,gpu 0 ;" + `
 st.weak x, 1 ;
 fence.proxy.alias ;
 ld.weak r0, y ;
exists (P0:r0 == 0)`, false, nil},
	{"PTX surface-of-one-block\n{ x = 0; s @ surface aliases x; }\n P0@cta 0,gpu 0 ;" + `
 sust.weak s, 1 ;
 suld.weak r0, s ;
exists (P0:r0 == 0)`, false, nil},
	{"PTX texture-of-a-later-write\n{ x = 0; t @ texture aliases x; }\n P0@cta 0,gpu 0 ;" + `
 tld.weak r0, t ;
 st.weak x, 1 ;
exists (P0:r0 == 1)`, true, nil},
	{"PTX texture-of-a-later-write-fence\n{ x = 0; t @ texture aliases x; }\n P0@cta 0,gpu 0 ;" + `
 tld.weak r0, t ;
 fence.proxy.texture ;
 st.weak x, 1 ;
exists (P0:r0 == 1)`, false, nil},
	{"PTX surface-of-two-blocks\n{ x = 0; s @ surface aliases x; }" + two + `
 sust.weak s, 1        | ld.acquire.gpu r0, f ;
 st.release.gpu f, 1   | suld.weak r1, s ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, nil},
	{"PTX surface-fences\n{ x = 0; s @ surface aliases x; }" + two + `
 sust.weak s, 1        | ld.acquire.gpu r0, f ;
 fence.proxy.surface   | fence.proxy.surface ;
 st.release.gpu f, 1   | suld.weak r1, s ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, false, nil},
	{"PTX texture-fence-of-the-writer\n{ x = 0; t @ texture aliases x; }" + two + `
 st.weak x, 1          | ld.acquire.gpu r0, f ;
 fence.proxy.texture   | tld.weak r1, t ;
 st.release.gpu f, 1   | ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, true, nil},
	{"PTX texture-fence-of-the-reader\n{ x = 0; t @ texture aliases x; }" + two + `
 st.weak x, 1          | ld.acquire.gpu r0, f ;
 st.release.gpu f, 1   | fence.proxy.texture ;
                       | tld.weak r1, t ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`, false, nil},
}

// reached enumerates a test.
func reached(t *testing.T, src string, m model.PTX) bool {
	t.Helper()
	test, err := litmus.Parse("t.litmus", src, litmus.Options{PTX: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	found := false
	if _, err := candidates.Enumerate(context.Background(), test, m, explore.Options{Leaf: func(x explore.Execution, _ explore.Ending) {
		found = found || test.Condition.Formula.Satisfied(x)
	}}, nil); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCancelledOrders checks that a search that is cancelled does not go through the coherence orders of an execution
// first.
func TestCancelledOrders(t *testing.T) {
	test, err := litmus.Parse("test.litmus", `C writes
int x, y, z;
grid 9, 1;
kernel {
  if (tid > 1) store(z, tid, rlx, gpu);
  else if (tid == 0) { int a = load(x, rlx, gpu); store(y, 1, rlx, gpu); }
  else { int a = load(y, rlx, gpu); store(x, 1, rlx, gpu); }
}`, litmus.Options{PTX: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result, err := candidates.Enumerate(ctx, test, model.PTX{}, explore.Options{Leaf: func(explore.Execution, explore.Ending) { cancel() }}, nil)
	if !result.Stopped || result.Executions > 1000 || err != nil {
		t.Errorf("%+v %v", result, err)
	}
}

// TestPTX compares litmus tests with the manual's chapter.
func TestPTX(t *testing.T) {
	for _, c := range ptxCases {
		if got := reached(t, c.src, model.PTX{}); got != c.reached {
			t.Errorf("the condition is reached: %t, want %t\n%s", got, c.reached, c.src)
		}
	}
}

// TestPTXMutants checks that every clause of the model matters.
func TestPTXMutants(t *testing.T) {
	for drop := model.PTXWhole + 1; drop < model.PTXDrops; drop++ {
		killed := false
		for _, c := range ptxCases {
			differs := reached(t, c.src, model.PTX{Drop: drop}) != c.reached
			killed = killed || differs
			for _, d := range c.idle {
				if d == drop && !differs {
					t.Errorf("without clause %d the answer is the same:\n%s", drop, c.src)
				}
			}
		}
		if !killed {
			t.Errorf("no test needs clause %d", drop)
		}
	}
}

// randomPTX writes a program. A strong program has only strong accesses of one block, and neither sc fences nor
// dependencies.
func randomPTX(r *rand.Rand, size int, strong bool) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	scope := func() string {
		if strong {
			return "gpu"
		}
		return pick("cta", "gpu", "gpu", "sys")
	}
	threads := 2 + r.IntN(2)
	columns := make([][]string, threads)
	loaded, ends := make([][]string, threads), make([][]string, threads) // registers, labels
	for i := range size {
		t := r.IntN(threads)
		v := pick("x", "y")
		kind := r.IntN(10)
		value := fmt.Sprint(i + 1)
		if of := loaded[t]; !strong && len(of) > 0 && r.IntN(2) == 0 {
			value = of[r.IntN(len(of))]
			if r.IntN(3) == 0 { // what follows depends on the branch
				columns[t] = append(columns[t], fmt.Sprintf("beq %s, %s, L%d", value, pick("0", "1", "2"), i))
				ends[t] = append(ends[t], fmt.Sprintf("L%d:", i))
				value = fmt.Sprint(i + 1)
			}
		}
		switch {
		case kind < 4:
			loaded[t] = append(loaded[t], fmt.Sprintf("r%d", i))
			order := pick("relaxed", "acquire")
			if !strong && r.IntN(3) == 0 {
				columns[t] = append(columns[t], fmt.Sprintf("ld.weak r%d, %s", i, v))
				break
			}
			columns[t] = append(columns[t], fmt.Sprintf("ld.%s.%s r%d, %s", order, scope(), i, v))
		case kind < 8:
			order := pick("relaxed", "release")
			if !strong && r.IntN(3) == 0 {
				columns[t] = append(columns[t], fmt.Sprintf("st.weak %s, %s", v, value))
				break
			}
			columns[t] = append(columns[t], fmt.Sprintf("st.%s.%s %s, %s", order, scope(), v, value))
		case kind < 9:
			kinds := []string{"acq_rel", "acquire", "release"}
			if !strong {
				kinds = append(kinds, "sc", "sc")
			}
			columns[t] = append(columns[t], fmt.Sprintf("fence.%s.%s", pick(kinds...), scope()))
		default:
			columns[t] = append(columns[t], fmt.Sprintf("atom.%s.%s.add r%d, %s, 10", pick("relaxed", "acquire", "release", "acq_rel"), scope(), i, v))
		}
	}
	barrier := !strong && r.IntN(3) == 0
	for t := range columns {
		if barrier { // what comes before and after it in other threads of the CTA may be as load buffering has it
			columns[t] = slices.Insert(columns[t], r.IntN(len(columns[t])+1), "bar.cta.sync 0")
		}
		columns[t] = append(columns[t], ends[t]...)
	}
	var b strings.Builder
	b.WriteString("PTX random\n")
	for t := range threads {
		end := " |"
		if t == threads-1 {
			end = " ;\n"
		}
		fmt.Fprintf(&b, " P%d@cta %d,gpu 0%s", t, r.IntN(2), end)
	}
	for row := 0; ; row++ {
		line, any := "", false
		for t, c := range columns {
			if t > 0 {
				line += " | "
			}
			if row < len(c) {
				line, any = line+c[row], true
			}
		}
		if !any {
			return b.String()
		}
		b.WriteString(line + " ;\n")
	}
}

// randomFences writes a program of four threads. All have an sc fence, and most a store before it and a load after it.
func randomFences(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	var at, before, fence, after []string
	for t := range 4 {
		at = append(at, fmt.Sprintf(" P%d@cta %d,gpu %d", t, r.IntN(3), r.IntN(2)))
		fence = append(fence, "fence.sc."+pick("cta", "gpu", "sys"))
		store, load := fmt.Sprintf("st.relaxed.sys %s, %d", pick("x", "y"), t+1), "ld.relaxed.sys r0, "+pick("x", "y")
		if t == 3 {
			store, load = "", ""
		}
		before, after = append(before, store), append(after, load)
	}
	var b strings.Builder
	b.WriteString("PTX fences\n")
	for _, row := range [][]string{at, before, fence, after} {
		b.WriteString(strings.Join(row, " | ") + " ;\n")
	}
	return b.String()
}

// randomProxies writes a program of one or two threads, with accesses of a variable by two virtual addresses or by several proxies.
func randomProxies(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	init, fences := "y @ generic aliases x;", []string{"alias"}
	load := func(i int) string {
		return fmt.Sprintf("ld.%s r%d, %s", pick("weak", "relaxed.gpu", "acquire.cta"), i, pick("x", "y", "y", "f"))
	}
	store := func(i int) string {
		return fmt.Sprintf("st.%s %s, %d", pick("weak", "relaxed.gpu", "release.cta"), pick("x", "x", "y", "f"), i+1)
	}
	if r.IntN(2) == 0 {
		init, fences = "s @ surface aliases x; t @ texture aliases x;", []string{"surface", "texture"}
		load = func(i int) string {
			return fmt.Sprintf(pick("tld.weak r%d, t", "suld.weak r%d, s", "ld.weak r%d, x", "ld.acquire.gpu r%d, f"), i)
		}
		store = func(i int) string {
			return fmt.Sprintf(pick("sust.weak s, %d", "st.weak x, %d", "st.relaxed.gpu x, %d", "st.release.gpu f, %d"), i+1)
		}
	}
	columns := make([][]string, 2)
	for i := range 3 + r.IntN(4) {
		t := r.IntN(2)
		line := load(i)
		switch r.IntN(6) {
		case 0:
			line = "fence.proxy." + pick(fences...)
		case 1, 2, 3:
			line = store(i)
		}
		columns[t] = append(columns[t], line)
	}
	if r.IntN(3) == 0 {
		for t := range columns {
			columns[t] = slices.Insert(columns[t], r.IntN(len(columns[t])+1), "bar.cta.sync 0")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "PTX proxies\n{ x = 0; %s }\n P0@cta 0,gpu 0 | P1@cta %d,gpu 0 ;\n", init, r.IntN(2))
	for row := range max(len(columns[0]), len(columns[1])) {
		cell := func(t int) string {
			if row < len(columns[t]) {
				return columns[t][row]
			}
			return ""
		}
		fmt.Fprintf(&b, "%s | %s ;\n", cell(0), cell(1))
	}
	return b.String()
}

// TestPTXBruteForce compares the enumeration of candidates with the naive enumeration, which has no short cuts.
func TestPTXBruteForce(t *testing.T) {
	want := testsize.Of(60, 80, 5000)
	r := rand.New(rand.NewPCG(2, 2))
	for compared := 0; compared < want; {
		src := randomPTX(r, 3+r.IntN(4), false)
		switch r.IntN(8) {
		case 0, 1:
			src = randomFences(r)
		case 2, 3:
			src = randomBuffering(r)
		case 4, 5:
			src = randomProxies(r)
		}
		test, err := litmus.Parse("random.litmus", src, litmus.Options{PTX: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		found := map[string]bool{}
		b := &brute{p: test, limit: 3000}
		b.judge = func(x *model.Execution, steps []step, rf []int, _ [][]int) {
			x.Dep = dependencies(steps)
			var fences []int
			for i, e := range x.E {
				if e.Kind == model.F && e.Order == model.SC {
					fences = append(fences, i)
				}
			}
			permutations(fences, func(order []int) {
				x.FenceSC = model.NewRel(len(x.E))
				for i, f := range order {
					for _, g := range order[i+1:] {
						if (model.PTX{}).MorallyStrong(&x.E[f], &x.E[g], x.E[f].Thread == x.E[g].Thread) {
							x.FenceSC.Add(f, g)
						}
					}
				}
				if rel := (model.PTX{}).Relations(x); (model.PTX{}).Consistent(x, rel) {
					found[fmt.Sprint(steps, rf, rel.Coherence.Key())] = true
				}
			})
		}
		if !b.run() || b.cut {
			continue
		}
		compared++
		got, err := candidates.Enumerate(context.Background(), test, model.PTX{}, explore.Options{Races: true, Found: func(explore.Error, explore.Execution) bool { return true }}, nil)
		if err != nil || got.Executions != len(found) {
			t.Fatalf("%d executions, %v; there are %d\n%s", got.Executions, err, len(found), src)
		}
		// In parts of a few graphs each, explored by several goroutines.
		if parts := inParts(t, test, 1+compared%9); parts.Executions != got.Executions {
			t.Fatalf("%d executions in parts, %d in one\n%s", parts.Executions, got.Executions, src)
		}
	}
}

// inParts enumerates a test in parts of so many graphs, and checks that they are the same for one goroutine and for several.
func inParts(t *testing.T, test *litmus.Test, graphs int) explore.Result {
	t.Helper()
	var parts [2][]string
	var sum explore.Result
	for i, jobs := range []int{3, 1} {
		err := candidates.Rounds(test, model.PTX{}, func(_ bool, search func() explore.Search) explore.Result {
			sum, parts[i] = explore.Result{}, nil
			d := explore.Division{Search: search, Jobs: jobs, Graphs: graphs, Begin: func() *explore.Options { return &explore.Options{Races: true} },
				Done: func(p *explore.Part, _ []int32) bool {
					parts[i] = append(parts[i], fmt.Sprint(p.Path, p.Result))
					sum.Add(p.Result)
					return true
				}}
			if err := d.Explore(context.Background()); err != nil {
				t.Fatal(err)
			}
			return sum
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(parts[0], parts[1]) {
		t.Fatalf("three goroutines have other parts than one:\n%s\n%s", parts[0], parts[1])
	}
	return sum
}

// TestPTXQueue checks a queue after a lock. The reads of promised values are followed no further than the promises can
// be kept. An update after the release of the lock may be exchanged with the next attempt to acquire it, so the search
// along program order is not sufficient.
func TestPTXQueue(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "queue.litmus"))
	if err != nil {
		t.Fatal(err)
	}
	test, err := litmus.Parse("queue.litmus", string(src), litmus.Options{PTX: true, Unroll: 64})
	if err != nil {
		t.Fatal(err)
	}
	got, err := candidates.Enumerate(context.Background(), test, model.PTX{}, explore.Options{Races: true}, nil)
	if want := explore.Explore(context.Background(), test, explore.Options{}).Executions; err != nil || got.Executions != want {
		t.Errorf("%d executions, %v, want %d", got.Executions, err, want)
	}
	if got.Graphs > 40000 {
		t.Errorf("%d graphs", got.Graphs)
	}
}

// TestPTXAgainstSRC11 checks that both models have the same executions where they are equivalent: all accesses are
// strong, all scopes include all threads, there are no sc fences, and no read takes its value from a write that depends
// on it or comes later in its thread. Scoped RC11 has no acquire pattern that begins with a read and ends with an
// acquire of another value.
func TestPTXAgainstSRC11(t *testing.T) {
	want := testsize.Of(60, 80, 5000)
	r := rand.New(rand.NewPCG(3, 3))
	both := 0
	m := model.PTX{Drop: model.PTXDropAcquireRead}
	for compared := 0; compared < want; {
		src := randomPTX(r, 3+r.IntN(5), true)
		test, err := litmus.Parse("random.litmus", src, litmus.Options{PTX: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		b := &brute{p: test, limit: 3000}
		b.judge = func(x *model.Execution, steps []step, rf []int, order [][]int) {
			x.Dep, x.FenceSC = x.PO, model.NewRel(len(x.E)) // po and rf have no cycle
			src11, ptx := (model.SRC11{}).Consistent(x), m.Consistent(x, m.Relations(x))
			if src11 != ptx {
				t.Fatalf("src11 %t, ptx %t: %v %v %v\n%s", src11, ptx, steps, rf, order, src)
			}
			if src11 {
				both++
			}
		}
		if b.run() {
			compared++
		}
	}
	if both < want {
		t.Errorf("only %d executions are consistent", both)
	}
}
