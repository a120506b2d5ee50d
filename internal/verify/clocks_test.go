package verify

import (
	"fmt"
	"strings"
	"testing"
)

// TestClocks explores kernels that read clocks. Those whose behaviour does not depend on the clock have a verdict, and
// the others are refused.
func TestClocks(t *testing.T) {
	const read = "mov.u64 %rd0, %globaltimer; "
	// since sets %p0 if more than %rd0 and 1000 has passed.
	const since = "mov.u64 %rd1, %globaltimer; sub.u64 %rd1, %rd1, %rd0; setp.gt.u64 %p0, %rd1, 1000; "
	const slot = ".local .align 8 .b8 slot[16]; "
	// Block 1 waits for block 0, and sleeps between its attempts, how long depending on how long it has waited.
	wait := func(fence string) string {
		return "setp.eq.u32 %p1, %b, 0; @!%p1 bra WAIT; st.global.u32 [x], 7; " + fence + " atom.relaxed.gpu.global.exch.b32 %r0, [lock], 1; ret; WAIT: " + slot + read +
			"L: atom.relaxed.gpu.global.or.b32 %r1, [lock], 0; setp.ne.s32 %p2, %r1, 0; @%p2 bra DONE; " + since +
			"mov.u32 %r2, 100; @%p0 mov.u32 %r2, 1000; @!%p0 bra SHORT; st.local.u32 [slot+8], %r2; nanosleep.u32 %r2; bra L; SHORT: nanosleep.u32 20; bra L; " +
			"DONE: fence.acq_rel.gpu; ld.global.u32 %r3, [x]; setp.ne.u32 %p3, %r3, 7; @%p3 trap;"
	}
	for _, c := range []struct {
		name, body string
		want       int
		verdict    string
		refusal    string
	}{
		{"backoff", wait("fence.acq_rel.gpu;"), 1, OK, ""},
		{"backoff, without a release", wait(""), 2, Error, ""},
		{"in vain", slot + read + "L: ld.relaxed.gpu.global.u32 %r1, [lock]; setp.ne.s32 %p2, %r1, 0; @%p2 bra DONE; " + since + "@%p0 nanosleep.u32 100; bra L; DONE:", 0, Error, ""},
		{"a delay", read + "L: " + since + "@!%p0 bra L; red.relaxed.gpu.global.add.u32 [x], 1;", 2, OK, ""},
		{"time in local memory", slot + read + "st.local.u64 [slot], %rd0; red.relaxed.gpu.global.add.u32 [x], 1; L: ld.local.u64 %rd0, [slot]; " + since + "@!%p0 bra L;", 2, OK, ""},
		{"how long nobody asks", read + since + "selp.u32 %r0, 1, 2, %p0; red.relaxed.gpu.global.add.u32 [x], 1;", 2, OK, ""},
		{"the same both ways", read + since + "mov.u32 %r0, 1; @!%p0 bra ELSE; mov.u32 %r0, 1; bra JOIN; ELSE: mov.u32 %r1, 7; JOIN: red.relaxed.gpu.global.add.u32 [x], %r0;", 2, OK, ""},
		{"a shuffle", read + since + "@%p0 nanosleep.u32 20; shfl.sync.idx.b32 %r0, 5, 0, 31, -1; setp.ne.u32 %p1, %r0, 5; @%p1 trap;", 1, OK, ""},
		{"a timeout", read + "L: ld.relaxed.gpu.global.u32 %r1, [lock]; setp.ne.s32 %p2, %r1, 0; @%p2 bra DONE; " + since + "@!%p0 bra L; st.global.u32 [x], 1; DONE:", 0, Bounded, "depends on"},
		{"a value", read + since + "selp.u32 %r0, 1, 2, %p0; red.relaxed.gpu.global.add.u32 [x], %r0;", 0, Bounded, "depends on"},
		{"a value of two ways", read + since + "mov.u32 %r0, 1; @!%p0 bra JOIN; mov.u32 %r0, 2; JOIN: ld.global.u32 %r1, [lock]; red.relaxed.gpu.global.add.u32 [x], %r0;", 0, Bounded, "depends on"},
		{"two values", read + since + "mov.u32 %r0, 1; @!%p0 bra JOIN; mov.u32 %r0, 2; JOIN: red.relaxed.gpu.global.add.u32 [x], %r0;", 0, Bounded, "depends on"},
		{"a value of one way", read + since + "@!%p0 bra JOIN; mov.u64 %rd1, 0; JOIN: ld.global.u32 %r1, [lock]; st.global.u32 [x], %rd1;", 0, Bounded, "depends on"},
		{"a value of the other way", read + since + "@%p0 bra JOIN; mov.u64 %rd1, 0; JOIN: ld.global.u32 %r1, [lock]; st.global.u32 [x], %rd1;", 0, Bounded, "depends on"},
		{"a value in local memory", slot + read + since + "st.local.u32 [slot], 1; @!%p0 bra JOIN; st.local.u32 [slot], 2; JOIN: ld.global.u32 %r1, [lock]; ld.local.u32 %r0, [slot]; " +
			"red.relaxed.gpu.global.add.u32 [x], %r0;", 0, Bounded, "depends on"},
		{"an address", slot + read + "and.b64 %rd1, %rd0, 4; mov.u64 %rd2, slot; add.u64 %rd2, %rd2, %rd1; st.local.u32 [%rd2], 1;", 0, Bounded, "depends on"},
		{"an end", read + since + "@%p0 exit; red.relaxed.gpu.global.add.u32 [x], 1;", 0, Bounded, "depends on"},
		{"a fault", read + since + "@%p0 trap;", 0, Bounded, "depends on"},
		{"a barrier", read + since + "@%p0 bar.sync 0;", 0, Bounded, "depends on"},
		{"a vote", read + since + "vote.sync.any.pred %p1, %p0, -1;", 0, Bounded, "depends on"},
		{"a loop without an end", read + "L: " + since + "@%p0 bra L; bra L;", 0, Bounded, "depends on"},
	} {
		for _, o := range []Options{{Jobs: 1}, {Jobs: 2}, {Model: PTX}} {
			r := verifyLaunch(t, launchOf(t, lockVariables, c.body, 2, 1), o)
			if r.Executions != c.want || r.Verdict() != c.verdict || (c.refusal == "") != (r.Refusal == "") || !strings.Contains(r.Refusal, c.refusal) {
				t.Errorf("%s: %d executions, %s; want %d, %s (%s) %+v", c.name, r.Executions, r.Verdict(), c.want, c.verdict, r.Refusal, r.Findings)
			}
		}
	}
}

// TestPauses checks that pauses before the instructions of a kernel, of lengths that a clock determines, do not change
// its executions.
func TestPauses(t *testing.T) {
	const pause = "mov.u64 %rd6, %globaltimer; sub.u64 %rd6, %rd6, %rd7; setp.gt.u64 %p7, %rd6, 1000; @%p7 nanosleep.u32 1000; @!%p7 nanosleep.u32 10;"
	queue := `
	atom.relaxed.gpu.global.add.u32 %r0, [y], 1;
WAIT:	ld.acquire.gpu.global.u32 %r1, [lock];
	setp.ne.u32 %p0, %r0, %r1;
	@%p0 bra WAIT;
	ld.global.u32 %r2, [x];
	add.u32 %r2, %r2, 1;
	st.global.u32 [x], %r2;
	add.u32 %r1, %r1, 1;
	st.release.gpu.global.u32 [lock], %r1;`
	racing := strings.Replace(lockPTX, "acquire", "relaxed", 1)
	const buffering = "setp.eq.u32 %p0, %b, 0;\n@!%p0 bra O;\nld.relaxed.gpu.global.u32 %r0, [x];\nst.relaxed.gpu.global.u32 [y], 1;\nret;\n" +
		"O: ld.relaxed.gpu.global.u32 %r0, [y];\nst.relaxed.gpu.global.u32 [x], VALUE;\n" // the second store depends on the load or does not
	for _, body := range []string{lockPTX, racing, queue, strings.Replace(buffering, "VALUE", "1", 1), strings.Replace(buffering, "VALUE", "%r0", 1), "st.global.u32 [x], %t; bar.sync 0;\nld.global.u32 %r1, [x];\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nst.global.u32 [y], %r2;\n"} {
		paused := "mov.u64 %rd7, %globaltimer;\n" + strings.ReplaceAll(body, ";\n", ";\n"+pause+"\n")
		for _, size := range [][2]uint32{{3, 1}, {1, 3}} {
			for _, model := range []string{SRC11, PTX} {
				want := verifyLaunch(t, launchOf(t, lockVariables, body, size[0], size[1]), Options{Model: model})
				got := verifyLaunch(t, launchOf(t, lockVariables, paused, size[0], size[1]), Options{Model: model})
				if got.Executions != want.Executions || got.Verdict() != want.Verdict() || len(got.Findings) != len(want.Findings) || got.Refusal != want.Refusal {
					t.Errorf("%s: %d executions, %s, %d findings %s; want %d, %s, %d\n%s", model, got.Executions, got.Verdict(), len(got.Findings), got.Refusal, want.Executions,
						want.Verdict(), len(want.Findings), paused)
				}
			}
		}
	}
}

// TestVain explores loops that poll, and store the read values in local memory, like libcu++ without optimisation. An
// iteration after which the thread behaves the same as without it does not count, whatever its number of steps.
func TestVain(t *testing.T) {
	// poll returns when x is 2. It gives what it has left in local memory.
	poll := func(n int, before string) string {
		const ask = "ld.relaxed.gpu.global.u32 %r2, [x]; st.local.u32 [slot+4], %r2; setp.ne.u32 %p0, %r2, %r1; @%p0 bra HEAD;\n"
		return lockVariables + ".func (.reg .b32 %last) poll() {\n.local .align 8 .b8 slot[8]; .reg .b32 %r<3>; .reg .b64 %rd; .reg .pred %p0;\n" + before +
			"st.local.u64 [slot], 0; HEAD: ld.acquire.gpu.global.u32 %r1, [x]; st.local.u32 [slot], %r1; setp.eq.u32 %p0, %r1, 2; @%p0 bra END;\n" +
			strings.Repeat(ask, n) + "bra HEAD; END: ld.local.u32 %last, [slot+4]; ret;\n}\n"
	}
	const body = "atom.release.gpu.global.add.u32 %r0, [x], 1; call (%r1), poll, ();"
	const clock = "mov.u64 %rd, %globaltimer;"
	for _, c := range []struct {
		name, variables, body string
		want, ptx             int
	}{
		{"one", poll(1, ""), body, 2, 2},
		{"four", poll(4, ""), body, 2, 2},
		{"forty", poll(40, clock), body, 2, 2},
		// Either thread is the second, which reads 2. The first has left 0, having read 2 at once, 2, with one of three loads, or 1, with all.
		// There are two orders of what they add to y. Under scoped RC11 the first of the three loads might have read what another has read.
		{"what is left is read", poll(3, ""), body + "red.relaxed.gpu.global.add.u32 [y], %r1;", 2 * 3 * 2, 2 * 5 * 2},
	} {
		for _, model := range []string{SRC11, PTX} {
			r := verifyLaunch(t, launchOf(t, c.variables, c.body, 2, 1), Options{Model: model})
			want := c.want
			if model == PTX {
				want = c.ptx
			}
			if r.Executions != want || r.Verdict() != OK {
				t.Errorf("%s, %s: %d executions, %s; want %d %s %+v", c.name, model, r.Executions, r.Verdict(), want, r.Refusal, r.Findings)
			}
		}
	}
}

// TestAttempts explores barriers whose threads count their polls. The count adds no executions and no bounded ones,
// unless it is used.
func TestAttempts(t *testing.T) {
	// poll asks until x is 4, with a pause after eight attempts, and gives what it is told to.
	poll := func(first, later, gives string) string {
		return lockVariables + `
.func (.reg .b32 %gives) poll() {
	.local .align 4 .b8 count[4];
	.reg .b32 %r<3>;
	.reg .pred %p0;
	st.local.u32 [count], 0;
HEAD:	` + first + `.gpu.global.u32 %r1, [x];
	setp.eq.u32 %p0, %r1, 4;
	@%p0 bra END;
	ld.local.u32 %r2, [count];
	setp.ge.u32 %p0, %r2, 8;
	@%p0 bra LATER;
	add.u32 %r2, %r2, 1;
	st.local.u32 [count], %r2;
	bra HEAD;
LATER:	nanosleep.u32 20;
	` + later + `.gpu.global.u32 %r1, [x];
	setp.ne.u32 %p0, %r1, 4;
	@%p0 bra LATER;
END:	` + gives + `
	ret;
}
`
	}
	of := func(n int, poll string) string {
		return strings.ReplaceAll(poll, "%r1, 4;", fmt.Sprintf("%%r1, %d;", n))
	}
	const count, one = "ld.local.u32 %gives, [count];", "mov.u32 %gives, 1;"
	const arrive = "setp.eq.u32 %p0, %b, 0; @%p0 st.global.u32 [y], 1; atom.release.gpu.global.add.u32 %r0, [x], 1; call (%r1), poll, ();"
	for _, c := range []struct {
		name, variables, body string
		threads               uint32
		want                  int
		verdict               string
	}{
		{"four", poll("ld.acquire", "ld.acquire", one), "", 4, 24, OK},
		{"what is published", poll("ld.acquire", "ld.acquire", one), "ld.global.u32 %r2, [y];", 4, 24, OK},
		{"later attempts are weaker", of(2, poll("ld.acquire", "ld.relaxed", one)), "ld.global.u32 %r2, [y];", 2, 0, Error},
		{"later attempts are stronger", of(2, poll("ld.relaxed", "ld.acquire", one)), "ld.global.u32 %r2, [y];", 2, 0, Error},
		{"one too many", of(5, poll("ld.acquire", "ld.acquire", one)), "", 4, 0, Error},
		{"the count is used", of(2, poll("ld.acquire", "ld.acquire", count)),
			"setp.eq.u32 %p1, %r1, 5; @%p1 trap;", 2, 0, Error},
		{"and is not what is said", of(2, poll("ld.acquire", "ld.acquire", count)),
			"setp.gt.u32 %p1, %r1, 8; @%p1 trap;", 2, 0, OK},
	} {
		for _, jobs := range []int{1, 2} {
			r := verifyLaunch(t, launchOf(t, c.variables, arrive+c.body, c.threads, 1), Options{Jobs: jobs})
			if c.want > 0 && (r.Executions != c.want || r.Blocked > 0) || r.Verdict() != c.verdict || r.Refusal != "" {
				t.Errorf("%s: %d executions, %d given up, %s %s; want %d %s %+v", c.name, r.Executions, r.Blocked, r.Verdict(), r.Refusal, c.want, c.verdict, r.Findings)
			}
		}
	}
	// A wait for another value of the same location is no further attempt of the wait before it.
	const flag = "setp.ne.u32 %p0, %b, 0; @%p0 bra WAIT; st.relaxed.gpu.global.u32 [x], 1; st.relaxed.gpu.global.u32 [x], 0; ret;\n" +
		"WAIT: ld.relaxed.gpu.global.u32 %r1, [x]; setp.eq.u32 %p0, %r1, 0; @%p0 bra WAIT;\n" +
		"BACK: ld.relaxed.gpu.global.u32 %r1, [x]; setp.ne.u32 %p0, %r1, 0; @%p0 bra BACK;"
	if r := verifyLaunch(t, launchOf(t, lockVariables, flag, 2, 1), Options{}); r.Executions != 1 {
		t.Errorf("a flag that is taken back: %d executions, want 1", r.Executions)
	}
	// What comes after more attempts than are followed is not refused.
	variables := of(2, poll("ld.acquire", "shfl.bfly.b32 %r1, %r1, 1, 31; ld.acquire", one))
	for unroll, refused := range map[int]bool{4: false, 64: true} {
		r := verifyLaunch(t, launchOf(t, variables, arrive, 2, 1), Options{Model: PTX, Unroll: unroll})
		if refused != (r.Refusal != "") || !refused && r.Executions != 2 {
			t.Errorf("with %d iterations %d executions, %s", unroll, r.Executions, r.Refusal)
		}
	}
}

// TestVainForEver checks that threads are reported that wait forever and count their polls in local memory up to some
// number.
func TestVainForEver(t *testing.T) {
	variables := lockVariables + `
.func poll(.reg .b32 %want) {
	.local .align 8 .b8 slot[8];
	.reg .b32 %r<3>;
	.reg .pred %p0;
	st.local.u64 [slot], 0;
HEAD:	ld.acquire.gpu.global.u32 %r1, [x];
	setp.ge.u32 %p0, %r1, %want;
	@%p0 bra END;
	st.local.u32 [slot], %r1;
	ld.local.u32 %r2, [slot+4];
	setp.ge.u32 %p0, %r2, 3;
	@%p0 bra HEAD;
	add.u32 %r2, %r2, 1;
	st.local.u32 [slot+4], %r2;
	bra HEAD;
END:	ret;
}
`
	for _, c := range []struct {
		want       string
		executions int
		verdict    string
	}{{"2", 2, OK}, {"3", 0, Error}} {
		for _, model := range []string{SRC11, PTX} {
			r := verifyLaunch(t, launchOf(t, variables, "atom.release.gpu.global.add.u32 %r0, [x], 1; call poll, ("+c.want+");", 2, 1), Options{Model: model})
			if r.Executions != c.executions || r.Verdict() != c.verdict || c.verdict == Error && r.Findings[0].Kind != "liveness" {
				t.Errorf("%s, %s: %d executions, %s %s %+v", c.want, model, r.Executions, r.Verdict(), r.Refusal, r.Findings)
			}
		}
	}
}
