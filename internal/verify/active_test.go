package verify

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
)

// TestActiveLanes checks that each partition of the lanes that reach activemask is explored once. For n lanes their
// number is the Bell number, and the Fubini number if one lane of each part then adds to one variable.
func TestActiveLanes(t *testing.T) {
	const leader = "mov.u32 %r1, %lanemask_lt; and.b32 %r1, %r0, %r1; setp.ne.u32 %p1, %r1, 0; @!%p1 red.relaxed.gpu.global.add.u32 [x], 1;"
	for _, c := range []struct {
		name, body  string
		grid, block uint32
		want        int
		verdict     string
	}{
		{"one lane", "activemask.b32 %r0; setp.ne.u32 %p0, %r0, 1; @%p0 trap;", 1, 1, 1, OK},
		{"two", "activemask.b32 %r0;", 1, 2, 2, OK},
		{"three", "activemask.b32 %r0;", 1, 3, 5, OK},
		{"four", "activemask.b32 %r0;", 1, 4, 15, OK},
		{"five", "activemask.b32 %r0;", 1, 5, 52, OK},
		{"three, twice", "activemask.b32 %r0; activemask.b32 %r1;", 1, 3, 25, OK},
		{"two blocks", "activemask.b32 %r0;", 2, 2, 4, OK},
		{"three add", "activemask.b32 %r0;" + leader, 1, 3, 13, OK},
		{"four add", "activemask.b32 %r0;" + leader, 1, 4, 75, OK},
		{"itself among them", "activemask.b32 %r0; shr.u32 %r1, %r0, %t; and.b32 %r1, %r1, 1; setp.ne.u32 %p0, %r1, 1; @%p0 trap;", 1, 3, 5, OK},
		{"all lanes taken for active", "activemask.b32 %r0; setp.ne.u32 %p0, %r0, 3; @%p0 trap;", 1, 2, 2, Error},
		{"those that have not parted", "setp.eq.u32 %p0, %t, 1; @%p0 ret; activemask.b32 %r0; and.b32 %r0, %r0, 2; setp.ne.u32 %p0, %r0, 0; @%p0 trap;", 1, 3, 2, OK},
		{"two places", "setp.eq.u32 %p0, %t, 1; @%p0 bra OTHER; activemask.b32 %r0; ret; OTHER: activemask.b32 %r0; setp.ne.u32 %p0, %r0, 2; @%p0 trap;", 1, 2, 1, OK},
		{"a barrier of those that are active", "activemask.b32 %r0; bar.warp.sync %r0;", 1, 3, 5, OK},
		{"a shuffle of those that are active", "activemask.b32 %r0; shfl.sync.idx.b32 %r1, %t, %t, 31, %r0; setp.ne.u32 %p0, %r1, %t; @%p0 trap;", 1, 3, 5, OK},
		// Lane 0 waits for lane 1 before it, or after it: the two can then not be together, or may.
		{"a wait before it", "setp.eq.u32 %p0, %t, 1; @%p0 bra ON; L: ld.acquire.gpu.global.u32 %r2, [x]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L; ON: activemask.b32 %r0; " +
			"@%p0 st.release.gpu.global.u32 [x], 1;", 1, 2, 1, OK},
		{"a wait behind it", "setp.eq.u32 %p0, %t, 1; activemask.b32 %r0; @%p0 st.release.gpu.global.u32 [x], 1; @%p0 ret; " +
			"L: ld.acquire.gpu.global.u32 %r2, [x]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;", 1, 2, 2, OK},
		// The value read decides which lanes reach activemask: 2 reads of 2 values, and both may reach it together.
		{"what is read decides", "setp.eq.u32 %p0, %b, 1; @!%p0 bra READ; setp.ne.u32 %p1, %t, 0; @%p1 ret; st.relaxed.gpu.global.u32 [x], 1; ret; " +
			"READ: ld.relaxed.gpu.global.u32 %r2, [x]; setp.eq.u32 %p1, %r2, 0; @%p1 ret; activemask.b32 %r0;", 2, 2, 5, OK},
		{"in turns of a loop", "mov.u32 %r2, 0; L: activemask.b32 %r0; add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 2; @%p0 bra L;", 1, 2, 6, OK},
		{"too many lanes", "activemask.b32 %r0;", 1, 7, 0, Bounded},
	} {
		for _, o := range []Options{{}, {ReadsFrom: true}, {Model: PTX}} {
			r := verifyLaunch(t, launchOf(t, lockVariables, c.body, c.grid, c.block), o)
			classes := o.ReadsFrom && strings.HasSuffix(c.name, " add")
			if r.Executions != c.want && !classes || r.Verdict() != c.verdict {
				t.Errorf("%s, %+v: %d executions, %s (%s) %+v; want %d, %s", c.name, o, r.Executions, r.Verdict(), r.Refusal, r.Findings, c.want, c.verdict)
			}
			if noted := len(r.Notes) > 0; noted != (r.Refusal == "") {
				t.Errorf("%s: notes %q", c.name, r.Notes)
			}
		}
	}
}

// TestActiveLanesRandom compares activemask with votes for each partition of the lanes, which are explored one after
// the other.
func TestActiveLanesRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(38, 1))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	wrong, executions := 0, 0
	for range testsize.Of(40, 80, 2000) {
		block := 2 + r.IntN(2)
		lane := func() string { // steps of a lane
			s := ""
			for range r.IntN(3) {
				switch r.IntN(4) {
				case 0:
					s += fmt.Sprintf("ld.%s.gpu.global.u32 %%r2, [%s]; ", pick("relaxed", "acquire"), pick("x", "lock"))
				case 1:
					s += fmt.Sprintf("st.%s.gpu.global.u32 [%s], %d; ", pick("relaxed", "release"), pick("x", "lock"), 1+r.IntN(2))
				case 2:
					s += fmt.Sprintf("red.relaxed.gpu.global.add.u32 [%s], %s; ", pick("x", "lock"), pick("1", "%r0"))
				default:
					s += fmt.Sprintf("@%%p1 %s; ", pick("st.global.u32 [four], 1", "ld.global.u32 %r3, [four]"))
				}
			}
			return s
		}
		body := "mov.u32 %r0, 1; mov.u32 %r2, 0; setp.eq.u32 %p6, %b, 1; @%p6 bra OTHER;\n"
		for i := range block {
			body += fmt.Sprintf("setp.ne.u32 %%p0, %%t, %d; @%%p0 bra A%d; setp.eq.u32 %%p1, %%t, %d; %s\nA%d:\n", i, i, i, lane(), i)
		}
		body += "ACTIVE\n"
		for i := range block {
			body += fmt.Sprintf("setp.ne.u32 %%p0, %%t, %d; @%%p0 bra B%d; setp.eq.u32 %%p1, %%r2, 0; %s\nB%d:\n", i, i, lane(), i)
		}
		body += "ret; OTHER: setp.ne.u32 %p0, %t, 0; @%p0 ret; setp.eq.u32 %p1, %t, 0;" + lane()
		explored := func(active string) (int, []string) {
			res := verifyLaunch(t, launchOf(t, lockVariables+".global .u32 four;\n", strings.Replace(body, "ACTIVE", active, 1), 2, uint32(block)), Options{Jobs: 1 + r.IntN(2)})
			found := map[string]bool{}
			for _, f := range res.Findings {
				a, b := f.Sides[0].Line, f.Sides[len(f.Sides)-1].Line
				found[fmt.Sprint(f.Title, min(a, b), max(a, b))] = true
			}
			if res.Refusal != "" {
				t.Fatal(res.Refusal)
			}
			return res.Executions, slices.Sorted(maps.Keys(found))
		}
		n, found := explored("activemask.b32 %r0;")
		want, all := 0, map[string]bool{}
		partitions := [][]int{{1, 2}, {3, 3}}
		if block == 3 {
			partitions = [][]int{{1, 2, 4}, {3, 3, 4}, {5, 2, 5}, {1, 6, 6}, {7, 7, 7}}
		}
		for _, masks := range partitions {
			vote := ""
			for i, m := range masks {
				vote += fmt.Sprintf("setp.eq.u32 %%p0, %%t, %d; @%%p0 mov.u32 %%r4, %d; ", i, m)
			}
			k, of := explored(vote + "setp.eq.u32 %p0, %t, %t; vote.sync.ballot.b32 %r0, %p0, %r4;")
			want += k
			for _, f := range of {
				all[f] = true
			}
		}
		if wantFound := slices.Sorted(maps.Keys(all)); n != want || !slices.Equal(found, wantFound) {
			t.Errorf("%d executions, %q; want %d, %q\n%s", n, found, want, wantFound, body)
		}
		if executions += n; len(found) > 0 {
			wrong++
		}
	}
	t.Log(executions, "executions,", wrong, "programs with errors")
}
