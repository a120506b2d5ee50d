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

// told is the results of a search: the complete executions, with their reads-from relation and coherence order, and the
// errors.
type told struct {
	executions map[string]int
	errors     map[string]bool
	result     explore.Result
}

// clear forgets what was told.
func (t *told) clear() {
	clear(t.executions)
	clear(t.errors)
}

// tells returns the options of a search that stores its results in t.
func (t *told) tells(locations int) explore.Options {
	t.executions, t.errors = map[string]int{}, map[string]bool{}
	return explore.Options{Races: true,
		Found: func(e explore.Error, x explore.Execution) bool {
			t.errors[fmt.Sprint(e.Kind, e.Thread, e.Other, e.Pos, e.OtherPos)] = true
			return true
		},
		Leaf: func(x explore.Execution, end explore.Ending) {
			if end != explore.Complete {
				return
			}
			events := x.Events()
			name := func(e int) string {
				if e < 0 {
					return "initial"
				}
				return fmt.Sprint(events[e].Thread, ".", events[e].Index)
			}
			var lines []string
			for e, ev := range events {
				if ev.Kind == model.R {
					lines = append(lines, fmt.Sprint(name(e), " reads ", ev.Value, " from ", name(ev.RF)))
				}
			}
			for loc := range int32(locations) {
				line := fmt.Sprint(loc, " ends with ", x.Final(loc), ":")
				for _, w := range x.Coherence(loc) {
					line += " " + name(int(w))
				}
				lines = append(lines, line)
			}
			slices.Sort(lines)
			t.executions[strings.Join(lines, "\n")]++
		}}
}

// compareAlong explores a test along program order, and with reads from later writes. The results must be equal if the
// first search reports that it is sufficient. It returns the reason why it is not, or "".
func compareAlong(t *testing.T, src string) string {
	t.Helper()
	test, err := litmus.Parse("random.litmus", src, litmus.Options{PTX: true, Unroll: 4})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	a := newAlong(test)
	if a == nil {
		return "proxies"
	}
	var got, want told
	o := got.tells(len(test.Variables))
	a.set(&o)
	got.result = explore.Explore(context.Background(), test, o)
	if got.result.Beyond {
		return "race"
	}
	if !a.enough(got.result) {
		return "promises"
	}
	want.result, err = candidates.Enumerate(context.Background(), test, model.PTX{}, want.tells(len(test.Variables)), want.clear)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	if g, w := got.result, want.result; g.Executions != w.Executions || g.Stuck != w.Stuck || g.Cut != w.Cut {
		t.Fatalf("%+v, want %+v\n%s", g, w, src)
	}
	for key, n := range got.executions {
		if n != 1 || want.executions[key] != 1 {
			t.Fatalf("%d and %d times:\n%s\n%s", n, want.executions[key], key, src)
		}
	}
	for e := range want.errors {
		if !got.errors[e] {
			t.Fatalf("error %s is not found\n%s", e, src)
		}
	}
	for e := range got.errors {
		if !want.errors[e] {
			t.Fatalf("error %s should not be found\n%s", e, src)
		}
	}
	return ""
}

// TestAlong compares the two searches under the model PTX on random programs and on locks.
func TestAlong(t *testing.T) {
	want := 400
	if testsize.Long() {
		want = 8000
	}
	r := rand.New(rand.NewPCG(33, 1))
	why := map[string]int{}
	for range want {
		why[compareAlong(t, randomGuarded(r))]++
		why[compareAlong(t, randomPTX(r, 3+r.IntN(4), r.IntN(2) == 0))]++
	}
	for range want / 2 {
		why[compareAlong(t, randomBuffering(r))]++
	}
	t.Logf("%v", why)
	for _, k := range []string{"", "race", "promises"} {
		if why[k] < want/100 {
			t.Errorf("of %d programs, %d end with %q", 2*want, why[k], k)
		}
	}
	for _, name := range []string{"caslock", "ticketlock", "ttaslock", "xfbarrier"} {
		src, err := os.ReadFile(filepath.Join("testdata", name+".litmus"))
		if err != nil {
			t.Fatal(err)
		}
		if why := compareAlong(t, string(src)); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// TestAlongCases checks whether the search along program order is sufficient, for programs that differ in one clause of
// the model.
func TestAlongCases(t *testing.T) {
	columns := func(threads string, rows ...string) string {
		return "PTX case\n " + threads + " ;\n " + strings.Join(rows, " ;\n ") + " ;\n"
	}
	three := "P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0"
	two := "P0@cta 0,gpu 0 | P1@cta 1,gpu 0"
	for _, c := range []struct{ name, src, why string }{
		{"a strong read, and an acquire that reads something else", columns(three,
			"st.weak d, 1 | ld.relaxed.gpu r0, f | st.relaxed.gpu f, 2",
			"st.release.gpu f, 1 | ld.acquire.gpu r1, f |",
			"| bne r0, 1, END | ",
			"| ld.weak r2, d |",
			"| END: |"), ""},
		{"the same without the acquire", columns(three,
			"st.weak d, 1 | ld.relaxed.gpu r0, f | st.relaxed.gpu f, 2",
			"st.release.gpu f, 1 | ld.relaxed.gpu r1, f |",
			"| bne r0, 1, END | ",
			"| ld.weak r2, d |",
			"| END: |"), "race"},
		{"an update and a fence", columns(two,
			"st.weak d, 1 | atom.relaxed.gpu.add r0, f, 10",
			"st.release.gpu f, 1 | fence.acq_rel.gpu",
			" | ld.relaxed.gpu r1, f",
			" | bne r1, 11, END",
			" | ld.weak r2, d",
			" | END:"), ""},
		{"a reduction and a fence", columns(two,
			"st.weak d, 1 | red.relaxed.gpu.add f, 10",
			"st.release.gpu f, 1 | fence.acq_rel.gpu",
			" | ld.relaxed.gpu r1, f",
			" | bne r1, 11, END",
			" | ld.weak r2, d",
			" | END:"), "race"},
		{"a weak read after a strong one that observes the write", columns(two,
			"st.relaxed.gpu f, 1 | ld.relaxed.gpu r0, f",
			" | beq r0, 0, END",
			" | ld.weak r1, f",
			" | END:"), ""},
		{"the same through an update", columns(three,
			"st.relaxed.gpu f, 1 | ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			" | bne r0, 11, END | bne r0, 0, END",
			" | ld.weak r1, f | atom.relaxed.gpu.add r1, f, 10",
			" | END: | END:"), ""},
		{"sc fences", columns(two,
			"st.relaxed.gpu f, 1 | st.relaxed.gpu g, 1",
			"fence.sc.gpu | fence.sc.gpu",
			"ld.relaxed.gpu r0, g | ld.relaxed.gpu r0, f"), ""},
		{"sc fences of which one excludes the other", columns(two,
			"st.relaxed.gpu f, 1 | st.relaxed.gpu g, 1",
			"fence.sc.gpu | fence.sc.cta",
			"ld.relaxed.gpu r0, g | ld.relaxed.gpu r0, f"), "race"},
		{"load buffering", columns(two,
			"ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), "promises"},
		{"load buffering with fences in both threads", columns(two,
			"ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			"fence.acq_rel.gpu | fence.sc.gpu",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), ""},
		{"load buffering with a fence in one thread", columns(two,
			"ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			"fence.acq_rel.gpu | ",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), "promises"},
		{"load buffering with an acquire fence that comes after the release fence", columns(two,
			"ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			"fence.release.gpu | fence.acq_rel.gpu",
			"fence.acquire.gpu | ",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), ""},
		{"the same in both threads", columns(two,
			"ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			"fence.release.gpu | fence.release.gpu",
			"fence.acquire.gpu | fence.acquire.gpu",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), "promises"},
		{"load buffering with acquires and releases", columns(two,
			"ld.acquire.gpu r0, f | ld.acquire.gpu r0, g",
			"st.release.gpu g, 1 | st.release.gpu f, 1"), ""},
		{"load buffering with acquires alone", columns(two,
			"ld.acquire.gpu r0, f | ld.acquire.gpu r0, g",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), "promises"},
		{"load buffering with a reduction, which makes no acquire pattern", columns(two,
			"red.relaxed.gpu.add f, 2 | ld.relaxed.gpu r0, g",
			"fence.acq_rel.gpu | fence.acq_rel.gpu",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), ""},
		{"the same with two of them", columns(two,
			"red.relaxed.gpu.add f, 2 | red.relaxed.gpu.add g, 2",
			"fence.acq_rel.gpu | fence.acq_rel.gpu",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1"), "promises"},
		{"dependencies without fences in one thread, and fences without dependencies in the others", columns(three,
			"ld.acquire.gpu r0, f | ld.relaxed.gpu r0, g | ld.relaxed.gpu r0, h",
			" | fence.acq_rel.gpu | fence.acq_rel.gpu",
			"st.relaxed.gpu g, r0 | st.relaxed.gpu h, 1 | st.relaxed.gpu f, 1"), ""},
		{"an exchange that does not depend on what it reads", columns(three,
			"atom.relaxed.gpu.exch r0, f, 1 | ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			" | st.relaxed.gpu g, r0 | add r1, r0, 1",
			" | | st.relaxed.gpu f, r1"), "promises"},
		{"load buffering with an update between", columns("P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0",
			"ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g | atom.relaxed.gpu.exch r0, g, 5",
			"fence.acq_rel.gpu | fence.sc.gpu |",
			"st.relaxed.gpu g, 1 | st.relaxed.gpu f, 1 |"), ""},
		{"load buffering with a dependency in each thread", columns(two,
			"ld.relaxed.gpu r0, f | ld.relaxed.gpu r0, g",
			"st.relaxed.gpu g, r0 | st.relaxed.gpu f, r0"), ""},
		{"updates of one location whose values do not depend on what is read", columns(two,
			"atom.relaxed.gpu.exch r0, f, 1 | atom.relaxed.gpu.exch r0, f, 3",
			"st.relaxed.gpu f, 2 | st.relaxed.gpu f, 4"), ""},
		{"the same with scopes that exclude the others", columns(two,
			"atom.relaxed.cta.exch r0, f, 1 | atom.relaxed.gpu.exch r0, f, 3",
			"st.relaxed.gpu f, 2 | st.relaxed.gpu f, 4"), "race"},
		{"a write of what nobody reads", columns(two,
			"ld.relaxed.gpu r0, f | st.relaxed.gpu f, 1",
			"st.relaxed.gpu g, 1 | "), ""},
		{"load buffering through a barrier", columns("P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 1,gpu 0",
			"ld.relaxed.gpu r0, f | bar.cta.sync 0 | ld.relaxed.gpu r0, g",
			"bar.cta.sync 0 | st.relaxed.gpu g, 1 | st.relaxed.gpu f, r0"), "promises"},
		{"the same where the barrier comes first", columns("P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 1,gpu 0",
			"bar.cta.sync 0 | st.relaxed.gpu g, 1 | ld.relaxed.gpu r0, g",
			"ld.relaxed.gpu r0, f | bar.cta.sync 0 | st.relaxed.gpu f, r0"), ""},
		{"the same where the arrival depends on what is read", columns("P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 1,gpu 0",
			"L: ld.relaxed.gpu r0, f | bar.cta.sync 0 | ld.relaxed.gpu r0, g",
			"beq r0, 0, L | st.relaxed.gpu g, 1 | st.relaxed.gpu f, r0",
			"bar.cta.sync 0 | | "), ""},
		{"updates of what one thread has set before a barrier", columns("P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0",
			"st.weak f, 3 | st.weak g, 1 | ",
			"bar.cta.sync 0 | bar.cta.sync 0 | bar.cta.sync 0",
			"atom.relaxed.gpu.add r0, f, 1 | atom.relaxed.gpu.add r0, f, 1 | atom.relaxed.gpu.exch r0, g, 7",
			"atom.relaxed.gpu.add r1, g, 1 | atom.relaxed.gpu.exch r1, g, 5 | "), ""},
		{"two updates of one location, and weak reads of it behind a barrier", columns("P0@cta 0,gpu 0 | P1@cta 0,gpu 0",
			"atom.relaxed.gpu.add r0, f, 1 | atom.relaxed.gpu.add r0, f, 1",
			"atom.relaxed.gpu.exch r0, f, 5 | atom.relaxed.gpu.max r0, f, 3",
			"bar.cta.sync 0 | bar.cta.sync 0",
			"ld.weak r1, f | ld.weak r1, f"), ""},
		{"one location, through a barrier", columns("P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 1,gpu 0",
			"ld.relaxed.gpu r0, f | bar.cta.sync 0 | atom.relaxed.gpu.add r0, f, 1",
			"bar.cta.sync 0 | atom.relaxed.gpu.add r0, f, 1 | "), ""},
		{"a proxy fence orders nothing", columns(two,
			"st.weak d, 1 | ld.relaxed.gpu r0, f",
			"fence.proxy.alias | fence.proxy.alias",
			"st.relaxed.gpu f, 1 | bne r0, 1, END",
			" | ld.weak r1, d",
			" | END:"), "race"},
	} {
		if why := compareAlong(t, c.src); why != c.why {
			t.Errorf("%s: %q, want %q", c.name, why, c.why)
		}
	}
}

// randomBuffering writes a program without weak accesses, whose threads read and then write, some of them with barriers
// between. Some of these programs have executions like load buffering.
func randomBuffering(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	threads, ctas := 2+r.IntN(3), 1+r.IntN(3)
	barriers := make([]string, ctas)
	for i := range barriers {
		if r.IntN(2) == 0 {
			barriers[i] = pick("barrier(0);\n", "barrier(0);\n", "barrier(0); barrier(0);\n", "arrive(0);\n")
		}
	}
	var b strings.Builder
	b.WriteString("C buffering\nint x, y, z;\n")
	n := 0
	for t := range threads {
		cta := r.IntN(ctas)
		fmt.Fprintf(&b, "thread P%d @ cta %d {\n int a = 0;\n", t, cta)
		access := func() {
			n++
			v, order := pick("x", "y", "y", "z"), pick("rlx", "rlx", "rlx", "acqrel")
			value := pick("1", "a", fmt.Sprint(n))
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, " fence(%s, gpu);\n", pick("acqrel", "acqrel", "sc", "acq", "rel"))
			}
			switch r.IntN(6) {
			case 0, 1:
				fmt.Fprintf(&b, " a = load(%s, %s, gpu);\n", v, strings.Replace(order, "acqrel", "acq", 1))
			case 2, 3:
				fmt.Fprintf(&b, " store(%s, %s, %s, gpu);\n", v, value, strings.Replace(order, "acqrel", "rel", 1))
			case 4:
				fmt.Fprintf(&b, " a = %s(%s, %s, %s, gpu);\n", pick("exchange", "fetch_add"), v, value, order)
			default:
				fmt.Fprintf(&b, " if (a == %s) store(%s, 1, rlx, gpu);\n", pick("0", "1"), v)
			}
		}
		for range r.IntN(3) {
			access()
		}
		if v := string("xyz"[t%3]); barriers[cta] != "" && r.IntN(4) == 0 {
			fmt.Fprintf(&b, " %s = 1;\n", v)
		}
		b.WriteString(barriers[cta])
		for range r.IntN(3 - threads/4) {
			access()
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// randomGuarded writes a program whose threads pass data on: weak accesses to d and e, and flags f and g that guard
// them. About half of these programs have no data race.
func randomGuarded(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	scope := func() string { return pick("gpu", "gpu", "gpu", "gpu", "sys", "cta") }
	threads := 2 + r.IntN(2)
	if r.IntN(8) == 0 {
		threads = 4
	}
	var b strings.Builder
	b.WriteString("C guarded\nint d, e, f, g;\n")
	cta := r.IntN(3) // 0: all in one
	register := 0
	fence := func() string {
		return fmt.Sprintf("fence(%s, %s); ", pick("sc", "sc", "acqrel", "rel", "acq"), scope())
	}
	data := func() string {
		register++
		v := pick("d", "d", "d", "e")
		return pick(fmt.Sprintf("%s = %d; ", v, register), fmt.Sprintf("int r%d = %s; ", register, v), fmt.Sprintf("%s = %s + 1; ", v, v))
	}
	for t := range threads {
		in := 0
		if cta > 0 {
			in = t % (cta + 1)
		}
		fmt.Fprintf(&b, "thread P%d @ cta %d {\n", t, in)
		for range 1 + r.IntN(3-threads/4) {
			flag := pick("f", "f", "g")
			register++
			own := register
			switch r.IntN(6) {
			case 0, 1: // publishes
				if r.IntN(2) == 0 || t == 0 {
					b.WriteString(data())
				}
				if r.IntN(2) == 0 {
					b.WriteString(fence())
				}
				order := pick("rlx", "rel", "rel")
				update := fmt.Sprintf("fetch_add(%s, 1, %s, %s);\n", flag, order, scope())
				b.WriteString(pick(fmt.Sprintf("store(%s, 1, %s, %s);\n", flag, order, scope()), update, fmt.Sprintf("int r%d = %s", own, update)))
			case 2: // waits
				fmt.Fprintf(&b, "while (load(%s, %s, %s) == 0) ; %s%s\n", flag, pick("acq", "rlx"), scope(), pick("", fence()), data())
			case 3: // stores of a flag and a load of the other between sc fences
				other := "g"
				if flag == "g" {
					other = "f"
				}
				fmt.Fprintf(&b, "store(%s, 1, rlx, %s); fence(sc, gpu); int r%d = load(%s, %s, gpu); if (r%d == 0) { %s}\n", flag, scope(), own, other, pick("rlx", "acq"), own, data())
			default: // looks
				read := pick("load(%s, acq, %s)", "load(%s, rlx, %s)", "fetch_add(%s, 0, acq, %s)", "fetch_add(%s, 1, acqrel, %s)", "cas(%s, 1, 2, acqrel, %s)")
				fmt.Fprintf(&b, "int r%d = "+read+"; ", own, flag, scope())
				if r.IntN(4) == 0 {
					fmt.Fprintf(&b, "int s%d = load(%s, acq, gpu); ", own, flag)
				}
				fmt.Fprintf(&b, "if (r%d == %d) { %s%s}\n", own, 1+r.IntN(2), pick("", "", fence()), data())
			}
		}
		if r.IntN(6) == 0 && cta == 0 && threads == 2 {
			b.WriteString("barrier();\n" + data() + "\n")
		}
		b.WriteString("}\n")
	}
	return b.String()
}
