package warp

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// retold records a stream as text, with and without Again events.
type retold struct {
	recorder
	room   []event.Event
	again  int // number of Again events
	events int
	t      testing.TB
	series map[*event.Series]bool
}

func (r *retold) Events(b *event.Batch) {
	r.events += len(b.Events)
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind != event.Again {
			continue
		}
		r.again++
		words := uint32(0)
		s := b.Series[e.Side]
		if !r.series[s] {
			if r.series == nil {
				r.series = map[*event.Series]bool{}
			}
			if r.series[s] = true; int(s.ID) != len(r.series) {
				r.t.Errorf("series number %d has ID %d", len(r.series), s.ID)
			}
		}
		for k := range s.Events {
			x := b.Nth(e, k)
			if !x.Valid() || x.Mask != e.Mask || x.Launch != e.Launch || x.Space != event.Shared || x.Order != event.Weak {
				r.t.Errorf("%+v is of a series", x)
			}
			if x.Flags&event.FlagValues != 0 {
				if x.Val != e.Val+words {
					r.t.Errorf("the values of %+v, of a series, begin at %d", x, x.Val-e.Val)
				}
				n := uint32(bits.OnesCount32(x.Mask) * event.ValueWords(x.Size))
				if words += n; x.Flags&event.FlagOld != 0 {
					words += n
				}
			}
		}
		if s.Words != words {
			r.t.Errorf("a series of %d words says %d", words, s.Words)
		}
	}
	b.Plain(&r.room, r.plain)
}

func (r *retold) plain(b *event.Batch) {
	r.recorder.Events(b)
	for i := range b.Events {
		e := &b.Events[i]
		r.lines[len(r.lines)-len(b.Events)+i] += fmt.Sprintf(" %d at %d of %d", e.Flags, e.Place, e.Launch)
	}
}

// tiles writes kernels whose blocks access the same shared memory repeatedly.
type tiles struct {
	*rand.Rand
	strings.Builder
	loops int
	bases []string
}

func (k *tiles) line(format string, a ...any) { fmt.Fprintf(k, "\t"+format+"\n", a...) }

func tileKernel(r *rand.Rand) string {
	k := &tiles{Rand: r, bases: []string{"%r2", "%r3", "%r4", "%r5"}}
	k.line("mov.u32 %%r1, %%tid.y; mov.u32 %%r2, box; mov.u32 %%r7, %%tid.x;")
	k.line("mad.lo.u32 %%r3, %%r1, %d, %%r2;", 64*(1+r.IntN(2)))
	k.line("mad.lo.u32 %%r4, %%r7, %d, %%r2;", []int{4, 8, 64, 68}[r.IntN(4)])
	k.line("mad.lo.u32 %%r5, %%r7, 4, %%r3; xor.b32 %%r7, %%r7, 5; mad.lo.u32 %%r6, %%r7, 4, %%r2;")
	k.line("mov.u32 %%r8, %d; mov.u32 %%r9, 7;", r.IntN(2))
	for range 1 + r.IntN(3) {
		k.body(0)
		if r.IntN(2) == 0 {
			k.line("bar.sync 0;")
		}
		if r.IntN(4) == 0 {
			k.line("mov.u32 %%r9, %d;\n{ .param .b32 a0; .param .b32 r0; st.param.b32 [a0], %%r9; call.uni (r0), rec, (a0); ld.param.b32 %%r9, [r0]; }", 1+r.IntN(4))
		}
	}
	k.line("st.global.u32 [%%mine], %%r8;")
	return prelude + `
.shared .align 8 .b8 box[8192];
.func (.param .b32 r) rec (.param .b32 n)
{
	.reg .b32 %r<8>;
	.reg .pred %p;
	ld.param.u32 %r1, [n];
	ld.shared.u32 %r2, [box+16];
	ld.shared.u32 %r3, [box+20];
	ld.shared.u32 %r4, [box+24];
	add.u32 %r2, %r2, %r4;
	setp.gt.u32 %p, %r1, 0;
	@%p bra more;
	st.param.b32 [r], %r2;
	ret;
more:
	.param .b32 a0;
	.param .b32 r0;
	sub.u32 %r1, %r1, 1;
	st.param.b32 [a0], %r1;
	call.uni (r0), rec, (a0);
	ld.param.b32 %r3, [r0];
	add.u32 %r3, %r3, %r2;
	st.param.b32 [r], %r3;
	ret;
}
` + entry("k", k.String())
}

// body writes accesses, and loops of some.
func (k *tiles) body(depth int) {
	for range 1 + k.IntN(6) {
		base, off := k.bases[k.IntN(len(k.bases))], 4*k.IntN(40)
		if k.IntN(12) == 0 {
			base = "%r6" // not a line
		}
		switch k.IntN(24) {
		default:
			k.line("ld.shared.u32 %%r9, [%s+%d];", base, off)
		case 5, 6:
			k.line("st.shared.u32 [%s+%d], %%r8;", base, off)
		case 7:
			k.line("st.shared.u8 [%s+%d], %%r8;", base, off)
		case 8:
			k.line("ld.volatile.shared.u32 %%r9, [%s+%d];", base, off)
		case 9:
			k.line("ld.global.u32 %%r9, [%%out];")
		}
		k.line("add.u32 %%r8, %%r8, %%r9;")
		if depth < 3 && k.IntN(5) == 0 {
			k.loops++
			n, i, at := k.loops, fmt.Sprint("%r", 20+depth), fmt.Sprint("%r", 10+depth)
			k.line("mov.u32 %s, 0;\nL%d:", i, n)
			k.line("mad.lo.u32 %s, %s, %d, %s;", at, i, []int{0, 4, 64}[k.IntN(3)], k.bases[k.IntN(len(k.bases))])
			k.bases = append(k.bases, at)
			k.body(depth + 1)
			k.bases = k.bases[:len(k.bases)-1]
			k.line("add.u32 %s, %s, 1; setp.lt.u32 %%p1, %s, %s; @%%p1 bra L%d;", i, i, i, []string{"2", "3", "%n"}[k.IntN(3)], n)
		}
	}
}

// TestAgain checks that the stream with series has the same events as the stream without.
func TestAgain(t *testing.T) {
	n := 250
	if !testsize.Long() {
		n = 60
	}
	again, with, without := 0, 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		g := newRig(t, tileKernel(r))
		l := g.prepare(launch{grid: 4, n: uint32(2 + r.IntN(4))})
		l.Block = []event.Dim3{{X: 16, Y: 16, Z: 1}, {X: 64, Y: 1, Z: 1}, {X: 8, Y: 9, Z: 1}, {X: 12, Y: 8, Z: 1}, {X: 20, Y: 1, Z: 1}}[r.IntN(5)]
		out := g.buffer(4 * 256)
		binary.LittleEndian.PutUint64(l.Params, out)
		l.Needs = event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedLaunch
		switch r.IntN(3) {
		case 0:
			l.Needs |= event.NeedValues
		case 1:
			l.Needs |= event.NeedValues | event.NeedOld
		}
		if r.IntN(4) == 0 {
			l.Schedule = engine.Lockstep
		}
		run := func(needs event.Needs) *retold {
			copied, rec := *l, &retold{t: t}
			copied.Sink, copied.Needs = rec, l.Needs|needs
			copied.OnFault = func(f engine.Fault) { t.Errorf("seed %d: %s %s", seed, f.Kind, f.Message) }
			data, err := g.mem.Bytes(out, 4*4*256)
			if err != nil {
				t.Fatal(err)
			}
			clear(data)
			if _, err := New().Run(t.Context(), &copied); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return rec
		}
		x, y := run(0), run(event.NeedAgain)
		if x.again != 0 {
			t.Fatalf("seed %d: %d series that nobody asked for", seed, x.again)
		}
		for i := range max(len(x.lines), len(y.lines)) {
			if i >= len(x.lines) || i >= len(y.lines) || x.lines[i] != y.lines[i] {
				t.Fatalf("seed %d: of %d events and, with series, %d, number %d differs:\n%s\n%s", seed, len(x.lines), len(y.lines), i, x.lines[min(i, len(x.lines)-1)], y.lines[min(i, len(y.lines)-1)])
			}
		}
		again, with, without = again+y.again, with+y.events, without+x.events
	}
	t.Logf("%d kernels, %d events, with series %d, of which %d say so", n, without, with, again)
	if with > without*4/5 {
		t.Error("there are too few series")
	}
}

// TestRemembered checks that a sequence is replaced when it has been missed once more often than its life allows. Its
// events stay valid for their holders. If more accesses miss than are found, remembering ends.
func TestRemembered(t *testing.T) {
	q := &remembered{}
	list := func(n uint64) []lanes.Head { return []lanes.Head{{Imm: 1, At: n}, {Imm: 2, At: n}, {Imm: 3, At: n}} }
	places := []uint32{1, 2}
	var s *sequence
	at := &s
	holds := func(n uint64, mask uint32) bool {
		return s.mask == mask && slices.Equal(s.keys, list(n)) && &s.places[0] == &places[0]
	}
	q.miss(at, 7, places, list(5))
	if !holds(5, 7) || s.life != 0 || s.Events != nil || q.misses != 3 {
		t.Fatalf("remembered is %+v, %d misses", s, q.misses)
	}
	first := s
	if q.miss(at, 9, places, list(6)); !holds(6, 9) || s != first {
		t.Errorf("one without life, met again, is %+v", s)
	}
	s.life, s.Events = 2, make([]event.Event, 3)
	for range 2 {
		if q.miss(at, 1, places, list(7)); !holds(6, 9) || s != first {
			t.Error("replaced while it lives")
		}
	}
	if q.miss(at, 1, places, list(7)); !holds(7, 1) || s == first || s.life != 0 || s.Events != nil || len(first.Events) != 3 || !slices.Equal(first.keys, list(6)) {
		t.Errorf("in its place is %+v, and it is %+v", s, first)
	}
	if q.misses != 15 || q.off {
		t.Errorf("%d misses, off: %v", q.misses, q.off)
	}
	for _, c := range []struct {
		misses, hits int
		off          bool
	}{{4092, 0, false}, {4093, 0, true}, {4093, 4095, true}, {4093, 4096, false}, {4093, 5000, false}, {10000, 10000, true}, {10000, 10003, false}} {
		q := &remembered{misses: c.misses, hits: c.hits}
		if q.miss(at, 1, places, list(8)); q.off != c.off {
			t.Errorf("after %d misses and %d hits, and three misses, off: %v", c.misses, c.hits, q.off)
		}
	}
	// Each of the mask and the first, middle and last address determines the place of a sequence.
	seen := map[**sequence]int{}
	for i := range uint64(40) {
		seen[q.at(7, list(i))]++
		seen[q.at(uint32(i), list(0))]++
		l := list(0)
		l[1].Imm += i
		seen[q.at(7, l)]++
	}
	if len(seen) < 95 {
		t.Errorf("%d places for 120 sequences", len(seen))
	}
}
