package warp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// racyKernel writes kernels whose threads race, so that their results depend on the order of all steps.
type racyKernel struct {
	*rand.Rand
	strings.Builder
	labels int
}

func (k *racyKernel) line(format string, args ...any) { fmt.Fprintf(k, format+"\n", args...) }

func (k *racyKernel) reg() string { return fmt.Sprintf("%%r%d", k.IntN(4)) }

// access writes a load or a store of a word that all threads share, or of the thread's own word. The lanes access a
// line, one address, or any addresses.
func (k *racyKernel) access() {
	space, base := "shared", "%r20"
	if k.IntN(3) == 0 {
		space, base = "global", "%rd1"
	}
	index := []string{"%tx", "%ln", "%r21", k.reg()}[k.IntN(4)]
	k.line("and.b32 %%r9, %s, 255; add.u32 %%r9, %%r9, %d;", index, k.IntN(3))
	if space == "shared" {
		k.line("mad.lo.u32 %%r9, %%r9, 4, %s;", base)
		base = "%r9"
	} else {
		k.line("mad.wide.u32 %%rd2, %%r9, 4, %s;", base)
		base = "%rd2"
	}
	if k.IntN(2) == 0 {
		k.line("st.%s.u32 [%s], %s;", space, base, k.reg())
	} else {
		k.line("ld.%s.u32 %s, [%s];", space, k.reg(), base)
	}
}

// condition sets %p1 by thread, lane, warp or block, or by values.
func (k *racyKernel) condition() {
	switch k.IntN(7) {
	case 0:
		k.line("setp.eq.u32 %%p1, %%tx, %d;", k.IntN(256))
	case 1:
		k.line("setp.lt.u32 %%p1, %%ln, %d;", k.IntN(33))
	case 2:
		k.line("shr.u32 %%r9, %%tx, 5; setp.lt.u32 %%p1, %%r9, %d;", k.IntN(8))
	case 3:
		k.line("setp.gt.u32 %%p1, %%bx, %d;", k.IntN(8))
	case 4:
		k.line("setp.lt.u32 %%p1, %%tx, %d;", 8<<k.IntN(6))
	default:
		k.line("and.b32 %%r9, %s, %d; setp.ne.u32 %%p1, %%r9, 0;", k.reg(), 1<<k.IntN(3))
	}
}

// body writes some statements. It includes barriers where all threads of a block arrive.
func (k *racyKernel) body(depth int, all bool) {
	for range 1 + k.IntN(4) {
		k.labels++
		n := k.labels
		switch c := k.IntN(16); {
		case c < 4 && depth < 3:
			k.condition()
			k.line("@%%p1 bra A%d;", n)
			k.body(depth+1, false)
			if k.IntN(2) == 0 {
				k.line("bra B%d;\nA%d:", n, n)
				k.body(depth+1, false)
				k.line("B%d:", n)
			} else {
				k.line("A%d:", n)
			}
		case c == 4 && depth < 2: // a loop with the same number of iterations in all threads, which may be large
			r := 10 + depth
			k.line("mov.u32 %%r%d, %d;\nA%d:", r, 1+k.IntN([]int{3, 5, 40, 90}[k.IntN(4)]), n)
			k.body(depth+2, all)
			k.line("sub.u32 %%r%d, %%r%d, 1; setp.ne.u32 %%p2, %%r%d, 0;\n@%%p2 bra A%d;", r, r, r, n)
		case c == 5 && depth < 2: // with a number of iterations that depends on the thread
			r := 15 + depth
			k.line("and.b32 %%r%d, %s, 7;\nA%d:", r, k.reg(), n)
			k.body(depth+2, false)
			k.line("sub.u32 %%r%d, %%r%d, 1; setp.gt.s32 %%p2, %%r%d, 0;\n@%%p2 bra A%d;", r, r, r, n)
		case c < 8 && all:
			k.line("bar.sync %d;", k.IntN(16)/15)
		case c == 8 && k.IntN(4) == 0:
			k.condition()
			k.line("@%%p1 bra END;")
		case c < 13:
			k.access()
		default:
			k.line("mad.lo.u32 %s, %s, %d, %s;", k.reg(), k.reg(), k.Uint32(), k.reg())
		}
	}
}

// racyProgram returns the kernel with a number.
func racyProgram(n uint64) string {
	k := &racyKernel{Rand: rand.New(rand.NewPCG(n, 11))}
	k.line(".shared .align 4 .b8 box[1280];")
	k.line("mov.u32 %%r20, box; mov.u32 %%r21, %d; mov.u64 %%rd1, %%out;", k.IntN(256))
	k.line("mov.u32 %%r0, %%gid; mul.lo.u32 %%r1, %%tx, 40503; xor.b32 %%r2, %%tx, 0x155; mov.u32 %%r3, %%bx;")
	k.body(0, true)
	if k.IntN(2) == 0 {
		k.line("bar.sync 0;")
	}
	k.body(0, true)
	k.line("xor.b32 %%r0, %%r0, %%r1; add.u32 %%r0, %%r0, %%r2; xor.b32 %%r0, %%r0, %%r3; st.global.u32 [%%mine+2048], %%r0;\nEND:")
	return kernel(k.String())
}

// TestInStep checks that optimisations of scheduling change nothing: arms without groups, crews, and blocks that start
// after the turn of the block before. The order of steps, which memory shows because threads race, the counts and the
// events must be the same.
func TestInStep(t *testing.T) {
	defer func(n int) { hotLists, goesThroughArms, goesInStep = n, true, true }(hotLists)
	hotLists = 1
	needs := []event.Needs{0, 0, event.NeedGlobal | event.NeedShared | event.NeedValues,
		event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedValues | event.NeedOld | event.NeedReconverge | event.NeedAgain}
	for n := range uint64(testsize.Of(60, 200, 2000)) {
		src := racyProgram(n)
		gen := rand.New(rand.NewPCG(n, 12))
		block, grid := []int{32, 64, 96, 256, 45, 512}[gen.IntN(6)], 1+gen.IntN(12)
		need, seed := needs[gen.IntN(len(needs))], uint64(max(0, gen.IntN(8)-5))
		g := newRig(t, src)
		out := g.buffer(grid*block + 512)
		before := g.mem.Snapshot()
		var want string
		var first []byte
		for _, fast := range []bool{false, false, true} { // once so that there is code
			goesThroughArms, goesInStep = fast, fast
			g.mem.Restore(before)
			g.next = 0
			l := g.prepare(launch{grid: grid, block: block, out: out})
			rec := &recorder{}
			l.Sink, l.Needs, l.Seed, l.Together = rec, need, seed, !fast
			var faults []string
			l.OnFault = func(f engine.Fault) { faults = append(faults, fmt.Sprintf("%s %s %+v", f.Kind, f.Message, f.Stands)) }
			stats, err := New().Run(t.Context(), l)
			if err != nil && !errors.Is(err, engine.ErrDeadlock) {
				t.Fatal(err)
			}
			stats.Elapsed = 0
			got := fmt.Sprintf("%+v %v\n%s\n%s", stats, err, strings.Join(faults, "\n"), strings.Join(rec.lines, "\n"))
			memory := slices.Clone(g.mem.Contents())
			if !fast {
				want, first = got, memory
				continue
			}
			if got != want {
				t.Errorf("program %d, grid %d, block %d, needs %x, seed %d: got\n%.400s\nwant\n%.400s", n, grid, block, need, seed, got, want)
			}
			if !bytes.Equal(memory, first) {
				t.Errorf("program %d, grid %d, block %d, needs %x, seed %d: other memory", n, grid, block, need, seed)
			}
		}
		if t.Failed() {
			t.Fatal(src)
		}
	}
}
