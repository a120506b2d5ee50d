package verify

import (
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// TestCauses checks that the first line names the cause of a data race, and that the reason has the facts.
func TestCauses(t *testing.T) {
	passing := func(write, read string) string {
		return "PTX t\n{ x = 0; y = 0; }\nP0@cta 0 | P1@cta 1 ;\nst.weak x, 1 | L: ;\n" + write + " | " + read + " ;\n | bne r0, 1, L ;\n | ld.weak r1, x ;\n"
	}
	both := func(a, b string) string { return "PTX t\n{ x = 0; }\nP0@cta 0 | P1@cta 1 ;\n" + a + " | " + b + " ;\n" }
	// All threads of a block have a fence, and one of them signals after the barrier.
	signal := func(fence string) string {
		return strings.ReplaceAll("PTX t\n{ x = 0; y = 0; }\nP0@cta 0 | P1@cta 0 | P2@cta 1 ;\nst.weak x, 1 | FENCE | L: ;\nFENCE | bar.cta.sync 0 | ld.relaxed.gpu r0, y ;\n"+
			"bar.cta.sync 0 | st.relaxed.gpu y, 1 | bne r0, 1, L ;\n | | FENCE ;\n | | ld.weak r1, x ;\n", "FENCE", fence)
	}
	for _, c := range []struct{ name, src, cause, why, ptx string }{
		{"no release", passing("st.relaxed.gpu y, 1", "ld.acquire.gpu r0, y"), "a release is missing", "the write is no release.", "a release is missing"},
		{"no acquire", passing("st.release.gpu y, 1", "ld.relaxed.gpu r0, y"), "an acquire is missing", "the read is no acquire.", "an acquire is missing"},
		{"a narrow release", passing("st.release.cta y, 1", "ld.acquire.gpu r0, y"), "a scope is too small", "the scope cta of the write does not include the reader.", "a scope is too small"},
		{"a narrow acquire", passing("st.release.gpu y, 1", "ld.acquire.cta r0, y"), "a scope is too small", "the scope cta of the read does not include the writer.", "a scope is too small"},
		{"a flag that is not atomic", passing("st.weak y, 1", "ld.acquire.gpu r0, y"), "y, which should order the accesses, is not atomic", "the write is not atomic, and so", "y, which should order the accesses, is not atomic"},
		{"nothing", both("st.weak x, 1", "ld.weak r0, x"), "neither access is atomic", "neither access is atomic.", "neither access is atomic"},
		{"two writes", both("st.weak x, 1", "st.weak x, 2"), "neither write is atomic", "neither write is atomic.", "neither write is atomic"},
		{"one read", both("st.relaxed.gpu x, 1", "ld.weak r0, x"), "the read is not atomic", "the read is not atomic.", "the read is not atomic"},
		{"one write", both("st.weak x, 1", "ld.relaxed.gpu r0, x"), "the write is not atomic", "the write is not atomic.", "the write is not atomic"},
		{"sc fences", signal("fence.sc.gpu"), "a fence is in the wrong place", "The memory model of PTX has an order of sc fences and no race", ""},
		{"other fences", signal("fence.acq_rel.gpu"), "a fence is in the wrong place", "no barrier makes it one of thread P1).", "a fence is in the wrong place"},
		{"no fence of the signalling thread", strings.Replace(signal("fence.sc.gpu"), "| fence.sc.gpu |", "| mov r9, 0 |", 1), "a release is missing", "The memory model of PTX has", ""},
	} {
		for model, want := range map[string]string{SRC11: c.cause, PTX: c.ptx} {
			found := ""
			for _, f := range verifyText(t, c.name, c.src, litmus.Options{}, Options{Model: model}).Findings {
				if f.Cause == want && (model == PTX || strings.Contains(f.Why, c.why)) {
					found = want
					break
				}
				found += f.Cause + " " + f.Why
			}
			if found != want {
				t.Errorf("%s, %s: %q, want %q", c.name, model, found, want)
			}
		}
	}
}

// TestUpdateCause checks that the reason for the race of two plain updates does not take the data for a flag: one of
// the writes comes after a read of the other one.
func TestUpdateCause(t *testing.T) {
	const src = "PTX t\n{ x = 0; }\nP0@cta 0 | P1@cta 1 ;\nld.weak r0, x | ld.weak r0, x ;\nxor r0, r0, 1 | xor r0, r0, 1 ;\nst.weak x, r0 | st.weak x, r0 ;\n"
	for _, model := range []string{SRC11, PTX} {
		r := verifyText(t, "t", src, litmus.Options{}, Options{Model: model})
		if len(r.Findings) < 2 {
			t.Errorf("%s: %d findings", model, len(r.Findings))
		}
		for _, f := range r.Findings {
			if f.Cause != "neither access is atomic" && f.Cause != "neither write is atomic" {
				t.Errorf("%s: %q %q", model, f.Cause, f.Why)
			}
		}
	}
}

// TestMixedFix checks that both fixes of a race of an atomic and a plain access are reported, for example if the last
// thread resets a counter.
func TestMixedFix(t *testing.T) {
	const src = "PTX t\n{ x = 0; }\nP0@cta 0 | P1@cta 1 ;\nfence.acq_rel.gpu | atom.add r0, x, 1 ;\natom.add r0, x, 1 | bne r0, 1, E ;\n | fence.acq_rel.gpu ;\n | st.weak x, 0 ;\n | E: ;\n"
	r := verifyText(t, "t", src, litmus.Options{}, Options{})
	const why, fix = "the write is no release, and the fence before it releases only what comes before the fence.", "make the write at line 5 a release; or make the write at line 7 atomic"
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.HasSuffix(f.Why, why) && f.Fix == fix }) {
		t.Errorf("%+v", r.Findings)
	}
}

// TestFailedAlone checks that threads that wait for a thread whose assertion has failed are not reported.
func TestFailedAlone(t *testing.T) {
	for _, wait := range []string{"barrier(0);", "while (load(x, rlx) == 0) ;"} {
		src := "C t\nint x;\nthread P0 { int r = 1; assert(r == 2); barrier(0); store(x, 1, rlx); }\nthread P1 { " + wait + " }\n"
		for _, model := range []string{SRC11, PTX} {
			if r := verifyText(t, wait, src, litmus.Options{}, Options{Model: model}); len(r.Findings) != 1 || r.Findings[0].Kind != "assertion" {
				t.Errorf("%s, %s: %+v, want a failed assertion", wait, model, r.Findings)
			}
		}
	}
}

// TestPollingRace checks that an update that spins, and writes what it has read, races like a write, although its write
// is omitted.
func TestPollingRace(t *testing.T) {
	const src = "PTX t\n{ x = 0; }\nP0@cta 0 | P1@cta 1 ;\nld.weak r0, x | L: ;\n | atom.add r1, x, 0 ;\n | bne r1, 1, L ;\n"
	for _, c := range []struct{ update, want string }{{"atom.add r1, x, 0", "atomic-mixed-with-plain liveness"}, {"atom.cas r1, x, 1, 1", "liveness"}} {
		for _, model := range []string{SRC11, PTX} {
			var kinds []string
			for _, f := range verifyText(t, c.update, strings.Replace(src, "atom.add r1, x, 0", c.update, 1), litmus.Options{}, Options{Model: model}).Findings {
				kinds = append(kinds, string(f.Kind))
			}
			slices.Sort(kinds)
			if got := strings.Join(kinds, " "); got != c.want {
				t.Errorf("%s, %s: %s, want %s", c.update, model, got, c.want)
			}
		}
	}
}

// TestFailedAtOnce checks that an execution in which a thread fails before it accesses memory has no drawing.
func TestFailedAtOnce(t *testing.T) {
	r := verifyLaunch(t, launchOf(t, lockVariables, "trap;", 1, 1), Options{})
	var b strings.Builder
	r.Text(&b, func(string, int) string { return "" }, func(_, s string) string { return s })
	if text := b.String(); strings.Contains(text, "execution:") || !strings.Contains(text, "before it accesses memory") {
		t.Error(text)
	}
}

// TestBesideVariable checks that an index that leads from one shared variable into another is reported, and that its
// consequences are not.
func TestBesideVariable(t *testing.T) {
	const variables = ".shared .align 4 .b8 one[8];\n.shared .align 4 .b8 two[8];\n"
	const body = "mov.u32 %r0, one; mul.lo.u32 %r1, %t, SIZE; add.u32 %r0, %r0, %r1; st.shared.u32 [%r0], %t; ld.shared.u32 %r2, [two+4];"
	for size, want := range map[string]int{"4": 0, "8": 1} {
		for _, model := range []string{SRC11, PTX} {
			r := verifyLaunch(t, launchOf(t, variables, strings.Replace(body, "SIZE", size, 1), 1, 2), Options{Model: model})
			if len(r.Findings) != want || want > 0 && (r.Findings[0].Kind != "out-of-variable" || !strings.Contains(r.Findings[0].Sides[0].What, "by an index of one, which has 8 bytes")) {
				t.Errorf("%s, %s: %s %+v", size, model, r.Summary(), r.Findings)
			}
		}
	}
}

func TestElement(t *testing.T) {
	for want, got := range map[string]string{"x": element("x", 0, 4, 4), "x+2": element("x", 2, 4, 4), "x[3]": element("x", 12, 4, 16), "x[3]+1": element("x", 13, 4, 16)} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
