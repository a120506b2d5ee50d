package isa

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFlow checks Rank and IPDom on shapes whose answer is plain: positions are those of the label's instruction.
func TestFlow(t *testing.T) {
	f := kernel(t, `.reg .pred %p<3>;
@%p1 bra ELSE;          // 0 -> joins at 4
@%p2 exit;              // 1
bra JOIN;               // 2
ELSE: trap;             // 3
JOIN:
HEAD: @%p1 bra OUT;     // 4 -> 7
@%p2 bra HEAD;          // 5 -> 4
bra HEAD;               // 6
OUT: ret;               // 7`)
	if got := fmt.Sprint(f.IPDom); got != "[-1 0 4 0 7 4 4 0]" {
		t.Errorf("post-dominators %s", got)
	}
	// The loop 4 5 6 is one run of ranks, before 7.
	lo, hi := min(f.Rank[4], f.Rank[5], f.Rank[6]), max(f.Rank[4], f.Rank[5], f.Rank[6])
	if hi-lo != 2 || f.Rank[7] <= hi || f.Rank[4] != lo || f.Rank[0] != 0 {
		t.Errorf("ranks %v", f.Rank)
	}
}

// TestEndlessLoop checks that a branch inside a loop that never ends reconverges.
func TestEndlessLoop(t *testing.T) {
	f := kernel(t, `.reg .pred %p<3>;
HEAD: @%p1 bra SKIP;  // 0 -> 2
membar.gl;            // 1
SKIP: bra HEAD;       // 2`)
	if f.IPDom[0] != 2 {
		t.Errorf("post-dominators %v", f.IPDom)
	}
}

// TestFlowRandom compares Rank and IPDom of random control flow with their definitions: every strongly connected
// component is contiguous in rank, edges between components go up, and a post-dominator is on every path to the end.
func TestFlowRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		n := 2 + rnd.IntN(9)
		var b strings.Builder
		b.WriteString(".reg .pred %p;\n")
		for i := range n {
			fmt.Fprintf(&b, "L%d:", i)
			switch rnd.IntN(4) {
			case 0:
				b.WriteString("membar.gl;\n")
			case 1:
				fmt.Fprintf(&b, "bra L%d;\n", rnd.IntN(n))
			case 2:
				fmt.Fprintf(&b, "@%%p bra L%d;\n", rnd.IntN(n))
			case 3:
				b.WriteString("@%p ret;\n")
			}
		}
		b.WriteString("ret;")
		checkFlow(t, kernel(t, b.String()), b.String())
	}
}

func checkFlow(t *testing.T, f *Func, text string) {
	n := len(f.Insts)
	succ := successors(f)
	from := make([]map[int]bool, n)
	for i := range n {
		from[i] = reach(succ, i, -2)
	}
	loop := func(i, j int) bool { return from[i][j] && from[j][i] }
	for i := range n {
		for _, s := range succ[i] {
			if s != end && !from[s][i] && f.Rank[s] <= f.Rank[i] {
				t.Fatalf("edge %d to %d goes down in rank %v\n%s", i, s, f.Rank, text)
			}
		}
		// k ranks between two members of a loop: it is a member too.
		for j := range n {
			for k := range n {
				between := f.Rank[i] < f.Rank[k] && f.Rank[k] < f.Rank[j]
				if live := k == 0 || from[0][k]; live && between && loop(i, j) && !loop(i, k) {
					t.Fatalf("%d stands in the loop of %d and %d: ranks %v\n%s", k, i, j, f.Rank, text)
				}
			}
		}
		ends := from[i][end]
		for k := range from[i] {
			ends = ends && (k == end || from[k][end])
		}
		if f.Insts[i].Class != Branch || !ends {
			continue // an endless loop is in reach: what joins after it is a matter of choice
		}
		// The immediate post-dominator: the first of those on every path to the end.
		want := -1
		for k := range n {
			if k != i && from[i][k] && !reach(succ, i, k)[end] && (want < 0 || !reach(succ, i, k)[want]) {
				want = k
			}
		}
		if int(f.IPDom[i]) != want {
			t.Fatalf("post-dominator of %d is %d, want %d\n%s", i, f.IPDom[i], want, text)
		}
	}
}

// end represents the end of the function among successors.
const end = -1

func successors(f *Func) [][]int {
	succ := make([][]int, len(f.Insts))
	for i := range f.Insts {
		in := &f.Insts[i]
		for _, x := range in.Targets {
			succ[i] = append(succ[i], int(x))
		}
		if in.Class == Ret {
			succ[i] = append(succ[i], end)
		}
		if in.Class != Ret && in.Class != Branch || in.Guard >= 0 {
			succ[i] = append(succ[i], i+1)
		}
	}
	return succ
}

// reach returns the instructions that one can reach without passing through another.
func reach(succ [][]int, from, without int) map[int]bool {
	seen := map[int]bool{}
	work := []int{from}
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		if x == end || x == without && x != from {
			continue
		}
		for _, s := range succ[x] {
			if s != without && !seen[s] {
				seen[s] = true
				work = append(work, s)
			}
		}
	}
	return seen
}

// TestSynchronises checks which kernels have operations, or call functions with operations, that could order threads
// besides barriers.
func TestSynchronises(t *testing.T) {
	const functions = `.func leaf()
{
.reg .b32 %r<2>; .reg .b64 %rd<2>;
red.global.add.u32 [%rd1], %r1;
ret;
}
.func middle()
{
call leaf;
ret;
}
.func loop()
{
call loop;
ret;
}
`
	for body, want := range map[string]bool{
		"ret;":                                   false,
		"bar.sync 0;":                            false,
		"bar.warp.sync 0xffffffff;":              false,
		"ld.volatile.global.u32 %r1, [%rd1];":    false,
		"ld.relaxed.gpu.global.u32 %r1, [%rd1];": false,
		"ld.acquire.gpu.global.u32 %r1, [%rd1];": true,
		"st.release.gpu.global.u32 [%rd1], %r1;": true,
		"atom.shared.add.u32 %r1, [%rd1], 1;":    true,
		"membar.cta;":                            true,
		"fence.acq_rel.gpu;":                     true,
		"bra done; fence.sc.sys; done:":          true,
		"call middle;":                           true,
		"call loop;":                             false,
	} {
		f := decode(t, functions+".visible .entry k()\n{\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\n"+body+"\nret;\n}").ByName["k"]
		if f.Err != nil {
			t.Fatal(f.Err)
		}
		if got := f.Synchronises(); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}
