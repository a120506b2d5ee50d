package verify

import (
	"strings"
	"testing"
)

// Thread 0 initialises the barrier. Each thread writes its element of x, arrives and waits, and reads the element of the next thread.
const (
	mbarrierVariables = ".shared .align 8 .b64 bar;\n.shared .align 4 .b32 x[4];\n.global .u32 lock;\n"
	mbarrierInit      = "setp.ne.u32 %p0, %t, 0; @%p0 bra READY; mbarrier.init.shared.b64 [bar], N; READY: bar.sync 0;\n"
	mbarrierWrite     = "mov.u64 %rd0, x; mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd0, %rd1; st.shared.u32 [%rd1], 7;\n"
	mbarrierArrive    = "mbarrier.arrive.shared.b64 %rd2, [bar];\n"
	mbarrierState     = "WAIT: mbarrier.test_wait.shared.b64 %p1, [bar], %rd2; @!%p1 bra WAIT;\n"
	mbarrierParity    = "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;\n"
	mbarrierRead      = "add.u32 %r0, %t, 1; setp.eq.u32 %p2, %r0, %ntid.x; @%p2 mov.u32 %r0, 0; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; " +
		"ld.shared.u32 %r1, [%rd1]; setp.ne.u32 %p2, %r1, 7; @%p2 trap;\n"
)

// TestMbarriers checks that an arrival is a read-modify-write that releases, that a test is a read that acquires, and
// that a loop of tests is a wait. So n threads have n! orders of their arrivals.
func TestMbarriers(t *testing.T) {
	whole := mbarrierInit + mbarrierWrite + mbarrierArrive + mbarrierState + mbarrierRead
	change := func(old, with string) string { return strings.Replace(whole, old, with, 1) }
	for _, c := range []struct {
		name, body, count string
		block             uint32
		want              int
		verdict, title    string
	}{
		{"two threads", whole, "2", 2, 2, OK, ""},
		{"three threads", whole, "3", 3, 6, OK, ""},
		{"four threads", whole, "4", 4, 24, OK, ""},
		{"by parity", change(mbarrierState, mbarrierParity), "3", 3, 6, OK, ""},
		{"one arrival too few", whole, "3", 2, 0, Error, "liveness"},
		{"one arrival too many", whole, "1", 2, -1, Error, "data race"},
		{"more arrivals than a phase has", change("b64 %rd2, [bar]", "b64 %rd2, [bar], 2"), "3", 2, 0, Error, "mbarrier"},
		{"two at once", change("b64 %rd2, [bar]", "b64 %rd2, [bar], 2"), "4", 2, 2, OK, ""},
		{"no wait", change(mbarrierState, ""), "2", 2, -1, Error, "data race"},
		{"a relaxed arrival", change("arrive.shared", "arrive.relaxed.cta.shared"), "2", 2, -1, Error, "data race"},
		{"a relaxed wait", change("test_wait.shared", "test_wait.relaxed.cta.shared"), "2", 2, -1, Error, "data race"},
		{"no barrier after the init", change("bar.sync 0;", ""), "2", 2, -1, Error, "data race"},
		{"a fence of initialisations, which releases no data", "setp.ne.u32 %p0, %t, 0; @%p0 bra WAIT; st.shared.u32 [x], 7; fence.mbarrier_init.release.cluster; st.relaxed.cta.shared.u32 [x+4], 1; ret;\n" +
			"WAIT: ld.acquire.cta.shared.u32 %r0, [x+4]; setp.eq.u32 %p0, %r0, 0; @%p0 bra WAIT; ld.shared.u32 %r0, [x];", "1", 2, -1, Error, "data race"},
		{"no init", change("mbarrier.init.shared.b64 [bar], N;", ""), "2", 2, -1, Error, "mbarrier"},
		{"a count of 0", whole, "0", 2, -1, Error, "mbarrier"},
		// The thread that drops out leaves the next phase to the others.
		{"dropping", mbarrierInit + "setp.eq.u32 %p1, %t, 0; @%p1 bra STAY; mbarrier.arrive_drop.shared.b64 %rd2, [bar]; ret; STAY: " + mbarrierArrive + mbarrierState +
			mbarrierArrive + strings.ReplaceAll(mbarrierState, "WAIT", "AGAIN"), "2", 2, 2, OK, ""},
		{"not dropping", mbarrierInit + "setp.eq.u32 %p1, %t, 0; @%p1 bra STAY; mbarrier.arrive.shared.b64 %rd2, [bar]; ret; STAY: " + mbarrierArrive + mbarrierState +
			mbarrierArrive + strings.ReplaceAll(mbarrierState, "WAIT", "AGAIN"), "2", 2, 0, Error, "liveness"},
		// Two phases, by state and by parity: both orders in each; and the one that arrives second in the second may by then have tested the first or not.
		{"two phases", mbarrierInit + mbarrierWrite + mbarrierArrive + mbarrierState + mbarrierArrive + strings.ReplaceAll(strings.Replace(mbarrierParity, "[bar], 0", "[bar], 1", 1), "WAIT", "AGAIN") +
			mbarrierRead, "2", 2, 8, OK, ""},
		{"the number of arrivals that are to come", mbarrierInit + mbarrierArrive + "mbarrier.pending_count.b64 %r0, %rd2; red.relaxed.gpu.global.add.u32 [lock], %r0; setp.gt.u32 %p1, %r0, 2; @%p1 trap;",
			"2", 2, 4, OK, ""},
		{"the end of a barrier", mbarrierInit + mbarrierArrive + mbarrierState + "bar.sync 0; setp.ne.u32 %p0, %t, 0; @%p0 ret; mbarrier.inval.shared.b64 [bar];", "2", 2, 2, OK, ""},
		{"the end of a barrier too early", mbarrierInit + mbarrierArrive + mbarrierState + "setp.ne.u32 %p0, %t, 0; @%p0 ret; mbarrier.inval.shared.b64 [bar];", "2", 2, -1, Error, "data race"},
	} {
		for _, model := range []string{"", "ptx"} {
			r := verifyLaunch(t, launchOf(t, mbarrierVariables, strings.ReplaceAll(c.body, "], N;", "], "+c.count+";"), 1, c.block), Options{Model: model})
			title := ""
			for _, f := range r.Findings {
				title += f.Title + "; "
			}
			if c.want >= 0 && model == "" && r.Executions != c.want || r.Verdict() != c.verdict || !strings.Contains(title, c.title) || r.Blocked > 0 && c.verdict == OK && model == "" {
				t.Errorf("%s (%s): %d executions, %d given up, %s: %q, %s; want %d, %s, %q", c.name, model, r.Executions, r.Blocked, r.Verdict(), title, r.Refusal, c.want, c.verdict, c.title)
			}
		}
	}
	for _, body := range []string{"mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 4;", "mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 4;", "cp.async.mbarrier.arrive.shared.b64 [bar];"} {
		if r := verifyLaunch(t, launchOf(t, mbarrierVariables, body, 1, 1), Options{}); !strings.Contains(r.Refusal, "asynchronous operations are not explored") {
			t.Errorf("%s: %s, %q", body, r.Verdict(), r.Refusal)
		}
	}
}
