package verify

import (
	"fmt"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// TestStyles checks that programs written in both styles of litmus file have the same executions and outcomes.
func TestStyles(t *testing.T) {
	for _, c := range []struct{ name, scoped, ptx string }{
		{"MP", `C MP
int x, y;
thread P0 @ cta 0, gpu 0 { store(x, 1, rlx, gpu); store(y, 1, rel, gpu); }
thread P1 @ cta 1, gpu 0 { int r0 = load(y, acq, gpu); int r1 = load(x, rlx, gpu); }
exists (P1:r0 == 1 /\ P1:r1 == 0)`, `PTX MP
{ x = 0; y = 0; P1:r0 = 7; }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0 ;
 st.relaxed.gpu x, 1   | ld.acquire.gpu r0, y ;
 st.release.gpu y, 1   | ld.relaxed.gpu r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)`},
		{"SB with fences of two scopes", `C SB
int x, y;
thread P0 @ cta 0 { store(x, 1, rlx, gpu); fence(sc, cta); int r0 = load(y, rlx, gpu); }
thread P1 @ cta 1 { store(y, 1, rlx, gpu); fence(sc, gpu); int r0 = load(x, rlx, gpu); }
exists (P0:r0 == 0 && P1:r0 == 0)`, `PTX SB
"comment"
 P0@cta 0              | P1@cta 1 ;
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1 ;
 fence.sc.cta          | fence.sc.gpu ;
 ld.relaxed.gpu r0, y  | ld.relaxed.gpu r0, x ;
exists (P0:r0 == 0 && P1:r0 == 0)`},
		{"a lock", `C lock
int lock, x;
thread P0 @ cta 0 { while (cas(lock, 0, 1, acq, gpu) != 0) ; x = x + 1; exchange(lock, 0, rel, gpu); }
thread P1 @ cta 1 { while (cas(lock, 0, 1, acq, gpu) != 0) ; x = x + 1; exchange(lock, 0, rel, gpu); }
forall (x == 2)`, `PTX lock
{ lock = 0; x = 0; }
 P0@cta 0                         | P1@cta 1 ;
 L:                               | L: atom.acquire.gpu.cas r, lock, 0, 1 ;
 atom.acquire.gpu.cas r, lock, 0, 1 | bne r, 0, L ;
 bne r, 0, L                      | ;
 ld.weak r, x                     | ld.weak r, [x] ;
 add r, r, 1                      | add r, 1, r ;
 st.weak x, r                     | st.weak x, r ;
 atom.release.gpu.exch r, lock, 0 | red.release.gpu.exch lock, 0 ;
forall (x == 2)`},
		{"barriers and branches", `C bar
int x, y = 5;
thread P0 @ cta 1 { int r0 = 3; if (r0 == 3) x = r0 * 2; barrier(1); arrive(2); }
thread P1 @ cta 1 { int r1; barrier(1); r1 = x; if (r1 == 6) y = r1 - 1; arrive(2); }
forall (x == 6 /\ y == 5 /\ P1:r1 == 6)`, `PTX bar
{ x = 0; y = 5; z @ generic aliases x; P0:r0 = 1; }
 P0@cta 1          | P1@cta 1 ;
 ld r0, 3          | bar.cta.sync 1 ;
 bne r0, 3, End    | ld.weak r1, z ;
 mul r0, r0, 2     | beq r1, 6, Then ;
 st.weak x, r0     | goto End ;
 End:              | Then: sub r2, r1, 1 ;
 bar.cta.sync 1    | st.weak y, r2 ;
 bar.cta.arrive 2  | End: ;
                   | bar.cta.arrive 2 ;
forall (x == 6 /\ y == 5 /\ P1:r1 == 6)`},
	} {
		a := verifyText(t, c.name, c.scoped, litmus.Options{}, Options{})
		b := verifyText(t, c.name, c.ptx, litmus.Options{}, Options{})
		if a.Result != b.Result {
			// The two are searched in the same order, so even what was given up is the same.
			t.Errorf("%s: %+v and %+v", c.name, a.Result, b.Result)
		}
		if len(a.Outcomes) == 0 || fmt.Sprint(a.Outcomes) != fmt.Sprint(b.Outcomes) || a.Holds != b.Holds {
			t.Errorf("%s: outcomes %v and %v", c.name, a.Outcomes, b.Outcomes)
		}
		if len(a.Findings) != len(b.Findings) {
			t.Errorf("%s: %d and %d findings", c.name, len(a.Findings), len(b.Findings))
		}
	}
}
